// Repeats each call, failing its first, second, third, ... allocation. It returns POISE_OUT_OF_MEMORY every time, until
// no allocation is left to fail and it succeeds.
#include <poise.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <new>
#include <string>

namespace {

std::atomic<long> allocations_left = -1;  // -1: all of them succeed

void* allocate(std::size_t size) {
  if (allocations_left.load() == 0) throw std::bad_alloc();
  if (allocations_left.load() > 0) --allocations_left;
  void* memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

int failures = 0;

// Requires: `call` releases the objects that it makes.
void expect_out_of_memory(const char* name, const std::function<poise_status(poise_error*)>& call) {
  constexpr long kMost = 200000;
  long failed = 0;
  for (long n = 0; n < kMost; n = n < 300 ? n + 1 : n + n / 7) {
    poise_error error;
    allocations_left = n;
    const poise_status status = call(&error);
    allocations_left = -1;
    if (status == POISE_OK) {
      std::printf("%s: %ld allocations failed, each with its status\n", name, failed);
      if (failed > 0) return;
      break;
    }
    ++failed;
    if (status == POISE_OUT_OF_MEMORY && error.kind == status && std::string(error.message) == "out of memory")
      continue;
    std::fprintf(stderr, "%s: allocation %ld failed: %s: %s\n", name, n, poise_status_name(status), error.message);
    ++failures;
    return;
  }
  std::fprintf(stderr, "%s: no end, or no call failed\n", name);
  ++failures;
}

}  // namespace

void* operator new(std::size_t size) { return allocate(size); }
void* operator new[](std::size_t size) { return allocate(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::string directory = std::string(argv[1]) + "/nano-mistral";
  const std::string safetensors = directory + "/model.safetensors";
  poise_model* model = nullptr;
  poise_tokenizer* tokenizer = nullptr;
  if (poise_open(directory.c_str(), nullptr, &model, nullptr) != POISE_OK ||
      poise_tokenizer_create(model, &tokenizer, nullptr) != POISE_OK)
    return 2;

  expect_out_of_memory("poise_open", [&](poise_error* error) {
    poise_model* made = nullptr;
    const poise_status status = poise_open(safetensors.c_str(), nullptr, &made, error);
    poise_model_free(made);
    return status;
  });
  const poise_tensor* tensor = nullptr;
  const poise_tensor* other = nullptr;
  if (poise_tensor_at(model, 0, &tensor, nullptr) != POISE_OK || poise_tensor_at(model, 3, &other, nullptr) != POISE_OK)
    return 2;
  expect_out_of_memory("poise_tensor_part", [&](poise_error* error) {
    const poise_part* part = nullptr;
    return poise_tensor_part(tensor, "data", &part, error);
  });
  expect_out_of_memory("poise_tensor_decode", [&](poise_error* error) {
    float value = 0;
    return poise_tensor_decode(other, POISE_F32, 0, 1, &value, sizeof value, error);
  });
  expect_out_of_memory("poise_attributes_get_json", [&](poise_error* error) {
    const poise_attributes* config = nullptr;
    poise_string json{nullptr, 0};
    poise_status status = poise_model_config(model, &config, error);
    if (status == POISE_OK) status = poise_attributes_get_json(config, nullptr, &json, error);
    poise_string_free(&json);
    return status;
  });
  expect_out_of_memory("poise_tokenizer_create", [&](poise_error* error) {
    poise_tokenizer* made = nullptr;
    const poise_status status = poise_tokenizer_create(model, &made, error);
    poise_tokenizer_free(made);
    return status;
  });
  expect_out_of_memory("poise_tokenizer_encode", [&](poise_error* error) {
    poise_tokens tokens{nullptr, 0};
    const poise_status status = poise_tokenizer_encode(tokenizer, "Once upon a time", 16, &tokens, error);
    poise_tokens_free(&tokens);
    return status;
  });
  char folder[] = "/tmp/poise-out-of-memory-XXXXXX";
  if (mkdtemp(folder) == nullptr) return 2;
  const std::string output = std::string(folder) + "/out.safetensors";
  expect_out_of_memory("poise_writer", [&](poise_error* error) {
    poise_writer* writer = nullptr;
    poise_writer_options options = POISE_WRITER_OPTIONS_INIT;
    options.overwrite = 1;
    poise_status status = poise_writer_create(output.c_str(), nullptr, &options, &writer, error);
    if (status == POISE_OK) status = poise_writer_set_metadata(writer, model, error);
    if (status == POISE_OK) status = poise_writer_copy_tensor(writer, tensor, error);
    if (status == POISE_OK) status = poise_writer_finish(writer, error);
    poise_writer_free(writer);
    return status;
  });
  std::remove(output.c_str());
  if (std::remove(folder) != 0) ++failures;  // a temporary file was left behind
  poise_tokenizer_free(tokenizer);
  poise_model_free(model);
  return failures == 0 ? 0 : 1;
}
