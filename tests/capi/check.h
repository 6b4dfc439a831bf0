// A minimal test framework: checks count failures and continue, a group is a function, and files live in the group's
// own folder. Each call under test gets `&error`, so that every status can be compared with it.
#ifndef POISE_TESTS_CHECK_H
#define POISE_TESTS_CHECK_H

#include <poise.h>
#include <stdio.h>
#include <string.h>

extern poise_error error;
extern int skipped;  // 1: the group could not run, and printed the reason

#define CHECK(condition) check((condition) != 0, #condition, __FILE__, __LINE__)
#define CHECK_STATUS(expected, call) check_status((expected), (call), #call, __FILE__, __LINE__)
#define CHECK_OK(call) CHECK_STATUS(POISE_OK, call)
#define CHECK_TEXT(expected, text) check_text((expected), (text), #text, __FILE__, __LINE__)
#define CHECK_SAYS(part) check(strstr(error.message, (part)) != NULL, error.message, __FILE__, __LINE__)

void check(int holds, const char* what, const char* file, int line);
void check_status(poise_status expected, poise_status found, const char* call, const char* file, int line);
void check_text(const char* expected, poise_text found, const char* what, const char* file, int line);

// Paths of the examples, and of files in the group's folder. Each result is valid until the eighth call after it.
const char* example(const char* name);
const char* scratch(const char* name);

// Read a whole file, which the caller frees, and write one.
unsigned char* read_file(const char* path, size_t* size);
void write_file(const char* path, const void* data, size_t size);

// Open examples/nano-mistral, and a file that it is converted to in the group's folder.
poise_model* open_example(void);
poise_model* open_converted(const char* name, const poise_convert_options* options);

// Looks up an entry that must be there.
const poise_tensor* tensor_named(const poise_model* model, const char* name);
poise_tensor_info info_of(const poise_tensor* tensor);
const poise_part* first_part(const poise_tensor* tensor);
poise_part_info part_info_of(const poise_part* part);

void test_model(void);
void test_attributes(void);
void test_tensor(void);
void test_operations(void);
void test_making(void);
void test_writer(void);
void test_runtime(void);
void test_batch(void);
void test_threads(void);
void test_arguments(void);
void test_growth(void);
void test_locale(void);

#endif
