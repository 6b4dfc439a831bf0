// zTensor 0.1, 1.x and 2. A hash guards a manifest of version 2, and mutations break it: reads such an input unchanged,
// and with the right hash.
#include <poise/format.hpp>

#include "bytes/little_endian.hpp"
#include "formats/ztensor/zt2.hpp"
#include "pack/digest.hpp"
#include "target.hpp"

using namespace poise;

namespace {

std::vector<std::byte> set_right_hash(fuzz::Bytes input) {
  std::vector<std::byte> file(input.begin(), input.end());
  if (file.size() < ztensor::kLeastFileBytes2) return file;
  const std::size_t footer = file.size() - ztensor::kFooterBytes2;
  const auto offset = load_le<std::uint64_t>(&file[footer]);
  const auto length = load_le<std::uint64_t>(&file[footer + 8]);
  if (offset > footer || length > footer - offset) return file;
  store_le(&file[footer + 16], compute_xxh3(std::span(file).subspan(offset, length)));
  return file;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto input = fuzz::bytes_of(data, size);
  fuzz::expect_sound(size, [&] { fuzz::use_all(open(fuzz::make_source(input, "fuzz.zt"))); });
  fuzz::expect_sound(size, [&] { fuzz::use_all(open(fuzz::make_source(set_right_hash(input), "fuzz.zt"))); });
  return 0;
}
