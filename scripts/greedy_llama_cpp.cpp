// Prints llama.cpp's tokens of a text and of its greedy continuation, for scripts/compare_llama_cpp.py and
// compare_llama_lora.py: "ids of the text | ids of the continuation". With an adapter, a line follows with the logits
// of the first token after the text.
//
//   greedy_llama_cpp FILE.gguf TEXT COUNT [ADAPTER.gguf SCALE]
//
// LLAMA is the source of llama.cpp v0.5.0, LIB the folder of its libraries (npm pack
//   @node-llama-cpp/linux-x64@3.22.1: bins/linux-x64): g++ -std=c++20 -O1 scripts/greedy_llama_cpp.cpp -ILLAMA/include
//   -ILLAMA/ggml/include -LLIB -l:libllama.v0.5.0.so -l:libggml.v0.5.0.so
//       -l:libggml-base.so -Wl,-rpath,LIB -o greedy_llama_cpp
// GGML_DIR=LIB in the environment lets ggml find its loops for this processor.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "llama.h"

int main(int count, char** arguments) {
  if (count != 4 && count != 6) return 2;
  llama_log_set([](ggml_log_level level, const char* text,
                   void*) { level >= GGML_LOG_LEVEL_ERROR ? (void)std::fputs(text, stderr) : void(); },
                nullptr);
  ggml_backend_load_all_from_path(std::getenv("GGML_DIR"));
  llama_model_params of_model = llama_model_default_params();
  of_model.n_gpu_layers = 0;
  llama_model* model = llama_model_load_from_file(arguments[1], of_model);
  if (model == nullptr) return 1;
  llama_context_params of_context = llama_context_default_params();
  of_context.n_ctx = 256;
  of_context.n_threads = of_context.n_threads_batch = 1;
  of_context.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
  of_context.type_k = of_context.type_v = GGML_TYPE_F32;
  llama_context* context = llama_init_from_model(model, of_context);
  if (context == nullptr) return 1;
  if (count == 6) {
    llama_adapter_lora* adapter = llama_adapter_lora_init(model, arguments[4]);
    float scale = std::strtof(arguments[5], nullptr);
    if (adapter == nullptr || llama_set_adapters_lora(context, &adapter, 1, &scale) != 0) return 1;
  }
  const llama_vocab* vocabulary = llama_model_get_vocab(model);
  const auto length = static_cast<int>(std::strlen(arguments[2]));
  std::vector<llama_token> tokens(static_cast<std::size_t>(length) + 8);
  tokens.resize(static_cast<std::size_t>(std::max(0, llama_tokenize(vocabulary, arguments[2], length, tokens.data(),
                                                                    static_cast<int>(tokens.size()), true, false))));
  for (const llama_token token : tokens) std::printf("%d ", token);
  std::printf("|");
  std::vector<float> first;
  for (int i = 0; i < std::atoi(arguments[3]); ++i) {
    if (llama_decode(context, llama_batch_get_one(tokens.data(), static_cast<int>(tokens.size()))) != 0) return 1;
    const float* logits = llama_get_logits_ith(context, -1);
    if (i == 0) first.assign(logits, logits + llama_vocab_n_tokens(vocabulary));
    const auto best =
        static_cast<llama_token>(std::max_element(logits, logits + llama_vocab_n_tokens(vocabulary)) - logits);
    std::printf(" %d", best);
    tokens = {best};
  }
  std::puts("");
  for (const float logit : count == 6 ? first : std::vector<float>()) std::printf("%.9g ", static_cast<double>(logit));
}
