// Implements Tiny Llama's byte pair encoding (docs/formats/tiny-llama.md): converts ASCII letters to lower case, and
// tabs and newlines to spaces. Every white-space byte is a piece of its own. The bytes between them merge, the
// lowest rank first. A piece that is not a token becomes the unknown token. Decoding concatenates the tokens' texts.
#include <unordered_map>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/utf8.hpp"
#include "tokenizer/kinds.hpp"
#include "tokenizer/tokens/merge.hpp"
#include "tokenizer/tokens/token_index.hpp"
#include "tokenizer/tokens/token_types.hpp"

namespace poise {
namespace {

char normalize(char byte) { return byte == '\t' || byte == '\n' ? ' ' : to_lower_ascii(byte); }

// Concatenates the texts of tokens. Leaves out control tokens, BOS, EOS and padding, unless `special` is shown.
class BytePairDecoder final : public TextDecoder {
 public:
  BytePairDecoder(const Vocabulary& vocabulary, const std::vector<TokenDisplay>& displays, SpecialTokens special)
      : vocabulary_(vocabulary), displays_(displays), special_(special) {}

  void add(TokenId token, std::string& text) override {
    const auto id = static_cast<std::size_t>(token);
    if (displays_[id] != TokenDisplay::invisible || special_ == SpecialTokens::shown) text += vocabulary_.text(id);
  }
  void finish(std::string&) override {}

 private:
  const Vocabulary& vocabulary_;
  const std::vector<TokenDisplay>& displays_;
  SpecialTokens special_;
};

class BytePair final : public TokenScheme {
 public:
  explicit BytePair(const Vocabulary& vocabulary)
      : TokenScheme(vocabulary), displays_(find_token_displays(vocabulary)), ids_(vocabulary, {}) {
    double rank = 0;
    for (const auto& [left, right] : vocabulary.merges) ranks_.emplace(Pair{left, right}, rank++);
  }

  std::vector<TokenId> encode(std::string_view text) const override {
    check_normalizer_has_rules(vocabulary_);
    std::string normalized(text);
    for (char& byte : normalized) byte = normalize(byte);
    std::vector<TokenId> tokens;
    std::vector<Symbol> word;
    const auto end_word = [&] {
      for (const std::string_view piece :
           merge_symbols(std::move(word), [this](auto left, auto right) { return find_priority(left, right); })) {
        tokens.push_back(find_piece(piece));
      }
      word.clear();
    };
    const std::string_view view = normalized;
    for (std::size_t i = 0; i < view.size(); ++i) {
      if (!is_ascii_space(view[i])) {
        word.push_back({view.substr(i, 1)});
        continue;
      }
      end_word();
      tokens.push_back(find_piece(view.substr(i, 1)));
    }
    end_word();
    return tokens;
  }

  std::unique_ptr<TextDecoder> make_decoder(SpecialTokens special) const override {
    return std::make_unique<BytePairDecoder>(vocabulary_, displays_, special);
  }

 private:
  using Pair = std::pair<std::string_view, std::string_view>;
  struct Hash {
    std::size_t operator()(const Pair& pair) const {
      const std::hash<std::string_view> hash;
      return hash(pair.first) * 31 + hash(pair.second);
    }
  };

  std::optional<double> find_priority(std::string_view left, std::string_view right) const {
    const auto found = ranks_.find(Pair{left, right});
    if (found == ranks_.end()) return std::nullopt;
    return -found->second;
  }

  TokenId find_piece(std::string_view piece) const {
    const TokenId id = ids_.find(piece).value_or(vocabulary_.unk_id);
    if (id < 0)
      throw Error(ErrorKind::unsupported, fmt::format("there is no token for \"{}\", and no unknown token", piece));
    return id;
  }

  std::vector<TokenDisplay> displays_;
  TokenIndex ids_;
  std::unordered_map<Pair, double, Hash> ranks_;
};

}  // namespace

std::unique_ptr<const TokenScheme> make_byte_pair(const Vocabulary& vocabulary) {
  return std::make_unique<BytePair>(vocabulary);
}

}  // namespace poise
