// Prints the sums that llama.cpp's llama-imatrix collects, for scripts/compare_llama_imatrix.py: for each matrix its
// name, the number of its experts (1 if it has none), their tokens, and the sums of squares of all columns.
//
//   imatrix_llama_cpp FILE.gguf TEXT_FILE CHUNK_SIZE
//
// As llama-imatrix of llama.cpp v0.5.0 does with --process-output and a batch of one chunk: it encodes the text as a
// whole, without the newline at its end, puts BOS in the place of each chunk's first token, and asks for the logits of
// all tokens. It sums in float64 instead of float32. Attention is computed without flash attention, and keys and values
// are float32. LLAMA and LIB are those of greedy_llama_cpp.cpp:
//   g++ -std=c++20 -O1 scripts/imatrix_llama_cpp.cpp -ILLAMA/include -ILLAMA/ggml/include -LLIB -l:libllama.v0.5.0.so
//   -l:libggml.v0.5.0.so -l:libggml-base.so -Wl,-rpath,LIB -o imatrix_llama_cpp
// GGML_DIR=LIB in the environment lets ggml find its loops for this processor.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "ggml-backend.h"
#include "llama.h"

namespace {

struct Sums {
  std::vector<double> counts;
  std::vector<double> squares;
};

std::map<std::string, Sums> all_sums;

void add_row(Sums& sums, std::int64_t matrix, std::int64_t columns, const float* row) {
  sums.counts[static_cast<std::size_t>(matrix)] += 1;
  double* out = sums.squares.data() + matrix * columns;
  for (std::int64_t i = 0; i < columns; ++i) out[i] += static_cast<double>(row[i]) * static_cast<double>(row[i]);
}

bool is_measured(const ggml_tensor* node) {
  if (node->op == GGML_OP_MUL_MAT_ID) return true;
  if (node->op != GGML_OP_MUL_MAT) return false;
  if (node->src[1]->type != GGML_TYPE_F32 || node->src[1]->ne[1] < 16) return false;
  const std::string name = node->src[0]->name;
  return name.starts_with("blk.") || name == "output.weight";
}

// Adds the inputs of a product. Products with experts have the experts of each token as their third source.
bool collect(ggml_tensor* node, bool ask, void*) {
  if (ask) return is_measured(node);
  const ggml_tensor* weights = node->src[0];
  const ggml_tensor* inputs = node->src[1];
  const auto* data = static_cast<const char*>(inputs->data);
  Sums& sums = all_sums[weights->name];
  const std::int64_t columns = inputs->ne[0];
  const std::int64_t matrices = weights->ne[2];
  sums.counts.resize(static_cast<std::size_t>(matrices));
  sums.squares.resize(static_cast<std::size_t>(matrices * columns));
  const auto find_row = [&](std::int64_t i, std::int64_t j) {
    return reinterpret_cast<const float*>(data + i * static_cast<std::int64_t>(inputs->nb[1]) +
                                          j * static_cast<std::int64_t>(inputs->nb[2]));
  };
  if (node->op == GGML_OP_MUL_MAT) {
    for (std::int64_t i = 0; i < inputs->ne[1]; ++i) add_row(sums, 0, columns, find_row(i, 0));
    return true;
  }
  const ggml_tensor* ids = node->src[2];
  for (std::int64_t token = 0; token < ids->ne[1]; ++token) {
    for (std::int64_t i = 0; i < ids->ne[0]; ++i) {
      const auto expert = *reinterpret_cast<const std::int32_t*>(static_cast<const char*>(ids->data) +
                                                                 token * static_cast<std::int64_t>(ids->nb[1]) +
                                                                 i * static_cast<std::int64_t>(ids->nb[0]));
      add_row(sums, expert, columns, find_row(i % inputs->ne[1], token));
    }
  }
  return true;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 4) return 2;
  llama_log_set([](ggml_log_level level, const char* text,
                   void*) { level >= GGML_LOG_LEVEL_ERROR ? (void)std::fputs(text, stderr) : void(); },
                nullptr);
  ggml_backend_load_all_from_path(std::getenv("GGML_DIR"));
  llama_model_params of_model = llama_model_default_params();
  of_model.n_gpu_layers = 0;
  of_model.use_extra_bufts = false;  // they would round float16 weights and inputs to bfloat16 on some processors
  llama_model* model = llama_model_load_from_file(arguments[1], of_model);
  if (model == nullptr) return 1;
  const int chunk = std::atoi(arguments[3]);
  llama_context_params of_context = llama_context_default_params();
  of_context.n_ctx = of_context.n_batch = of_context.n_ubatch = static_cast<std::uint32_t>(chunk);
  of_context.n_threads = of_context.n_threads_batch = 1;
  of_context.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
  of_context.type_k = of_context.type_v = GGML_TYPE_F32;
  of_context.cb_eval = collect;
  llama_context* context = llama_init_from_model(model, of_context);
  if (context == nullptr) return 1;
  std::ifstream file(arguments[2], std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (text.ends_with('\n')) text.pop_back();
  const llama_vocab* vocabulary = llama_model_get_vocab(model);
  std::vector<llama_token> tokens(text.size() + 8);
  tokens.resize(static_cast<std::size_t>(
      std::max(0, llama_tokenize(vocabulary, text.data(), static_cast<int>(text.size()), tokens.data(),
                                 static_cast<int>(tokens.size()), true, false))));
  llama_batch batch = llama_batch_init(chunk, 0, 1);
  for (std::size_t first = 0; first + static_cast<std::size_t>(chunk) <= tokens.size();
       first += static_cast<std::size_t>(chunk)) {
    llama_memory_clear(llama_get_memory(context), true);
    if (llama_vocab_get_add_bos(vocabulary)) tokens[first] = llama_vocab_bos(vocabulary);
    batch.n_tokens = chunk;
    for (int i = 0; i < chunk; ++i) {
      batch.token[i] = tokens[first + static_cast<std::size_t>(i)];
      batch.pos[i] = i;
      batch.n_seq_id[i] = 1;
      batch.seq_id[i][0] = 0;
      batch.logits[i] = 1;
    }
    if (llama_decode(context, batch) != 0) return 1;
  }
  for (const auto& [name, sums] : all_sums) {
    std::printf("%s %zu", name.c_str(), sums.counts.size());
    for (const double number : sums.counts) std::printf(" %.0f", number);
    for (const double number : sums.squares) std::printf(" %.17g", number);
    std::puts("");
  }
}
