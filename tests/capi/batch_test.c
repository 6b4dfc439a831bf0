// Several texts at a time. The expected tokens are those of examples/nano-mistral/reference.json, which SentencePiece
// and a float64 model made. Each text of a batch is compared with that of a separate session.
#include <stdlib.h>

#include "check.h"

static const int32_t kOnce[] = {1, 580, 581, 261, 469};
static const int32_t kGreedy[] = {916, 375, 277, 261, 536, 294, 302, 917, 914, 270};

enum { kTexts = 5, kMostTokens = 32 };

static const char* const kPrompts[kTexts] = {"Once upon a time", "Once upon a time there was a mouse", "Hello, world!",
                                             "Once upon a time", "a"};

typedef struct heard {
  int32_t tokens[kMostTokens];
  size_t count;
} heard;

static int on_token(void* user, int32_t token) {
  heard* all = user;
  all->tokens[all->count++] = token;
  return 0;
}

// The texts have different options: greedy and sampled, short and long, one without a token.
static poise_generate_options options_of(size_t text) {
  static const uint64_t kMost[kTexts] = {10, 20, 3, kMostTokens, 0};
  poise_generate_options options = POISE_GENERATE_OPTIONS_INIT;
  options.max_tokens = kMost[text];
  options.temperature = text % 2 == 0 ? 0.0f : 0.8f;
  options.seed = text;
  return options;
}

static poise_session_options exact_options(void) {
  poise_session_options options = POISE_SESSION_OPTIONS_INIT;
  options.threads = 2;
  options.context = 64;
  options.exact = 1;
  return options;
}

static poise_batch* create_batch(const poise_session_options* options) {
  poise_model* model = open_example();
  poise_batch* batch = NULL;
  CHECK_OK(poise_batch_create(model, options, &batch, &error));
  poise_model_free(model);  // the batch stays valid
  if (batch == NULL) exit(1);
  return batch;
}

static void add_prompt(poise_batch* batch, size_t text) {
  const poise_generate_options options = options_of(text);
  poise_tokens prompt;
  size_t id = 77;
  CHECK_OK(poise_batch_prompt(batch, kPrompts[text], strlen(kPrompts[text]), &prompt, &error));
  CHECK_OK(poise_batch_add(batch, prompt.data, prompt.count, &options, &id, &error));
  CHECK(id == text);
  poise_tokens_free(&prompt);
}

static void check_as_alone(const poise_finished_text* text) {
  const poise_session_options session_options = exact_options();
  const poise_generate_options options = options_of(text->id);
  poise_generation generation = POISE_GENERATION_INIT;
  poise_model* model = open_example();
  poise_session* session = NULL;
  poise_tokenizer* tokenizer = NULL;
  poise_tokens prompt;
  poise_string whole;
  heard all = {{0}, 0};
  int32_t together[2 * kMostTokens];
  CHECK_OK(poise_session_create(model, &session_options, &session, &error));
  CHECK_OK(poise_session_prompt(session, kPrompts[text->id], strlen(kPrompts[text->id]), &prompt, &error));
  CHECK_OK(poise_session_feed(session, prompt.data, prompt.count, &error));
  CHECK_OK(poise_session_generate(session, &options, on_token, &all, &generation, &error));
  CHECK(text->token_count == all.count);
  CHECK(all.count == 0 || memcmp(text->tokens, all.tokens, all.count * sizeof(int32_t)) == 0);
  CHECK(text->reason == generation.reason);
  // The prompt's text, which SentencePiece gives back, and the continuation are the text of all tokens.
  CHECK_OK(poise_tokenizer_create(model, &tokenizer, &error));
  memcpy(together, prompt.data, prompt.count * sizeof(int32_t));
  memcpy(together + prompt.count, all.tokens, all.count * sizeof(int32_t));
  CHECK_OK(poise_tokenizer_decode(tokenizer, together, prompt.count + all.count, &whole, &error));
  CHECK(whole.size == strlen(kPrompts[text->id]) + text->text.size);
  CHECK(memcmp(whole.data + strlen(kPrompts[text->id]), text->text.data, text->text.size) == 0);
  poise_string_free(&whole);
  poise_tokens_free(&prompt);
  poise_tokenizer_free(tokenizer);
  poise_session_free(session);
  poise_model_free(model);
}

static void gives_each_text_what_it_gets_alone(void) {
  const poise_session_options options = exact_options();
  poise_batch* batch = create_batch(&options);
  poise_finished_text text = POISE_FINISHED_TEXT_INIT;
  int seen[kTexts] = {0};
  size_t left = 0;
  size_t finished = 0;
  size_t i;
  for (i = 0; i < 3; ++i) add_prompt(batch, i);
  CHECK_OK(poise_batch_step(batch, &finished, &error));
  CHECK(finished == 0);
  for (i = 3; i < kTexts; ++i) add_prompt(batch, i);  // while other texts are in progress
  CHECK_OK(poise_batch_count(batch, &left, &error));
  CHECK(left == kTexts);
  while (left > 0) {
    CHECK_OK(poise_batch_step(batch, &finished, &error));
    if (error.kind != POISE_OK) break;
    for (i = 0; i < finished; ++i) {
      CHECK_OK(poise_batch_finished(batch, i, &text, &error));
      if (text.id >= kTexts) exit(1);
      ++seen[text.id];
      check_as_alone(&text);
      if (text.id == 0) CHECK(text.token_count == 10 && memcmp(text.tokens, kGreedy, sizeof kGreedy) == 0);
    }
    CHECK_STATUS(POISE_NOT_FOUND, poise_batch_finished(batch, finished, &text, &error));
    CHECK_OK(poise_batch_count(batch, &left, &error));
  }
  for (i = 0; i < kTexts; ++i) CHECK(seen[i] == 1);
  CHECK_OK(poise_batch_step(batch, &finished, &error));  // without texts
  CHECK(finished == 0);
  poise_batch_free(batch);
}

static void ends_texts_for_their_reasons(void) {
  const poise_text stop = {" young", 6};
  poise_session_options options = exact_options();
  poise_generate_options generate[3] = {POISE_GENERATE_OPTIONS_INIT, POISE_GENERATE_OPTIONS_INIT,
                                        POISE_GENERATE_OPTIONS_INIT};
  poise_finished_text text = POISE_FINISHED_TEXT_INIT;
  poise_batch* batch;
  poise_stop_reason reasons[3] = {POISE_STOP_CALLBACK, POISE_STOP_CALLBACK, POISE_STOP_CALLBACK};
  size_t left = 3;
  size_t finished;
  size_t id;
  size_t i;
  options.context = 12;
  batch = create_batch(&options);
  generate[0].stop_id = kGreedy[2];
  generate[1].stop = &stop;
  generate[1].stop_count = 1;
  for (i = 0; i < 3; ++i) CHECK_OK(poise_batch_add(batch, kOnce, 5, &generate[i], &id, &error));
  while (left > 0) {
    CHECK_OK(poise_batch_step(batch, &finished, &error));
    if (error.kind != POISE_OK) break;
    for (i = 0; i < finished; ++i) {
      CHECK_OK(poise_batch_finished(batch, i, &text, &error));
      reasons[text.id] = text.reason;
      if (text.id == 0) CHECK(text.token_count == 3 && text.tokens[2] == kGreedy[2]);
      if (text.id == 1) CHECK_TEXT(", there was a", text.text);  // cut before the text to stop at
    }
    CHECK_OK(poise_batch_count(batch, &left, &error));
  }
  CHECK(reasons[0] == POISE_STOP_END_OF_TEXT);
  CHECK(reasons[1] == POISE_STOP_TEXT);
  CHECK(reasons[2] == POISE_STOP_CONTEXT_FULL);
  poise_batch_free(batch);
}

// Requests cancellation from the `left`th call on.
static int cancel(void* user) {
  int* left = user;
  return *left > 0 ? --*left == 0 : 1;
}

// A cancelled step changes no text: the texts end as in a batch that is not cancelled.
static void is_cancelled(void) {
  int left = 3;
  poise_session_options options = exact_options();
  poise_finished_text text = POISE_FINISHED_TEXT_INIT;
  poise_batch* batch;
  size_t finished = 0;
  size_t count = 0;
  options.cancel = cancel;
  options.cancel_user = &left;
  batch = create_batch(&options);
  add_prompt(batch, 0);
  while (poise_batch_step(batch, &finished, &error) == POISE_OK) CHECK(finished == 0);
  CHECK(error.kind == POISE_CANCELLED);
  CHECK(left == 0);
  CHECK_OK(poise_batch_count(batch, &count, &error));
  CHECK(count == 1);
  left = 1000000;
  while (finished == 0) {
    CHECK_OK(poise_batch_step(batch, &finished, &error));
    if (error.kind != POISE_OK) break;
  }
  CHECK_OK(poise_batch_finished(batch, 0, &text, &error));
  CHECK(text.token_count == 10 && memcmp(text.tokens, kGreedy, sizeof kGreedy) == 0);
  poise_batch_free(batch);
}

static void refuses(void) {
  const int32_t outside[] = {1, 960};
  const poise_text stop = {"a", 1};
  poise_session_options options = exact_options();
  poise_generate_options generate = POISE_GENERATE_OPTIONS_INIT;
  poise_model* model = open_example();
  poise_batch* batch = NULL;
  poise_tokens tokens;
  size_t id;
  size_t count = 77;
  options.draft_lookup = 1;
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_batch_create(model, &options, &batch, &error));
  CHECK_SAYS("cannot use a draft");
  options = exact_options();
  options.context = 513;
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_batch_create(model, &options, &batch, &error));
  CHECK(batch == NULL);
  poise_model_free(model);
  options.context = 4;
  batch = create_batch(&options);
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_batch_add(batch, NULL, 0, NULL, &id, &error));
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_batch_add(batch, outside, 2, NULL, &id, &error));
  CHECK_SAYS("960");
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_batch_add(batch, kOnce, 5, NULL, &id, &error));  // does not fit
  generate.top_p = 0;
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_batch_add(batch, kOnce, 2, &generate, &id, &error));
  CHECK_OK(poise_batch_count(batch, &count, &error));
  CHECK(count == 0);
  poise_batch_free(batch);
  CHECK_OK(poise_open(example("nano-tiny-llama/weights.tllm"), NULL, &model, &error));  // without a vocabulary
  CHECK_OK(poise_batch_create(model, NULL, &batch, &error));
  CHECK_STATUS(POISE_UNSUPPORTED, poise_batch_prompt(batch, "a", 1, &tokens, &error));
  generate.top_p = 1;
  generate.stop = &stop;
  generate.stop_count = 1;
  CHECK_STATUS(POISE_UNSUPPORTED, poise_batch_add(batch, kOnce, 1, &generate, &id, &error));
  poise_batch_free(batch);
  poise_model_free(model);
  CHECK_OK(poise_open(example("nano-mistral/model.safetensors"), NULL, &model, &error));
  CHECK_STATUS(POISE_UNSUPPORTED, poise_batch_create(model, NULL, &batch, &error));
  poise_model_free(model);
}

void test_batch(void) {
  gives_each_text_what_it_gets_alone();
  ends_texts_for_their_reasons();
  is_cancelled();
  refuses();
}
