// Tokenizer files of a directory, found by their names: a row for each kind in files.cpp. If there are several, the
// first row counts.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <poise/model.hpp>
#include <poise/source.hpp>

#include "pack/container.hpp"

namespace poise {

// Opens a file of the directory.
using OpenFile = std::function<SourcePtr(std::string_view name)>;

// The names of all files that a tokenizer may have in a directory.
inline constexpr std::array<std::string_view, 11> kTokenizerFiles = {
    "tokenizer.json",    "tokenizer.model",     "tekken.json",           "vocab.json",
    "vocab.txt",         "merges.txt",          "tokenizer_config.json", "special_tokens_map.json",
    "added_tokens.json", "chat_template.jinja", "chat_template.json"};

// Names of templates in its folder additional_chat_templates: "additional_chat_templates/rag.jinja". Sorted.
std::vector<std::string> additional_templates(const Container& directory);

// The names that the rows begin with: "tokenizer.model", "tokenizer.json", ...
std::vector<std::string> tokenizer_file_names();

struct DirectoryVocabulary {
  Vocabulary vocabulary;
  std::vector<std::string> left_out = {};  // texts of listed tokens for which the model has no rows
};

// Nothing if the directory has none of them. `rows`: how many tokens the model has; drops tokens listed outside the
// vocabulary with ids from there on. Throws what opening and reading the files throws.
std::optional<DirectoryVocabulary> read_tokenizer_files(const Container& directory, const OpenFile& open,
                                                        std::uint64_t rows);

// The same for files that are open already; ignores other names.
std::optional<DirectoryVocabulary> read_tokenizer_files(std::span<const DirectoryFile> files, std::uint64_t rows);

}  // namespace poise
