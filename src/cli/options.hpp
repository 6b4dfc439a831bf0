// Adds options that several commands share.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include <poise/format.hpp>
#include <poise/lora.hpp>

#include "bytes/function_ref.hpp"
#include "formats/format.hpp"

namespace poise::cli {

// Adds --io map|read.
void add_io_option(CLI::App& command, ReadOptions& options);

// Adds --lora PATH[:SCALE].
void add_lora_option(CLI::App& command, std::vector<LoraAdapter>& adapters);

// Adds --only and --skip, which take patterns of tensor names. `verb` begins the description of --only: "Compare".
void add_pattern_options(CLI::App& command, std::vector<std::string>& only, std::vector<std::string>& skip,
                         const std::string& verb);

// Adds --raw and --io.
void add_read_options(CLI::App& command, ReadOptions& options);

// Adds --compress, --digest, --align, --shard-size: how a container stores its parts.
void add_storage_options(CLI::App& command, WriteOptions& options);

// Holds --vocab and --merges: the tokenizer files of a Tiny Llama.
struct TokenizerPaths {
  std::string vocab;
  std::string merges;

  // Returns the vocabulary in the files, or std::nullopt if the options were not given.
  std::optional<Vocabulary> read() const;
};
// Adds --vocab and --merges.
void add_tokenizer_options(CLI::App& command, TokenizerPaths& files);

// Returns the heading "Formats:" and a line for each format.
std::string describe_formats();

// Returns the names of the formats for which `is_meant` is true: "zt, zt1".
std::string join_format_names(FunctionRef<bool(const Format&)> is_meant);

// Returns each format's alignment of parts: "zt: at least 4096, default 65536; gguf: ...".
std::string describe_alignments();

}  // namespace poise::cli
