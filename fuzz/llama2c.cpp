// Weights of llama2.c with the tokenizer.bin next to them: two bytes, the length of tokenizer.bin, then both files.
#include <algorithm>

#include <poise/format.hpp>

#include "bytes/little_endian.hpp"
#include "target.hpp"

using namespace poise;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto input = fuzz::bytes_of(data, size);
  if (input.size() < 2) return 0;
  const fuzz::Bytes files = input.subspan(2);
  const std::size_t length = std::min<std::size_t>(load_le<std::uint16_t>(input.data()), files.size());
  const auto& directory = fuzz::get_scratch_directory();
  fuzz::write_file(directory / "tokenizer.bin", files.first(length));
  fuzz::write_file(directory / "model.bin", files.subspan(length));
  fuzz::expect_sound(size, [&] { fuzz::use_all(open(directory / "model.bin")); });
  return 0;
}
