// Input: a file or directory to read, and what its first bytes show.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <vector>

#include <poise/source.hpp>

#include "pack/container.hpp"

namespace poise {

// A file (or memory) with its source, or a directory without one.
struct Input {
  std::filesystem::path path;
  SourcePtr source;        // null for a directory
  bool has_folder = true;  // false: memory, whose name is not a path. No other file belongs to it
};

// The first bytes of an input, at most `count`; empty for a directory.
std::vector<std::byte> first_bytes(const Input& input, std::size_t count);

// Nothing for a file that is not a container. Looks at a few bytes.
inline std::optional<ContainerKind> container_of(const Input& input) { return container_kind(input.source); }

// Empty for a container that cannot be read: opening it reports why.
MemberNames member_names(const Input& input, ContainerKind kind);

}  // namespace poise
