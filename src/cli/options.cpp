#include "cli/options.hpp"

#include <charconv>
#include <map>
#include <string>

#include <fmt/format.h>

#include <poise/tiny_llama.hpp>

namespace poise::cli {
namespace {

constexpr int kUsualZstdLevel = 3;  // the zstd tool's own

// "zstd" or "zstd:LEVEL".
int parse_compress(const std::string& text) {
  constexpr std::string_view kName = "zstd";
  if (text == kName) return kUsualZstdLevel;
  int level = 0;
  const char* const end = text.data() + text.size();
  const bool named = text.starts_with("zstd:");
  const auto [stop, error] = std::from_chars(named ? text.data() + kName.size() + 1 : end, end, level);
  if (!named || error != std::errc() || stop != end) throw CLI::ValidationError("--compress", fmt::format("\"{}\": expected zstd or zstd:LEVEL", text));
  return level;
}

}  // namespace

void add_io_option(CLI::App& command, ReadOptions& options) {
  static const std::map<std::string, IoMode> kModes{{"map", IoMode::map}, {"read", IoMode::read}};
  command.add_option("--io", options.io, "How files are read: map borrows the page cache; read copies, and survives files that shrink meanwhile")
      ->transform(CLI::CheckedTransformer(kModes).description(""))
      ->type_name("map|read")
      ->default_str("map");
}

void add_storage_options(CLI::App& command, WriteOptions& options) {
  static const std::map<std::string, DigestAlgorithm> kDigests{
      {"sha256", DigestAlgorithm::sha256}, {"crc32c", DigestAlgorithm::crc32c}, {"xxh3", DigestAlgorithm::xxh3}, {"none", DigestAlgorithm::none}};
  constexpr const char* kGroup = "Storage (zt, zt1)";
  const auto set_compress = [&options](const std::string& text) { options.zstd_level = parse_compress(text); };
  command.add_option_function<std::string>("--compress", set_compress, "Compress every part; the level is 3 unless given")
      ->type_name("zstd[:LEVEL]")
      ->group(kGroup);
  command.add_option("--digest", options.digest, "Digest of every part; zt: xxh3 (default), sha256; zt1: sha256 (default), crc32c")
      ->transform(CLI::CheckedTransformer(kDigests).description(""))
      ->type_name("sha256|xxh3|crc32c|none")
      ->group(kGroup);
  const auto add_size = [&](const std::string& name, auto& size, const std::string& what) {
    command.add_option(name, size, what)
        ->transform(CLI::AsSizeValue(true).description(""))
        ->transform(not_negative())  // which comes before that
        ->type_name("SIZE")
        ->group(kGroup);
  };
  add_size("--align", options.align, "Where parts begin: multiples of this many bytes, a power of two (zt; default 64KiB)");
  add_size("--shard-size", options.shard_size, "Spread the parts over files of at most this size, or of one part if that is larger (zt): 2GB, 500MiB");
}

CLI::Validator not_negative() {
  return CLI::Validator([](const std::string& text) { return text.starts_with('-') ? text + " is below 0" : std::string(); }, "");
}

std::optional<Vocabulary> TokenizerFiles::read() const {
  if (vocab.empty()) return std::nullopt;
  return read_tiny_llama_vocabulary(vocab, merges);
}

void add_tokenizer_options(CLI::App& command, TokenizerFiles& files) {
  constexpr const char* kGroup = "Tiny Llama";
  auto* vocab = command.add_option("--vocab", files.vocab, "vocab.txt: a token a line, perhaps with its id")->type_name("FILE")->group(kGroup);
  auto* merges =
      command.add_option("--merges", files.merges, "merges.txt: two tokens a line, in the order in which they are merged")->type_name("FILE")->group(kGroup);
  vocab->needs(merges);
  merges->needs(vocab);
}

}  // namespace poise::cli
