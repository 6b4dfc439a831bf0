#include "cli/options.hpp"

#include <filesystem>
#include <string>
#include <system_error>

#include <fmt/format.h>

#include <poise/tiny_llama.hpp>

#include "bytes/number_text.hpp"
#include "cli/values.hpp"
#include "io/hub_cache.hpp"
#include "ops/option_words.hpp"

namespace poise::cli {
namespace {

int parse_compress(const std::string& text) {
  if (const auto level = zstd_level_from(text)) return *level;
  refuse("--compress", text, "zstd or zstd:LEVEL");
}

// A number after the last colon is a scale.
LoraAdapter parse_lora(const std::string& text) {
  if (text.empty()) refuse("--lora", text, "PATH or PATH:SCALE");
  const auto colon = text.rfind(':');
  if (std::error_code error; std::filesystem::exists(text, error)) return {text, 1};
  const auto scale =
      colon == std::string::npos ? std::nullopt : number_from<double>(std::string_view(text).substr(colon + 1));
  if (!scale || colon == 0) return {path_of_model(text), 1};
  return {path_of_model(text.substr(0, colon)), *scale};
}

}  // namespace

void add_io_option(CLI::App& command, ReadOptions& options) {
  add_choice<IoMode, IoMode>(
      command, "--io", options.io, {{"map", IoMode::map}, {"read", IoMode::read}},
      "How files are read: map borrows the page cache; read copies, and survives files that shrink meanwhile")
      ->default_str("map");
}

void add_lora_option(CLI::App& command, std::vector<LoraAdapter>& adapters) {
  const auto add = [&adapters](const std::vector<std::string>& texts) {
    for (const std::string& text : texts) adapters.push_back(parse_lora(text));
  };
  command
      .add_option_function<std::vector<std::string>>(
          "--lora", add, "Merge an adapter (a PEFT directory or GGUF file), scaled by SCALE; may be repeated")
      ->type_name("PATH[:SCALE]")
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

void add_raw_option(CLI::App& command, ReadOptions& options) {
  command.add_flag("--raw", options.raw,
                   "Keep the tensors of a quantized directory as they are stored, in place of one tensor per matrix");
}

void add_storage_options(CLI::App& command, WriteOptions& options) {
  constexpr const char* kGroup = "Storage";
  const auto with_formats = [](std::string_view text, FunctionRef<bool(const HonouredOptions&)> has) {
    return fmt::format("{} ({})", text, format_names([&](const Format& format) { return has(format.options); }));
  };
  const auto set_compress = [&options](const std::string& text) { options.zstd_level = parse_compress(text); };
  command
      .add_option_function<std::string>("--compress", set_compress,
                                        with_formats("Compress every part; the level is 3 unless given",
                                                     [](const HonouredOptions& has) { return has.zstd_level; }))
      ->type_name("zstd[:LEVEL]")
      ->group(kGroup);
  add_choice<std::optional<DigestAlgorithm>, DigestAlgorithm>(
      command, "--digest", options.digest,
      {{"sha256", DigestAlgorithm::sha256},
       {"xxh3", DigestAlgorithm::xxh3},
       {"crc32c", DigestAlgorithm::crc32c},
       {"none", DigestAlgorithm::none}},
      "Digest of every part; zt: xxh3 (default), sha256; zt1: sha256 (default), crc32c")
      ->group(kGroup);
  add_size(command, "--align", options.align,
           fmt::format("Begin every part at a multiple of this many bytes, a power of two ({})", alignments()))
      ->group(kGroup);
  add_size(
      command, "--shard-size", options.shard_size,
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
  auto* vocab = command.add_option("--vocab", files.vocab, "vocab.txt: one token per line, perhaps with its id")
                    ->check(not_empty())
                    ->type_name("FILE")
                    ->group(kGroup);
  auto* merges = command
                     .add_option("--merges", files.merges,
                                 "merges.txt: two tokens per line, in the order in which they are merged")
                     ->check(not_empty())
                     ->type_name("FILE")
                     ->group(kGroup);
  vocab->needs(merges);
  merges->needs(vocab);
}

namespace {

void append_after(std::string& text, std::string_view separator, std::string_view more) {
  if (!text.empty()) text += separator;
  text += more;
}

}  // namespace

std::string format_list() {
  std::string text = "Formats:\n";
  for (const FormatInfo& format : formats()) {
    const char* access = format.readable && format.writable ? "read, write" : format.readable ? "read" : "write";
    text += fmt::format("  {:<14}{:<14}{}\n", format.name, access, format.description);
  }
  return text;
}

std::string format_names(FunctionRef<bool(const Format&)> is_meant) {
  std::string names;
  for (const Format* format : all_formats()) {
    if (is_meant(*format)) append_after(names, ", ", format->info.name);
  }
  return names;
}

std::string alignments() {
  std::string text;
  for (const Format* format : all_formats()) {
    const auto& align = format->options.align;
    if (align)
      append_after(text, "; ",
                   fmt::format("{}: at least {}, default {}", format->info.name, align->least, align->usual));
  }
  return text;
}

}  // namespace poise::cli
