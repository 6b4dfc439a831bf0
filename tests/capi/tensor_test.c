// Tensors: their descriptions, bytes and elements. The expected numbers are computed here from the bytes of the file.
#include <math.h>
#include <stdlib.h>

#include "check.h"

static float from_bf16(const unsigned char* bytes) {
  const uint32_t bits = (uint32_t)bytes[0] << 16 | (uint32_t)bytes[1] << 24;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static void describes_tensors(void) {
  poise_model* model = open_example();
  const poise_tensor* tensor = tensor_named(model, "model.layers.0.mlp.down_proj.weight");
  const poise_tensor* again;
  const poise_part* part;
  const poise_part* same;
  poise_tensor_info info = info_of(tensor);
  poise_part_info about;
  size_t size;
  size_t i;
  unsigned char* file = read_file(example("nano-mistral/model.safetensors"), &size);
  CHECK_TEXT("model.layers.0.mlp.down_proj.weight", info.name);
  CHECK(info.layout == POISE_DENSE && info.dtype == POISE_BF16 && info.rank == 2);
  CHECK(info.dims[0] == 128 && info.dims[1] == 320 && info.elements == 128 * 320);
  CHECK_TEXT("dense", info.layout_name);
  CHECK(info.parts == 1 && info.affine.delta == 0);
  CHECK_OK(poise_tensor_part(tensor, "data", &part, &error));
  CHECK_OK(poise_tensor_part_at(tensor, 0, &same, &error));
  CHECK(part == same);
  about = part_info_of(part);
  CHECK_TEXT("data", about.role);
  CHECK_TEXT("bf16", about.dtype_name);
  CHECK_TEXT("raw", about.encoding_name);
  CHECK_TEXT(example("nano-mistral/model.safetensors"), about.file);
  CHECK_TEXT("", about.digest);
  CHECK(about.dtype == POISE_BF16 && about.encoding == POISE_ENCODING_RAW &&
        about.digest_algorithm == POISE_DIGEST_NONE);
  CHECK(about.decoded_size == 128 * 320 * 2 && about.stored_size == about.decoded_size &&
        about.offset + about.decoded_size <= size);
  CHECK_OK(poise_tensor_at(model, info.index, &again, &error));
  CHECK(again == tensor);
  for (i = 0; poise_tensor_at(model, i, &again, &error) == POISE_OK; ++i) CHECK(info_of(again).index == i);
  CHECK(i == 39 && error.kind == POISE_NOT_FOUND);
  again = tensor;
  CHECK_STATUS(POISE_NOT_FOUND, poise_tensor_find(model, "no.such.tensor", &again, &error));
  CHECK_SAYS("no.such.tensor");
  CHECK_STATUS(POISE_NOT_FOUND, poise_tensor_part(tensor, "scales", &part, &error));
  CHECK_SAYS("scales");
  CHECK_STATUS(POISE_NOT_FOUND, poise_tensor_part_at(tensor, 1, &part, &error));
  CHECK_SAYS("down_proj.weight: part 1");
  CHECK(again == tensor && part == same);  // calls that fail leave their output alone
  free(file);
  poise_model_free(model);
}

static void lends_and_copies_bytes(void) {
  poise_model* model = open_example();
  poise_open_options options = POISE_OPEN_OPTIONS_INIT;
  const poise_part* part = first_part(tensor_named(model, "lm_head.weight"));
  poise_part_info about = part_info_of(part);
  poise_bytes bytes;
  unsigned char copy[64];
  size_t size;
  unsigned char* file = read_file(example("nano-mistral/model.safetensors"), &size);
  const unsigned char* data = file + about.offset;
  int round;
  CHECK_OK(poise_part_map(part, &bytes, &error));
  CHECK(bytes.size == about.decoded_size && memcmp(bytes.data, data, bytes.size) == 0);
  poise_model_free(model);
  options.io = POISE_IO_READ;
  CHECK_OK(poise_open(example("nano-mistral"), &options, &model, &error));
  part = first_part(tensor_named(model, "lm_head.weight"));
  CHECK_STATUS(POISE_UNSUPPORTED, poise_part_map(part, &bytes, &error));
  for (round = 0; round < 2; ++round) {
    CHECK_OK(poise_part_read(part, 1000, copy, sizeof copy, &error));
    CHECK(memcmp(copy, data + 1000, sizeof copy) == 0);
  }
  CHECK_OK(poise_part_read(part, about.decoded_size, NULL, 0, &error));
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_part_read(part, about.decoded_size, copy, 1, &error));
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_part_read(part, UINT64_MAX, copy, 2, &error));
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_part_read(part, 0, NULL, 1, &error));
  poise_model_free(model);
  free(file);
}

static void decodes_ranges(void) {
  poise_model* model = open_example();
  const poise_tensor* tensor = tensor_named(model, "model.embed_tokens.weight");
  const uint64_t elements = info_of(tensor).elements;
  poise_bytes bytes;
  float values[50];
  uint16_t halves[50];
  size_t i;
  CHECK_OK(poise_part_map(first_part(tensor), &bytes, &error));
  CHECK_OK(poise_tensor_decode(tensor, POISE_F32, 777, 50, values, sizeof values, &error));
  for (i = 0; i < 50; ++i) CHECK(values[i] == from_bf16((const unsigned char*)bytes.data + (777 + i) * 2));
  CHECK_OK(poise_tensor_decode(tensor, POISE_BF16, 777, 50, halves, sizeof halves, &error));
  CHECK(memcmp(halves, (const unsigned char*)bytes.data + 777 * 2, sizeof halves) == 0);
  CHECK_OK(poise_tensor_decode(tensor, POISE_F16, 0, 50, halves, sizeof halves, &error));
  CHECK_OK(poise_tensor_decode(tensor, POISE_F32, elements, 0, NULL, 0, &error));
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_tensor_decode(tensor, POISE_F32, elements, 1, values, 4, &error));
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_tensor_decode(tensor, POISE_F32, UINT64_MAX, 2, values, 8, &error));
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_tensor_decode(tensor, POISE_F32, 0, 50, values, sizeof values - 1, &error));
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_tensor_decode(tensor, POISE_F32, 0, 2, NULL, 8, &error));
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_tensor_decode(tensor, POISE_I32, 0, 2, values, 8, &error));
  CHECK_SAYS("not i32");
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_tensor_decode(tensor, (poise_dtype)77, 0, 2, values, 8, &error));
  poise_model_free(model);
}

// An element of qint8 is its mapped code times delta.
static void decodes_codes(void) {
  poise_convert_options options = POISE_CONVERT_OPTIONS_INIT;
  poise_model* model;
  const poise_tensor* tensor;
  poise_tensor_info info;
  poise_bytes bytes;
  float values[128];
  size_t i;
  options.quantize = "qint8";
  model = open_converted("codes.alt", &options);
  tensor = tensor_named(model, "model.layers.1.self_attn.q_proj.weight");
  info = info_of(tensor);
  CHECK(info.layout == POISE_AFFINE && info.dtype == POISE_QINT8);
  CHECK(info.affine.delta > 0 && info.affine.min == info.affine.max && info.affine.packed == 0);
  CHECK_OK(poise_part_map(first_part(tensor), &bytes, &error));
  CHECK(bytes.size == info.elements);
  CHECK_OK(poise_tensor_decode(tensor, POISE_F32, 128, 128, values, sizeof values, &error));
  for (i = 0; i < 128; ++i) CHECK(values[i] == (float)((const signed char*)bytes.data)[128 + i] * info.affine.delta);
  poise_model_free(model);
}

// Groups and sparse tensors are compared with the elements that they were made from.
static void decodes_layouts(const char* name, const char* quantize, poise_layout sparse, poise_layout layout,
                            const char* main_role, float most) {
  poise_convert_options options = POISE_CONVERT_OPTIONS_INIT;
  poise_model* model = open_example();
  poise_model* converted;
  const poise_tensor* before;
  const poise_tensor* after;
  const poise_part* part;
  float expected[640];
  float found[640];
  size_t i;
  options.quantize = quantize;
  options.sparse = sparse;
  options.min_sparsity = 0;
  converted = open_converted(name, &options);
  before = tensor_named(model, "model.layers.2.mlp.down_proj.weight");
  after = tensor_named(converted, "model.layers.2.mlp.down_proj.weight");
  CHECK(info_of(after).layout == layout && info_of(after).parts >= 2);
  CHECK_OK(poise_tensor_part(after, main_role, &part, &error));
  CHECK_OK(poise_tensor_decode(before, POISE_F32, 320, 640, expected, sizeof expected, &error));
  CHECK_OK(poise_tensor_decode(after, POISE_F32, 320, 640, found, sizeof found, &error));
  for (i = 0; i < 640; ++i) CHECK(fabsf(expected[i] - found[i]) <= most);
  poise_model_free(converted);
  poise_model_free(model);
}

static void reads_compressed_parts(void) {
  poise_convert_options options = POISE_CONVERT_OPTIONS_INIT;
  poise_storage storage = POISE_STORAGE_INIT;
  poise_model* plain = open_example();
  poise_model* packed;
  const poise_part* before;
  const poise_part* after;
  poise_part_info about;
  poise_bytes bytes;
  unsigned char copy[100];
  storage.zstd_level = 3;
  storage.digest = POISE_DIGEST_SHA256;
  options.storage = &storage;
  packed = open_converted("packed.zt", &options);
  before = first_part(tensor_named(plain, "lm_head.weight"));
  after = first_part(tensor_named(packed, "lm_head.weight"));
  about = part_info_of(after);
  CHECK(about.decoded_size == part_info_of(before).decoded_size && about.stored_size < about.decoded_size);
  CHECK(about.encoding == POISE_ENCODING_OTHER && about.encoding_name.size >= 4);
  CHECK(about.digest_algorithm == POISE_DIGEST_SHA256 && about.digest.size == 7 + 64 &&
        memcmp(about.digest.data, "sha256:", 7) == 0);
  CHECK_STATUS(POISE_UNSUPPORTED, poise_part_map(after, &bytes, &error));
  CHECK_OK(poise_part_map(before, &bytes, &error));
  CHECK_OK(poise_part_read(after, 4321, copy, sizeof copy, &error));
  CHECK(memcmp(copy, (const char*)bytes.data + 4321, sizeof copy) == 0);
  poise_model_free(packed);
  poise_model_free(plain);
}

static void tells_digests_apart(void) {
  static const poise_digest_algorithm kAlgorithms[] = {POISE_DIGEST_NONE, POISE_DIGEST_SHA256, POISE_DIGEST_XXH3};
  poise_convert_options options = POISE_CONVERT_OPTIONS_INIT;
  poise_storage storage = POISE_STORAGE_INIT;
  size_t i;
  options.overwrite = 1;
  options.storage = &storage;
  for (i = 0; i < 3; ++i) {
    poise_model* model;
    storage.digest = kAlgorithms[i];
    model = open_converted("digests.zt", &options);
    CHECK(part_info_of(first_part(tensor_named(model, "lm_head.weight"))).digest_algorithm == kAlgorithms[i]);
    poise_model_free(model);
  }
}

// q8_0 by its definition: a float16 scale, 1/127 of the largest magnitude, and 32 codes; 127 has the scale 1.
static void quantizes_without_a_file(void) {
  const uint64_t dims[] = {2, 32};
  float numbers[64];
  float decoded[64];
  float other[64];
  poise_model* model;
  const poise_tensor* tensor;
  poise_bytes bytes;
  size_t i;
  for (i = 0; i < 64; ++i) numbers[i] = (float)(i % 32 == 0 ? 127 : (int)i - 32);
  CHECK_OK(poise_quantize(numbers, dims, 2, "q8_0", &model, &error));
  CHECK_OK(poise_tensor_at(model, 0, &tensor, &error));
  CHECK(info_of(tensor).elements == 64 && info_of(tensor).rank == 2);
  CHECK_OK(poise_part_map(first_part(tensor), &bytes, &error));
  CHECK(bytes.size == 68);
  for (i = 0; i < 68; ++i) {
    const unsigned char* data = (const unsigned char*)bytes.data;
    const size_t at = i % 34;
    const int code = (int)numbers[i / 34 * 32 + (at < 2 ? 0 : at - 2)];
    CHECK(data[i] == (at == 0 ? 0x00 : at == 1 ? 0x3c : (unsigned char)(signed char)code));
  }
  CHECK_OK(poise_tensor_decode(tensor, POISE_F32, 0, 64, decoded, sizeof decoded, &error));
  CHECK_OK(poise_dequantize(bytes.data, bytes.size, "q8_0", dims, 2, other, 64, &error));
  CHECK(memcmp(numbers, decoded, sizeof numbers) == 0 && memcmp(numbers, other, sizeof numbers) == 0);
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_dequantize(bytes.data, 67, "q8_0", dims, 2, other, 64, &error));
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_dequantize(bytes.data, 68, "q8_0", dims, 2, other, 63, &error));
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_dequantize(bytes.data, 68, "q4_k", dims, 2, other, 64, &error));
  CHECK_SAYS("not whole blocks of 256");
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_dequantize(bytes.data, 68, "f16", dims, 2, other, 64, &error));
  poise_model_free(model);
  CHECK_STATUS(POISE_UNSUPPORTED, poise_quantize(numbers, dims, 2, "q4_k", &model, &error));
  CHECK_SAYS("not whole blocks of 256");
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_quantize(numbers, dims, 2, "q4_k_m", &model, &error));
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_quantize(numbers, dims, 2, "f16", &model, &error));
  CHECK_OK(poise_quantize(numbers, dims, 2, "qint8", &model, &error));
  CHECK_OK(poise_tensor_at(model, 0, &tensor, &error));
  CHECK(info_of(tensor).affine.delta == 1.0F);
  poise_model_free(model);
  numbers[40] = (float)HUGE_VAL;
  CHECK_STATUS(POISE_UNSUPPORTED, poise_quantize(numbers, dims, 2, "q8_0", &model, &error));
  CHECK_SAYS("element 40");
}

void test_tensor(void) {
  quantizes_without_a_file();
  describes_tensors();
  lends_and_copies_bytes();
  decodes_ranges();
  decodes_codes();
  decodes_layouts("groups.zt", "group8", POISE_DENSE, POISE_QUANTIZED_GROUP, "scales", 0.01F);
  decodes_layouts("rows.zt", NULL, POISE_SPARSE_CSR, POISE_SPARSE_CSR, "values", 0);
  decodes_layouts("coordinates.zt", NULL, POISE_SPARSE_COO, POISE_SPARSE_COO, "coords", 0);
  reads_compressed_parts();
  tells_digests_apart();
}
