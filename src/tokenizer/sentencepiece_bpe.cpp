// SentencePiece's byte pair encoding, step by step; sentencepiece_decoder.hpp tells how it decodes:
//
//   1. Normalize: malformed bytes become U+FFFD, spaces U+2581, one more U+2581 goes in front; superfluous spaces are
//      removed if the vocabulary says so.
//   2. Cut into characters; user-defined tokens are cut out whole, the longest first, and never merge.
//   3. Merge neighbours whose concatenation is a token, the highest score first. Unused tokens take part, too.
//   4. Split what ended as an unused token into the two it was last merged from, and so on down.
//   5. Look up what is left; what is no token becomes its bytes, or the unknown token once for each run.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <unordered_map>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/utf8.hpp"
#include "tokenizer/byte_piece.hpp"
#include "tokenizer/kinds.hpp"
#include "tokenizer/merge.hpp"
#include "tokenizer/sentencepiece_decoder.hpp"
#include "tokenizer/token_index.hpp"

namespace poise {
namespace {

// Finds the longest of some texts that another text starts with.
class PrefixMatcher {
 public:
  void add(std::string_view text) {
    if (!text.empty()) sorted_.push_back(text);
  }
  void finish() {
    std::sort(sorted_.begin(), sorted_.end());
    sorted_.erase(std::unique(sorted_.begin(), sorted_.end()), sorted_.end());
  }

  // Its length, 0 for none.
  std::size_t match(std::string_view text) const {
    std::size_t longest = 0;
    auto first = sorted_.begin();
    auto last = sorted_.end();
    for (std::size_t depth = 0; depth < text.size() && first != last; ++depth) {
      const auto byte = static_cast<unsigned char>(text[depth]);
      // In [first, last) all begin with text[0, depth); the one that ends there sorts first and is done.
      if (first->size() == depth) ++first;
      const auto at = [depth](std::string_view candidate) { return static_cast<unsigned char>(candidate[depth]); };
      first = std::partition_point(first, last, [&](std::string_view candidate) { return at(candidate) < byte; });
      last = std::partition_point(first, last, [&](std::string_view candidate) { return at(candidate) == byte; });
      if (first != last && first->size() == depth + 1) longest = depth + 1;
    }
    return longest;
  }

 private:
  std::vector<std::string_view> sorted_;
};

class SentencePieceBpe final : public SentencePieceScheme {
 public:
  explicit SentencePieceBpe(const Vocabulary& vocabulary) : SentencePieceScheme(vocabulary), pieces_(vocabulary), reserved_(vocabulary) {
    bytes_.fill(-1);
    for (std::size_t id = 0; id < vocabulary.size(); ++id) add(static_cast<TokenId>(id));
    user_defined_.finish();
    byte_fallback_ = std::find(bytes_.begin(), bytes_.end(), -1) == bytes_.end();
  }

  std::vector<TokenId> encode(std::string_view text) const override {
    require_identity(vocabulary_);
    const std::string normalized = normalize(text);
    // The two tokens that an unused one was last merged from, as the length of the left one.
    std::unordered_map<std::string_view, std::size_t> splits;
    const auto priority = [&](std::string_view left, std::string_view right) -> std::optional<double> {
      const std::string_view both(left.data(), left.size() + right.size());
      if (both.size() > longest_) return std::nullopt;
      const auto found = pieces_.find(both);
      if (!found) return std::nullopt;
      if (vocabulary_.type(static_cast<std::size_t>(*found)) == TokenType::unused) splits[both] = left.size();
      return score(*found);
    };
    Output output(*this);
    for (const std::string_view piece : merge_symbols(cut(normalized), priority)) resegment(piece, splits, output);
    return std::move(output.tokens);
  }

 private:
  // Collects ids; a run of unknown characters is one unknown token.
  struct Output {
    explicit Output(const SentencePieceBpe& encoder_) : encoder(encoder_) {}

    void add(std::string_view piece, TokenId id) {
      const bool unknown = id == encoder.vocabulary_.unk_id;
      if (unknown && encoder.byte_fallback_) {
        for (const char byte : piece) tokens.push_back(encoder.bytes_[static_cast<unsigned char>(byte)]);
      } else if (unknown && id < 0) {
        throw Error(ErrorKind::unsupported, fmt::format("there is no token for \"{}\", and neither byte tokens nor an unknown token", piece));
      } else if (!unknown || !after_unknown) {
        tokens.push_back(id);
      }
      after_unknown = unknown;
    }

    const SentencePieceBpe& encoder;
    std::vector<TokenId> tokens;
    bool after_unknown = false;
  };

  void add(TokenId id) {
    const std::string_view text = vocabulary_.text(static_cast<std::size_t>(id));
    switch (vocabulary_.type(static_cast<std::size_t>(id))) {
      case TokenType::user_defined: user_defined_.add(text); [[fallthrough]];
      case TokenType::normal:
      case TokenType::unused:
        pieces_.add(id);
        longest_ = std::max(longest_, text.size());
        return;
      case TokenType::byte:
        if (TokenId& byte = bytes_[*byte_of_piece(text)]; byte < 0) byte = id;
        [[fallthrough]];
      case TokenType::control:
      case TokenType::unknown:
      case TokenType::bos:
      case TokenType::eos:
      case TokenType::pad: reserved_.add(id); return;
    }
  }

  double score(TokenId id) const {
    const float score = vocabulary_.score(static_cast<std::size_t>(id));
    return std::isnan(score) ? -std::numeric_limits<double>::infinity() : static_cast<double>(score);
  }

  // As SentencePiece has it: names of control, unknown and byte tokens go first.
  TokenId find(std::string_view piece) const {
    if (const auto found = reserved_.find(piece)) return *found;
    return pieces_.find(piece).value_or(vocabulary_.unk_id);
  }

  std::string normalize(std::string_view text) const {
    std::string out;
    while (vocabulary_.remove_extra_whitespaces && text.starts_with(' ') && user_defined_.match(text) <= 1) text.remove_prefix(1);
    if (text.empty()) return out;
    out.reserve(text.size() + text.size() / 4);
    if (vocabulary_.add_dummy_prefix) out += kSpaceSymbol;
    bool after_space = vocabulary_.remove_extra_whitespaces;
    while (!text.empty()) {
      std::size_t length = user_defined_.match(text);
      std::string_view chunk = text.substr(0, length);
      if (length == 0) {
        length = character_length(text);
        chunk = length == 0 ? kReplacementCharacter : text.substr(0, length);
        length = std::max<std::size_t>(length, 1);
      }
      append_chunk(chunk, after_space, out);
      text.remove_prefix(length);
    }
    if (vocabulary_.remove_extra_whitespaces) {
      while (out.ends_with(kSpaceSymbol)) out.resize(out.size() - kSpaceSymbol.size());
    }
    return out;
  }

  void append_chunk(std::string_view chunk, bool& after_space, std::string& out) const {
    while (after_space && chunk.starts_with(' ')) chunk.remove_prefix(1);
    if (chunk.empty()) return;
    for (const char byte : chunk) {
      if (byte == ' ') {
        out += kSpaceSymbol;
      } else {
        out += byte;
      }
    }
    after_space = vocabulary_.remove_extra_whitespaces && chunk.ends_with(' ');
  }

  std::vector<Symbol> cut(std::string_view text) const {
    std::vector<Symbol> symbols;
    symbols.reserve(text.size());
    while (!text.empty()) {
      std::size_t length = user_defined_.match(text);
      const bool frozen = length > 0;
      if (!frozen) length = std::min(announced_length(text.front()), text.size());
      symbols.push_back({text.substr(0, length), frozen});
      text.remove_prefix(length);
    }
    return symbols;
  }

  void resegment(std::string_view piece, const std::unordered_map<std::string_view, std::size_t>& splits, Output& output) const {
    std::vector<std::string_view> stack = {piece};
    while (!stack.empty()) {
      const std::string_view top = stack.back();
      stack.pop_back();
      const TokenId id = find(top);
      const bool unused = id >= 0 && vocabulary_.type(static_cast<std::size_t>(id)) == TokenType::unused;
      const auto split = unused ? splits.find(top) : splits.end();
      if (split == splits.end()) {
        output.add(top, id);
      } else {
        stack.push_back(top.substr(split->second));
        stack.push_back(top.substr(0, split->second));
      }
    }
  }

  TokenIndex pieces_;    // what merging can make
  TokenIndex reserved_;  // what is never matched in text
  PrefixMatcher user_defined_;
  std::array<TokenId, 256> bytes_{};
  bool byte_fallback_ = false;
  std::size_t longest_ = 0;  // bytes of the longest token that merging can make
};

}  // namespace

std::unique_ptr<const TokenScheme> make_sentencepiece_bpe(const Vocabulary& vocabulary) { return std::make_unique<SentencePieceBpe>(vocabulary); }

}  // namespace poise
