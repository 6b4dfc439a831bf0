// Splits the names of models as gguf-py/gguf/metadata.py of llama.cpp v0.5.0 does:
//
//   [organization/]basename-size-finetune-version
//
// Examples are "Mixtral-8x7B-Instruct-v0.1" and "Qwen2.5-0.5B-Instruct". Hyphens separate pieces. The form of a piece
// shows to which part it belongs.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "bytes/number_text.hpp"
#include "bytes/utf8.hpp"
#include "formats/gguf/metadata.hpp"

namespace poise::gguf {
namespace {

enum : unsigned { kBasename = 1, kSize = 2, kFinetune = 4, kVersion = 8, kType = 16 };

struct Piece {
  std::string text;
  unsigned kinds = 0;
};

bool is_letter(char c) { return is_ascii_letter(c) || (static_cast<unsigned char>(c) & 0x80U) != 0; }

// Matches patterns at the front of a text in small letters.
class Pattern {
 public:
  explicit Pattern(std::string_view text) : rest_(text) {}

  bool is_at_end() const { return rest_.empty(); }
  bool skip(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  bool skip_digits() {
    const std::size_t count = std::min(rest_.find_first_not_of("0123456789"), rest_.size());
    rest_.remove_prefix(count);
    return count > 0;
  }
  bool skip_one_of(std::string_view characters) {
    if (rest_.empty() || characters.find(rest_.front()) == std::string_view::npos) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool skip_word_character() {
    if (rest_.empty() || !(is_letter(rest_.front()) || is_ascii_digit(rest_.front()) || rest_.front() == '_'))
      return false;
    rest_.remove_prefix(1);
    return true;
  }

 private:
  std::string_view rest_;
};

// Returns true for (v|iter)?\d+([.]\d+)*
bool is_version(const std::string& small) {
  Pattern version(small);
  if (!version.skip("v")) version.skip("iter");
  if (!version.skip_digits()) return false;
  while (version.skip(".")) {
    if (!version.skip_digits()) return false;
  }
  return version.is_at_end();
}

// Returns true for i?q\d(_\w)*|b?fp?(16|32)
bool is_type_name(const std::string& small) {
  Pattern blocks(small);
  blocks.skip("i");
  if (blocks.skip("q") && blocks.skip_one_of("0123456789")) {
    while (blocks.skip("_")) {
      if (!blocks.skip_word_character()) return false;
    }
    return blocks.is_at_end();
  }
  Pattern floats(small);
  floats.skip("b");
  if (!floats.skip("f")) return false;
  floats.skip("p");
  return (floats.skip("16") || floats.skip("32")) && floats.is_at_end();
}

// Returns true for (a|\d+x)?\d+([._]\d+)?[kmbt]\d?
bool is_counted_size(const std::string& small) {
  const auto rest_matches = [](Pattern pattern) {
    if (!pattern.skip_digits()) return false;
    if (pattern.skip_one_of("._") && !pattern.skip_digits()) return false;
    if (!pattern.skip_one_of("kmbt")) return false;
    pattern.skip_one_of("0123456789");
    return pattern.is_at_end();
  };
  Pattern experts(small);
  if (experts.skip("a")) return rest_matches(experts);
  if (experts.skip_digits() && experts.skip("x") && rest_matches(experts)) return true;
  return rest_matches(Pattern(small));
}

bool is_size(const std::string& small) {
  constexpr std::string_view kWords[] = {"small", "mini", "medium", "large", "xl", "xxl"};
  return is_counted_size(small) || std::ranges::find(kWords, small) != std::end(kWords);
}

// Returns the number in front of the last character, times 1000 to the power of the character's place in " KMBT" (-1 if
// it is not there); std::nullopt if there is no number.
std::optional<double> parse_parameters(const std::string& size) {
  const auto number = parse_number_text<double>(std::string_view(size).substr(0, size.size() - 1));
  if (!number) return std::nullopt;
  const std::size_t power = std::string_view(" KMBT").find(size.back());
  return *number * std::pow(1000.0, power == std::string_view::npos ? -1.0 : static_cast<double>(power));
}

void normalize_size(Piece& piece, std::uint64_t parameters) {
  std::string& text = piece.text;
  std::ranges::replace(text, '_', '.');
  if (is_ascii_digit(text.back()))  // "7b1" becomes "7.1b"
    text = text.substr(0, text.size() - 2) + "." + text.back() + text[text.size() - 2];
  if (text.size() > 1 && is_ascii_digit(text[text.size() - 2])) text.back() = to_upper_ascii(text.back());
  if (parameters != 0) {
    const auto said = parse_parameters(text);
    const auto count = static_cast<double>(parameters);
    if (said && std::abs(*said - count) > std::floor(7 * count / 8)) {  // probably the length of a context, such as 32k
      piece.kinds |= kFinetune;
      text.back() = to_lower_ascii(text.back());
    }
  }
  if (piece.kinds == 0) piece.kinds = kSize;
}

std::vector<Piece> split_into_pieces(std::string_view name, std::uint64_t parameters) {
  std::vector<Piece> pieces;
  while (!name.empty()) {
    const std::size_t hyphen = std::min(name.find('-'), name.size());
    if (hyphen > 0) pieces.push_back({std::string(name.substr(0, hyphen))});
    name.remove_prefix(std::min(hyphen + 1, name.size()));
  }
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    Piece& piece = pieces[i];
    const std::string small = to_lower_ascii(piece.text);
    if (is_version(small)) {
      piece.kinds = kVersion;
    } else if (is_type_name(small)) {
      piece.kinds = kType;
      std::ranges::transform(piece.text, piece.text.begin(), to_upper_ascii);
    } else if (i > 0 && is_size(small)) {
      normalize_size(piece, parameters);
    } else if (i > 0 && (small == "chat" || small == "instruct" || small == "vision" || small == "lora")) {
      piece.kinds = kFinetune;
    }
  }
  return pieces;
}

// If a size has digits, words such as "large" are not sizes.
void unmark_size_words(std::vector<Piece>& pieces) {
  const auto has_number = [](const Piece& piece) {
    return (piece.kinds & kSize) != 0 && std::ranges::any_of(piece.text, is_ascii_digit);
  };
  if (std::ranges::none_of(pieces, has_number)) return;
  for (Piece& piece : pieces) {
    if (std::ranges::all_of(piece.text, is_letter)) piece.kinds &= ~unsigned{kSize};
  }
}

void mark_basename(std::vector<Piece>& pieces) {
  bool at_start = true;
  for (Piece& piece : pieces) {
    if (at_start && ((piece.kinds == 0 && is_letter(piece.text.front())) || (piece.kinds & kVersion) != 0)) {
      piece.kinds |= kBasename;
    } else {
      at_start = false;
      if (piece.kinds == 0) piece.kinds = kFinetune;
    }
  }
  // Removes versions from the end of the basename.
  for (std::size_t i = pieces.size(); i-- > 0;) {
    if ((pieces[i].kinds & kBasename) == 0 || pieces[i].kinds == kBasename) break;
    pieces[i].kinds &= ~unsigned{kBasename};
  }
}

std::string join_pieces(const std::vector<Piece>& pieces, unsigned kind, unsigned without = 0) {
  std::vector<std::string_view> texts;
  for (const Piece& piece : pieces) {
    if ((piece.kinds & kind) == 0 || (piece.kinds & without) != 0) continue;
    if (kind == kSize && std::ranges::find(texts, piece.text) != texts.end()) continue;
    texts.push_back(piece.text);
  }
  return fmt::format("{}", fmt::join(texts, "-"));
}

// Makes each letter that follows no letter a capital, unless the word has capitals, begins with a digit, is a version
// such as v0.1, or has letters beyond ASCII.
std::string capitalize_word(std::string word) {
  const bool has_capital = std::ranges::any_of(word, is_ascii_upper);
  const bool has_small = std::ranges::any_of(word, is_ascii_lower);
  const bool is_ascii = std::ranges::none_of(word, [](char c) { return (static_cast<unsigned char>(c) & 0x80U) != 0; });
  if (has_capital || !has_small || !is_ascii || is_ascii_digit(word.front())) return word;
  if (word.front() == 'v' && is_version(word)) return word;
  bool after_letter = false;
  for (char& c : word) {
    if (!after_letter) c = to_upper_ascii(c);
    after_letter = is_letter(c);
  }
  return word;
}

}  // namespace

NameParts parse_name(std::string_view id, std::uint64_t parameters) {
  NameParts parts;
  if (id.find(' ') != std::string_view::npos) {  // a sentence, not an id
    parts.name = id;
    return parts;
  }
  const std::size_t slash = id.find('/');
  if (slash != std::string_view::npos) {
    if (!id.starts_with('.')) parts.organization = id.substr(0, slash);
    id.remove_prefix(slash + 1);
  }
  parts.name = id;
  std::vector<Piece> pieces = split_into_pieces(id, parameters);
  unmark_size_words(pieces);
  mark_basename(pieces);
  parts.size_label = join_pieces(pieces, kSize);
  parts.finetune = join_pieces(pieces, kFinetune);
  parts.version = join_pieces(pieces, kVersion, kBasename);
  if (!parts.size_label.empty() || !parts.finetune.empty() || !parts.version.empty())
    parts.basename = join_pieces(pieces, kBasename);
  return parts;
}

std::string make_title(std::string_view name) {
  std::string text(name);
  std::ranges::replace(text, '-', ' ');
  std::string all;
  std::string word;
  text += ' ';
  for (const char c : text) {
    if (c != ' ' && c != '\t' && c != '\n' && c != '\r') {
      word += c;
    } else if (!word.empty()) {
      if (!all.empty()) all += ' ';
      all += capitalize_word(std::move(word));
      word.clear();
    }
  }
  return all;
}

}  // namespace poise::gguf
