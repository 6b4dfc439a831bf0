// Verify, hash, statistics, report, convert: results, callbacks, cancelling.
#include <stdlib.h>

#include "check.h"

typedef struct calls {
  int count;
  int stop_at;  // 0: never
  uint64_t offset;
  char text[256];
} calls;

static int on_progress(void* user, const poise_progress_event* event) {
  calls* seen = user;
  CHECK(event->size == sizeof *event && event->done <= event->total && event->item.size > 0);
  return ++seen->count == seen->stop_at;
}

static int on_finding(void* user, const poise_finding* finding) {
  calls* seen = user;
  CHECK(finding->size == sizeof *finding);
  seen->offset = finding->offset;
  snprintf(seen->text, sizeof seen->text, "%d %.*s", (int)finding->severity, POISE_TEXT(finding->message));
  return ++seen->count == seen->stop_at;
}

static int on_part(void* user, const poise_part_hash* part) {
  calls* seen = user;
  CHECK(part->size == sizeof *part);
  if (seen->count == 0)
    snprintf(seen->text, sizeof seen->text, "%.*s %.*s/%.*s", POISE_TEXT(part->sha256), POISE_TEXT(part->tensor),
             POISE_TEXT(part->role));
  return ++seen->count == seen->stop_at;
}

static void verifies(void) {
  poise_verify_options options = POISE_VERIFY_OPTIONS_INIT;
  poise_verify_report report = POISE_VERIFY_REPORT_INIT;
  poise_model* model = NULL;
  calls seen = {0, 0, 0, ""};
  calls progress = {0, 0, 0, ""};
  uint64_t at;
  size_t size;
  unsigned char* file = read_file(example("nano-mistral/model.safetensors"), &size);
  options.progress.report = on_progress;
  options.progress.user = &progress;
  CHECK_OK(poise_verify(example("nano-mistral"), &options, on_finding, &seen, &report, &error));
  CHECK(strcmp(report.format, "huggingface") == 0);
  CHECK(report.tensors == 39 && report.faults == 0 && report.warnings == (uint64_t)seen.count &&
        report.bytes == 935040 * 2);
  CHECK(progress.count > 0);
  progress.count = 0;
  progress.stop_at = 1;
  CHECK_STATUS(POISE_CANCELLED, poise_verify(example("nano-mistral"), &options, NULL, NULL, &report, &error));

  // Two elements are not numbers; the first is reported.
  CHECK_OK(poise_open(example("nano-mistral/model.safetensors"), NULL, &model, &error));
  at = part_info_of(first_part(tensor_named(model, "model.norm.weight"))).offset + 6;
  memcpy(file + at, "\xc0\x7f\xc0\x7f", 4);
  write_file(scratch("nan.safetensors"), file, size);
  CHECK_OK(poise_verify(scratch("nan.safetensors"), NULL, on_finding, &seen, &report, &error));
  CHECK(report.faults == 0 && report.warnings == 1 && seen.offset == at);
  CHECK(strstr(seen.text, "0 tensor model.norm.weight: data: element 3 is") == seen.text);
  seen.count = 0;
  seen.stop_at = 1;
  CHECK_STATUS(POISE_CANCELLED, poise_verify(scratch("nan.safetensors"), NULL, on_finding, &seen, &report, &error));
  CHECK_OK(poise_verify(scratch("nan.safetensors"), NULL, NULL, NULL, NULL, &error));

  // A file that cannot be opened as a model is a fault; one that is not there is an error.
  write_file(scratch("cut.safetensors"), file, size / 2);
  CHECK_OK(poise_verify(scratch("cut.safetensors"), NULL, NULL, NULL, &report, &error));
  CHECK(report.faults == 1 && report.format[0] == '\0');
  CHECK_STATUS(POISE_NOT_FOUND, poise_verify(scratch("absent"), NULL, NULL, NULL, &report, &error));
  poise_model_free(model);
  free(file);
}

static int on_statistics(void* user, const poise_tensor_statistics* tensor) {
  calls* seen = user;
  CHECK(tensor->size == sizeof *tensor && tensor->problem.size == 0);
  snprintf(seen->text, sizeof seen->text, "%.*s %.*s %d %.6f %.6f %.9f %.9f %.9f %d", POISE_TEXT(tensor->tensor),
           POISE_TEXT(tensor->type), (int)tensor->elements, tensor->min, tensor->max, tensor->mean, tensor->deviation,
           tensor->rms, (int)tensor->zeros);
  seen->offset = 0;
  for (int i = 0; i < 8; ++i) seen->offset += tensor->histogram_counts[i];
  return ++seen->count == seen->stop_at;
}

// The expected numbers are those of NumPy in float64 over the tensor's bytes in the file.
static void computes_statistics(void) {
  const char* const only[] = {"model.norm.weight"};
  const char* const none[] = {"no such tensor"};
  poise_statistics_options options = POISE_STATISTICS_OPTIONS_INIT;
  poise_model* model = open_example();
  calls seen = {0, 0, 0, ""};
  options.only = only;
  options.only_count = 1;
  CHECK_OK(poise_compute_statistics(model, &options, on_statistics, &seen, &error));
  CHECK(seen.count == 1 && seen.offset == 128);
  CHECK(strcmp(seen.text, "model.norm.weight bf16 128 1.445312 1.984375 1.792480469 0.103436134 1.795462410 0") == 0);
  options.only = none;
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_compute_statistics(model, &options, on_statistics, &seen, &error));
  seen.count = 0;
  seen.stop_at = 2;
  CHECK_STATUS(POISE_CANCELLED, poise_compute_statistics(model, NULL, on_statistics, &seen, &error));
  CHECK(seen.count == 2);
  poise_model_free(model);
}

static void writes_reports(void) {
  poise_report_options options = POISE_REPORT_OPTIONS_INIT;
  uint64_t bytes = 0;
  size_t size;
  unsigned char* page;
  options.against = example("nano-mistral");
  CHECK_OK(poise_write_report(example("nano-mistral"), scratch("report.html"), &options, &bytes, &error));
  page = read_file(scratch("report.html"), &size);
  CHECK(size == bytes && memcmp(page, "<!DOCTYPE html>", 15) == 0);
  CHECK_STATUS(POISE_BAD_ARGUMENT,
               poise_write_report(example("nano-mistral"), scratch("report.html"), &options, &bytes, &error));
  options.overwrite = 1;
  CHECK_OK(poise_write_report(example("nano-mistral"), scratch("report.html"), &options, NULL, &error));
  options.against = scratch("no such model");
  CHECK_STATUS(POISE_NOT_FOUND,
               poise_write_report(example("nano-mistral"), scratch("x.html"), &options, &bytes, &error));
  free(page);
}

// The expected digest is that of Python's hashlib over the tensor's bytes in the file.
static void hashes(void) {
  poise_convert_options options = POISE_CONVERT_OPTIONS_INIT;
  poise_model* model = open_example();
  poise_model* converted;
  poise_model_hash a = POISE_MODEL_HASH_INIT;
  poise_model_hash b = POISE_MODEL_HASH_INIT;
  poise_hash_options hashing = POISE_HASH_OPTIONS_INIT;
  calls seen = {0, 0, 0, ""};
  calls reported = {0, 1, 0, ""};
  hashing.progress.report = on_progress;
  hashing.progress.user = &reported;
  CHECK_OK(poise_hash(model, NULL, on_part, &seen, &a, &error));
  CHECK(seen.count == 39);
  CHECK(strcmp(seen.text, "5f5e1287716e6d26da1a8784d97bda9f002e799535dc9157d1d804fac8c79266 lm_head.weight/data") == 0);
  CHECK(strlen(a.sha256) == 64 && a.content[0] == '\0');
  options.dtype = POISE_BF16;
  converted = open_converted("same.zt", &options);
  CHECK_OK(poise_hash(converted, NULL, NULL, NULL, &b, &error));
  CHECK(strcmp(a.sha256, b.sha256) == 0 && strncmp(b.content, "xxh3:", 5) == 0);
  CHECK_STATUS(POISE_CANCELLED, poise_hash(model, &hashing, NULL, NULL, &b, &error));
  seen.count = 0;
  seen.stop_at = 2;
  CHECK_STATUS(POISE_CANCELLED, poise_hash(model, NULL, on_part, &seen, &b, &error));
  CHECK_OK(poise_hash(model, NULL, NULL, NULL, NULL, &error));
  poise_model_free(converted);
  poise_model_free(model);
}

// An adapter of rank 1 whose numbers are 1, with alpha 2 and scale -3, subtracts 6 from every element of the matrix.
static void merges(void) {
  static const char header[] =
      "{\"base_model.model.model.layers.0.self_attn.k_proj.lora_A.weight\":{\"dtype\":\"F32\",\"shape\":[1,128],"
      "\"data_offsets\":[0,512]},\"base_model.model.model.layers.0.self_attn.k_proj.lora_B.weight\":{\"dtype\":"
      "\"F32\",\"shape\":[64,1],\"data_offsets\":[512,768]}}";
  static const char config[] = "{\"peft_type\":\"LORA\",\"r\":1,\"lora_alpha\":2}";
  static const char* const only[] = {"model.layers.0.self_attn.k_proj.weight"};
  static unsigned char file[8 + sizeof header - 1 + 768];
  enum { kData = 8 + sizeof header - 1, kElements = 64 * 128 };
  static float before[kElements];
  static float after[kElements];
  poise_convert_options options = POISE_CONVERT_OPTIONS_INIT;
  poise_lora lora = {NULL, -3};
  poise_model* models[2];
  int worst = 0;
  int i;
  file[0] = (unsigned char)((sizeof header - 1) & 255);
  file[1] = (unsigned char)((sizeof header - 1) >> 8);
  memcpy(file + 8, header, sizeof header - 1);
  for (i = 0; i < 768; i += 4) memcpy(file + kData + i, "\0\0\x80\x3f", 4);
  write_file(scratch("adapter_model.safetensors"), file, sizeof file);
  write_file(scratch("adapter_config.json"), config, sizeof config - 1);
  options.only = only;
  options.only_count = 1;
  options.dtype = POISE_F32;
  models[0] = open_converted("plain.zt", &options);
  lora.path = scratch("adapter_model.safetensors");
  options.lora = &lora;
  options.lora_count = 1;
  options.dtype = POISE_DTYPE_UNKNOWN;
  models[1] = open_converted("merged.zt", &options);
  CHECK_OK(
      poise_tensor_decode(tensor_named(models[0], only[0]), POISE_F32, 0, kElements, before, sizeof before, &error));
  CHECK_OK(poise_tensor_decode(tensor_named(models[1], only[0]), POISE_F32, 0, kElements, after, sizeof after, &error));
  for (i = 0; i < kElements; ++i) worst += after[i] - before[i] + 6 > 0.04F || after[i] - before[i] + 6 < -0.04F;
  CHECK(worst == 0);  // after rounding to bf16
  poise_model_free(models[0]);
  poise_model_free(models[1]);
  lora.path = "absent";
  CHECK_STATUS(POISE_NOT_FOUND, poise_convert(example("nano-mistral"), scratch("no.zt"), &options, NULL, &error));
  lora.path = NULL;
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_convert(example("nano-mistral"), scratch("no.zt"), &options, NULL, &error));
  CHECK_SAYS("lora.path");
  options.lora = NULL;
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_convert(example("nano-mistral"), scratch("no.zt"), &options, NULL, &error));
  CHECK_SAYS("lora");
}

static void renames_and_cuts(void) {
  static const poise_rename rename[] = {{"layers.*.mlp.*", "layers.*.ff.*"}, {"re:^(norm)", "final.$1"}};
  static const poise_setting set[] = {{"card.license", "mit"}, {"note", "x"}};
  poise_convert_options options = POISE_CONVERT_OPTIONS_INIT;
  poise_convert_report report = POISE_CONVERT_REPORT_INIT;
  poise_model* model = NULL;
  poise_tensor_info info = POISE_TENSOR_INFO_INIT;
  options.strip_prefix = "model.";
  options.rename = rename;
  options.rename_count = 2;
  options.add_prefix = "net.";
  options.layers = "1:3";
  options.set = set;
  options.set_count = 2;
  CHECK_OK(poise_convert(example("nano-mistral"), scratch("named.zt"), &options, &report, &error));
  CHECK(report.tensors == 21 && report.skipped == 18);
  CHECK(strstr(report.details.data, "\"changes\":[\"39 tensors have another name: ") != NULL);
  poise_string_free(&report.details);
  CHECK_OK(poise_open(scratch("named.zt"), NULL, &model, &error));
  CHECK_OK(poise_tensor_describe(tensor_named(model, "net.layers.1.ff.up_proj.weight"), &info, &error));
  CHECK_OK(poise_tensor_describe(tensor_named(model, "net.final.norm.weight"), &info, &error));
  poise_model_free(model);
  options.rename = NULL;
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_convert(example("nano-mistral"), scratch("no.zt"), &options, NULL, &error));
  CHECK_SAYS("rename");
  options.rename_count = 0;
  options.vocab_size = 961;
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_convert(example("nano-mistral"), scratch("no.zt"), &options, NULL, &error));
  CHECK_SAYS("vocab_size");
  options.drop_rows = 1;
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_convert(example("nano-mistral"), scratch("no.zt"), &options, NULL, &error));
  CHECK_SAYS("exclude each other");
}

static void fits_a_budget(void) {
  poise_convert_options options = POISE_CONVERT_OPTIONS_INIT;
  poise_convert_report report = POISE_CONVERT_REPORT_INIT;
  const char* path = scratch("fits.gguf");
  options.output_size = 900000;
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_convert(example("nano-mistral"), path, &options, NULL, &error));
  CHECK_SAYS("auto");
  options.quantize = "auto";
  CHECK_OK(poise_convert(example("nano-mistral"), path, &options, &report, &error));
  CHECK(report.bytes_out <= 900000 && report.bytes_out > 800000);
  poise_string_free(&report.details);
  options.text = "story.txt";
  options.overwrite = 1;
  CHECK_STATUS(POISE_NOT_FOUND, poise_convert(example("nano-mistral"), path, &options, NULL, &error));
  CHECK_SAYS("cannot open");
  options.text = example("training/heldout.txt");
  CHECK_OK(poise_convert(example("nano-mistral"), path, &options, &report, &error));
  CHECK(report.bytes_out <= 900000 && report.bytes_out > 800000);
  poise_string_free(&report.details);
  options.output_size = 0;
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_convert(example("nano-mistral"), path, &options, NULL, &error));
  CHECK_SAYS("needs output_size or bits_per_weight");
  options.quantize = "Q4_K_M";
  options.text = NULL;
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_convert(example("nano-mistral"), path, &options, NULL, &error));
  CHECK_SAYS("expected qint8");
  CHECK_SAYS("q4_k_m, or auto");
  options.text = example("training/heldout.txt");
  options.quantize = NULL;
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_convert(example("nano-mistral"), path, &options, NULL, &error));
  CHECK_SAYS("text need quantize");
  options.quantize = "auto";
  options.output_size = 900000;
  options.text = NULL;
  options.bits_per_weight = 5;
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_convert(example("nano-mistral"), path, &options, NULL, &error));
  CHECK_SAYS("both");
  options.output_size = 0;
  options.bits_per_weight = -1;
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_convert(example("nano-mistral"), path, &options, NULL, &error));
  CHECK_SAYS("bits_per_weight is -1");
}

// NULL leaves a field of the card as it is, an empty text clears it.
static void clears_fields_of_the_card(void) {
  poise_convert_options options = POISE_CONVERT_OPTIONS_INIT;
  poise_convert_report report = POISE_CONVERT_REPORT_INIT;
  poise_card who = POISE_CARD_INIT;
  poise_model* model = NULL;
  const poise_attributes* card;
  poise_text text;
  who.author = "A. Miller";
  who.license = "mit";
  options.card = &who;
  CHECK_OK(poise_convert(example("nano-mistral"), scratch("carded.zt"), &options, NULL, &error));
  who.author = "";
  who.uuid = "";
  who.license = NULL;
  CHECK_OK(poise_convert(scratch("carded.zt"), scratch("cleared.zt"), &options, &report, &error));
  CHECK(strstr(report.details.data, "\"changes\":[\"card.author was ") != NULL &&
        strstr(report.details.data, "uuid") == NULL);
  poise_string_free(&report.details);
  CHECK_OK(poise_open(scratch("cleared.zt"), NULL, &model, &error));
  CHECK_OK(poise_model_card(model, &card, &error));
  CHECK_OK(poise_attributes_get_text(card, "author", &text, &error));
  CHECK_TEXT("", text);
  CHECK_OK(poise_attributes_get_text(card, "license", &text, &error));
  CHECK_TEXT("mit", text);
  poise_model_free(model);
}

static void converts(void) {
  static const char* const only[] = {"model.layers.0.*", "model.norm.weight"};
  static const char* const skip[] = {"*_proj.weight"};
  static const poise_keep keep[] = {{"*.mlp.*", "f32"}, {"*norm*", "bf16"}};
  poise_convert_options options = POISE_CONVERT_OPTIONS_INIT;
  poise_convert_report report = POISE_CONVERT_REPORT_INIT;
  poise_card who = POISE_CARD_INIT;
  poise_model* model = NULL;
  const poise_attributes* card;
  poise_text author;
  who.author = "A. Miller";
  options.card = &who;
  options.dtype = POISE_F16;
  options.keep = keep;
  options.keep_count = 2;
  CHECK_OK(poise_convert(example("nano-mistral"), scratch("kept.alt"), &options, &report, &error));
  CHECK(strcmp(report.format, "alt") == 0);
  CHECK(report.tensors == 39 && report.skipped == 0 && report.bytes_in > 0 && report.bytes_out > report.bytes_in &&
        report.seconds > 0);
  CHECK(strstr(report.details.data, "\"from\":\"bf16\",\"to\":\"f16\"") != NULL &&
        strstr(report.details.data, "\"quantized\":[]") != NULL);
  poise_string_free(&report.details);
  CHECK_OK(poise_open(scratch("kept.alt"), NULL, &model, &error));
  CHECK_OK(poise_model_card(model, &card, &error));
  CHECK_OK(poise_attributes_get_text(card, "author", &author, &error));
  CHECK_TEXT("A. Miller", author);
  CHECK(info_of(tensor_named(model, "model.layers.0.mlp.up_proj.weight")).dtype == POISE_F32);
  CHECK(info_of(tensor_named(model, "model.norm.weight")).dtype == POISE_BF16);
  CHECK(info_of(tensor_named(model, "lm_head.weight")).dtype == POISE_F16);
  poise_model_free(model);

  CHECK_STATUS(POISE_BAD_ARGUMENT,
               poise_convert(example("nano-mistral"), scratch("kept.alt"), &options, NULL, &error));  // it exists
  options.overwrite = 1;
  options.keep_count = 0;
  options.only = only;
  options.only_count = 2;
  options.skip = skip;
  options.skip_count = 1;
  options.format = "safetensors";
  CHECK_OK(poise_convert(example("nano-mistral"), scratch("kept.alt"), &options, &report, &error));
  CHECK(strcmp(report.format, "safetensors") == 0);
  CHECK(report.tensors == 3 && report.skipped == 36);  // the two norms of the layer, and the last
  poise_string_free(&report.details);
}

static int same_file(const char* path, const char* text) {
  size_t size;
  unsigned char* bytes = read_file(path, &size);
  const int same = size == strlen(text) && memcmp(bytes, text, size) == 0;
  free(bytes);
  return same;
}

// vocab.txt and merges.txt are inputs, too.
static void never_replaces_an_input(void) {
  static const char vocab[] = "a\nb\nab\n";
  static const char merges[] = "a b\n";
  poise_convert_options options = POISE_CONVERT_OPTIONS_INIT;
  char weights[1024];
  char vocab_path[1024];
  char merges_path[1024];
  strcpy(weights, example("nano-tiny-llama/weights.tllm"));
  strcpy(vocab_path, scratch("vocab.txt"));
  strcpy(merges_path, scratch("merges.txt"));
  write_file(vocab_path, vocab, strlen(vocab));
  write_file(merges_path, merges, strlen(merges));
  options.overwrite = 1;
  options.format = "zt";
  options.vocab = vocab_path;
  options.merges = merges_path;
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_convert(weights, vocab_path, &options, NULL, &error));
  CHECK_SAYS("this file is the input");
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_convert(weights, merges_path, &options, NULL, &error));
  CHECK(same_file(vocab_path, vocab) && same_file(merges_path, merges));
}

static void refuses_what_makes_no_sense(void) {
  static const char* const nothing[] = {"no.such.*"};
  static const char* const null[] = {NULL};
  static const poise_keep keep[] = {{"*", "f13"}};
  poise_convert_options options = POISE_CONVERT_OPTIONS_INIT;
  const poise_convert_options usual = POISE_CONVERT_OPTIONS_INIT;
  const poise_storage usual_storage = POISE_STORAGE_INIT;
  poise_storage storage;
  calls progress = {0, 1, 0, ""};
  char input[1024];
  strcpy(input, example("nano-mistral"));
#define REFUSED(field, value) \
  options = usual;            \
  options.field = (value);    \
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_convert(input, scratch("out.zt"), &options, NULL, &error))
#define STORAGE_REFUSED(field, value) \
  storage = usual_storage;            \
  storage.field = (value);            \
  REFUSED(storage, &storage)
  REFUSED(format, "zip");
  REFUSED(dtype, POISE_I32);
  REFUSED(dtype, (poise_dtype)77);
  REFUSED(quantize, "int3");
  REFUSED(quantize, "f16");
  REFUSED(sparse, POISE_AFFINE);
  REFUSED(sparse, (poise_layout)77);
  REFUSED(vocab, "vocab.txt");
  REFUSED(merges, "merges.txt");
  REFUSED(io, (poise_io)2);
  STORAGE_REFUSED(digest, POISE_DIGEST_OTHER);
  STORAGE_REFUSED(digest, (poise_digest_algorithm)77);
  STORAGE_REFUSED(dialect, "alt.c");
  STORAGE_REFUSED(zstd_level, 99);
  STORAGE_REFUSED(align, 3);
  REFUSED(only_count, 1);
  REFUSED(keep_count, 1);
#undef REFUSED
#undef STORAGE_REFUSED
  options = usual;
  options.only = nothing;
  options.only_count = 1;
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_convert(input, scratch("out.zt"), &options, NULL, &error));
  CHECK_SAYS("no.such.*");
  options.only = null;
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_convert(input, scratch("out.zt"), &options, NULL, &error));
  options = usual;
  options.keep = keep;
  options.keep_count = 1;
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_convert(input, scratch("out.zt"), &options, NULL, &error));
  CHECK_SAYS("f13");
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_convert(input, scratch("no-extension"), NULL, NULL, &error));
  CHECK_STATUS(POISE_NOT_FOUND, poise_convert(input, scratch("no/folder/out.zt"), NULL, NULL, &error));
  CHECK_STATUS(POISE_NOT_FOUND, poise_convert(scratch("absent"), scratch("out.zt"), NULL, NULL, &error));
  options = usual;
  options.progress.report = on_progress;
  options.progress.user = &progress;
  CHECK_STATUS(POISE_CANCELLED, poise_convert(input, scratch("out.zt"), &options, NULL, &error));
  CHECK(progress.count == 1);  // the end of the group checks that the folder has no temporary file
  CHECK(fopen(scratch("out.zt"), "rb") == NULL);
}

// verify = 0 trusts the input; the default options check its digests.
static void trusts_only_when_asked_to(void) {
  poise_convert_options options = POISE_CONVERT_OPTIONS_INIT;
  FILE* file;
  options.overwrite = 1;
  CHECK_OK(poise_convert(example("nano-mistral"), scratch("damaged.zt"), &options, NULL, &error));
  file = fopen(scratch("damaged.zt"), "r+b");
  CHECK(file != NULL && fseek(file, 65536 + 100, SEEK_SET) == 0 && fwrite("damage", 1, 6, file) == 6 &&
        fclose(file) == 0);
  options.verify = 0;
  CHECK_OK(poise_convert(scratch("damaged.zt"), scratch("copy.zt"), &options, NULL, &error));
  options.verify = 1;
  CHECK_STATUS(POISE_INVALID_FILE, poise_convert(scratch("damaged.zt"), scratch("copy.zt"), &options, NULL, &error));
}

// A file whose name belongs to another format has a warning, and strict = 1 refuses it.
static void refuses_warnings_when_asked_to(void) {
  poise_convert_options options = POISE_CONVERT_OPTIONS_INIT;
  size_t size;
  unsigned char* file = read_file(example("nano-mistral/model.safetensors"), &size);
  write_file(scratch("wrong-name.alt"), file, size);
  free(file);
  options.strict = 1;
  CHECK_STATUS(POISE_INVALID_FILE, poise_convert(scratch("wrong-name.alt"), scratch("s.zt"), &options, NULL, &error));
  CHECK_SAYS("the name ends in .alt");
  CHECK(fopen(scratch("s.zt"), "rb") == NULL);
  CHECK_OK(poise_convert(example("nano-mistral"), scratch("s.zt"), &options, NULL, &error));
  options.strict = 0;
  options.overwrite = 1;
  CHECK_OK(poise_convert(scratch("wrong-name.alt"), scratch("s.zt"), &options, NULL, &error));
}

void test_operations(void) {
  verifies();
  hashes();
  computes_statistics();
  writes_reports();
  merges();
  renames_and_cuts();
  fits_a_budget();
  clears_fields_of_the_card();
  converts();
  never_replaces_an_input();
  refuses_what_makes_no_sense();
  trusts_only_when_asked_to();
  refuses_warnings_when_asked_to();
}
