// Eight threads on one model: they look up, lend, copy, decode and tokenize through the same handles, and run a session
// each. And one process that gets no more threads.
#define _POSIX_C_SOURCE 200809L
#define _DEFAULT_SOURCE  // RLIMIT_NPROC
#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { kThreads = 8, kRounds = 12 };

typedef struct work {
  const poise_model* model;
  const poise_tokenizer* tokenizer;
  unsigned number;
  int good;            // rounds without a failure
  int32_t tokens[16];  // generated tokens
  double sum;          // of all decoded elements
} work;

// Each thread begins with another tensor, so that one thread makes a tensor's parts while others ask for them.
static int look_at_tensors(work* own, poise_error* problem) {
  size_t i;
  for (i = 0; i < 39; ++i) {
    const poise_tensor* tensor;
    const poise_tensor* same;
    const poise_part* part;
    const poise_part* same_part;
    poise_tensor_info info = POISE_TENSOR_INFO_INIT;
    poise_part_info about = POISE_PART_INFO_INIT;
    poise_bytes bytes;
    float values[128];
    uint16_t stored[128];
    char name[128];
    size_t j;
    if (poise_tensor_at(own->model, (i + own->number * 5) % 39, &tensor, problem) != POISE_OK) return 0;
    if (poise_tensor_describe(tensor, &info, problem) != POISE_OK || info.name.size >= sizeof name) return 0;
    memcpy(name, info.name.data, info.name.size);
    name[info.name.size] = '\0';
    if (poise_tensor_find(own->model, name, &same, problem) != POISE_OK || same != tensor) return 0;
    if (poise_tensor_part_at(tensor, 0, &part, problem) != POISE_OK ||
        poise_tensor_part(same, "data", &same_part, problem) != POISE_OK)
      return 0;
    if (part != same_part || poise_part_describe(part, &about, problem) != POISE_OK) return 0;
    if (poise_part_map(part, &bytes, problem) != POISE_OK || bytes.size != about.decoded_size) return 0;
    if (poise_part_read(part, 0, stored, sizeof stored, problem) != POISE_OK ||
        memcmp(stored, bytes.data, sizeof stored) != 0)
      return 0;
    if (poise_tensor_decode(tensor, POISE_F32, 0, 128, values, sizeof values, problem) != POISE_OK) return 0;
    for (j = 0; j < 128; ++j) own->sum += (double)values[j];
    if (poise_tensor_find(own->model, "absent", &same, problem) != POISE_NOT_FOUND || problem->kind != POISE_NOT_FOUND)
      return 0;
  }
  return 1;
}

static int use_tokenizer(const work* own, poise_error* problem) {
  static const char kText[] = "One day, a mouse named Tansy lived there.";
  poise_tokens tokens;
  poise_string text;
  int same;
  if (poise_tokenizer_encode(own->tokenizer, kText, sizeof kText - 1, &tokens, problem) != POISE_OK) return 0;
  if (poise_tokenizer_decode(own->tokenizer, tokens.data, tokens.count, &text, problem) != POISE_OK) return 0;
  same = strcmp(text.data, kText) == 0;
  poise_string_free(&text);
  poise_tokens_free(&tokens);
  return same;
}

static int collect(void* user, int32_t token) {
  work* own = user;
  size_t i = 0;
  while (own->tokens[i] != 0) ++i;
  own->tokens[i] = token;
  return 0;
}

static int run_session(work* own, poise_error* problem) {
  poise_session_options options = POISE_SESSION_OPTIONS_INIT;
  poise_generate_options generate = POISE_GENERATE_OPTIONS_INIT;
  poise_session* session = NULL;
  poise_tokens prompt;
  int good;
  options.threads = 1 + own->number % 2;
  generate.max_tokens = 15;
  if (poise_session_create(own->model, &options, &session, problem) != POISE_OK) return 0;
  good = poise_session_prompt(session, "Once upon a time", 16, &prompt, problem) == POISE_OK &&
         poise_session_feed(session, prompt.data, prompt.count, problem) == POISE_OK &&
         poise_session_generate(session, &generate, collect, own, NULL, problem) == POISE_OK;
  poise_tokens_free(&prompt);
  poise_session_free(session);
  return good;
}

static void* run(void* argument) {
  work* own = argument;
  poise_error problem;
  int round;
  for (round = 0; round < kRounds; ++round) own->good += look_at_tensors(own, &problem) && use_tokenizer(own, &problem);
  own->good += run_session(own, &problem);
  return NULL;
}

static int never(void* user) {
  (void)user;
  return 0;
}

static void* end_at_once(void* argument) { return argument; }

// Runs in a process of its own, whose user has as many threads as it may have. A session with `cancel` needs another.
static int feed_without_threads(void) {
  const struct rlimit one = {1, 1};
  const int32_t token = 1;
  poise_session_options options = POISE_SESSION_OPTIONS_INIT;
  poise_session* session = NULL;
  poise_model* model = open_example();
  if (setrlimit(RLIMIT_NPROC, &one) != 0 || (getuid() == 0 && setuid(54321) != 0)) return 0;  // root has no limit
  pthread_t probe;
  if (pthread_create(&probe, NULL, end_at_once, NULL) == 0) return 0;  // a system without this limit
  options.threads = 1;
  options.cancel = never;
  if (poise_session_create(model, &options, &session, &error) != POISE_OK) return 1;
  return poise_session_feed(session, &token, 1, &error) != POISE_IO;
}

static void reports_a_refused_thread(void) {
  int status = 0;
  const pid_t child = fork();
  if (child == 0) _exit(feed_without_threads());
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

void test_threads(void) {
  static work works[kThreads];
  pthread_t threads[kThreads];
  poise_model* model = open_example();
  poise_tokenizer* tokenizer = NULL;
  unsigned i;
  reports_a_refused_thread();
  CHECK_OK(poise_tokenizer_create(model, &tokenizer, &error));
  for (i = 0; i < kThreads; ++i) {
    works[i].model = model;
    works[i].tokenizer = tokenizer;
    works[i].number = i;
    if (pthread_create(&threads[i], NULL, run, &works[i]) != 0) abort();
  }
  for (i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  for (i = 0; i < kThreads; ++i) {
    CHECK(works[i].good == kRounds + 1);
    CHECK(works[i].tokens[0] == 916 && memcmp(works[i].tokens, works[0].tokens, sizeof works[0].tokens) == 0);
    CHECK(works[i].sum > works[0].sum - 1e-6 && works[i].sum < works[0].sum + 1e-6);
  }
  poise_tokenizer_free(tokenizer);
  poise_model_free(model);
}
