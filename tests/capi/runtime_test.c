// Tokenizers, streams and sessions. The expected tokens are those of examples/nano-mistral/reference.json, which
// SentencePiece and a float64 model made.
#include <math.h>
#include <stdlib.h>

#include "check.h"

static const int32_t kHello[] = {348, 280, 903, 916, 863, 930};
static const int32_t kOnce[] = {1, 580, 581, 261, 469};
static const int32_t kGreedy[] = {916, 375, 277, 261, 536, 294, 302, 917, 914, 270};

static void turns_text_into_tokens(void) {
  poise_model* model = open_example();
  poise_tokenizer* tokenizer = NULL;
  poise_stream* stream = NULL;
  poise_tokens tokens;
  poise_string text;
  poise_text piece;
  char whole[64] = "";
  const int32_t outside[] = {960};
  size_t i;
  CHECK_OK(poise_tokenizer_create(model, &tokenizer, &error));
  poise_model_free(model);  // the tokenizer stays
  CHECK_OK(poise_tokenizer_encode(tokenizer, "Hello, world!", 13, &tokens, &error));
  CHECK(tokens.count == 6 && memcmp(tokens.data, kHello, sizeof kHello) == 0);
  CHECK_OK(poise_tokenizer_decode(tokenizer, tokens.data, tokens.count, &text, &error));
  CHECK(text.size == 13 && strcmp(text.data, "Hello, world!") == 0);
  poise_string_free(&text);
  CHECK_OK(poise_stream_create(tokenizer, &stream, &error));
  for (i = 0; i < tokens.count; ++i) {
    CHECK_OK(poise_stream_add(stream, tokens.data[i], &piece, &error));
    strncat(whole, piece.data, piece.size);
  }
  CHECK_OK(poise_stream_finish(stream, &piece, &error));
  strncat(whole, piece.data, piece.size);
  CHECK(strcmp(whole, "Hello, world!") == 0);
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_stream_add(stream, 960, &piece, &error));
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_stream_add(stream, -1, &piece, &error));
  poise_stream_free(stream);
  poise_tokens_free(&tokens);
  CHECK(tokens.data == NULL && tokens.count == 0);
  CHECK_OK(poise_tokenizer_encode(tokenizer, NULL, 0, &tokens, &error));
  CHECK(tokens.count == 0);
  poise_tokens_free(&tokens);
  CHECK_OK(poise_tokenizer_encode_with_special(tokenizer, "Once upon a time", 16, &tokens, &error));
  CHECK(tokens.count == 5 && memcmp(tokens.data, kOnce, sizeof kOnce) == 0);
  poise_tokens_free(&tokens);
  CHECK_OK(poise_tokenizer_decode(tokenizer, NULL, 0, &text, &error));
  CHECK(text.size == 0 && text.data[0] == '\0');
  poise_string_free(&text);
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_tokenizer_decode(tokenizer, outside, 1, &text, &error));
  CHECK_SAYS("token 960");
  poise_tokenizer_free(tokenizer);
  CHECK_OK(poise_open(example("nano-tiny-llama/weights.tllm"), NULL, &model, &error));
  CHECK_STATUS(POISE_NOT_FOUND, poise_tokenizer_create(model, &tokenizer, &error));
  poise_model_free(model);
}

static void reads_tokenizer_files(void) {
  const char* const paths[] = {"nano-mistral", "nano-mistral/tokenizer.model"};
  poise_tokenizer* tokenizer = NULL;
  poise_tokens tokens;
  size_t i;
  for (i = 0; i < 2; ++i) {
    CHECK_OK(poise_tokenizer_open(example(paths[i]), &tokenizer, &error));
    CHECK_OK(poise_tokenizer_encode(tokenizer, "Hello, world!", 13, &tokens, &error));
    CHECK(tokens.count == 6 && memcmp(tokens.data, kHello, sizeof kHello) == 0);
    poise_tokens_free(&tokens);
    poise_tokenizer_free(tokenizer);
  }
  CHECK_STATUS(POISE_NOT_FOUND, poise_tokenizer_open(example("c-executor"), &tokenizer, &error));
  CHECK_STATUS(POISE_NOT_FOUND, poise_tokenizer_open(example("nano-mistral/README.md"), &tokenizer, &error));
}

typedef struct heard {
  int32_t tokens[64];
  size_t count;
  size_t stop_at;
} heard;

static int on_token(void* user, int32_t token) {
  heard* all = user;
  all->tokens[all->count++] = token;
  return all->count == all->stop_at;
}

static void tells_a_story(void) {
  poise_model* model = open_example();
  poise_session* session = NULL;
  poise_session_options options = POISE_SESSION_OPTIONS_INIT;
  poise_session_info info = POISE_SESSION_INFO_INIT;
  poise_generate_options generate = POISE_GENERATE_OPTIONS_INIT;
  poise_generation generation = POISE_GENERATION_INIT;
  poise_tokens prompt;
  const float* logits;
  size_t count;
  size_t i;
  size_t best = 0;
  heard all = {{0}, 0, 0};
  options.threads = 2;
  options.context = 40;
  CHECK_OK(poise_session_create(model, &options, &session, &error));
  poise_model_free(model);  // the session stays
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_session_logits(session, &logits, &count, &error));
  CHECK_OK(poise_session_prompt(session, "Once upon a time", 16, &prompt, &error));
  CHECK(prompt.count == 5 && memcmp(prompt.data, kOnce, sizeof kOnce) == 0);
  CHECK_OK(poise_session_feed(session, prompt.data, prompt.count, &error));
  CHECK_OK(poise_session_logits(session, &logits, &count, &error));
  CHECK(count == 960);
  for (i = 0; i < count; ++i) best = logits[i] > logits[best] ? i : best;
  CHECK((int32_t)best == kGreedy[0]);
  generate.max_tokens = 10;
  CHECK_OK(poise_session_generate(session, &generate, on_token, &all, &generation, &error));
  CHECK(all.count == 10 && memcmp(all.tokens, kGreedy, sizeof kGreedy) == 0);
  CHECK(generation.tokens == 10 && generation.reason == POISE_STOP_MAX_TOKENS && generation.last == kGreedy[9]);
  CHECK_OK(poise_session_describe(session, &info, &error));
  CHECK(info.vocabulary_size == 960 && info.context == 40 && info.position == 5 + 9 && info.has_tokenizer == 1);

  CHECK_OK(poise_session_reset(session, &error));
  CHECK_OK(poise_session_feed(session, prompt.data, prompt.count, &error));
  all.count = 0;
  all.stop_at = 3;
  CHECK_OK(poise_session_generate(session, NULL, on_token, &all, &generation, &error));
  CHECK(all.count == 3 && generation.reason == POISE_STOP_CALLBACK);
  all.stop_at = 0;
  CHECK_OK(poise_session_feed(session, &generation.last, 1, &error));
  generate.stop_id = kGreedy[5];
  CHECK_OK(poise_session_generate(session, &generate, on_token, &all, &generation, &error));
  CHECK(generation.reason == POISE_STOP_END_OF_TEXT && generation.tokens == 3 && generation.last == kGreedy[5]);
  CHECK_OK(poise_session_reset(session, &error));
  CHECK_OK(poise_session_feed(session, prompt.data, prompt.count, &error));
  generate.ignore_eos = 1;
  CHECK_OK(poise_session_generate(session, &generate, NULL, NULL, &generation, &error));
  CHECK(generation.reason == POISE_STOP_MAX_TOKENS && generation.tokens == 10 && generation.last == kGreedy[9]);
  generate.ignore_eos = 0;
  generate.stop_id = -1;
  generate.max_tokens = 1000;
  CHECK_OK(poise_session_generate(session, &generate, NULL, NULL, &generation, &error));
  CHECK(generation.reason == POISE_STOP_CONTEXT_FULL);

  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_session_feed(session, prompt.data, prompt.count, &error));  // does not fit
  CHECK_OK(poise_session_reset(session, &error));
  prompt.data[1] = 960;
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_session_feed(session, prompt.data, prompt.count, &error));
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_session_generate(session, NULL, NULL, NULL, NULL, &error));
  generate.top_p = 0;
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_session_generate(session, &generate, NULL, NULL, NULL, &error));
  poise_tokens_free(&prompt);
  poise_session_free(session);
}

static void scores_a_text(void) {
  poise_model* model = open_example();
  poise_session* session = NULL;
  double scores[4];
  const float* logits;
  double sum = 0;
  size_t count;
  size_t i;
  CHECK_OK(poise_session_create(model, NULL, &session, &error));
  CHECK_OK(poise_session_log_probabilities(session, kOnce, 5, scores, &error));
  CHECK_OK(poise_session_reset(session, &error));
  CHECK_OK(poise_session_feed(session, kOnce, 4, &error));
  CHECK_OK(poise_session_logits(session, &logits, &count, &error));
  for (i = 0; i < count; ++i) sum += exp((double)logits[i]);
  CHECK(fabs(scores[3] - ((double)logits[kOnce[4]] - log(sum))) < 1e-4);
  CHECK_OK(poise_session_log_probabilities(session, kOnce, 1, NULL, &error));
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_session_log_probabilities(session, kOnce, 2, NULL, &error));
  poise_session_free(session);
  poise_model_free(model);
}

// tests/runtime/session_test.cpp and independent_forward.py compare the numbers with other programs' ones.
static void gives_hidden_states(void) {
  poise_model* model = open_example();
  poise_session* session = NULL;
  poise_session_info info = POISE_SESSION_INFO_INIT;
  float states[5 * 128];
  const float* last;
  size_t count;
  CHECK_OK(poise_session_create(model, NULL, &session, &error));
  CHECK_OK(poise_session_describe(session, &info, &error));
  CHECK(info.hidden_size == 128 && info.layers == 4);
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_session_hidden_state(session, &last, &count, &error));
  CHECK_OK(poise_session_hidden_states(session, kOnce, 5, info.layers, states, &error));
  CHECK_OK(poise_session_hidden_state(session, &last, &count, &error));
  CHECK(count == 128 && memcmp(last, states + 4 * 128, sizeof(float) * 128) == 0);
  CHECK_OK(poise_session_hidden_states(session, NULL, 0, 0, NULL, &error));
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_session_hidden_states(session, kOnce, 5, 5, states, &error));
  poise_session_free(session);
  poise_model_free(model);
}

static void refuses_what_does_not_run(void) {
  poise_model* model = NULL;
  poise_session* session = NULL;
  poise_session_options options = POISE_SESSION_OPTIONS_INIT;
  poise_tokens tokens;
  CHECK_OK(poise_open(example("nano-mistral/model.safetensors"), NULL, &model, &error));
  CHECK_STATUS(POISE_UNSUPPORTED, poise_session_create(model, NULL, &session, &error));
  poise_model_free(model);
  model = open_example();
  options.context = 513;
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_session_create(model, &options, &session, &error));
  options.context = 0;
  options.threads = 100000;
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_session_create(model, &options, &session, &error));
  CHECK(session == NULL);
  poise_model_free(model);
  CHECK_OK(poise_open(example("nano-tiny-llama/weights.tllm"), NULL, &model, &error));
  CHECK_OK(poise_session_create(model, NULL, &session, &error));
  CHECK_STATUS(POISE_UNSUPPORTED, poise_session_prompt(session, "a", 1, &tokens, &error));
  CHECK_OK(poise_session_feed(session, kOnce, 1, &error));
  poise_session_free(session);
  poise_model_free(model);
}

// Returns the scores after one token, which the caller frees.
static float* scores_of(const poise_model* model, int32_t exact, size_t* count) {
  poise_session* session = NULL;
  poise_session_options options = POISE_SESSION_OPTIONS_INIT;
  const float* logits = NULL;
  float* scores;
  options.exact = exact;
  CHECK_OK(poise_session_create(model, &options, &session, &error));
  CHECK_OK(poise_session_feed(session, kOnce, 1, &error));
  CHECK_OK(poise_session_logits(session, &logits, count, &error));
  scores = malloc(*count * sizeof *scores);
  memcpy(scores, logits, *count * sizeof *scores);
  poise_session_free(session);
  return scores;
}

static double largest_difference(const float* a, const float* b, size_t count) {
  double most = 0;
  size_t i;
  for (i = 0; i < count; ++i) most = fmax(most, fabs((double)a[i] - (double)b[i]));
  return most;
}

// The scores of a quantized model are those of a model with the decoded numbers.
static void multiplies_exactly_when_asked_to(void) {
  poise_convert_options options = POISE_CONVERT_OPTIONS_INIT;
  poise_model* codes = NULL;
  poise_model* numbers = NULL;
  float* expected;
  float* exact;
  float* usual;
  size_t count = 0;
  options.quantize = "qint4";
  codes = open_converted("codes.zt", &options);
  options.quantize = NULL;
  options.dtype = POISE_F32;
  CHECK_OK(poise_convert(scratch("codes.zt"), scratch("numbers.zt"), &options, NULL, &error));
  CHECK_OK(poise_open(scratch("numbers.zt"), NULL, &numbers, &error));
  expected = scores_of(numbers, 1, &count);  // with keys and values in float32
  exact = scores_of(codes, 1, &count);
  usual = scores_of(codes, 0, &count);
  CHECK(count == 960);
  CHECK(largest_difference(exact, expected, count) < 2e-5);
  CHECK(largest_difference(usual, expected, count) > largest_difference(exact, expected, count));
  free(expected);
  free(exact);
  free(usual);
  poise_model_free(codes);
  poise_model_free(numbers);
}

static int zeros(void* user, uint64_t offset, void* out, size_t size) {
  (void)user;
  (void)offset;
  memset(out, 0, size);
  return 0;
}

// The model is complete, except that the elements of one weight are integers.
static void refuses_integers_for_weights(void) {
  poise_model* model = NULL;
  poise_writer* writer = NULL;
  poise_session* session = NULL;
  poise_tensor_plan plan = POISE_TENSOR_PLAN_INIT;
  const poise_tensor* tensor;
  size_t i;
  CHECK_OK(poise_open(example("nano-tiny-llama/weights.tllm"), NULL, &model, &error));
  CHECK_OK(poise_writer_create(scratch("integers.zt"), NULL, NULL, &writer, &error));
  CHECK_OK(poise_writer_set_metadata(writer, model, &error));
  for (i = 0; poise_tensor_at(model, i, &tensor, &error) == POISE_OK; ++i) {
    const poise_tensor_info info = info_of(tensor);
    if (info.name.size == 24 && memcmp(info.name.data, "output_projection.weight", 24) == 0) {
      plan.name = "output_projection.weight";
      plan.dtype = POISE_I32;
      plan.rank = info.rank;
      plan.dims = info.dims;
      plan.fill = zeros;
      CHECK_OK(poise_writer_add_tensor(writer, &plan, &error));
    } else {
      CHECK_OK(poise_writer_copy_tensor(writer, tensor, &error));
    }
  }
  CHECK_OK(poise_writer_finish(writer, &error));
  poise_writer_free(writer);
  poise_model_free(model);
  CHECK_OK(poise_open(scratch("integers.zt"), NULL, &model, &error));
  CHECK_STATUS(POISE_UNSUPPORTED, poise_session_create(model, NULL, &session, &error));
  CHECK_SAYS("output_projection.weight");
  poise_model_free(model);
}

// Drafts do not change a greedy text.
static void speculates(const poise_model* model) {
  poise_session_options lookup = POISE_SESSION_OPTIONS_INIT;
  poise_session_options draft = POISE_SESSION_OPTIONS_INIT;
  const poise_session_options* const all[] = {NULL, &lookup, &draft};
  poise_generate_options generate = POISE_GENERATE_OPTIONS_INIT;
  poise_generation generation = POISE_GENERATION_INIT;
  poise_session* session = NULL;
  int32_t last = -1;
  lookup.draft_lookup = 1;
  draft.draft = model;
  generate.max_tokens = 40;
  for (size_t i = 0; i < 3; ++i) {
    CHECK_OK(poise_session_create(model, all[i], &session, &error));
    CHECK_OK(poise_session_feed(session, kOnce, sizeof kOnce / sizeof kOnce[0], &error));
    CHECK_OK(poise_session_generate(session, &generate, NULL, NULL, &generation, &error));
    CHECK(generation.tokens == 40 && (i == 0 || generation.last == last));
    last = generation.last;
    poise_session_free(session);
  }
  draft.draft_lookup = 1;
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_session_create(model, &draft, &session, &error));
  CHECK_SAYS("exclude each other");
}

// Each type of cache has scores near those of float32, and loads only files with the same type.
static void caches(const poise_model* model) {
  static const poise_cache_type kTypes[] = {POISE_CACHE_F32, POISE_CACHE_F16, POISE_CACHE_Q8};
  poise_session_options options = POISE_SESSION_OPTIONS_INIT;
  poise_session* session[3];
  const float* logits[3];
  size_t count = 0;
  for (int i = 0; i < 3; ++i) {
    options.cache = kTypes[i];
    CHECK_OK(poise_session_create(model, &options, &session[i], &error));
    CHECK_OK(poise_session_feed(session[i], kOnce, sizeof kOnce / sizeof kOnce[0], &error));
    CHECK_OK(poise_session_logits(session[i], &logits[i], &count, &error));
  }
  for (int i = 1; i < 3; ++i) {
    float most = 0;
    float error_most = 0;
    for (size_t j = 0; j < count; ++j) {
      most = fmaxf(most, fabsf(logits[0][j]));
      error_most = fmaxf(error_most, fabsf(logits[i][j] - logits[0][j]));
    }
    CHECK(error_most > 0 && error_most < 0.02f * most);
  }
  CHECK_OK(poise_session_save(session[2], scratch("cached.zt"), 1, &error));
  CHECK_OK(poise_session_load(session[2], scratch("cached.zt"), &error));
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_session_load(session[1], scratch("cached.zt"), &error));
  CHECK_SAYS("a cache of \"q8\", and this session one of \"f16\"");
  for (int i = 0; i < 3; ++i) poise_session_free(session[i]);
  options.cache = (poise_cache_type)4;
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_session_create(model, &options, &session[0], &error));
  CHECK_SAYS("cache is 4, expected one of 0 (f32), 1 (f16), 2 (q8), 3 (default)");
}

static void lists_built_in_templates(void) {
  poise_chat_template form = POISE_CHAT_TEMPLATE_INIT;
  size_t count = 0;
  CHECK_OK(poise_chat_template_at(0, &form, &error));
  CHECK_TEXT("chatml", form.name);
  CHECK_TEXT("<|im_end|>", form.end);
  while (poise_chat_template_at(count, &form, &error) == POISE_OK) ++count;
  CHECK(error.kind == POISE_NOT_FOUND && count == 14);  // the rows of docs/chat.md
}

// Fields that the files do not state keep the caller's values.
static void samples_as_the_files_ask(void) {
  poise_generate_options generate = POISE_GENERATE_OPTIONS_INIT;
  poise_model* model = NULL;
  poise_writer* writer = NULL;
  CHECK_OK(poise_writer_create(scratch("sampling.zt"), NULL, NULL, &writer, &error));
  CHECK_OK(poise_writer_set_attributes(
      writer, "{\"general.sampling.top_k\": 7, \"general.sampling.min_p\": 0.25, \"general.sampling.top_p\": 3}",
      &error));
  CHECK_OK(poise_writer_finish(writer, &error));
  poise_writer_free(writer);
  CHECK_OK(poise_open(scratch("sampling.zt"), NULL, &model, &error));
  generate.top_p = 0.5f;
  generate.seed = 9;
  CHECK_OK(poise_model_sampling_defaults(model, &generate, &error));
  CHECK(generate.temperature == 1.0f && generate.top_k == 7 && generate.min_p == 0.25f);
  CHECK(generate.top_p == 0.5f && generate.seed == 9 && generate.max_tokens == 128);  // 3 is not a probability
  poise_model_free(model);
  model = open_example();
  generate.temperature = 0.75f;
  CHECK_OK(poise_model_sampling_defaults(model, &generate, &error));
  CHECK(generate.temperature == 0.75f);
  poise_model_free(model);
}

// Uses chat templates, sessions that are truncated and forked, and options that structs got later.
static void holds_a_conversation(void) {
  static const char kJinja[] = "{{ bos_token }}{% for m in messages %}{{ m.content }}{% endfor %}";
  static const char kTalk[] = "[{\"role\": \"user\", \"content\": \"Once upon a time\"}]";
  poise_generate_options generate = POISE_GENERATE_OPTIONS_INIT;
  poise_generation generation = POISE_GENERATION_INIT;
  const poise_text stop = {" young", 6};
  const poise_logit_bias bias = {375, -100.0f};
  poise_log_probability best[2];
  poise_session_info info = POISE_SESSION_INFO_INIT;
  poise_tokenizer* tokenizer = NULL;
  poise_session* session = NULL;
  poise_session* fork = NULL;
  poise_tokens tokens;
  poise_string text;
  const float* logits;
  size_t count;
  poise_model* model = open_example();
  CHECK_OK(poise_tokenizer_create(model, &tokenizer, &error));
  CHECK_STATUS(POISE_UNSUPPORTED,
               poise_tokenizer_encode_chat(tokenizer, NULL, 0, kTalk, sizeof kTalk - 1, &text, &tokens, &error));
  CHECK_SAYS("no chat template");
  CHECK_STATUS(POISE_INVALID_FILE,
               poise_tokenizer_encode_chat(tokenizer, kJinja, sizeof kJinja - 1, "{}", 2, &text, &tokens, &error));
  CHECK_OK(poise_tokenizer_encode_chat(tokenizer, kJinja, sizeof kJinja - 1, kTalk, sizeof kTalk - 1, &text, &tokens,
                                       &error));
  CHECK(strcmp(text.data, "<s>Once upon a time") == 0);
  CHECK(tokens.count == 5 && memcmp(tokens.data, kOnce, sizeof kOnce) == 0);
  CHECK_OK(
      poise_tokenizer_encode_chat(tokenizer, kJinja, sizeof kJinja - 1, kTalk, sizeof kTalk - 1, NULL, NULL, &error));
  poise_string_free(&text);
  poise_tokens_free(&tokens);
  CHECK_OK(poise_tokenizer_encode_chat(tokenizer, "chatml", 6, kTalk, sizeof kTalk - 1, &text, NULL, &error));
  CHECK(strcmp(text.data, "<s><|im_start|>user\nOnce upon a time<|im_end|>\n<|im_start|>assistant\n") == 0);
  poise_string_free(&text);
  CHECK_OK(poise_tokenizer_encode_chat(tokenizer, kJinja, sizeof kJinja - 1, kTalk, sizeof kTalk - 1, &text, &tokens,
                                       &error));
  CHECK_OK(poise_session_create(model, NULL, &session, &error));
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_session_top_log_probabilities(session, 2, best, &error));
  CHECK_OK(poise_session_feed(session, tokens.data, tokens.count, &error));
  CHECK_OK(poise_session_top_log_probabilities(session, 2, best, &error));
  CHECK(best[0].token == kGreedy[0] && best[0].log_probability > best[1].log_probability && best[1].token >= 0);
  CHECK_OK(poise_session_fork(session, &fork, &error));
  generate.stop = &stop;
  generate.stop_count = 1;
  CHECK_OK(poise_session_generate(fork, &generate, NULL, NULL, &generation, &error));
  CHECK(generation.reason == POISE_STOP_TEXT && generation.tokens < 10);
  CHECK_OK(poise_session_describe(session, &info, &error));
  CHECK(info.position == 5);
  generate.stop_count = 0;
  generate.logit_bias = &bias;
  generate.logit_bias_count = 1;
  generate.max_tokens = 2;
  CHECK_OK(poise_session_generate(session, &generate, NULL, NULL, &generation, &error));
  CHECK(generation.last != kGreedy[1]);
  CHECK_OK(poise_session_truncate(session, 3, &error));
  CHECK_OK(poise_session_describe(session, &info, &error));
  CHECK(info.position == 3);
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_session_logits(session, &logits, &count, &error));
  CHECK_SAYS("dropped tokens");
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_session_truncate(session, 4, &error));
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_session_truncate(NULL, 0, &error));
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_session_fork(session, NULL, &error));
  speculates(model);
  caches(model);
  CHECK_OK(poise_session_save(session, scratch("session.zt"), 0, &error));
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_session_save(session, scratch("session.zt"), 0, &error));
  CHECK_OK(poise_session_save(session, scratch("session.zt"), 1, &error));
  CHECK_OK(poise_session_load(fork, scratch("session.zt"), &error));
  CHECK_OK(poise_session_describe(fork, &info, &error));
  CHECK(info.position == 3);
  CHECK_STATUS(POISE_NOT_FOUND, poise_session_load(fork, scratch("missing.zt"), &error));
  CHECK_STATUS(POISE_INVALID_FILE, poise_session_load(fork, example("nano-mistral"), &error));
  CHECK_SAYS("not a session");
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_session_save(session, NULL, 0, &error));
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_session_load(NULL, scratch("session.zt"), &error));
  poise_session_free(fork);
  poise_session_free(session);
  poise_string_free(&text);
  poise_tokens_free(&tokens);
  poise_tokenizer_free(tokenizer);
  poise_model_free(model);
}

// Requests cancellation from the `left`th call on.
static int cancel(void* user) {
  int* left = user;
  return *left > 0 ? --*left == 0 : 1;
}

static void is_cancelled(void) {
  enum { kLong = 500 };
  int left = 1;
  static int32_t tokens[kLong];
  static double log_probabilities[kLong];
  static float states[2 * 4096];
  poise_session_options options = POISE_SESSION_OPTIONS_INIT;
  poise_session_info info = POISE_SESSION_INFO_INIT;
  poise_model* model = open_example();
  poise_session* session = NULL;
  poise_session* fork = NULL;
  size_t i;
  for (i = 0; i < kLong; ++i) tokens[i] = 1;
  options.cancel = cancel;
  options.cancel_user = &left;
  CHECK_OK(poise_session_create(model, &options, &session, &error));
  CHECK_STATUS(POISE_CANCELLED, poise_session_feed(session, kOnce, 5, &error));
  CHECK_STATUS(POISE_CANCELLED, poise_session_log_probabilities(session, kOnce, 5, log_probabilities, &error));
  CHECK_STATUS(POISE_CANCELLED, poise_session_hidden_states(session, kOnce, 2, 0, states, &error));
  CHECK_OK(poise_session_fork(session, &fork, &error));
  CHECK_STATUS(POISE_CANCELLED, poise_session_feed(fork, kOnce, 5, &error));
  poise_session_free(fork);
  left = 10;  // the callback is called while the session computes
  while (poise_session_log_probabilities(session, tokens, kLong, log_probabilities, &error) == POISE_OK)
    CHECK(left > 0);
  CHECK(error.kind == POISE_CANCELLED);
  left = 1000000;
  CHECK_OK(poise_session_reset(session, &error));
  CHECK_OK(poise_session_feed(session, kOnce, 5, &error));
  CHECK_OK(poise_session_describe(session, &info, &error));
  CHECK(info.position == 5);
  poise_session_free(session);
  poise_model_free(model);
}

void test_runtime(void) {
  lists_built_in_templates();
  samples_as_the_files_ask();
  holds_a_conversation();
  turns_text_into_tokens();
  reads_tokenizer_files();
  tells_a_story();
  scores_a_text();
  gives_hidden_states();
  refuses_what_does_not_run();
  multiplies_exactly_when_asked_to();
  refuses_integers_for_weights();
  is_cancelled();
}
