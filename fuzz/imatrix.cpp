// An importance matrix, in GGUF or llama-imatrix's older format: opens it, and finds the weights of a few tensors.
#include <array>

#include "formats/importance_matrix.hpp"
#include "target.hpp"

using namespace poise;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::array kTensors = {"model.layers.0.self_attn.q_proj.weight",
                                   "model.layers.0.block_sparse_moe.experts.1.w1.weight", "lm_head.weight", "a"};
  const auto path = fuzz::get_scratch_directory() / "imatrix";
  fuzz::write_file(path, fuzz::bytes_of(data, size));
  fuzz::expect_sound(size, [&] {
    const ImportanceMatrix matrix(path);
    to_json(matrix.provenance());
    for (const char* tensor : kTensors) {
      for (const std::size_t columns : {0U, 1U, 2U, 4U}) {
        fuzz::expect_answer([&] { (void)matrix.find_weights(tensor, "mixtral", columns); });
        fuzz::expect_answer([&] { (void)matrix.find_weights(tensor, "llama", columns, 2); });
      }
    }
  });
  return 0;
}
