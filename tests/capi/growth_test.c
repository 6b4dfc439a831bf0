// A program and a library of different versions: structs that are longer or shorter than those of the library.
#include <stddef.h>
#include <stdlib.h>

#include "check.h"

// Fields that a newer header has at the end are accepted if they are zero; other values are refused.
static void understands_newer_options(void) {
  struct {
    poise_open_options known;
    uint64_t more;
  } options = {POISE_OPEN_OPTIONS_INIT, 0};
  poise_model* model = NULL;
  options.known.size = sizeof options;
  CHECK_OK(poise_open(example("nano-mistral"), &options.known, &model, &error));
  poise_model_free(model);
  options.more = 1;
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_open(example("nano-mistral"), &options.known, &model, &error));
  CHECK_SAYS("fields that this version of Poise does not know");
}

static void understands_newer_structs_inside_of_options(void) {
  struct {
    poise_storage known;
    uint64_t more;
  } storage = {POISE_STORAGE_INIT, 0};
  struct {
    poise_card known;
    const char* more;
  } card = {POISE_CARD_INIT, NULL};
  poise_convert_options options = POISE_CONVERT_OPTIONS_INIT;
  storage.known.size = sizeof storage;
  card.known.size = sizeof card;
  card.known.author = "A. Miller";
  options.storage = &storage.known;
  options.card = &card.known;
  options.overwrite = 1;
  CHECK_OK(poise_convert(example("nano-mistral"), scratch("x.zt"), &options, NULL, &error));
  card.more = "";
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_convert(example("nano-mistral"), scratch("x.zt"), &options, NULL, &error));
  card.more = NULL;
  storage.more = 1;
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_convert(example("nano-mistral"), scratch("x.zt"), &options, NULL, &error));
}

static int on_statistics(void* user, const poise_tensor_statistics* tensor) {
  (void)user;
  return tensor == NULL;
}

// The library sets fields that it does not have to 0, and does not touch bytes after the caller's struct.
static void fills_newer_structs(void) {
  struct {
    poise_tensor_info known;
    uint64_t more[2];
    uint64_t beyond;
  } info = {POISE_TENSOR_INFO_INIT, {77, 77}, 77};
  poise_model* model = open_example();
  info.known.size = sizeof info.known + sizeof info.more;
  CHECK_OK(poise_tensor_describe(tensor_named(model, "model.norm.weight"), &info.known, &error));
  CHECK_TEXT("model.norm.weight", info.known.name);
  CHECK(info.known.size == sizeof info.known + sizeof info.more);
  CHECK(info.more[0] == 0 && info.more[1] == 0 && info.beyond == 77);
  poise_model_free(model);
}

#define NO_SIZE(type, init, call)             \
  do {                                        \
    type value = init;                        \
    value.size = 0;                           \
    CHECK_STATUS(POISE_BAD_ARGUMENT, call);   \
    CHECK_SAYS("begin with its initializer"); \
    value.size = sizeof value - 1;            \
    CHECK_STATUS(POISE_BAD_ARGUMENT, call);   \
    value.size = (size_t)-1;                  \
    CHECK_STATUS(POISE_BAD_ARGUMENT, call);   \
  } while (0)

// Fields that an older header lacks have the initializer's values, whatever lies after the struct.
static void understands_older_options(void) {
  poise_model* model = open_example();
  poise_session* session = NULL;
  poise_session_options options = POISE_SESSION_OPTIONS_INIT;
  poise_session_info info = POISE_SESSION_INFO_INIT;
  poise_generate_options generate = POISE_GENERATE_OPTIONS_INIT;
  const int32_t token = 1;
  options.size = 0;
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_session_create(model, &options, &session, &error));
  CHECK_SAYS("begin with its initializer");
  options.size = offsetof(poise_session_options, exact) - 1;
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_session_create(model, &options, &session, &error));
  options.size = (size_t)-1;
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_session_create(model, &options, &session, &error));
  options.size = offsetof(poise_session_options, exact);
  options.context = 17;
  options.exact = -1;
  options.draft_lookup = -1;
  CHECK_OK(poise_session_create(model, &options, &session, &error));
  CHECK_OK(poise_session_describe(session, &info, &error));
  CHECK(info.context == 17);
  CHECK_OK(poise_session_feed(session, &token, 1, &error));
  generate.size = 0;
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_session_generate(session, &generate, NULL, NULL, NULL, &error));
  CHECK_SAYS("begin with its initializer");
  generate.size = offsetof(poise_generate_options, min_p) - 1;
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_session_generate(session, &generate, NULL, NULL, NULL, &error));
  generate.size = (size_t)-1;
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_session_generate(session, &generate, NULL, NULL, NULL, &error));
  generate.size = offsetof(poise_generate_options, min_p);
  generate.max_tokens = 2;
  generate.min_p = -1;
  generate.repetition_penalty = -1;
  generate.stop_count = 99;
  CHECK_OK(poise_session_generate(session, &generate, NULL, NULL, NULL, &error));
  poise_session_free(session);
  poise_model_free(model);
}

// A struct with a size but without its initializer is refused before any work.
static void refuses_structs_without_a_size(void) {
  poise_model* model = open_example();
  poise_model* other = NULL;
  poise_writer* writer = NULL;
  poise_session* session = NULL;
  const poise_tensor* tensor = tensor_named(model, "model.norm.weight");
  poise_convert_options with_storage = POISE_CONVERT_OPTIONS_INIT;
  poise_convert_options with_card = POISE_CONVERT_OPTIONS_INIT;
  const char* input = example("nano-mistral");
  const int32_t token = 1;
  poise_session_info about = POISE_SESSION_INFO_INIT;
  poise_session_options options = POISE_SESSION_OPTIONS_INIT;
  poise_generate_options generate = POISE_GENERATE_OPTIONS_INIT;
  poise_convert_options convert = POISE_CONVERT_OPTIONS_INIT;
  poise_batch* batch = NULL;
  poise_batch* none = NULL;
  size_t count = 0;
  NO_SIZE(poise_format, POISE_FORMAT_INIT, poise_format_at(0, &value, &error));
  NO_SIZE(poise_chat_template, POISE_CHAT_TEMPLATE_INIT, poise_chat_template_at(0, &value, &error));
  NO_SIZE(poise_dtype_info, POISE_DTYPE_INFO_INIT, poise_dtype_describe(POISE_F32, &value, &error));
  NO_SIZE(poise_open_options, POISE_OPEN_OPTIONS_INIT, poise_open(input, &value, &other, &error));
  NO_SIZE(poise_model_info, POISE_MODEL_INFO_INIT, poise_model_describe(model, &value, &error));
  NO_SIZE(poise_vocabulary, POISE_VOCABULARY_INIT, poise_model_vocabulary(model, &value, &error));
  NO_SIZE(poise_token, POISE_TOKEN_INIT, poise_vocabulary_token(model, 0, &value, &error));
  NO_SIZE(poise_tensor_info, POISE_TENSOR_INFO_INIT, poise_tensor_describe(tensor, &value, &error));
  NO_SIZE(poise_part_info, POISE_PART_INFO_INIT, poise_part_describe(first_part(tensor), &value, &error));
  NO_SIZE(poise_verify_options, POISE_VERIFY_OPTIONS_INIT, poise_verify(input, &value, NULL, NULL, NULL, &error));
  NO_SIZE(poise_verify_report, POISE_VERIFY_REPORT_INIT, poise_verify(input, NULL, NULL, NULL, &value, &error));
  NO_SIZE(poise_hash_options, POISE_HASH_OPTIONS_INIT, poise_hash(model, &value, NULL, NULL, NULL, &error));
  NO_SIZE(poise_statistics_options, POISE_STATISTICS_OPTIONS_INIT,
          poise_compute_statistics(model, &value, on_statistics, NULL, &error));
  NO_SIZE(poise_report_options, POISE_REPORT_OPTIONS_INIT,
          poise_write_report(example("nano-mistral"), scratch("x.html"), &value, NULL, &error));
  NO_SIZE(poise_model_hash, POISE_MODEL_HASH_INIT, poise_hash(model, NULL, NULL, NULL, &value, &error));
  convert.size = 0;
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_convert(input, scratch("none.zt"), &convert, NULL, &error));
  CHECK_SAYS("begin with its initializer");
  convert.size = offsetof(poise_convert_options, strip_prefix) - 1;
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_convert(input, scratch("none.zt"), &convert, NULL, &error));
  convert.size = (size_t)-1;
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_convert(input, scratch("none.zt"), &convert, NULL, &error));
  NO_SIZE(poise_convert_report, POISE_CONVERT_REPORT_INIT,
          poise_convert(input, scratch("none.zt"), NULL, &value, &error));
  NO_SIZE(poise_extract_lora_options, POISE_EXTRACT_LORA_OPTIONS_INIT,
          poise_extract_lora(input, input, scratch("x.gguf"), &value, NULL, &error));
  NO_SIZE(poise_convert_lora_options, POISE_CONVERT_LORA_OPTIONS_INIT,
          poise_convert_lora(input, scratch("x.gguf"), &value, NULL, &error));
  NO_SIZE(poise_lora_report, POISE_LORA_REPORT_INIT,
          poise_extract_lora(input, input, scratch("x.gguf"), NULL, &value, &error));
  NO_SIZE(poise_lora_report, POISE_LORA_REPORT_INIT,
          poise_convert_lora(input, scratch("x.gguf"), NULL, &value, &error));
  NO_SIZE(poise_delta_options, POISE_DELTA_OPTIONS_INIT,
          poise_make_delta(input, input, scratch("x.zt"), &value, NULL, &error));
  NO_SIZE(poise_delta_report, POISE_DELTA_REPORT_INIT,
          poise_make_delta(input, input, scratch("x.zt"), NULL, &value, &error));
  NO_SIZE(poise_imatrix_options, POISE_IMATRIX_OPTIONS_INIT,
          poise_measure_imatrix(model, "x", 1, scratch("x.gguf"), &value, NULL, &error));
  NO_SIZE(poise_imatrix_report, POISE_IMATRIX_REPORT_INIT,
          poise_measure_imatrix(model, "x", 1, scratch("x.gguf"), NULL, &value, &error));
  NO_SIZE(poise_fetch_options, POISE_FETCH_OPTIONS_INIT, poise_fetch("x", &value, NULL, &error));
  NO_SIZE(poise_fetch_report, POISE_FETCH_REPORT_INIT, poise_fetch("x", NULL, &value, &error));
  NO_SIZE(poise_open_options, POISE_OPEN_OPTIONS_INIT, poise_open_url("x", &value, &other, &error));
  NO_SIZE(poise_storage, POISE_STORAGE_INIT,
          (with_storage.storage = &value, poise_convert(input, scratch("none.zt"), &with_storage, NULL, &error)));
  NO_SIZE(poise_card, POISE_CARD_INIT,
          (with_card.card = &value, poise_convert(input, scratch("none.zt"), &with_card, NULL, &error)));
  CHECK(fopen(scratch("none.zt"), "rb") == NULL);
  NO_SIZE(poise_writer_options, POISE_WRITER_OPTIONS_INIT,
          poise_writer_create(scratch("none.zt"), NULL, &value, &writer, &error));
  CHECK_OK(poise_writer_create(scratch("none.zt"), NULL, NULL, &writer, &error));
  NO_SIZE(poise_card, POISE_CARD_INIT, poise_writer_set_card(writer, &value, &error));
  NO_SIZE(poise_vocabulary, POISE_VOCABULARY_INIT, poise_writer_set_vocabulary(writer, &value, &error));
  CHECK_OK(poise_writer_set_metadata(writer, model, &error));
  NO_SIZE(poise_token, POISE_TOKEN_INIT, poise_writer_add_token(writer, &value, &error));
  NO_SIZE(poise_tensor_plan, POISE_TENSOR_PLAN_INIT, poise_writer_add_tensor(writer, &value, &error));
  poise_writer_free(writer);
  CHECK_OK(poise_session_create(model, NULL, &session, &error));
  about.size = offsetof(poise_session_info, hidden_size) - 1;
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_session_describe(session, &about, &error));
  CHECK_SAYS("begin with its initializer");
  about.size = offsetof(poise_session_info, hidden_size);  // what an older header has
  CHECK_OK(poise_session_describe(session, &about, &error));
  CHECK(about.size == offsetof(poise_session_info, hidden_size) && about.hidden_size == 0 && about.context > 0);
  CHECK_OK(poise_session_feed(session, &token, 1, &error));
  CHECK_OK(poise_batch_create(model, NULL, &batch, &error));
  options.size = 0;
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_batch_create(model, &options, &none, &error));
  generate.size = 0;
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_batch_add(batch, &token, 1, &generate, &count, &error));
  generate.size = offsetof(poise_generate_options, min_p);  // what an older header has
  generate.max_tokens = 0;
  CHECK_OK(poise_batch_add(batch, &token, 1, &generate, &count, &error));
  CHECK_OK(poise_batch_step(batch, &count, &error));
  NO_SIZE(poise_finished_text, POISE_FINISHED_TEXT_INIT, poise_batch_finished(batch, 0, &value, &error));
  poise_batch_free(batch);
  NO_SIZE(poise_generation, POISE_GENERATION_INIT, poise_session_generate(session, NULL, NULL, NULL, &value, &error));
  poise_session_free(session);
  poise_model_free(model);
  // The file has a warning, because its name belongs to another format.
  {
    size_t size;
    unsigned char* data = read_file(example("nano-mistral/model.safetensors"), &size);
    CHECK_OK(poise_open_memory(data, size, "wrong-name.alt", NULL, &model, &error));
    NO_SIZE(poise_finding, POISE_FINDING_INIT, poise_model_warning(model, 0, &value, &error));
    poise_model_free(model);
    free(data);
  }
}

#define RESERVED(type, init, call)                                  \
  do {                                                              \
    type value = init;                                              \
    value.reserved = 1;                                             \
    CHECK_STATUS(POISE_BAD_ARGUMENT, call);                         \
    CHECK(strcmp(error.message, "reserved is 1, expected 0") == 0); \
  } while (0)

// Reserved fields other than 0 are refused, because a later version may give them a meaning.
static void refuses_reserved_fields(void) {
  poise_model* model = open_example();
  poise_model* other = NULL;
  poise_writer* writer = NULL;
  poise_session* session = NULL;
  poise_batch* batch = NULL;
  const char* input = example("nano-mistral");
  RESERVED(poise_open_options, POISE_OPEN_OPTIONS_INIT, poise_open(input, &value, &other, &error));
  RESERVED(poise_open_options, POISE_OPEN_OPTIONS_INIT, poise_open_memory("", 0, "x", &value, &other, &error));
  RESERVED(poise_verify_options, POISE_VERIFY_OPTIONS_INIT, poise_verify(input, &value, NULL, NULL, NULL, &error));
  RESERVED(poise_writer_options, POISE_WRITER_OPTIONS_INIT,
           poise_writer_create(scratch("none.zt"), NULL, &value, &writer, &error));
  RESERVED(poise_session_options, POISE_SESSION_OPTIONS_INIT, poise_session_create(model, &value, &session, &error));
  RESERVED(poise_session_options, POISE_SESSION_OPTIONS_INIT, poise_batch_create(model, &value, &batch, &error));
  CHECK_OK(poise_writer_create(scratch("none.zt"), NULL, NULL, &writer, &error));
  RESERVED(poise_tensor_plan, POISE_TENSOR_PLAN_INIT, poise_writer_add_tensor(writer, &value, &error));
  poise_writer_free(writer);
  CHECK(other == NULL && session == NULL && batch == NULL);
  poise_model_free(model);
}

static void knows_its_version(void) {
  char header[32];
  snprintf(header, sizeof header, "%d.%d.%d", POISE_VERSION_MAJOR, POISE_VERSION_MINOR, POISE_VERSION_PATCH);
  CHECK(strcmp(header, poise_version()) == 0);
}

void test_growth(void) {
  understands_newer_options();
  understands_newer_structs_inside_of_options();
  understands_older_options();
  fills_newer_structs();
  refuses_structs_without_a_size();
  refuses_reserved_fields();
  knows_its_version();
}
