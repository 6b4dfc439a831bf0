// Runs llama.cpp's quantizer, for scripts/compare_llama_quantize.py.
//
//   quantize_llama_cpp IN.gguf OUT.gguf FTYPE PURE [IMATRIX]
//
// FTYPE is a number of llama_ftype, PURE 0 or 1, IMATRIX a file of the older format. LLAMA is the source of llama.cpp
// v0.5.0, LIB the folder of its libraries (npm pack @node-llama-cpp/linux-x64@3.22.1: bins/linux-x64): g++ -std=c++20
// -O1 scripts/quantize_llama_cpp.cpp
//   -ILLAMA/include -ILLAMA/ggml/include -LLIB -l:libllama.v0.5.0.so -l:libggml.v0.5.0.so
//       -l:libggml-base.so -Wl,-rpath,LIB -o quantize_llama_cpp
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <string>
#include <vector>

#include "llama.h"

namespace {

struct Weights {
  std::string name;
  std::vector<float> values;
};

std::int32_t read_number(std::istream& in) {
  std::int32_t value = 0;
  in.read(reinterpret_cast<char*>(&value), sizeof value);
  return value;
}

std::deque<Weights> read_weights(const char* path) {
  std::ifstream in(path, std::ios::binary);
  std::deque<Weights> all;
  for (std::int32_t left = read_number(in); in && left > 0; --left) {
    Weights& entry = all.emplace_back();
    entry.name.resize(static_cast<std::size_t>(read_number(in)));
    in.read(entry.name.data(), static_cast<std::streamsize>(entry.name.size()));
    const auto calls = static_cast<float>(read_number(in));
    entry.values.resize(static_cast<std::size_t>(read_number(in)));
    in.read(reinterpret_cast<char*>(entry.values.data()),
            static_cast<std::streamsize>(entry.values.size() * sizeof(float)));
    for (float& value : entry.values) value /= calls;
  }
  return all;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 5 && count != 6) return 2;
  llama_log_set([](ggml_log_level level, const char* text,
                   void*) { level >= GGML_LOG_LEVEL_WARN ? (void)std::fputs(text, stderr) : void(); },
                nullptr);
  llama_model_quantize_params params = llama_model_quantize_default_params();
  params.ftype = static_cast<llama_ftype>(std::atoi(arguments[3]));
  params.pure = std::atoi(arguments[4]) != 0;
  std::deque<Weights> weights;
  std::vector<llama_model_imatrix_data> imatrix;
  if (count == 6) {
    weights = read_weights(arguments[5]);
    for (const Weights& entry : weights)
      imatrix.push_back({entry.name.c_str(), entry.values.data(), entry.values.size()});
    imatrix.push_back({nullptr, nullptr, 0});
    params.imatrix = imatrix.data();
  }
  return static_cast<int>(llama_model_quantize(arguments[1], arguments[2], &params));
}
