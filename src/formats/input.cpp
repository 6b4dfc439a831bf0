#include "formats/input.hpp"

#include <algorithm>

#include <poise/error.hpp>

namespace poise {

std::vector<std::byte> first_bytes(const Input& input, std::size_t count) {
  if (!input.source) return {};
  std::vector<std::byte> bytes(static_cast<std::size_t>(std::min<std::uint64_t>(count, input.source->size())));
  input.source->read(0, bytes);
  return bytes;
}

MemberNames member_names(const Input& input, ContainerKind kind) {
  try {
    return open_container(kind, input.path, input.source)->names();
  } catch (const Error&) {
    return {};
  }
}

}  // namespace poise
