#include "formats/registry.hpp"

#include <algorithm>

#include "bytes/little_endian.hpp"
#include "formats/alt/alt.hpp"
#include "formats/alt/layout.hpp"
#include "views/layout_type.hpp"

namespace poise {
namespace {

// Returns true for version 2. Version 1 begins with kStartAltc and zeros; some files of version 2 begin with kStartAltc
// and fields.
bool is_v2(const Input& input) {
  const auto bytes = read_first_bytes(input, 24);
  if (bytes.size() < 8) return false;
  const auto marker = load_le<std::int64_t>(bytes.data());
  const auto is_set = [](std::byte byte) { return byte != std::byte{0}; };
  return marker == alt::kStartV2 || (marker == alt::kStartAltc && std::any_of(bytes.begin() + 8, bytes.end(), is_set));
}

bool is_v1(const Input& input) {
  const auto bytes = read_first_bytes(input, 4);
  return bytes.size() == 4 && load_le<std::int32_t>(bytes.data()) == alt::kStartAltc && !is_v2(input);
}

}  // namespace

const Format kAltV2 = {
    .info = {"alt", "an ALT file, version 2", ".alt"},
    .options = {.dialect = true},
    .holds_bf16 = false,
    .holds_layout = [](const LayoutType& type) { return &type == &layouts::affine; },
    .has_whole_card = true,
    .sniff = is_v2,
    .read = alt::read_v2,
    .prepare = prepare_with<alt::plan_v2, alt::write_v2, alt::list_losses_v2>,
};

const Format kAltV1 = {
    .info = {"alt1", "an ALT file, version 1", ".alt"},
    .holds_bf16 = false,
    .sniff = is_v1,
    .read = alt::read_v1,
    .prepare = prepare_with<alt::plan_v1, alt::write_v1, alt::list_losses_v1>,
};

}  // namespace poise
