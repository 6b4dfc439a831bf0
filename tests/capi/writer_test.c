// The writer: its files are read back and compared with bytes written by hand; it refuses invalid input.
#include <stdlib.h>
#include <unistd.h>

#include "check.h"

typedef struct bytes {
  const unsigned char* data;
  uint64_t size;
  int fails;
  int calls;
} bytes;

static int fill(void* user, uint64_t offset, void* out, size_t size) {
  bytes* from = user;
  ++from->calls;
  CHECK(offset + size <= from->size);
  if (from->fails) return 1;
  memcpy(out, from->data + offset, size);
  return 0;
}

static const unsigned char kNumbers[] = {0, 0, 128, 63, 0, 0, 0,   64, 0, 0, 64,  64,
                                         0, 0, 128, 64, 0, 0, 160, 64, 0, 0, 192, 64};  // 1 to 6
static const unsigned char kCodes[] = {0x01, 0xff, 0x7f};
static const unsigned char kPacked[] = {0x01, 0x0f};
static const uint64_t kDims[] = {2, 3};
static const uint64_t kThree[] = {3};

static poise_tensor_plan plan_of(const char* name, poise_dtype dtype, size_t rank, const uint64_t* dims, bytes* from) {
  poise_tensor_plan plan = POISE_TENSOR_PLAN_INIT;
  plan.name = name;
  plan.dtype = dtype;
  plan.rank = rank;
  plan.dims = dims;
  plan.fill = fill;
  plan.user = from;
  return plan;
}

static poise_writer* create(const char* name, const char* format) {
  poise_writer* writer = NULL;
  CHECK_OK(poise_writer_create(scratch(name), format, NULL, &writer, &error));
  if (writer == NULL) abort();
  return writer;
}

// A safetensors file is a length, a JSON header and the data, which are exactly the filled bytes.
static void writes_what_was_filled_in(void) {
  bytes numbers = {kNumbers, sizeof kNumbers, 0, 0};
  poise_tensor_plan plan = plan_of("numbers", POISE_F32, 2, kDims, &numbers);
  poise_writer* writer = create("plain.safetensors", NULL);
  poise_model* model = NULL;
  const poise_attributes* attributes;
  poise_text text;
  float values[6];
  size_t size;
  unsigned char* file;
  CHECK_OK(poise_writer_add_tensor(writer, &plan, &error));
  CHECK_OK(poise_writer_set_attributes(writer, "{\"key\": \"old\"}", &error));
  CHECK_OK(poise_writer_set_attributes(writer, "{\"key\": \"new\"}", &error));
  CHECK(access(scratch("plain.safetensors"), F_OK) != 0 && numbers.calls == 0);
  CHECK_OK(poise_writer_finish(writer, &error));
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_writer_finish(writer, &error));
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_writer_add_tensor(writer, &plan, &error));
  poise_writer_free(writer);
  file = read_file(scratch("plain.safetensors"), &size);
  CHECK(size > sizeof kNumbers && memcmp(file + size - sizeof kNumbers, kNumbers, sizeof kNumbers) == 0);
  CHECK(strstr((const char*)file + 8, "\"dtype\":\"F32\"") != NULL &&
        strstr((const char*)file + 8, "\"shape\":[2,3]") != NULL);
  free(file);
  CHECK_OK(poise_open(scratch("plain.safetensors"), NULL, &model, &error));
  CHECK_OK(poise_tensor_decode(tensor_named(model, "numbers"), POISE_F32, 0, 6, values, sizeof values, &error));
  CHECK(values[0] == 1 && values[3] == 4 && values[5] == 6);
  CHECK_OK(poise_model_attributes(model, &attributes, &error));
  CHECK_OK(poise_attributes_get_text(attributes, "key", &text, &error));
  CHECK_TEXT("new", text);
  poise_model_free(model);
}

static void writes_codes_with_their_scale(void) {
  bytes codes = {kCodes, sizeof kCodes, 0, 0};
  bytes packed = {kPacked, sizeof kPacked, 0, 0};
  poise_tensor_plan plan = plan_of("codes", POISE_QINT8, 1, kThree, &codes);
  poise_writer* writer = create("codes.zt", "zt");
  poise_model* model = NULL;
  const poise_tensor* tensor;
  float values[3];
  plan.affine.delta = 0.5F;
  CHECK_OK(poise_writer_add_tensor(writer, &plan, &error));
  plan = plan_of("packed", POISE_QINT4, 1, kThree, &packed);
  plan.affine.delta = 2;
  plan.affine.packed = 1;
  CHECK_OK(poise_writer_add_tensor(writer, &plan, &error));
  CHECK_OK(poise_writer_finish(writer, &error));
  poise_writer_free(writer);
  CHECK_OK(poise_open(scratch("codes.zt"), NULL, &model, &error));
  tensor = tensor_named(model, "codes");
  CHECK(info_of(tensor).layout == POISE_AFFINE && info_of(tensor).affine.delta == 0.5F);
  CHECK_OK(poise_tensor_decode(tensor, POISE_F32, 0, 3, values, sizeof values, &error));
  CHECK(values[0] == 0.5F && values[1] == -0.5F && values[2] == 63.5F);
  CHECK_OK(poise_tensor_decode(tensor_named(model, "packed"), POISE_F32, 0, 3, values, sizeof values, &error));
  CHECK(values[0] == 2 && values[1] == 0 && values[2] == -2);  // 0x1, 0x0, 0xf
  poise_model_free(model);
}

// A whole model, taken apart and rebuilt only through C calls, hashes and generates as before.
static void writes_a_model_piece_by_piece(void) {
  poise_model* from = open_example();
  poise_model* model = NULL;
  poise_writer* writer = create("again.zt", NULL);
  poise_card card = POISE_CARD_INIT;
  const poise_attributes* config;
  poise_string json;
  poise_vocabulary vocabulary = POISE_VOCABULARY_INIT;
  poise_token token = POISE_TOKEN_INIT;
  poise_model_hash a = POISE_MODEL_HASH_INIT;
  poise_model_hash b = POISE_MODEL_HASH_INIT;
  const poise_tensor* tensor;
  size_t i;
  CHECK_OK(poise_model_config(from, &config, &error));
  CHECK_OK(poise_attributes_get_json(config, NULL, &json, &error));
  CHECK_OK(poise_writer_set_config(writer, json.data, &error));
  poise_string_free(&json);
  card.author = "somebody";
  CHECK_OK(poise_writer_set_card(writer, &card, &error));
  CHECK_OK(poise_model_vocabulary(from, &vocabulary, &error));
  CHECK_OK(poise_writer_set_vocabulary(writer, &vocabulary, &error));
  for (i = 0; i < vocabulary.tokens; ++i) {
    CHECK_OK(poise_vocabulary_token(from, i, &token, &error));
    CHECK_OK(poise_writer_add_token(writer, &token, &error));
  }
  for (i = 0; poise_tensor_at(from, i, &tensor, NULL) == POISE_OK; ++i)
    CHECK_OK(poise_writer_copy_tensor(writer, tensor, &error));
  CHECK(i == 39);
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_writer_copy_tensor(writer, tensor, &error));
  CHECK_SAYS("appears twice");
  CHECK_OK(poise_hash(from, NULL, NULL, NULL, &a, &error));
  poise_model_free(from);  // the writer keeps what it needs
  CHECK_OK(poise_writer_finish(writer, &error));
  poise_writer_free(writer);
  CHECK_OK(poise_open(scratch("again.zt"), NULL, &model, &error));
  CHECK_OK(poise_hash(model, NULL, NULL, NULL, &b, &error));
  CHECK(strcmp(a.sha256, b.sha256) == 0);
  CHECK_OK(poise_model_card(model, &config, &error));
  CHECK_OK(poise_attributes_get_text(config, "author", &token.text, &error));
  CHECK_TEXT("somebody", token.text);
  CHECK_OK(poise_attributes_get_text(config, "model_type", &token.text, &error));
  CHECK_TEXT("mistral", token.text);
  poise_model_free(model);
}

static void keeps_merges(void) {
  static const struct {
    poise_text text;
    poise_token_type type;
  } kTokens[] = {{{"<unk>", 5}, POISE_TOKEN_UNKNOWN}, {{"<pad>", 5}, POISE_TOKEN_PAD},
                 {{"<bos>", 5}, POISE_TOKEN_BOS},     {{"<eos>", 5}, POISE_TOKEN_EOS},
                 {{"a", 1}, POISE_TOKEN_NORMAL},      {{"b\0", 2}, POISE_TOKEN_NORMAL}};
  static const poise_merge kMerge = {{"a", 1}, {"b\0", 2}};
  poise_writer* writer = create("merges.zt", NULL);
  poise_model* model = NULL;
  poise_vocabulary vocabulary = POISE_VOCABULARY_INIT;
  poise_token token = POISE_TOKEN_INIT;
  poise_merge merge;
  size_t i;
  vocabulary.kind = POISE_BYTE_PAIR;
  vocabulary.max_length = 16;
  vocabulary.bos_id = 2;
  vocabulary.eos_id = 3;
  vocabulary.pad_id = 1;
  vocabulary.unk_id = 0;
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_writer_add_token(writer, &token, &error));
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_writer_add_merge(writer, &kMerge, &error));
  CHECK_OK(poise_writer_set_vocabulary(writer, &vocabulary, &error));
  for (i = 0; i < 6; ++i) {
    token.text = kTokens[i].text;
    token.type = kTokens[i].type;
    CHECK_OK(poise_writer_add_token(writer, &token, &error));
  }
  CHECK_OK(poise_writer_add_merge(writer, &kMerge, &error));
  CHECK_OK(poise_writer_finish(writer, &error));
  poise_writer_free(writer);
  CHECK_OK(poise_open(scratch("merges.zt"), NULL, &model, &error));
  CHECK_OK(poise_model_vocabulary(model, &vocabulary, &error));
  CHECK(vocabulary.kind == POISE_BYTE_PAIR && vocabulary.bos_id == 2 && vocabulary.tokens == 6 &&
        vocabulary.merges == 1 && vocabulary.max_length == 16);
  CHECK_OK(poise_vocabulary_token(model, 5, &token, &error));
  CHECK(token.text.size == 2 && memcmp(token.text.data, "b\0", 2) == 0);
  CHECK_OK(poise_vocabulary_merge(model, 0, &merge, &error));
  CHECK(merge.left.size == 1 && merge.right.size == 2);
  poise_model_free(model);
}

static void lists_losses(void) {
  bytes numbers = {kNumbers, sizeof kNumbers, 0, 0};
  poise_tensor_plan plan = plan_of("numbers", POISE_F32, 2, kDims, &numbers);
  static const char* const kNames[] = {"lossy.npz", "lossy.npy", "lossy.pt", "lossy.alt", "whole.zt"};
  poise_card card = POISE_CARD_INIT;
  size_t i;
  card.author = "somebody";
  for (i = 0; i < 5; ++i) {
    poise_writer* writer = create(kNames[i], NULL);
    poise_string planned;
    poise_string done;
    CHECK_OK(poise_writer_add_tensor(writer, &plan, &error));
    CHECK_OK(poise_writer_set_card(writer, &card, &error));
    CHECK_OK(poise_writer_set_attributes(writer, "{\"note\": \"x\"}", &error));
    CHECK_OK(poise_writer_losses(writer, &planned, &error));
    CHECK(numbers.calls == 0);
    CHECK_OK(poise_writer_finish(writer, &error));
    CHECK_OK(poise_writer_losses(writer, &done, &error));
    CHECK(strcmp(planned.data, done.data) == 0);
    if (i < 4) {
      CHECK(strstr(done.data, "note") != NULL || strstr(done.data, "attribute") != NULL);
    } else {
      CHECK(strcmp(done.data, "[]") == 0);
    }
    if (i < 3) CHECK(strstr(done.data, "card") != NULL);
    if (i == 1) CHECK(strstr(done.data, "name") != NULL);
    poise_string_free(&planned);
    poise_string_free(&done);
    poise_writer_free(writer);
    numbers.calls = 0;
  }
}

// An attribute that a reader of the file would reject is refused, and no file appears.
static void refuses_unreadable_attributes(void) {
  static const struct {
    const char* file;
    const char* key;
    const char* json;
  } kCases[] = {{"bad.zt", "poise.card", "{\"poise.card\": \"x\"}"},
                {"bad.safetensors", "poise.card", "{\"poise.card\": 5}"},
                {"bad.safetensors", "poise.vocabulary", "{\"poise.vocabulary\": \"[]\"}"},
                {"bad.gguf", "poise.config", "{\"poise.config\": \"x\"}"},
                {"bad.gguf", "tokenizer.ggml.tokens", "{\"tokenizer.ggml.tokens\": \"x\"}"},
                {"bad.gguf", "tokenizer.ggml.tokens", "{\"tokenizer.ggml.tokens\": [1, 2]}"}};
  size_t i;
  for (i = 0; i < sizeof kCases / sizeof kCases[0]; ++i) {
    poise_writer* writer = create(kCases[i].file, NULL);
    poise_string losses;
    CHECK_OK(poise_writer_set_attributes(writer, kCases[i].json, &error));
    CHECK_STATUS(POISE_UNSUPPORTED, poise_writer_losses(writer, &losses, &error));
    CHECK_STATUS(POISE_UNSUPPORTED, poise_writer_finish(writer, &error));
    CHECK_SAYS(kCases[i].key);
    CHECK_STATUS(POISE_BAD_ARGUMENT, poise_writer_losses(writer, &losses, &error));
    poise_writer_free(writer);
    CHECK(access(scratch(kCases[i].file), F_OK) != 0);
  }
}

static int quantize_and_fill(void* user, uint64_t offset, void* out, size_t size) {
  static const uint64_t kMatrix[] = {64, 1024};
  poise_model* model = NULL;
  poise_error problem;
  int failed = poise_quantize(user, kMatrix, 2, "q8_0", &model, &problem) != POISE_OK;
  (void)offset;
  poise_model_free(model);
  memset(out, 0, size);
  return failed;
}

static int quantize_and_report(void* user, const poise_progress_event* event) {
  char byte;
  return quantize_and_fill(user, event->done, &byte, sizeof byte);
}

// Callbacks make calls that compute with several threads, while a writer and a verification do so.
static void callbacks_may_compute(void) {
  static const uint64_t kSquare[] = {512, 512};
  float* numbers = calloc(64 * 1024, sizeof(float));
  poise_verify_options verify = POISE_VERIFY_OPTIONS_INIT;
  poise_tensor_plan plan = POISE_TENSOR_PLAN_INIT;
  poise_writer* writer = create("computed.safetensors", NULL);
  int i;
  plan.dtype = POISE_F32;
  plan.rank = 2;
  plan.dims = kSquare;
  plan.fill = quantize_and_fill;
  plan.user = numbers;
  for (i = 0; i < 12; ++i) {
    char name[16];
    snprintf(name, sizeof name, "t%d", i);
    plan.name = name;
    CHECK_OK(poise_writer_add_tensor(writer, &plan, &error));
  }
  CHECK_OK(poise_writer_finish(writer, &error));
  poise_writer_free(writer);
  verify.progress.report = quantize_and_report;
  verify.progress.user = numbers;
  CHECK_OK(poise_verify(scratch("computed.safetensors"), &verify, NULL, NULL, NULL, &error));
  free(numbers);
}

static void leaves_nothing_behind(void) {
  bytes numbers = {kNumbers, sizeof kNumbers, 1, 0};
  poise_tensor_plan plan = plan_of("numbers", POISE_F32, 2, kDims, &numbers);
  poise_writer* writer = create("failed.zt", NULL);
  poise_writer_options options = POISE_WRITER_OPTIONS_INIT;
  CHECK_OK(poise_writer_add_tensor(writer, &plan, &error));
  poise_writer_free(writer);  // abandoned
  writer = create("failed.zt", NULL);
  CHECK_OK(poise_writer_add_tensor(writer, &plan, &error));
  CHECK_STATUS(POISE_CANCELLED, poise_writer_finish(writer, &error));
  CHECK_SAYS("numbers");
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_writer_finish(writer, &error));
  poise_writer_free(writer);
  CHECK(access(scratch("failed.zt"), F_OK) != 0);

  // An old file stays until a new one is whole.
  write_file(scratch("old.zt"), "old", 3);
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_writer_create(scratch("old.zt"), NULL, NULL, &writer, &error));
  options.overwrite = 1;
  CHECK_OK(poise_writer_create(scratch("old.zt"), NULL, &options, &writer, &error));
  CHECK_OK(poise_writer_add_tensor(writer, &plan, &error));
  CHECK_STATUS(POISE_CANCELLED, poise_writer_finish(writer, &error));
  poise_writer_free(writer);
  {
    size_t size;
    unsigned char* file = read_file(scratch("old.zt"), &size);
    CHECK(size == 3);
    free(file);
  }
}

static void refuses_what_makes_no_sense(void) {
  static const uint64_t kHuge[] = {UINT64_MAX, 2};
  bytes numbers = {kNumbers, sizeof kNumbers, 0, 0};
  poise_vocabulary vocabulary = POISE_VOCABULARY_INIT;
  poise_token token = POISE_TOKEN_INIT;
  poise_tensor_plan plan;
  poise_writer* writer = NULL;
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_writer_create(scratch("x.unknown"), NULL, NULL, &writer, &error));
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_writer_create(scratch("x.alt"), "zip", NULL, &writer, &error));
  CHECK_STATUS(POISE_NOT_FOUND, poise_writer_create(scratch("no/folder/x.alt"), NULL, NULL, &writer, &error));
  CHECK(writer == NULL);
  writer = create("x.zt", NULL);
#define REFUSED(what)                                       \
  plan = plan_of("numbers", POISE_F32, 2, kDims, &numbers); \
  what;                                                     \
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_writer_add_tensor(writer, &plan, &error))
  REFUSED(plan.name = NULL);
  REFUSED(plan.fill = NULL);
  REFUSED(plan.dims = NULL);
  REFUSED(plan.dims = kHuge);
  REFUSED(plan.dtype = POISE_DTYPE_UNKNOWN);
  REFUSED(plan.dtype = (poise_dtype)1000);
  REFUSED((plan.dtype = POISE_QINT8, plan.affine.delta = -1));
  REFUSED((plan.dtype = POISE_QINT8, plan.affine.packed = 1));
  REFUSED((plan.dtype = POISE_QINT4, plan.affine.min = 1));
#undef REFUSED
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_writer_set_config(writer, "{}", &error));
  CHECK_SAYS("hidden_size");
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_writer_set_config(writer, "[]", &error));
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_writer_set_config(writer, "{", &error));
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_writer_set_attributes(writer, "{\"a\":1,\"a\":2}", &error));
  vocabulary.kind = (poise_vocabulary_kind)4;
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_writer_set_vocabulary(writer, &vocabulary, &error));
  vocabulary.kind = POISE_SENTENCEPIECE_BPE;
  vocabulary.bos_id = 5;
  CHECK_OK(poise_writer_set_vocabulary(writer, &vocabulary, &error));
  token.type = (poise_token_type)9;
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_writer_add_token(writer, &token, &error));
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_writer_finish(writer, &error));
  CHECK_SAYS("the id 5");
  poise_writer_free(writer);
  // A format that cannot hold the plan reports it, and nothing is written.
  writer = create("x.tllm", NULL);
  CHECK_STATUS(POISE_UNSUPPORTED, poise_writer_finish(writer, &error));
  poise_writer_free(writer);
}

// Counts the callbacks that run at the same time as another one.
typedef struct callbacks {
  int running;
  int overlaps;
} callbacks;

static void run_callback(callbacks* user) {
  volatile int work;
  if (__atomic_fetch_add(&user->running, 1, __ATOMIC_SEQ_CST) != 0)
    __atomic_fetch_add(&user->overlaps, 1, __ATOMIC_SEQ_CST);
  for (work = 0; work < 1000000; ++work) continue;
  __atomic_fetch_sub(&user->running, 1, __ATOMIC_SEQ_CST);
}

static int fill_slowly(void* user, uint64_t offset, void* out, size_t size) {
  (void)offset;
  memset(out, 1, size);
  run_callback(user);
  return 0;
}

static int report_slowly(void* user, const poise_progress_event* event) {
  (void)event;
  run_callback(user);
  return 0;
}

// Frames of zstd are filled and reported on different threads.
static void runs_one_callback_at_a_time(void) {
  static const uint64_t kFrames[] = {16, 1 << 20};
  callbacks user = {0, 0};
  poise_storage storage = POISE_STORAGE_INIT;
  poise_writer_options options = POISE_WRITER_OPTIONS_INIT;
  poise_tensor_plan plan = plan_of("bytes", POISE_U8, 2, kFrames, NULL);
  poise_writer* writer = NULL;
  storage.zstd_level = 1;
  options.storage = &storage;
  options.progress.report = report_slowly;
  options.progress.user = &user;
  plan.fill = fill_slowly;
  plan.user = &user;
  CHECK_OK(poise_writer_create(scratch("frames.zt"), NULL, &options, &writer, &error));
  CHECK_OK(poise_writer_add_tensor(writer, &plan, &error));
  CHECK_OK(poise_writer_finish(writer, &error));
  CHECK(__atomic_load_n(&user.overlaps, __ATOMIC_SEQ_CST) == 0);
  poise_writer_free(writer);
}

void test_writer(void) {
  writes_what_was_filled_in();
  writes_codes_with_their_scale();
  writes_a_model_piece_by_piece();
  keeps_merges();
  lists_losses();
  refuses_unreadable_attributes();
  callbacks_may_compute();
  leaves_nothing_behind();
  refuses_what_makes_no_sense();
  runs_one_callback_at_a_time();
}
