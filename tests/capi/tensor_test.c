// Tensors: what they are, their bytes, and their elements. The expected numbers are computed here from the bytes of the file.
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
  poise_tensor tensor;
  poise_tensor again;
  poise_part part;
  size_t size;
  size_t i;
  unsigned char* file = read_file(example("nano-mistral/model.safetensors"), &size);
  CHECK_OK(poise_tensor_find(model, "model.layers.0.mlp.down_proj.weight", &tensor, &error));
  CHECK_TEXT("model.layers.0.mlp.down_proj.weight", tensor.name);
  CHECK(tensor.layout == POISE_DENSE && tensor.dtype == POISE_BF16 && tensor.rank == 2);
  CHECK(tensor.dims[0] == 128 && tensor.dims[1] == 320 && tensor.elements == 128 * 320);
  CHECK_TEXT("dense", tensor.layout_name);
  CHECK(tensor.part_count == 1);
  CHECK_OK(poise_tensor_part(&tensor, "data", &part, &error));
  CHECK_TEXT("data", part.role);
  CHECK_TEXT("bf16", part.dtype_name);
  CHECK_TEXT("raw", part.encoding);
  CHECK_TEXT(example("nano-mistral/model.safetensors"), part.file);
  CHECK_TEXT("", part.digest);
  CHECK(part.dtype == POISE_BF16 && part.size == 128 * 320 * 2 && part.stored_size == part.size);
  CHECK(part.offset + part.size <= size);
  CHECK_OK(poise_tensor_at(model, tensor.index, &again, &error));
  CHECK(again.parts == tensor.parts && again.name.data == tensor.name.data);
  for (i = 0; poise_tensor_at(model, i, &tensor, &error) == POISE_OK; ++i) CHECK(tensor.index == i);
  CHECK(i == 39 && error.kind == POISE_NOT_FOUND);
  CHECK_STATUS(POISE_NOT_FOUND, poise_tensor_find(model, "no.such.tensor", &tensor, &error));
  CHECK_SAYS("no.such.tensor");
  CHECK_STATUS(POISE_NOT_FOUND, poise_tensor_part(&again, "scales", &part, &error));
  CHECK_SAYS("scales");
  free(file);
  poise_model_free(model);
}

static void lends_and_copies_bytes(void) {
  poise_model* model = open_example();
  poise_open_options options = POISE_OPEN_OPTIONS_INIT;
  poise_tensor tensor;
  poise_bytes bytes;
  unsigned char copy[64];
  size_t size;
  unsigned char* file = read_file(example("nano-mistral/model.safetensors"), &size);
  const unsigned char* data;
  int round;
  CHECK_OK(poise_tensor_find(model, "lm_head.weight", &tensor, &error));
  data = file + tensor.parts[0].offset;
  CHECK_OK(poise_blob_map(tensor.parts[0].blob, &bytes, &error));
  CHECK(bytes.size == tensor.parts[0].size && memcmp(bytes.data, data, bytes.size) == 0);
  poise_model_free(model);
  options.io = POISE_IO_READ;
  CHECK_OK(poise_open(example("nano-mistral"), &options, &model, &error));
  CHECK_OK(poise_tensor_find(model, "lm_head.weight", &tensor, &error));
  CHECK_STATUS(POISE_UNSUPPORTED, poise_blob_map(tensor.parts[0].blob, &bytes, &error));
  for (round = 0; round < 2; ++round) {
    CHECK_OK(poise_blob_read(tensor.parts[0].blob, 1000, copy, sizeof copy, &error));
    CHECK(memcmp(copy, data + 1000, sizeof copy) == 0);
  }
  CHECK_OK(poise_blob_read(tensor.parts[0].blob, tensor.parts[0].size, NULL, 0, &error));
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_blob_read(tensor.parts[0].blob, tensor.parts[0].size, copy, 1, &error));
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_blob_read(tensor.parts[0].blob, UINT64_MAX, copy, 2, &error));
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_blob_read(tensor.parts[0].blob, 0, NULL, 1, &error));
  poise_model_free(model);
  free(file);
}

static void decodes_ranges(void) {
  poise_model* model = open_example();
  poise_tensor tensor;
  poise_bytes bytes;
  float values[50];
  uint16_t halves[50];
  size_t i;
  CHECK_OK(poise_tensor_find(model, "model.embed_tokens.weight", &tensor, &error));
  CHECK_OK(poise_blob_map(tensor.parts[0].blob, &bytes, &error));
  CHECK_OK(poise_tensor_decode(model, tensor.index, POISE_F32, 777, 50, values, sizeof values, &error));
  for (i = 0; i < 50; ++i) CHECK(values[i] == from_bf16((const unsigned char*)bytes.data + (777 + i) * 2));
  CHECK_OK(poise_tensor_decode(model, tensor.index, POISE_BF16, 777, 50, halves, sizeof halves, &error));
  CHECK(memcmp(halves, (const unsigned char*)bytes.data + 777 * 2, sizeof halves) == 0);
  CHECK_OK(poise_tensor_decode(model, tensor.index, POISE_F16, 0, 50, halves, sizeof halves, &error));
  CHECK_OK(poise_tensor_decode(model, tensor.index, POISE_F32, tensor.elements, 0, NULL, 0, &error));
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_tensor_decode(model, tensor.index, POISE_F32, tensor.elements, 1, values, 4, &error));
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_tensor_decode(model, tensor.index, POISE_F32, UINT64_MAX, 2, values, 8, &error));
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_tensor_decode(model, tensor.index, POISE_F32, 0, 50, values, sizeof values - 1, &error));
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_tensor_decode(model, tensor.index, POISE_F32, 0, 2, NULL, 8, &error));
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_tensor_decode(model, tensor.index, POISE_I32, 0, 2, values, 8, &error));
  CHECK_SAYS("not i32");
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_tensor_decode(model, tensor.index, (poise_dtype)77, 0, 2, values, 8, &error));
  CHECK_STATUS(POISE_NOT_FOUND, poise_tensor_decode(model, 39, POISE_F32, 0, 2, values, 8, &error));
  poise_model_free(model);
}

// qint8: code times delta, from the mapped codes.
static void decodes_codes(void) {
  poise_convert_options options = POISE_CONVERT_OPTIONS_INIT;
  poise_model* model;
  poise_tensor tensor;
  poise_bytes bytes;
  float values[128];
  size_t i;
  options.quantize = "qint8";
  model = open_converted("codes.alt", &options);
  CHECK_OK(poise_tensor_find(model, "model.layers.1.self_attn.q_proj.weight", &tensor, &error));
  CHECK(tensor.layout == POISE_AFFINE && tensor.dtype == POISE_QINT8);
  CHECK(tensor.affine.delta > 0 && tensor.affine.min == tensor.affine.max && tensor.affine.packed == 0);
  CHECK_OK(poise_blob_map(tensor.parts[0].blob, &bytes, &error));
  CHECK(bytes.size == tensor.elements);
  CHECK_OK(poise_tensor_decode(model, tensor.index, POISE_F32, 128, 128, values, sizeof values, &error));
  for (i = 0; i < 128; ++i) CHECK(values[i] == (float)((const signed char*)bytes.data)[128 + i] * tensor.affine.delta);
  poise_model_free(model);
}

// Groups and sparse tensors against the elements they were made from.
static void decodes_layouts(const char* name, const char* quantize, const char* sparse, poise_layout layout, const char* main_role, float most) {
  poise_convert_options options = POISE_CONVERT_OPTIONS_INIT;
  poise_model* model = open_example();
  poise_model* converted;
  poise_tensor before;
  poise_tensor after;
  poise_part part;
  float expected[640];
  float found[640];
  size_t i;
  options.quantize = quantize;
  options.sparse = sparse;
  options.min_sparsity = 0;
  converted = open_converted(name, &options);
  CHECK_OK(poise_tensor_find(model, "model.layers.2.mlp.down_proj.weight", &before, &error));
  CHECK_OK(poise_tensor_find(converted, "model.layers.2.mlp.down_proj.weight", &after, &error));
  CHECK(after.layout == layout && after.part_count >= 2);
  CHECK_OK(poise_tensor_part(&after, main_role, &part, &error));
  CHECK_OK(poise_tensor_decode(model, before.index, POISE_F32, 320, 640, expected, sizeof expected, &error));
  CHECK_OK(poise_tensor_decode(converted, after.index, POISE_F32, 320, 640, found, sizeof found, &error));
  for (i = 0; i < 640; ++i) CHECK(fabsf(expected[i] - found[i]) <= most);
  poise_model_free(converted);
  poise_model_free(model);
}

static void reads_compressed_parts(void) {
  poise_convert_options options = POISE_CONVERT_OPTIONS_INIT;
  poise_model* plain = open_example();
  poise_model* packed;
  poise_tensor before;
  poise_tensor after;
  poise_bytes bytes;
  unsigned char copy[100];
  options.storage.zstd_level = 3;
  options.storage.digest = "sha256";
  packed = open_converted("packed.zt", &options);
  CHECK_OK(poise_tensor_find(plain, "lm_head.weight", &before, &error));
  CHECK_OK(poise_tensor_find(packed, "lm_head.weight", &after, &error));
  CHECK(after.parts[0].size == before.parts[0].size && after.parts[0].stored_size < after.parts[0].size);
  CHECK(after.parts[0].encoding.size >= 4 && memcmp(after.parts[0].encoding.data, "raw", 3) != 0);
  CHECK(after.parts[0].digest.size == 7 + 64 && memcmp(after.parts[0].digest.data, "sha256:", 7) == 0);
  CHECK_STATUS(POISE_UNSUPPORTED, poise_blob_map(after.parts[0].blob, &bytes, &error));
  CHECK_OK(poise_blob_map(before.parts[0].blob, &bytes, &error));
  CHECK_OK(poise_blob_read(after.parts[0].blob, 4321, copy, sizeof copy, &error));
  CHECK(memcmp(copy, (const char*)bytes.data + 4321, sizeof copy) == 0);
  poise_model_free(packed);
  poise_model_free(plain);
}

void test_tensor(void) {
  describes_tensors();
  lends_and_copies_bytes();
  decodes_ranges();
  decodes_codes();
  decodes_layouts("groups.zt", "group8", NULL, POISE_QUANTIZED_GROUP, "scales", 0.01F);
  decodes_layouts("rows.zt", NULL, "csr", POISE_SPARSE_CSR, "values", 0);
  decodes_layouts("coordinates.zt", NULL, "coo", POISE_SPARSE_COO, "coords", 0);
  reads_compressed_parts();
}
