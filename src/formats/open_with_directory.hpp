// Weights together with the directory that they are in.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

#include <poise/format.hpp>

namespace poise {

// A file of weights with the config.json, the tokenizer and the other files next to it. `format`: of that file. A shard
// stands for all of its index. Nothing if there is no config.json, for an adapter, and for a format that directories do
// not have. Throws what open() throws for a directory.
std::optional<Model> open_with_directory(const std::filesystem::path& weights, std::string_view format,
                                         const ReadOptions& options);

}  // namespace poise
