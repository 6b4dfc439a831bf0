// An Input is a file or directory to read. Functions below look at its first bytes, and refuse files that are not
// models.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <poise/error.hpp>
#include <poise/finding.hpp>
#include <poise/format.hpp>
#include <poise/source.hpp>

#include "pack/container.hpp"

namespace poise {

// Holds a file (or memory) with its source, or a directory without one.
struct Input {
  std::filesystem::path path;
  SourcePtr source;        // null for a directory
  bool has_folder = true;  // false: memory, whose name is not a path, so that no other file belongs to it
};

// Appends a warning about a file or directory.
inline void warn(std::vector<Finding>& warnings, std::string message, const std::filesystem::path& path) {
  warnings.push_back({Severity::warning, std::move(message), path.string(), std::nullopt});
}

// Returns the first bytes of an input, at most `count`; empty for a directory.
std::vector<std::byte> read_first_bytes(const Input& input, std::size_t count);

// Returns the kind of container that the input is; std::nullopt for other files. Looks at a few bytes.
inline std::optional<ContainerKind> find_container_kind(const Input& input) {
  return find_container_kind(input.source);
}

// Returns the names of a container's members; none if Poise cannot read it, because opening it reports the error.
MemberNames list_member_names(const Input& input, ContainerKind kind);

// Throws invalid_file or unsupported with the likely cause for well-known content that is not a model: an empty file, a
// Git LFS pointer, an HTML page, a PyTorch or other archive. Valid files may begin in the same way. Requires: no
// format's magic matches, and the reader that the name promises, if there is one, has rejected the file.
void refuse_non_model(const Input& input);

// Calls refuse_non_model(Input) for the file that `error` is about, if it is among the `opened` ones and no format
// recognizes it.
void refuse_non_model(const Error& error, std::span<const SourcePtr> opened);

// Opens a file of weights with the config.json, the tokenizer and the other files next to it. `format` is the format of
// that file. For a shard, opens all files of its index. Returns std::nullopt if there is no config.json, for an
// adapter, and for a format that directories do not have. Throws what open() throws for a directory.
std::optional<Model> open_with_directory(const std::filesystem::path& weights, std::string_view format,
                                         const ReadOptions& options);

}  // namespace poise
