#include "formats/alt/alt.hpp"

#include <algorithm>

#include "bytes/little_endian.hpp"
#include "formats/alt/layout.hpp"
#include "formats/alt/read.hpp"
#include "formats/alt/write.hpp"

namespace poise {
namespace {

// Version 1 begins with "altc" and zeros; some files of version 2 begin with "altc", too, and have fields behind it.
bool is_v2(const Input& input) {
  const auto bytes = first_bytes(input, 24);
  if (bytes.size() < 8) return false;
  const auto marker = load_le<std::int64_t>(bytes.data());
  if (marker == alt::kStartV2) return true;
  const auto is_set = [](std::byte byte) { return byte != std::byte{0}; };
  return marker == alt::kStartAltc && std::any_of(bytes.begin() + 8, bytes.end(), is_set);
}

}  // namespace

const Format kAltV2 = {
    .info = {"alt", "an ALT file, version 2", ".alt", true, true},
    .extensions = {},
    .options = {},
    .holds_bf16 = false,
    .sniff = is_v2,
    .read = alt::read_v2,
    .write = alt::write_v2,
    .losses = nullptr,
};

}  // namespace poise
