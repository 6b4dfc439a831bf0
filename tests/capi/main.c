// poise_capi_tests GROUP EXAMPLES: runs one group of the tests of poise.h.
#define _POSIX_C_SOURCE 200809L
#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

poise_error error;
int skipped;

static int failures;
static const char* examples;
static char folder[] = "/tmp/poise-capi-XXXXXX";

void check(int holds, const char* what, const char* file, int line) {
  if (holds) return;
  ++failures;
  fprintf(stderr, "%s:%d: %s\n", file, line, what);
}

void check_status(poise_status expected, poise_status found, const char* call, const char* file, int line) {
  if (found != expected) {
    ++failures;
    fprintf(stderr, "%s:%d: %s: expected %s, found %s: %s (%s)\n", file, line, call, poise_status_name(expected),
            poise_status_name(found), error.message, error.path);
    return;
  }
  check(error.kind == found, "the error has another kind than the status", file, line);
  check((error.message[0] == '\0') == (found == POISE_OK),
        "there is a message without an error, or an error without one", file, line);
  if (found == POISE_OK)
    check(error.path[0] == '\0' && error.offset == POISE_NO_OFFSET, "an error's place is left behind", file, line);
}

void check_text(const char* expected, poise_text found, const char* what, const char* file, int line) {
  if (found.size == strlen(expected) && memcmp(found.data, expected, found.size) == 0) return;
  ++failures;
  fprintf(stderr, "%s:%d: %s: expected \"%s\", found \"%.*s\"\n", file, line, what, expected, POISE_TEXT(found));
}

static const char* join(const char* directory, const char* name) {
  static char paths[8][1024];
  static unsigned next;
  char* path = paths[next++ % 8];
  snprintf(path, sizeof paths[0], "%s/%s", directory, name);
  return path;
}

const char* example(const char* name) { return join(examples, name); }
const char* scratch(const char* name) { return join(folder, name); }

unsigned char* read_file(const char* path, size_t* size) {
  FILE* file = fopen(path, "rb");
  unsigned char* data = NULL;
  *size = 0;
  if (file == NULL) return NULL;
  fseek(file, 0, SEEK_END);
  *size = (size_t)ftell(file);
  rewind(file);
  data = malloc(*size + 1);
  if (data == NULL || fread(data, 1, *size, file) != *size) abort();
  fclose(file);
  return data;
}

void write_file(const char* path, const void* data, size_t size) {
  FILE* file = fopen(path, "wb");
  if (file == NULL || fwrite(data, 1, size, file) != size || fclose(file) != 0) abort();
}

poise_model* open_example(void) {
  poise_model* model = NULL;
  CHECK_OK(poise_open(example("nano-mistral"), NULL, &model, &error));
  if (model == NULL) exit(1);
  return model;
}

poise_model* open_converted(const char* name, const poise_convert_options* options) {
  poise_model* model = NULL;
  CHECK_OK(poise_convert(example("nano-mistral"), scratch(name), options, NULL, &error));
  CHECK_OK(poise_open(scratch(name), NULL, &model, &error));
  if (model == NULL) exit(1);
  return model;
}

const poise_tensor* tensor_named(const poise_model* model, const char* name) {
  const poise_tensor* tensor = NULL;
  CHECK_OK(poise_tensor_find(model, name, &tensor, &error));
  if (tensor == NULL) exit(1);
  return tensor;
}

poise_tensor_info info_of(const poise_tensor* tensor) {
  poise_tensor_info info = POISE_TENSOR_INFO_INIT;
  CHECK_OK(poise_tensor_describe(tensor, &info, &error));
  return info;
}

const poise_part* first_part(const poise_tensor* tensor) {
  const poise_part* part = NULL;
  CHECK_OK(poise_tensor_part_at(tensor, 0, &part, &error));
  if (part == NULL) exit(1);
  return part;
}

poise_part_info part_info_of(const poise_part* part) {
  poise_part_info info = POISE_PART_INFO_INIT;
  CHECK_OK(poise_part_describe(part, &info, &error));
  return info;
}

static void remove_folder(void) {
  DIR* directory = opendir(folder);
  const struct dirent* entry;
  if (directory == NULL) return;
  while ((entry = readdir(directory)) != NULL) {
    if (entry->d_name[0] != '.') unlink(scratch(entry->d_name));
  }
  closedir(directory);
  check(rmdir(folder) == 0, "something is left behind in the folder", __FILE__, __LINE__);
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    void (*run)(void);
  } groups[] = {{"model", test_model},           {"attributes", test_attributes}, {"tensor", test_tensor},
                {"operations", test_operations}, {"making", test_making},         {"writer", test_writer},
                {"runtime", test_runtime},       {"batch", test_batch},           {"threads", test_threads},
                {"arguments", test_arguments},   {"growth", test_growth},         {"locale", test_locale}};
  size_t i;
  if (argc != 3 || mkdtemp(folder) == NULL) return 2;
  examples = argv[2];
  for (i = 0; i < sizeof groups / sizeof groups[0]; ++i) {
    if (strcmp(argv[1], groups[i].name) != 0) continue;
    groups[i].run();
    remove_folder();
    return failures != 0 ? 1 : skipped ? 77 : 0;
  }
  return 2;
}
