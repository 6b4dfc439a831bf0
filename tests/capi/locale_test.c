// A C program that has set a locale with a decimal comma, as every program with GTK or Qt does.
#define _POSIX_C_SOURCE 200809L
#include <locale.h>
#include <stdlib.h>

#include "check.h"

// Returns the offset of a key's value in a GGUF file, after the 4 bytes of its type.
static unsigned char* value_of(unsigned char* file, size_t size, const char* key) {
  size_t at;
  for (at = 0; at + strlen(key) + 8 <= size; ++at) {
    if (memcmp(file + at, key, strlen(key)) == 0) return file + at + strlen(key) + 4;
  }
  abort();
}

// Writes nano-mistral with a frequency base that has a fraction.
static void write_model(const char* path) {
  const poise_convert_options options = POISE_CONVERT_OPTIONS_INIT;
  const float base = 10000.5F;
  size_t size = 0;
  unsigned char* file;
  poise_model_free(open_converted("nano.gguf", &options));
  file = read_file(scratch("nano.gguf"), &size);
  memcpy(value_of(file, size, "llama.rope.freq_base"), &base, sizeof base);
  write_file(path, file, size);
  free(file);
}

void test_locale(void) {
  const poise_convert_options options = POISE_CONVERT_OPTIONS_INIT;
  char folder[] = "/tmp/poise-locale-XXXXXX";
  char command[256];
  size_t expected_size = 0;
  size_t size = 0;
  float base = 0;
  unsigned char* expected;
  unsigned char* found;
  write_model(scratch("a.gguf"));
  CHECK_OK(poise_convert(scratch("a.gguf"), scratch("expected.gguf"), &options, NULL, &error));
  expected = read_file(scratch("expected.gguf"), &expected_size);
  memcpy(&base, value_of(expected, expected_size, "llama.rope.freq_base"), sizeof base);
  CHECK(base == 10000.5F);

  if (mkdtemp(folder) == NULL) abort();
  snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 >/dev/null 2>&1", folder);
  if (system(command) != 0) {
    printf("skipped: localedef does not make de_DE.UTF-8\n");
    skipped = 1;
  } else {
    setenv("LOCPATH", folder, 1);
    CHECK(setlocale(LC_ALL, "de_DE.UTF-8") != NULL);
    CHECK(strtod("0.5", NULL) == 0);
    CHECK_OK(poise_convert(scratch("a.gguf"), scratch("found.gguf"), &options, NULL, &error));
    found = read_file(scratch("found.gguf"), &size);
    CHECK(size == expected_size && memcmp(found, expected, size) == 0);
    free(found);
    setlocale(LC_ALL, "C");
  }
  snprintf(command, sizeof command, "rm -r %s", folder);
  CHECK(system(command) == 0);
  free(expected);
}
