// Reads Tiny Llama's vocab.txt and merges.txt; files.hpp has the forms. Source: docs/formats/tiny-llama.md.
#include "tokenizer/files/files.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/text_table.hpp"
#include "io/source_range.hpp"
#include "model/limits.hpp"

namespace poise {
namespace {

constexpr std::array<std::string_view, 4> kSpecial = {"<unk>", "<pad>", "<bos>", "<eos>"};
constexpr std::array<TokenType, 4> kSpecialTypes = {TokenType::unknown, TokenType::pad, TokenType::bos, TokenType::eos};
constexpr std::uint64_t kIdsPerLine =
    16;  // ids may have gaps, but there may be at most this many ids for each line of the file

bool is_blank(char byte) { return byte == ' ' || byte == '\t'; }

// Reads a text file line by line. Its errors have the number and the offset of the current line.
class Lines {
 public:
  explicit Lines(const Source& source) : name_(source.name()) {
    check_vocabulary_size(source);
    text_ = read_text(source, source.size());
  }

  std::size_t count_lines() const { return static_cast<std::size_t>(std::ranges::count(text_, '\n')) + 1; }

  // Reads the next line that is not empty, without its end. Returns false at the end of the file.
  bool read_line(std::string_view& line) {
    while (end_ < text_.size()) {
      begin_ = end_;
      const std::size_t newline = std::min(text_.find('\n', begin_), text_.size());
      line = std::string_view(text_).substr(begin_, newline - begin_);
      if (line.ends_with('\r')) line.remove_suffix(1);
      end_ = newline + 1;
      ++number_;
      if (!line.empty()) return true;
    }
    return false;
  }

  [[noreturn]] void fail(std::string_view problem) const {
    throw Error(ErrorKind::invalid_file, fmt::format("line {}: {}", number_, problem), name_, begin_);
  }

 private:
  std::string name_;
  std::string text_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::size_t number_ = 0;
};

struct Entry {
  std::string_view token;
  std::optional<std::uint64_t> id;
  bool negative = false;  // true if a minus precedes the id; `id` is then std::nullopt
};

// Parses a token, perhaps followed by white space and its id. The token itself may contain white space.
Entry parse_entry(std::string_view line) {
  std::size_t digits = line.size();
  while (digits > 0 && line[digits - 1] >= '0' && line[digits - 1] <= '9') --digits;
  if (digits < line.size() && digits > 2 && line[digits - 1] == '-' && is_blank(line[digits - 2]))
    return {line.substr(0, digits - 2), std::nullopt, true};
  if (digits == line.size() || digits < 2 || !is_blank(line[digits - 1])) return {line, std::nullopt};
  std::uint64_t id = 0;
  const auto [stop, error] = std::from_chars(line.data() + digits, line.data() + line.size(), id);
  if (error != std::errc()) id = UINT64_MAX;
  return {line.substr(0, digits - 1), id};
}

class VocabularyReader {
 public:
  explicit VocabularyReader(const Source& source)
      : lines_(source), most_ids_(kSpecial.size() + kIdsPerLine * lines_.count_lines()) {
    for (const std::string_view token : kSpecial) place(token, tokens_.size());
  }

  // Returns the texts by id; an empty text means that there is no token. The texts live as long as this.
  const std::vector<std::string_view>& read() {
    std::uint64_t next = kSpecial.size();
    std::string_view line;
    while (lines_.read_line(line)) {
      const auto [token, id, negative] = parse_entry(line);
      if (negative) lines_.fail(fmt::format("the id of \"{}\" is below 0", token));
      if (is_special(token, id)) continue;
      const std::uint64_t where = id.value_or(next);
      if (where >= most_ids_)
        lines_.fail(fmt::format("the id of \"{}\" is far larger than the number of tokens", token));
      if (where >= kMaxTokens)
        lines_.fail(fmt::format("the id of \"{}\" is {}, at most {} tokens are allowed", token, where, kMaxTokens));
      place(token, where);
      next = where + 1;
    }
    return tokens_;
  }

 private:
  bool is_special(std::string_view token, const std::optional<std::uint64_t>& id) const {
    const auto special = std::ranges::find(kSpecial, token);
    if (special == kSpecial.end()) return false;
    const auto expected = static_cast<std::uint64_t>(special - kSpecial.begin());
    if (id.value_or(expected) != expected)
      lines_.fail(fmt::format("the id of {} is {}, found {}", token, expected, *id));
    return true;
  }

  void place(std::string_view token, std::uint64_t id) {
    const auto get_text_at = [this](std::uint32_t at) { return tokens_[at]; };
    if (const auto first = ids_.insert(token, static_cast<std::uint32_t>(id), get_text_at))
      lines_.fail(fmt::format("\"{}\" has the id {} already", token, *first));
    if (tokens_.size() <= id) tokens_.resize(static_cast<std::size_t>(id) + 1);
    std::string_view& at = tokens_[static_cast<std::size_t>(id)];
    if (!at.empty()) lines_.fail(fmt::format("the id {} of \"{}\" belongs to \"{}\"", id, token, at));
    at = token;
  }

  Lines lines_;
  std::uint64_t most_ids_;
  std::vector<std::string_view> tokens_;
  TextTable ids_;
};

}  // namespace

MergeList read_merges(const Source& source) {
  MergeList merges;
  Lines lines(source);
  std::string_view line;
  merges.reserve(std::min(lines.count_lines(), kMaxMerges), static_cast<std::size_t>(source.size()));
  while (lines.read_line(line)) {
    if (line.starts_with("#version")) continue;
    if (merges.size() == kMaxMerges) lines.fail(fmt::format("more than {} merges", kMaxMerges));
    const std::size_t space = std::min(line.find(' '), line.size());
    const std::string_view left = line.substr(0, space);
    const std::string_view right = space == line.size() ? std::string_view() : line.substr(space + 1);
    if (left.empty() || right.empty() || right.find(' ') != std::string_view::npos)
      lines.fail("expected two tokens with one space between them");
    merges.emplace_back(left, right);
  }
  return merges;
}

Vocabulary read_byte_pair_vocabulary(const Source& vocab, const Source& merges) {
  Vocabulary vocabulary;
  vocabulary.kind = VocabularyKind::byte_pair;
  vocabulary.add_dummy_prefix = false;
  vocabulary.unk_id = 0;
  vocabulary.pad_id = 1;
  vocabulary.bos_id = 2;
  vocabulary.eos_id = 3;
  VocabularyReader reader(vocab);
  const std::vector<std::string_view>& tokens = reader.read();
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    vocabulary.add(tokens[id], 0, id < kSpecialTypes.size() ? kSpecialTypes[id] : TokenType::normal);
  }
  vocabulary.merges = read_merges(merges);
  return vocabulary;
}

}  // namespace poise
