// A file of any format: opened mapped and unmapped, every part read, hashed, and verified.
#include <poise/format.hpp>
#include <poise/hash.hpp>
#include <poise/verify.hpp>

#include "target.hpp"

using namespace poise;

namespace {

std::uint64_t count_decoded_bytes(const Model& model) {
  std::uint64_t sum = 0;
  for (const Tensor& tensor : model.tensors()) {
    for (const Part& part : tensor.parts) sum += std::min(part.blob->size(), fuzz::kMostBytes);
  }
  return sum;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto path = fuzz::get_scratch_directory() / "input";
  fuzz::write_file(path, fuzz::bytes_of(data, size));
  bool small = false;  // decodes to few enough bytes to read all of them
  fuzz::expect_sound(size, [&] {
    const Model model = open(path);
    fuzz::use_all(model);
    small = count_decoded_bytes(model) < fuzz::kMostBytes;
  });
  fuzz::expect_sound(size, [&] { fuzz::use_all(open(path, {.io = IoMode::read})); });
  if (!small) return 0;
  fuzz::expect_sound(size, [&] { hash(open(path)); });
  fuzz::expect_sound(size, [&] { verify(path); });
  return 0;
}
