// Tiny Llama weight files.
#include <poise/format.hpp>

#include "target.hpp"

using namespace poise;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto input = fuzz::bytes_of(data, size);
  fuzz::expect_sound(size, [&] { fuzz::use_all(open(fuzz::make_source(input, "fuzz.tllm"))); });
  return 0;
}
