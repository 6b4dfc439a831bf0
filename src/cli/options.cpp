#include "cli/options.hpp"

#include <filesystem>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <poise/tiny_llama.hpp>

#include "bytes/number_text.hpp"
#include "cli/values.hpp"
#include "io/hub_cache.hpp"
#include "ops/option_words.hpp"

namespace poise::cli {
namespace {

// Parses PATH or PATH:SCALE. A number after the last colon is the scale, unless the whole text is an existing path.
LoraAdapter parse_lora(const std::string& text) {
  if (text.empty()) refuse("--lora", text, "PATH or PATH:SCALE");
  const auto colon = text.rfind(':');
  if (std::error_code error; std::filesystem::exists(text, error)) return {text, 1};
  const auto scale =
      colon == std::string::npos ? std::nullopt : parse_number_text<double>(std::string_view(text).substr(colon + 1));
  if (!scale || colon == 0) return {find_model_path(text), 1};
  return {find_model_path(text.substr(0, colon)), *scale};
}

}  // namespace

void add_io_option(CLI::App& command, ReadOptions& options) {
  add_choice_option<IoMode, IoMode>(
      command, "--io", options.io, {{"map", IoMode::map}, {"read", IoMode::read}},
      "How files are read: map borrows the page cache; read copies, and survives files that shrink meanwhile")
      ->default_str("map");
}

void add_lora_option(CLI::App& command, std::vector<LoraAdapter>& adapters) {
  add_parsed_list_option(command, "--lora", "PATH[:SCALE]",
                         "Merge an adapter (a PEFT directory or GGUF file), scaled by SCALE; may be repeated",
                         [&adapters](const std::string& text) { adapters.push_back(parse_lora(text)); })
      ->allow_extra_args(false);
}

void add_pattern_options(CLI::App& command, std::vector<std::string>& only, std::vector<std::string>& skip,
                         const std::string& verb) {
  command.add_option("--only", only, verb + " only tensors whose name matches")
      ->type_name("GLOB")
      ->allow_extra_args(false);
  command.add_option("--skip", skip, "Leave out tensors whose name matches")
      ->type_name("GLOB")
      ->allow_extra_args(false);
}

void add_read_options(CLI::App& command, ReadOptions& options) {
  command.add_flag("--raw", options.raw,
                   "Keep the tensors of a quantized directory as they are stored, in place of one tensor per matrix");
  add_io_option(command, options);
}

void add_storage_options(CLI::App& command, WriteOptions& options) {
  constexpr const char* kGroup = "Storage";
  const auto with_formats = [](std::string_view text, FunctionRef<bool(const HonouredOptions&)> has) {
    return fmt::format("{} ({})", text, join_format_names([&](const Format& format) { return has(format.options); }));
  };
  add_parsed_option(command, "--compress", "zstd[:LEVEL]",
                    with_formats("Compress every part; the level is 3 unless given",
                                 [](const HonouredOptions& has) { return has.zstd_level; }),
                    [&options](const std::string& text) {
                      options.zstd_level = parse_zstd_level(text);
                      if (!options.zstd_level) refuse("--compress", text, "zstd or zstd:LEVEL");
                    })
      ->group(kGroup);
  add_choice_option<std::optional<DigestAlgorithm>, DigestAlgorithm>(
      command, "--digest", options.digest,
      {{"sha256", DigestAlgorithm::sha256},
       {"xxh3", DigestAlgorithm::xxh3},
       {"crc32c", DigestAlgorithm::crc32c},
       {"none", DigestAlgorithm::none}},
      "Digest of every part; zt: xxh3 (default), sha256; zt1: sha256 (default), crc32c")
      ->group(kGroup);
  add_size_option(
      command, "--align", options.align,
      fmt::format("Begin every part at a multiple of this many bytes, a power of two ({})", describe_alignments()))
      ->group(kGroup);
  add_size_option(
      command, "--max-shard-size,--shard-size", options.shard_size,
      with_formats("Spread the parts over files of at most this size, or of one part if that is larger: 2GB, 500MiB",
                   [](const HonouredOptions& has) { return has.shard_size; }))
      ->group(kGroup);
}

std::optional<Vocabulary> TokenizerPaths::read() const {
  if (vocab.empty()) return std::nullopt;
  return read_tiny_llama_vocabulary(vocab, merges);
}

void add_tokenizer_options(CLI::App& command, TokenizerPaths& files) {
  constexpr const char* kGroup = "Tiny Llama";
  auto* vocab =
      add_text_option(command, "--vocab", files.vocab, "FILE", "vocab.txt: one token per line, perhaps with its id")
          ->group(kGroup);
  auto* merges = add_text_option(command, "--merges", files.merges, "FILE",
                                 "merges.txt: two tokens per line, in the order in which they are merged")
                     ->group(kGroup);
  vocab->needs(merges);
  merges->needs(vocab);
}

std::string describe_formats() {
  std::string text = "Formats:\n";
  for (const FormatInfo& format : formats()) {
    const char* access = format.readable && format.writable ? "read, write" : format.readable ? "read" : "write";
    text += fmt::format("  {:<14}{:<14}{}\n", format.name, access, format.description);
  }
  return text;
}

std::string join_format_names(FunctionRef<bool(const Format&)> is_meant) {
  std::vector<std::string_view> names;
  for (const Format* format : list_all_formats()) {
    if (is_meant(*format)) names.push_back(format->info.name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string describe_alignments() {
  std::vector<std::string> texts;
  for (const Format* format : list_all_formats()) {
    if (const auto& align = format->options.align)
      texts.push_back(fmt::format("{}: at least {}, default {}", format->info.name, align->least, align->usual));
  }
  return fmt::format("{}", fmt::join(texts, "; "));
}

}  // namespace poise::cli
