// safetensors. Mutations seldom keep the header's length right: reads each input unchanged, and with the length that
// ends the header after its last brace.
#include <string_view>

#include <poise/format.hpp>

#include "bytes/little_endian.hpp"
#include "target.hpp"

using namespace poise;

namespace {

constexpr std::size_t kLengthBytes = 8;

std::vector<std::byte> set_right_length(fuzz::Bytes input) {
  std::vector<std::byte> file(input.begin(), input.end());
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  const auto brace = text.rfind('}');
  if (brace != std::string_view::npos && brace >= kLengthBytes)
    store_le<std::uint64_t>(file.data(), brace + 1 - kLengthBytes);
  return file;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto input = fuzz::bytes_of(data, size);
  fuzz::expect_sound(size, [&] { fuzz::use_all(open(fuzz::make_source(input, "fuzz.safetensors"))); });
  fuzz::expect_sound(size,
                     [&] { fuzz::use_all(open(fuzz::make_source(set_right_length(input), "fuzz.safetensors"))); });
  return 0;
}
