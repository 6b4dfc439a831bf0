// Adapters, deltas, importance matrices, downloads: results, options, refusals.
#include <math.h>
#include <stdlib.h>

#include "check.h"

static const char kKey[] = "model.layers.0.self_attn.k_proj.weight";

static int on_progress(void* user, const poise_progress_event* event) {
  (void)event;
  ++*(int*)user;
  return *(int*)user >= 1000000;
}

static int stop_at_once(void* user, const poise_progress_event* event) {
  (void)user;
  return event->size == sizeof *event;
}

static float first_number(const poise_model* model) {
  float number = 0;
  CHECK_OK(poise_tensor_decode(tensor_named(model, kKey), POISE_F32, 0, 1, &number, sizeof number, &error));
  return number;
}

static int adds_six(void* user, uint64_t offset, void* out, size_t size) {
  float* numbers = out;
  size_t i;
  CHECK_OK(poise_tensor_decode(user, POISE_F32, offset / 4, size / 4, out, size, &error));
  for (i = 0; i < size / 4; ++i) numbers[i] += 6;
  return 0;
}

// Writes the example in float32, and the same with 6 added to each number of a matrix of 64 x 128.
static void write_models(void) {
  poise_convert_options options = POISE_CONVERT_OPTIONS_INIT;
  const uint64_t dims[] = {64, 128};
  poise_tensor_plan plan = POISE_TENSOR_PLAN_INIT;
  poise_writer* writer = NULL;
  poise_model* base;
  poise_tensor_info info;
  const poise_tensor* tensor;
  size_t i;
  options.dtype = POISE_F32;
  base = open_converted("base.zt", &options);
  CHECK_OK(poise_writer_create(scratch("tuned.zt"), NULL, NULL, &writer, &error));
  CHECK_OK(poise_writer_set_metadata(writer, base, &error));
  for (i = 0; poise_tensor_at(base, i, &tensor, NULL) == POISE_OK; ++i) {
    info = info_of(tensor);
    if (info.name.size != sizeof kKey - 1 || memcmp(info.name.data, kKey, info.name.size) != 0) {
      CHECK_OK(poise_writer_copy_tensor(writer, tensor, &error));
      continue;
    }
    plan.name = kKey;
    plan.dims = dims;
    plan.rank = 2;
    plan.dtype = POISE_F32;
    plan.fill = adds_six;
    plan.user = (void*)tensor;
    CHECK_OK(poise_writer_add_tensor(writer, &plan, &error));
  }
  CHECK_OK(poise_writer_finish(writer, &error));
  poise_writer_free(writer);
  poise_model_free(base);
}

// The difference is 6 everywhere, of rank 1: 6 sqrt(64 * 128) is its singular value.
static void extracts_and_converts(void) {
  static const char* const none[] = {"no such tensor"};
  poise_extract_lora_options options = POISE_EXTRACT_LORA_OPTIONS_INIT;
  poise_convert_lora_options convert = POISE_CONVERT_LORA_OPTIONS_INIT;
  poise_convert_options merge = POISE_CONVERT_OPTIONS_INIT;
  poise_lora_report report = POISE_LORA_REPORT_INIT;
  poise_lora lora = {NULL, 1};
  poise_model* models[2];
  int calls = 0;
  size_t i;
  static const char* const adapters[] = {"adapter.safetensors", "adapter.gguf"};
  options.rank = 1;
  options.progress.report = on_progress;
  options.progress.user = &calls;
  CHECK_OK(
      poise_extract_lora(scratch("base.zt"), scratch("tuned.zt"), scratch(adapters[0]), &options, &report, &error));
  CHECK(strcmp(report.format, "safetensors") == 0 && report.matrices == 1 && report.bytes_out > 4 * (64 + 128));
  CHECK(fabs(report.captured - 1) < 1e-6 && calls > 0);
  CHECK(strstr(report.details.data,
               "\"name\":\"model.layers.0.self_attn.k_proj.weight\",\"shape\":[64,128],\"rank\":1") != NULL);
  CHECK(strstr(report.details.data, "\"equal\":38,\"warnings\":[],") != NULL);
  poise_string_free(&report.details);

  convert.base = scratch("base.zt");
  CHECK_OK(poise_convert_lora(scratch(adapters[0]), scratch(adapters[1]), &convert, &report, &error));
  CHECK(strcmp(report.format, "gguf") == 0 && report.matrices == 1 && report.captured == 1);
  CHECK(strcmp(report.details.data, "{\"warnings\":[],\"losses\":[]}") == 0);
  poise_string_free(&report.details);
  for (i = 0; i < 2; ++i) {
    lora.path = scratch(adapters[i]);
    merge.lora = &lora;
    merge.lora_count = 1;
    merge.overwrite = 1;
    CHECK_OK(poise_convert(scratch("base.zt"), scratch("merged.zt"), &merge, NULL, &error));
    CHECK_OK(poise_open(scratch("merged.zt"), NULL, &models[0], &error));
    CHECK_OK(poise_open(scratch("tuned.zt"), NULL, &models[1], &error));
    CHECK(fabsf(first_number(models[0]) - first_number(models[1])) < 1e-5F);
    poise_model_free(models[0]);
    poise_model_free(models[1]);
  }

  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_extract_lora(scratch("base.zt"), scratch("tuned.zt"), scratch(adapters[0]),
                                                      &options, NULL, &error));  // it exists
  options.dry_run = 1;
  CHECK_OK(poise_extract_lora(scratch("base.zt"), scratch("tuned.zt"), scratch("no.gguf"), &options, NULL, &error));
  CHECK(fopen(scratch("no.gguf"), "rb") == NULL);
  options.rank = 0;
  CHECK_STATUS(POISE_BAD_ARGUMENT,
               poise_extract_lora(scratch("base.zt"), scratch("tuned.zt"), scratch("no.gguf"), &options, NULL, &error));
  CHECK_SAYS("rank");
  options.rank = 1;
  options.only = none;
  options.only_count = 1;
  CHECK_STATUS(POISE_BAD_ARGUMENT,
               poise_extract_lora(scratch("base.zt"), scratch("tuned.zt"), scratch("no.gguf"), &options, NULL, &error));
  CHECK_STATUS(POISE_BAD_ARGUMENT,
               poise_extract_lora(scratch("base.zt"), scratch("base.zt"), scratch("no.gguf"), NULL, NULL, &error));
  CHECK_SAYS("no matrix differs");
  CHECK_STATUS(POISE_BAD_ARGUMENT,
               poise_convert_lora(scratch(adapters[0]), scratch("no.safetensors"), &convert, NULL, &error));
  CHECK_SAYS("already");
  convert.reserved = 1;
  CHECK_STATUS(POISE_BAD_ARGUMENT,
               poise_convert_lora(scratch(adapters[0]), scratch("no.gguf"), &convert, NULL, &error));
  CHECK_SAYS("reserved");
}

static void makes_deltas(void) {
  poise_delta_options options = POISE_DELTA_OPTIONS_INIT;
  poise_delta_report report = POISE_DELTA_REPORT_INIT;
  poise_convert_options apply = POISE_CONVERT_OPTIONS_INIT;
  poise_model_hash hash = POISE_MODEL_HASH_INIT;
  poise_model_hash again = POISE_MODEL_HASH_INIT;
  poise_storage storage = POISE_STORAGE_INIT;
  poise_model* model = NULL;
  uint64_t compressed;
  CHECK_OK(poise_make_delta(scratch("base.zt"), scratch("tuned.zt"), scratch("step.zt"), NULL, &report, &error));
  compressed = report.bytes_out;
  CHECK(report.equal == 38 && report.changed == 1 && report.bytes_in > report.bytes_out && report.bytes_out > 0);
  CHECK(strstr(report.details.data, "\"name\":\"model.layers.0.self_attn.k_proj.weight\"") != NULL &&
        strstr(report.details.data, "\"elements\":8192,") != NULL &&
        strstr(report.details.data, "\"removed\":[],\"fields\":[]") != NULL);
  poise_string_free(&report.details);
  CHECK_OK(poise_open(scratch("base.zt"), NULL, &model, &error));
  CHECK_OK(poise_hash(model, NULL, NULL, NULL, &hash, &error));
  CHECK(strcmp(report.base, hash.sha256) == 0);
  poise_model_free(model);
  apply.delta = scratch("step.zt");
  CHECK_OK(poise_convert(scratch("base.zt"), scratch("again.zt"), &apply, NULL, &error));
  CHECK_OK(poise_open(scratch("tuned.zt"), NULL, &model, &error));
  CHECK_OK(poise_hash(model, NULL, NULL, NULL, &hash, &error));
  poise_model_free(model);
  CHECK_OK(poise_open(scratch("again.zt"), NULL, &model, &error));
  CHECK_OK(poise_hash(model, NULL, NULL, NULL, &again, &error));
  poise_model_free(model);
  CHECK(strcmp(hash.sha256, again.sha256) == 0);
  CHECK_STATUS(POISE_BAD_ARGUMENT,
               poise_make_delta(scratch("base.zt"), scratch("tuned.zt"), scratch("step.zt"), NULL, NULL, &error));
  options.storage = &storage;  // zstd_level 0: not compressed
  CHECK_OK(poise_make_delta(scratch("base.zt"), scratch("tuned.zt"), scratch("plain.zt"), &options, &report, &error));
  CHECK(report.bytes_out > compressed);
  poise_string_free(&report.details);
  storage.zstd_level = 3;
  CHECK_OK(poise_make_delta(scratch("base.zt"), scratch("tuned.zt"), scratch("level.zt"), &options, &report, &error));
  CHECK(report.bytes_out == compressed);
  poise_string_free(&report.details);
  options.dry_run = 1;
  CHECK_OK(poise_make_delta(scratch("base.zt"), scratch("tuned.zt"), scratch("no.zt"), &options, NULL, &error));
  options.progress.report = stop_at_once;
  CHECK_STATUS(POISE_CANCELLED,
               poise_make_delta(scratch("base.zt"), scratch("tuned.zt"), scratch("no.zt"), &options, NULL, &error));
  CHECK(fopen(scratch("no.zt"), "rb") == NULL);
}

static void measures_imatrices(void) {
  static const char sentence[] = "One day, a mouse saw the moon. ";
  static char text[60 * (sizeof sentence - 1)];
  poise_imatrix_options options = POISE_IMATRIX_OPTIONS_INIT;
  poise_imatrix_report report = POISE_IMATRIX_REPORT_INIT;
  poise_convert_options quantize = POISE_CONVERT_OPTIONS_INIT;
  poise_model* model = open_example();
  const char* files[2];
  size_t i;
  int calls = 0;
  for (i = 0; i < sizeof text; ++i) text[i] = sentence[i % (sizeof sentence - 1)];
  options.chunk_size = 64;
  options.chunks = 2;
  options.dataset = "mouse";
  options.progress.report = on_progress;
  options.progress.user = &calls;
  CHECK_OK(poise_measure_imatrix(model, text, sizeof text, scratch("i.gguf"), &options, &report, &error));
  CHECK(report.entries == 28 && report.chunks == 2 && report.chunk_size == 64 && calls > 0);
  CHECK(strcmp(report.details.data, "{\"datasets\":[\"mouse\"],\"unused_experts\":[]}") == 0);
  poise_string_free(&report.details);
  files[0] = scratch("i.gguf");
  files[1] = scratch("i.gguf");
  options.add = files;
  options.add_count = 2;
  options.process_output = 1;
  CHECK_OK(poise_measure_imatrix(model, text, sizeof text, scratch("three.dat"), &options, &report, &error));
  CHECK(report.entries == 29 && report.chunks == 6);
  poise_string_free(&report.details);
  CHECK_OK(poise_measure_imatrix(NULL, NULL, 0, scratch("sum.gguf"), &options, &report, &error));
  CHECK(report.entries == 28 && report.chunks == 4);
  poise_string_free(&report.details);
  quantize.quantize = "q4_0";
  quantize.imatrix = scratch("sum.gguf");
  CHECK_OK(poise_convert(example("nano-mistral"), scratch("q4.gguf"), &quantize, NULL, &error));

  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_measure_imatrix(NULL, NULL, 0, scratch("no.gguf"), NULL, NULL, &error));
  CHECK_SAYS("no model to measure");
  CHECK_STATUS(POISE_BAD_ARGUMENT,
               poise_measure_imatrix(model, text, sizeof text, scratch("i.gguf"), &options, NULL, &error));
  options.add_count = 0;
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_measure_imatrix(model, "x", 1, scratch("no.gguf"), &options, NULL, &error));
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_measure_imatrix(model, NULL, 1, scratch("no.gguf"), &options, NULL, &error));
  CHECK_SAYS("text is NULL");
  options.chunk_size = 15;
  CHECK_STATUS(POISE_BAD_ARGUMENT,
               poise_measure_imatrix(model, text, sizeof text, scratch("no.gguf"), &options, NULL, &error));
  options.chunk_size = 64;
  options.progress.report = stop_at_once;
  CHECK_STATUS(POISE_CANCELLED,
               poise_measure_imatrix(model, text, sizeof text, scratch("no.gguf"), &options, NULL, &error));
  CHECK(fopen(scratch("no.gguf"), "rb") == NULL);
  poise_model_free(model);
}

// Port 1 of this machine has no server. tests/python/test_making.py has one.
static void refuses_addresses(void) {
  poise_fetch_options options = POISE_FETCH_OPTIONS_INIT;
  poise_fetch_report report = POISE_FETCH_REPORT_INIT;
  poise_model* model = NULL;
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_open_url("ftp://127.0.0.1/a.zt", NULL, &model, &error));
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_open_url("a.zt", NULL, &model, &error));
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_fetch("https://127.0.0.1:1/a.zt", NULL, &report, &error));
  options.parallel = 17;
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_fetch("hf://org/name", &options, &report, &error));
  CHECK_SAYS("parallel: expected 1 to 16 files at once, found 17");
  CHECK(model == NULL && report.directory.data == NULL);
}

void test_making(void) {
  write_models();
  extracts_and_converts();
  makes_deltas();
  measures_imatrices();
  refuses_addresses();
}
