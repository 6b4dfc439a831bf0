// Every parameter that must not be NULL is named in the error, and every free function takes NULL.
#include "check.h"

#define NO_NULL(parameter, call)          \
  CHECK_STATUS(POISE_BAD_ARGUMENT, call); \
  CHECK(strcmp(error.message, parameter " is NULL") == 0)

static void reading(void) {
  poise_model* model = open_example();
  const poise_attributes* config;
  poise_model_info info = POISE_MODEL_INFO_INIT;
  poise_finding finding = POISE_FINDING_INIT;
  poise_vocabulary vocabulary = POISE_VOCABULARY_INIT;
  poise_token token = POISE_TOKEN_INIT;
  poise_merge merge;
  const poise_tensor* tensor = tensor_named(model, "lm_head.weight");
  const poise_tensor* other;
  poise_tensor_info tensor_info = POISE_TENSOR_INFO_INIT;
  const poise_part* part = first_part(tensor);
  poise_part_info part_info = POISE_PART_INFO_INIT;
  poise_bytes bytes;
  poise_value_type type;
  poise_string json;
  poise_text text;
  int64_t integer;
  uint64_t positive;
  double real;
  float numbers[64] = {0};
  const uint64_t dim = 32;
  poise_model* made;
  int truth;
  size_t count;
  char byte;
  NO_NULL("path", poise_open(NULL, NULL, &model, &error));
  NO_NULL("model", poise_open("x", NULL, NULL, &error));
  NO_NULL("name", poise_open_memory("", 1, NULL, NULL, &model, &error));
  NO_NULL("model", poise_open_memory("", 1, "x", NULL, NULL, &error));
  NO_NULL("format", poise_format_at(0, NULL, &error));
  NO_NULL("chat_template", poise_chat_template_at(0, NULL, &error));
  NO_NULL("info", poise_dtype_describe(POISE_F32, NULL, &error));
  NO_NULL("model", poise_model_describe(NULL, &info, &error));
  NO_NULL("info", poise_model_describe(model, NULL, &error));
  NO_NULL("model", poise_model_warning(NULL, 0, &finding, &error));
  NO_NULL("model", poise_model_card(NULL, &config, &error));
  NO_NULL("card", poise_model_card(model, NULL, &error));
  NO_NULL("model", poise_model_config(NULL, &config, &error));
  NO_NULL("config", poise_model_config(model, NULL, &error));
  NO_NULL("model", poise_model_attributes(NULL, &config, &error));
  NO_NULL("attributes", poise_model_attributes(model, NULL, &error));
  NO_NULL("model", poise_model_vocabulary(NULL, &vocabulary, &error));
  NO_NULL("vocabulary", poise_model_vocabulary(model, NULL, &error));
  NO_NULL("model", poise_vocabulary_token(NULL, 0, &token, &error));
  NO_NULL("token", poise_vocabulary_token(model, 0, NULL, &error));
  NO_NULL("model", poise_vocabulary_merge(NULL, 0, &merge, &error));
  NO_NULL("model", poise_tensor_at(NULL, 0, &other, &error));
  NO_NULL("tensor", poise_tensor_at(model, 0, NULL, &error));
  NO_NULL("model", poise_tensor_find(NULL, "lm_head.weight", &other, &error));
  NO_NULL("name", poise_tensor_find(model, NULL, &other, &error));
  NO_NULL("tensor", poise_tensor_find(model, "lm_head.weight", NULL, &error));
  NO_NULL("tensor", poise_tensor_describe(NULL, &tensor_info, &error));
  NO_NULL("info", poise_tensor_describe(tensor, NULL, &error));
  NO_NULL("tensor", poise_tensor_part_at(NULL, 0, &part, &error));
  NO_NULL("part", poise_tensor_part_at(tensor, 0, NULL, &error));
  NO_NULL("tensor", poise_tensor_part(NULL, "data", &part, &error));
  NO_NULL("role", poise_tensor_part(tensor, NULL, &part, &error));
  NO_NULL("part", poise_tensor_part(tensor, "data", NULL, &error));
  NO_NULL("tensor", poise_tensor_decode(NULL, POISE_F32, 0, 1, &real, 4, &error));
  NO_NULL("part", poise_part_describe(NULL, &part_info, &error));
  NO_NULL("info", poise_part_describe(part, NULL, &error));
  NO_NULL("part", poise_part_map(NULL, &bytes, &error));
  NO_NULL("bytes", poise_part_map(part, NULL, &error));
  NO_NULL("part", poise_part_read(NULL, 0, &byte, 1, &error));
  NO_NULL("numbers", poise_quantize(NULL, &dim, 1, "q8_0", &made, &error));
  NO_NULL("dims", poise_quantize(numbers, NULL, 1, "q8_0", &made, &error));
  NO_NULL("type", poise_quantize(numbers, &dim, 1, NULL, &made, &error));
  NO_NULL("model", poise_quantize(numbers, &dim, 1, "q8_0", NULL, &error));
  NO_NULL("blocks", poise_dequantize(NULL, 34, "q8_0", &dim, 1, numbers, 32, &error));
  NO_NULL("dims", poise_dequantize(numbers, 34, "q8_0", NULL, 1, numbers, 32, &error));
  NO_NULL("type", poise_dequantize(numbers, 34, NULL, &dim, 1, numbers, 32, &error));
  NO_NULL("numbers", poise_dequantize(numbers, 34, "q8_0", &dim, 1, NULL, 32, &error));

  CHECK_OK(poise_model_config(model, &config, &error));
  NO_NULL("attributes", poise_attributes_count(NULL, &count, &error));
  NO_NULL("count", poise_attributes_count(config, NULL, &error));
  NO_NULL("attributes", poise_attributes_at(NULL, 0, &text, &type, &error));
  NO_NULL("key", poise_attributes_at(config, 0, NULL, &type, &error));
  NO_NULL("type", poise_attributes_at(config, 0, &text, NULL, &error));
  NO_NULL("attributes", poise_attributes_get_boolean(NULL, "tie_word_embeddings", &truth, &error));
  NO_NULL("key", poise_attributes_get_boolean(config, NULL, &truth, &error));
  NO_NULL("value", poise_attributes_get_boolean(config, "tie_word_embeddings", NULL, &error));
  NO_NULL("attributes", poise_attributes_get_integer(NULL, "hidden_size", &integer, &error));
  NO_NULL("value", poise_attributes_get_integer(config, "hidden_size", NULL, &error));
  NO_NULL("attributes", poise_attributes_get_unsigned(NULL, "hidden_size", &positive, &error));
  NO_NULL("value", poise_attributes_get_unsigned(config, "hidden_size", NULL, &error));
  NO_NULL("attributes", poise_attributes_get_real(NULL, "hidden_size", &real, &error));
  NO_NULL("value", poise_attributes_get_real(config, "hidden_size", NULL, &error));
  NO_NULL("attributes", poise_attributes_get_text(NULL, "hidden_act", &text, &error));
  NO_NULL("value", poise_attributes_get_text(config, "hidden_act", NULL, &error));
  NO_NULL("attributes", poise_attributes_get_bytes(NULL, "hidden_act", &bytes, &error));
  NO_NULL("attributes", poise_attributes_get_json(NULL, NULL, &json, &error));
  NO_NULL("json", poise_attributes_get_json(config, NULL, NULL, &error));
  poise_model_free(model);
}

static int on_statistics(void* user, const poise_tensor_statistics* tensor) {
  (void)user;
  return tensor == NULL;
}

static void doing(void) {
  poise_model* model = open_example();
  poise_model* opened = NULL;
  poise_writer* writer = NULL;
  poise_token token = POISE_TOKEN_INIT;
  poise_merge merge = {{NULL, 1}, {"", 0}};
  poise_vocabulary vocabulary = POISE_VOCABULARY_INIT;
  token.text.data = NULL;
  token.text.size = 1;
  NO_NULL("path", poise_verify(NULL, NULL, NULL, NULL, NULL, &error));
  NO_NULL("model", poise_hash(NULL, NULL, NULL, NULL, NULL, &error));
  NO_NULL("model", poise_compute_statistics(NULL, NULL, on_statistics, NULL, &error));
  NO_NULL("on_tensor", poise_compute_statistics(model, NULL, NULL, NULL, &error));
  NO_NULL("path", poise_write_report(NULL, "x", NULL, NULL, &error));
  NO_NULL("page", poise_write_report("x", NULL, NULL, NULL, &error));
  NO_NULL("input", poise_convert(NULL, "x", NULL, NULL, &error));
  NO_NULL("output", poise_convert("x", NULL, NULL, NULL, &error));
  NO_NULL("url", poise_open_url(NULL, NULL, &opened, &error));
  NO_NULL("model", poise_open_url("https://x", NULL, NULL, &error));
  NO_NULL("base", poise_extract_lora(NULL, "x", "x", NULL, NULL, &error));
  NO_NULL("tuned", poise_extract_lora("x", NULL, "x", NULL, NULL, &error));
  NO_NULL("output", poise_extract_lora("x", "x", NULL, NULL, NULL, &error));
  NO_NULL("adapter", poise_convert_lora(NULL, "x", NULL, NULL, &error));
  NO_NULL("output", poise_convert_lora("x", NULL, NULL, NULL, &error));
  NO_NULL("base", poise_make_delta(NULL, "x", "x", NULL, NULL, &error));
  NO_NULL("tuned", poise_make_delta("x", NULL, "x", NULL, NULL, &error));
  NO_NULL("output", poise_make_delta("x", "x", NULL, NULL, NULL, &error));
  NO_NULL("output", poise_measure_imatrix(model, "x", 1, NULL, NULL, NULL, &error));
  NO_NULL("url", poise_fetch(NULL, NULL, NULL, &error));
  NO_NULL("path", poise_writer_create(NULL, NULL, NULL, &writer, &error));
  NO_NULL("writer", poise_writer_create(scratch("x.zt"), NULL, NULL, NULL, &error));
  NO_NULL("writer", poise_writer_set_metadata(NULL, model, &error));
  NO_NULL("writer", poise_writer_set_card(NULL, NULL, &error));
  NO_NULL("writer", poise_writer_set_config(NULL, "{}", &error));
  NO_NULL("writer", poise_writer_set_attributes(NULL, "{}", &error));
  NO_NULL("writer", poise_writer_set_vocabulary(NULL, NULL, &error));
  NO_NULL("writer", poise_writer_add_token(NULL, NULL, &error));
  NO_NULL("writer", poise_writer_add_merge(NULL, NULL, &error));
  NO_NULL("writer", poise_writer_add_tensor(NULL, NULL, &error));
  NO_NULL("writer", poise_writer_copy_tensor(NULL, NULL, &error));
  NO_NULL("writer", poise_writer_finish(NULL, &error));
  NO_NULL("writer", poise_writer_losses(NULL, NULL, &error));
  CHECK_OK(poise_writer_create(scratch("x.zt"), NULL, NULL, &writer, &error));
  NO_NULL("from", poise_writer_set_metadata(writer, NULL, &error));
  NO_NULL("card", poise_writer_set_card(writer, NULL, &error));
  NO_NULL("config", poise_writer_set_config(writer, NULL, &error));
  NO_NULL("attributes", poise_writer_set_attributes(writer, NULL, &error));
  NO_NULL("vocabulary", poise_writer_set_vocabulary(writer, NULL, &error));
  NO_NULL("plan", poise_writer_add_tensor(writer, NULL, &error));
  NO_NULL("tensor", poise_writer_copy_tensor(writer, NULL, &error));
  NO_NULL("losses", poise_writer_losses(writer, NULL, &error));
  CHECK_OK(poise_model_vocabulary(model, &vocabulary, &error));
  CHECK_OK(poise_writer_set_vocabulary(writer, &vocabulary, &error));
  NO_NULL("token", poise_writer_add_token(writer, NULL, &error));
  NO_NULL("token->text", poise_writer_add_token(writer, &token, &error));
  NO_NULL("merge", poise_writer_add_merge(writer, NULL, &error));
  NO_NULL("merge->left", poise_writer_add_merge(writer, &merge, &error));
  vocabulary.normalizer.data = NULL;
  NO_NULL("vocabulary->normalizer", poise_writer_set_vocabulary(writer, &vocabulary, &error));
  poise_writer_free(writer);
  poise_model_free(model);
}

static void running(void) {
  poise_model* model = open_example();
  poise_tokenizer* tokenizer = NULL;
  poise_stream* stream = NULL;
  poise_session* session = NULL;
  poise_session_info info = POISE_SESSION_INFO_INIT;
  poise_tokens tokens;
  poise_string string;
  poise_text text;
  const float* logits;
  double score;
  size_t count;
  float number;
  const int32_t token = 1;
  NO_NULL("model", poise_tokenizer_create(NULL, &tokenizer, &error));
  NO_NULL("tokenizer", poise_tokenizer_create(model, NULL, &error));
  NO_NULL("path", poise_tokenizer_open(NULL, &tokenizer, &error));
  NO_NULL("tokenizer", poise_tokenizer_open("a", NULL, &error));
  CHECK_OK(poise_tokenizer_create(model, &tokenizer, &error));
  NO_NULL("tokenizer", poise_tokenizer_encode(NULL, "a", 1, &tokens, &error));
  NO_NULL("text", poise_tokenizer_encode(tokenizer, NULL, 1, &tokens, &error));
  NO_NULL("tokens", poise_tokenizer_encode(tokenizer, "a", 1, NULL, &error));
  NO_NULL("tokenizer", poise_tokenizer_encode_with_special(NULL, "a", 1, &tokens, &error));
  NO_NULL("text", poise_tokenizer_encode_with_special(tokenizer, NULL, 1, &tokens, &error));
  NO_NULL("tokens", poise_tokenizer_encode_with_special(tokenizer, "a", 1, NULL, &error));
  NO_NULL("tokenizer", poise_tokenizer_decode(NULL, &token, 1, &string, &error));
  NO_NULL("tokens", poise_tokenizer_decode(tokenizer, NULL, 1, &string, &error));
  NO_NULL("text", poise_tokenizer_decode(tokenizer, &token, 1, NULL, &error));
  NO_NULL("tokenizer", poise_stream_create(NULL, &stream, &error));
  NO_NULL("stream", poise_stream_create(tokenizer, NULL, &error));
  CHECK_OK(poise_stream_create(tokenizer, &stream, &error));
  NO_NULL("stream", poise_stream_add(NULL, 1, &text, &error));
  NO_NULL("text", poise_stream_add(stream, 1, NULL, &error));
  NO_NULL("stream", poise_stream_finish(NULL, &text, &error));
  NO_NULL("text", poise_stream_finish(stream, NULL, &error));
  NO_NULL("model", poise_session_create(NULL, NULL, &session, &error));
  NO_NULL("session", poise_session_create(model, NULL, NULL, &error));
  CHECK_OK(poise_session_create(model, NULL, &session, &error));
  NO_NULL("session", poise_session_describe(NULL, &info, &error));
  NO_NULL("info", poise_session_describe(session, NULL, &error));
  NO_NULL("session", poise_session_prompt(NULL, "a", 1, &tokens, &error));
  NO_NULL("text", poise_session_prompt(session, NULL, 1, &tokens, &error));
  NO_NULL("tokens", poise_session_prompt(session, "a", 1, NULL, &error));
  NO_NULL("session", poise_session_reset(NULL, &error));
  NO_NULL("session", poise_session_feed(NULL, &token, 1, &error));
  NO_NULL("tokens", poise_session_feed(session, NULL, 1, &error));
  NO_NULL("session", poise_session_logits(NULL, &logits, &count, &error));
  NO_NULL("logits", poise_session_logits(session, NULL, &count, &error));
  NO_NULL("count", poise_session_logits(session, &logits, NULL, &error));
  NO_NULL("session", poise_session_generate(NULL, NULL, NULL, NULL, NULL, &error));
  NO_NULL("session", poise_session_hidden_state(NULL, &logits, &count, &error));
  NO_NULL("state", poise_session_hidden_state(session, NULL, &count, &error));
  NO_NULL("count", poise_session_hidden_state(session, &logits, NULL, &error));
  NO_NULL("session", poise_session_hidden_states(NULL, &token, 1, 0, &number, &error));
  NO_NULL("tokens", poise_session_hidden_states(session, NULL, 1, 0, &number, &error));
  NO_NULL("out", poise_session_hidden_states(session, &token, 1, 0, NULL, &error));
  NO_NULL("session", poise_session_log_probabilities(NULL, &token, 1, &score, &error));
  poise_session_free(session);
  poise_stream_free(stream);
  poise_tokenizer_free(tokenizer);
  poise_model_free(model);
}

static void running_batches(void) {
  poise_model* model = open_example();
  poise_batch* batch = NULL;
  poise_finished_text finished = POISE_FINISHED_TEXT_INIT;
  poise_tokens tokens;
  size_t count;
  const int32_t token = 1;
  NO_NULL("model", poise_batch_create(NULL, NULL, &batch, &error));
  NO_NULL("batch", poise_batch_create(model, NULL, NULL, &error));
  CHECK_OK(poise_batch_create(model, NULL, &batch, &error));
  NO_NULL("batch", poise_batch_prompt(NULL, "a", 1, &tokens, &error));
  NO_NULL("text", poise_batch_prompt(batch, NULL, 1, &tokens, &error));
  NO_NULL("tokens", poise_batch_prompt(batch, "a", 1, NULL, &error));
  NO_NULL("batch", poise_batch_add(NULL, &token, 1, NULL, &count, &error));
  NO_NULL("tokens", poise_batch_add(batch, NULL, 1, NULL, &count, &error));
  NO_NULL("id", poise_batch_add(batch, &token, 1, NULL, NULL, &error));
  NO_NULL("batch", poise_batch_count(NULL, &count, &error));
  NO_NULL("count", poise_batch_count(batch, NULL, &error));
  NO_NULL("batch", poise_batch_step(NULL, &count, &error));
  NO_NULL("finished", poise_batch_step(batch, NULL, &error));
  NO_NULL("batch", poise_batch_finished(NULL, 0, &finished, &error));
  NO_NULL("text", poise_batch_finished(batch, 0, NULL, &error));
  poise_batch_free(batch);
  poise_model_free(model);
}

static void freeing_nothing(void) {
  poise_model_free(NULL);
  poise_writer_free(NULL);
  poise_tokenizer_free(NULL);
  poise_stream_free(NULL);
  poise_session_free(NULL);
  poise_batch_free(NULL);
  poise_string_free(NULL);
  poise_tokens_free(NULL);
}

void test_arguments(void) {
  reading();
  doing();
  running();
  running_batches();
  freeing_nothing();
}
