// Opening: paths, memory, and a model's description.
#include <stdlib.h>

#include "check.h"

static void describes_a_directory(void) {
  poise_model* model = open_example();
  poise_model_info info = POISE_MODEL_INFO_INIT;
  CHECK_OK(poise_model_describe(model, &info, &error));
  CHECK_TEXT(example("nano-mistral"), info.path);
  CHECK_TEXT("huggingface", info.format);
  CHECK(info.tensors == 39);
  CHECK(info.file_size > 1880000 && info.file_size < 1950000);
  CHECK(info.has_config == 1 && info.has_vocabulary == 1);
  poise_model_free(model);
}

static void reads_the_vocabulary(void) {
  poise_model* model = open_example();
  poise_vocabulary vocabulary = POISE_VOCABULARY_INIT;
  poise_token token = POISE_TOKEN_INIT;
  poise_merge merge;
  CHECK_OK(poise_model_vocabulary(model, &vocabulary, &error));
  CHECK(vocabulary.kind == POISE_SENTENCEPIECE_BPE);
  CHECK(vocabulary.tokens == 960 && vocabulary.merges == 0);
  CHECK(vocabulary.unk_id == 0 && vocabulary.bos_id == 1 && vocabulary.eos_id == 2 && vocabulary.pad_id == -1);
  CHECK(vocabulary.add_dummy_prefix == 1 && vocabulary.remove_extra_whitespaces == 0);
  CHECK_TEXT("identity", vocabulary.normalizer);
  CHECK_OK(poise_vocabulary_token(model, 0, &token, &error));
  CHECK_TEXT("<unk>", token.text);
  CHECK(token.type == POISE_TOKEN_UNKNOWN);
  CHECK_OK(poise_vocabulary_token(model, 1, &token, &error));
  CHECK_TEXT("<s>", token.text);
  CHECK(token.type == POISE_TOKEN_BOS);
  CHECK_OK(poise_vocabulary_token(model, 12, &token, &error));  // the tab of reference.json's "a\tb\nc"
  CHECK_TEXT("<0x09>", token.text);
  CHECK(token.type == POISE_TOKEN_BYTE);
  CHECK_OK(poise_vocabulary_token(model, 959, &token, &error));
  CHECK_STATUS(POISE_NOT_FOUND, poise_vocabulary_token(model, 960, &token, &error));
  CHECK_SAYS("token 960");
  CHECK_STATUS(POISE_NOT_FOUND, poise_vocabulary_merge(model, 0, &merge, &error));
  poise_model_free(model);
}

static void takes_tokenizer_files(void) {
  poise_open_options options = POISE_OPEN_OPTIONS_INIT;
  poise_model* model = NULL;
  poise_vocabulary vocabulary = POISE_VOCABULARY_INIT;
  poise_merge merge;
  char vocab[1024];
  char merges[1024];
  CHECK_OK(poise_open(example("nano-tiny-llama/weights.tllm"), NULL, &model, &error));
  CHECK_STATUS(POISE_NOT_FOUND, poise_model_vocabulary(model, &vocabulary, &error));
  poise_model_free(model);
  strcpy(vocab, example("nano-tiny-llama/vocab.txt"));
  strcpy(merges, example("nano-tiny-llama/merges.txt"));
  options.vocab = vocab;
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_open(example("nano-tiny-llama/weights.tllm"), &options, &model, &error));
  CHECK_SAYS("merges is NULL");
  options.merges = merges;
  CHECK_OK(poise_open(example("nano-tiny-llama/weights.tllm"), &options, &model, &error));
  CHECK_OK(poise_model_vocabulary(model, &vocabulary, &error));
  CHECK(vocabulary.kind == POISE_BYTE_PAIR && vocabulary.merges > 0 && vocabulary.eos_id == 3);
  CHECK_OK(poise_vocabulary_merge(model, 0, &merge, &error));
  CHECK(merge.left.size > 0 && merge.right.size > 0);
  poise_model_free(model);
}

static void opens_memory(void) {
  poise_model* model = NULL;
  poise_model_info info = POISE_MODEL_INFO_INIT;
  const poise_part* part;
  poise_bytes bytes;
  size_t size;
  unsigned char* data = read_file(example("nano-mistral/model.safetensors"), &size);
  CHECK_OK(poise_open_memory(data, size, "memory.safetensors", NULL, &model, &error));
  CHECK_OK(poise_model_describe(model, &info, &error));
  CHECK_TEXT("memory.safetensors", info.path);
  CHECK(info.tensors == 39 && info.has_config == 0);
  part = first_part(tensor_named(model, "model.norm.weight"));
  CHECK_OK(poise_part_map(part, &bytes, &error));
  CHECK((const unsigned char*)bytes.data == data + part_info_of(part).offset);  // lent, not copied
  poise_model_free(model);
  model = NULL;
  CHECK_STATUS(POISE_INVALID_FILE, poise_open_memory(data, size - 1, "cut.safetensors", NULL, &model, &error));
  CHECK(strcmp(error.path, "cut.safetensors") == 0);
  CHECK(model == NULL);
  CHECK_STATUS(POISE_INVALID_FILE, poise_open_memory(data, 100, "cut.safetensors", NULL, &model, &error));
  CHECK_STATUS(POISE_INVALID_FILE, poise_open_memory(NULL, 0, "empty", NULL, &model, &error));
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_open_memory(NULL, 5, "none", NULL, &model, &error));
  free(data);
}

static void tells_what_is_wrong(void) {
  static const char html[] = "<!DOCTYPE html><html></html>";
  poise_model* model = NULL;
  char path[2100];
  size_t i;
  CHECK_STATUS(POISE_NOT_FOUND, poise_open("/no/such/file.alt", NULL, &model, &error));
  CHECK(strcmp(error.path, "/no/such/file.alt") == 0);
  CHECK(error.offset == POISE_NO_OFFSET);
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_open("/dev/null", NULL, &model, &error));
  write_file(scratch("page.alt"), html, sizeof html - 1);
  CHECK_STATUS(POISE_INVALID_FILE, poise_open(scratch("page.alt"), NULL, &model, &error));
  CHECK_SAYS("HTML");
  CHECK(model == NULL);
  // A path that is too long for the error is cut between two characters, which have two bytes each.
  for (i = 0; i < 2000; i += 2) memcpy(path + i, "\xc3\xa9", 2);
  path[2000] = '\0';
  CHECK_STATUS(POISE_IO, poise_open(path, NULL, &model, &error));
  CHECK(strlen(error.path) == 1022);
  CHECK(poise_open("/no/such/file", NULL, &model, NULL) == POISE_NOT_FOUND);
}

static void warns(void) {
  poise_model* model = NULL;
  poise_model_info info = POISE_MODEL_INFO_INIT;
  poise_finding warning = POISE_FINDING_INIT;
  size_t size;
  unsigned char* data = read_file(example("nano-mistral/model.safetensors"), &size);
  CHECK_OK(poise_open_memory(data, size, "wrong-name.alt", NULL, &model, &error));
  CHECK_OK(poise_model_describe(model, &info, &error));
  CHECK(info.warnings == 1);
  CHECK_OK(poise_model_warning(model, 0, &warning, &error));
  CHECK(warning.severity == POISE_WARNING);
  CHECK_TEXT("wrong-name.alt", warning.path);
  CHECK(warning.message.size > 0);
  CHECK_STATUS(POISE_NOT_FOUND, poise_model_warning(model, 1, &warning, &error));
  poise_model_free(model);
  free(data);
}

static void lists_formats_and_types(void) {
  poise_format format = POISE_FORMAT_INIT;
  poise_dtype_info dtype = POISE_DTYPE_INFO_INIT;
  size_t count = 0;
  int alt = 0;
  while (poise_format_at(count, &format, &error) == POISE_OK) {
    if (format.name.size == 3 && memcmp(format.name.data, "alt", 3) == 0) alt = format.readable && format.writable;
    ++count;
  }
  CHECK(error.kind == POISE_NOT_FOUND);
  CHECK(count >= 7 && alt);
  CHECK_OK(poise_dtype_describe(POISE_BF16, &dtype, &error));
  CHECK_TEXT("bf16", dtype.name);
  CHECK(dtype.bits == 16);
  CHECK_OK(poise_dtype_describe(POISE_QINT4, &dtype, &error));
  CHECK_TEXT("qint4", dtype.name);
  CHECK(dtype.bits == 4);
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_dtype_describe(POISE_DTYPE_UNKNOWN, &dtype, &error));
  CHECK_STATUS(POISE_BAD_ARGUMENT, poise_dtype_describe((poise_dtype)24, &dtype, &error));
  CHECK(poise_version()[0] >= '0' && poise_version()[0] <= '9');
  CHECK(strcmp(poise_status_name(POISE_OUT_OF_MEMORY), "out_of_memory") == 0);
  CHECK(strcmp(poise_status_name((poise_status)99), "unknown") == 0);
}

void test_model(void) {
  describes_a_directory();
  reads_the_vocabulary();
  takes_tokenizer_files();
  opens_memory();
  tells_what_is_wrong();
  warns();
  lists_formats_and_types();
}
