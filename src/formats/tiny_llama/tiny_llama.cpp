#include "formats/tiny_llama/tiny_llama.hpp"

#include <array>

#include "bytes/little_endian.hpp"
#include "formats/tiny_llama/layout.hpp"
#include "formats/tiny_llama/read.hpp"
#include "formats/tiny_llama/write.hpp"

namespace poise {
namespace {

constexpr std::array<std::string_view, 1> kExtensions = {".bin"};  // as Tiny Llama names them

// Recognizes a swapped magic number, too, so that the reader can explain the fault.
bool sniff(const Input& input) {
  const auto bytes = first_bytes(input, sizeof tiny_llama::kMagic);
  if (bytes.size() < sizeof tiny_llama::kMagic) return false;
  const auto magic = load_le<std::uint32_t>(bytes.data());
  return magic == tiny_llama::kMagic || magic == tiny_llama::kSwappedMagic;
}

}  // namespace

const Format kTinyLlamaFormat = {
    .info = {"tllm", "a Tiny Llama weight file", ".tllm"},
    .extensions = kExtensions,
    .options = {},
    .holds_bf16 = true,  // not true; but f16 would not help, and rejecting the stored type is clearer
    .sniff = sniff,
    .read = tiny_llama::read,
    .prepare = prepare_with<tiny_llama::plan, tiny_llama::write, tiny_llama::losses>,
};

}  // namespace poise
