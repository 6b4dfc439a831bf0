// Input: a file or directory to read, and what its first bytes show.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <poise/source.hpp>

namespace poise {

// A file (or memory) with its source, or a directory without one.
struct Input {
  std::filesystem::path path;
  SourcePtr source;  // null for a directory
};

// The first bytes of an input, at most `count`; empty for a directory.
std::vector<std::byte> first_bytes(const Input& input, std::size_t count);

// Holders of named members of any kind; the names distinguish formats.
enum class Container { directory, zip, tar };

// The names of a container's members, with / between folders.
using MemberNames = std::vector<std::string>;

// Nothing for a file that is not a container. Looks at a few bytes.
std::optional<Container> container_of(const Input& input);

// Nothing if Poise does not read such containers. Throws what opening the container throws.
std::optional<MemberNames> member_names(const Input& input, Container container);

}  // namespace poise
