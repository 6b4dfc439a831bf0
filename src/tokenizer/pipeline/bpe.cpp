// Implements byte pair encoding by a list of merges, as in tokenizer.json:
//
//   1. Cut the piece into characters. Each becomes its token, its bytes (byte_fallback), or the unknown token.
//   2. Merge the neighbours of the lowest rank, the leftmost of equal ones, until no two neighbours merge.
//
// An encoder caches the answers of merges.hpp for pairs.
//
// A piece may be long: a whole text if no pre-tokenizer cuts at words (Gemma), or a sentence of a script without
// spaces. The encoder cuts such a piece at boundaries (tokens/token_boundaries.hpp). The tokens stay the same, and
// WordCache can hold the short runs.
#include <algorithm>
#include <array>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/utf8.hpp"
#include "tokenizer/pipeline/merges.hpp"
#include "tokenizer/pipeline/models.hpp"
#include "tokenizer/tokens/merge.hpp"
#include "tokenizer/tokens/token_boundaries.hpp"
#include "tokenizer/tokens/unicode.hpp"

namespace poise {
namespace {

class Bpe final : public PieceModel {
 public:
  Bpe(const Fields& fields, const ModelContext& context)
      : vocabulary_(context.vocabulary),
        ids_(context.ids),
        prefix_(fields.read_text("continuing_subword_prefix", "")),
        suffix_(fields.read_text("end_of_word_suffix", "")),
        fuse_unknown_(fields.read_boolean("fuse_unk", false)),
        byte_fallback_(fields.read_boolean("byte_fallback", false)),
        ignore_merges_(fields.read_boolean("ignore_merges", false)),
        merges_(fields, vocabulary_, ids_, prefix_) {
    if (const auto unknown = fields.read_text("unk_token")) {
      // A file may name an unknown token that it does not have, as long as no text needs it.
      unknown_ = context.ids.find(*unknown).value_or(kNoToken);
      unknown_named_ = true;
    }
    random_ = read_dropout(fields) != 0;
    bytes_.fill(kNoToken);
    for (unsigned byte = 0; byte < 256 && byte_fallback_; ++byte)
      bytes_[byte] = ids_.find(fmt::format("<0x{:02X}>", byte)).value_or(kNoToken);
    fill_characters();
    const bool knows_all = has_tokens_for_all_texts();
    cuts_ = prefix_.empty() && suffix_.empty() && (!unknown_named_ || !fuse_unknown_ || knows_all);
    cuts_ = cuts_ && !(byte_fallback_ && merges_.has_bytes());
    // fill_symbols() may put an unknown token after the bytes of later characters, so that a cut would change the
    // result.
    cuts_ = cuts_ && (!unknown_named_ || knows_all || !has_any_byte_token());
    vanish_ = !unknown_named_ && !knows_all;
  }

  std::unique_ptr<PieceEncoder> make_encoder() const override;

 private:
  class Encoder;

  static double read_dropout(const Fields& fields) {
    const auto* number = fields.get_if<double>("dropout");
    return number == nullptr ? 0 : *number;
  }

  // Looks up the characters below U+0800 in advance, because they are the most frequent ones.
  void fill_characters() {
    characters_.fill(kNoToken);
    std::string text;
    for (std::size_t code = 0; code < characters_.size(); ++code) {
      text.clear();
      append_utf8(text, static_cast<char32_t>(code));
      characters_[code] = ids_.find(text).value_or(kNoToken);
    }
  }

  TokenId find_id(char32_t code, std::string_view bytes) const {
    return code < characters_.size() ? characters_[code] : ids_.find(bytes).value_or(kNoToken);
  }

  // Returns true when each byte has a token, so that every character has tokens. For a byte
  // below 0x80, the token of its character suffices.
  bool has_tokens_for_all_texts() const {
    for (std::size_t byte = 0; byte < bytes_.size(); ++byte) {
      if (bytes_[byte] == kNoToken && (byte >= 0x80 || characters_[byte] == kNoToken)) return false;
    }
    return true;
  }

  bool has_any_byte_token() const {
    return std::ranges::any_of(bytes_, [](TokenId token) { return token != kNoToken; });
  }

  // Returns true when each character of a text is a token. A character without a token may vanish, and then the
  // characters on both sides become neighbours.
  bool has_all_characters(std::string_view text) const {
    while (!text.empty()) {
      const auto next = unicode::decode(text, 0);
      if (find_id(next.code, text.substr(0, next.bytes)) == kNoToken) return false;
      text.remove_prefix(next.bytes);
    }
    return true;
  }

  // Returns true if most tokens are spelled in the alphabet of bytes. Looks at every 16th token, because a wrong answer
  // only makes encoding slower. Tokens for the alphabet's characters prove nothing: other large vocabularies have them.
  bool is_byte_level() const {
    constexpr std::size_t kStep = 16;
    std::size_t spelled = 0;
    std::size_t others = 0;
    for (std::size_t id = 0; id < vocabulary_.size(); id += kStep) {
      if (vocabulary_.type(id) == TokenType::normal)
        ++(TokenBoundaries::is_spelled_in_bytes(vocabulary_.text(id)) ? spelled : others);
    }
    return spelled > others;
  }

  // Returns the finder of places where a piece may be cut, because the tokens on each side do not depend on the other
  // side. Makes it on first use.
  const TokenBoundaries& get_boundaries() const {
    std::call_once(boundaries_found_, [this] {
      boundaries_.emplace(is_byte_level() ? TokenBoundaries::Unit::bytes : TokenBoundaries::Unit::characters);
      for (std::size_t id = 0; id < vocabulary_.size(); ++id) {
        const std::string_view text = vocabulary_.text(id);
        if (text.size() > 1 && ids_.is_found(static_cast<TokenId>(id))) boundaries_->add(text);
      }
    });
    return *boundaries_;
  }

  const Vocabulary& vocabulary_;
  const TokenIndex& ids_;
  std::string prefix_;
  std::string suffix_;
  bool fuse_unknown_;
  bool byte_fallback_;
  bool ignore_merges_;
  Merges merges_;
  bool random_ = false;
  TokenId unknown_ = kNoToken;
  bool unknown_named_ = false;
  std::array<TokenId, 256> bytes_{};
  std::array<TokenId, 0x800> characters_{};
  bool cuts_ = false;    // true if pieces may be cut at boundaries
  bool vanish_ = false;  // true if characters without a token are left out
  mutable std::once_flag boundaries_found_;
  mutable std::optional<TokenBoundaries> boundaries_;
};

class Bpe::Encoder final : public PieceEncoder {
 public:
  explicit Encoder(const Bpe& bpe) : of_(bpe) {
    if (bpe.random_)
      throw Error(ErrorKind::unsupported,
                  "tokenizer: model.dropout: expected 0, because dropout chooses tokens at random, for training");
  }

  void encode(std::string_view piece, std::vector<TokenId>& tokens) override {
    if (piece.size() <= kWord || !of_.cuts_ || (of_.vanish_ && !of_.has_all_characters(piece))) {
      return encode_word(piece, of_.ignore_merges_, cache_, tokens);
    }
    if (of_.ignore_merges_) {
      if (const auto id = of_.ids_.find(piece)) return tokens.push_back(*id);
    }
    of_.get_boundaries().for_each_run(
        piece, [&](std::string_view word) { encode_word(word, false, of_.ignore_merges_ ? parts_ : cache_, tokens); });
  }

 private:
  // Only pieces of more bytes are cut, because shorter ones rarely have boundaries.
  static constexpr std::size_t kWord = 24;

  // Encodes a word. With `whole`, a word that is a token becomes this token, even if merges would not make it.
  void encode_word(std::string_view word, bool whole, WordCache& cache, std::vector<TokenId>& tokens) {
    EncodingStop::check();
    const bool short_word = word.size() <= WordCache::kLongestWord;
    if (short_word) {
      if (const auto known = cache.find(word); !known.empty()) {
        tokens.insert(tokens.end(), known.begin(), known.end());
        return;
      }
    }
    const std::size_t before = tokens.size();
    append_merged(word, whole, tokens);
    if (short_word) cache.store(word, std::span(tokens).subspan(before));
  }

  void append_merged(std::string_view word, bool whole, std::vector<TokenId>& tokens) {
    if (whole) {
      if (const auto id = of_.ids_.find(word)) return tokens.push_back(*id);
    }
    symbols_.clear();
    fill_symbols(word);
    if (symbols_.size() < kFew) {
      merge_few();
    } else {
      merge_many();
    }
    tokens.insert(tokens.end(), symbols_.begin(), symbols_.end());
  }

  void fill_symbols(std::string_view word) {
    const bool affixes = !of_.prefix_.empty() || !of_.suffix_.empty();
    // Hugging Face's library adds an unknown token late: at the next character that has a token, at the next unknown
    // character if these are not fused, or at the end. Byte tokens that it adds until then come before this token.
    bool waits = false;
    std::string text;
    std::size_t at = 0;
    unicode::for_each_character(word, [&](char32_t code, std::string_view bytes) {
      TokenId id = kNoToken;
      std::string_view name = bytes;
      if (affixes) {
        text = at == 0 ? std::string() : of_.prefix_;
        text += bytes;
        if (at + bytes.size() == word.size()) text += of_.suffix_;
        name = text;
        id = of_.ids_.find(name).value_or(kNoToken);
      } else {
        id = of_.find_id(code, bytes);
      }
      at += bytes.size();
      if (id != kNoToken) {
        if (std::exchange(waits, false)) symbols_.push_back(of_.unknown_);
        symbols_.push_back(id);
      } else if (!of_.byte_fallback_ || !append_bytes(name)) {
        if (!becomes_unknown_token(name)) return;
        if (waits && !of_.fuse_unknown_) symbols_.push_back(of_.unknown_);
        waits = true;
      }
    });
    if (waits) symbols_.push_back(of_.unknown_);
  }

  bool append_bytes(std::string_view text) {
    const auto find_byte = [&](char byte) { return of_.bytes_[static_cast<unsigned char>(byte)]; };
    if (std::ranges::any_of(text, [&](char byte) { return find_byte(byte) == kNoToken; })) return false;
    for (const char byte : text) symbols_.push_back(find_byte(byte));
    return true;
  }

  // Returns true when text without tokens becomes the unknown token; false when it vanishes, because the model names no
  // such token. Throws unsupported if the vocabulary lacks the one that the model names.
  bool becomes_unknown_token(std::string_view text) const {
    if (of_.unknown_named_ && of_.unknown_ == kNoToken)
      throw Error(ErrorKind::unsupported, fmt::format("there is no token for \"{}\", and no unknown token", text));
    return of_.unknown_named_;
  }

  MergeTable::Merge find_merge(TokenId left, TokenId right) {
    if (const auto* known = pairs_.find(left, right)) return *known;
    const MergeTable::Merge merge = of_.merges_.find(left, right, buffer_);
    pairs_.add(left, right, merge);
    return merge;
  }

  // Merges by scanning all pairs for each merge, which is fastest for words.
  void merge_few() {
    std::array<MergeTable::Merge, kFew> pairs;
    std::size_t size = symbols_.size();
    for (std::size_t i = 0; i + 1 < size; ++i) pairs_.prefetch(symbols_[i], symbols_[i + 1]);
    for (std::size_t i = 0; i + 1 < size; ++i) pairs[i] = find_merge(symbols_[i], symbols_[i + 1]);
    while (size > 1) {
      std::size_t best = 0;
      for (std::size_t i = 1; i + 1 < size; ++i) {
        if (pairs[i].rank < pairs[best].rank) best = i;
      }
      if (pairs[best].rank == UINT32_MAX) break;
      symbols_[best] = pairs[best].merged;
      symbols_.erase(symbols_.begin() + static_cast<std::ptrdiff_t>(best) + 1);
      std::copy(pairs.begin() + static_cast<std::ptrdiff_t>(best) + 1,
                pairs.begin() + static_cast<std::ptrdiff_t>(size) - 1,
                pairs.begin() + static_cast<std::ptrdiff_t>(best));
      --size;
      if (best > 0) pairs[best - 1] = find_merge(symbols_[best - 1], symbols_[best]);
      if (best + 1 < size) pairs[best] = find_merge(symbols_[best], symbols_[best + 1]);
    }
  }

  // Merges with a heap of pairs, by rank and place. An entry is valid while the pair at its place has that rank.
  void merge_many() {
    constexpr std::uint32_t kNone = UINT32_MAX;
    if (symbols_.size() >= kNone)
      throw Error(ErrorKind::unsupported,
                  fmt::format("a piece of the text has {} characters, at most {} are encoded at once; divide the text",
                              symbols_.size(), kNone - 1));
    const auto size = static_cast<std::uint32_t>(symbols_.size());
    nodes_.resize(size);
    heap_.clear();
    for (std::uint32_t i = 0; i < size; ++i) {
      nodes_[i] = {i == 0 ? kNone : i - 1, i + 1 == size ? kNone : i + 1, {}};
      if (i + 1 < size) nodes_[i].pair = find_merge(symbols_[i], symbols_[i + 1]);
      if (nodes_[i].pair.rank != kNone) heap_.push_back(make_entry(i));
    }
    std::ranges::make_heap(heap_, std::greater());
    const auto update_pair = [&](std::uint32_t i) {
      Node& node = nodes_[i];
      node.pair = node.next == kNone ? MergeTable::Merge{} : find_merge(symbols_[i], symbols_[node.next]);
      if (node.pair.rank == kNone) return;
      heap_.push_back(make_entry(i));
      std::ranges::push_heap(heap_, std::greater());
    };
    while (!heap_.empty()) {
      std::ranges::pop_heap(heap_, std::greater());
      const auto rank = static_cast<std::uint32_t>(heap_.back() >> 32);
      const auto i = static_cast<std::uint32_t>(heap_.back());
      heap_.pop_back();
      Node& node = nodes_[i];
      if (node.pair.rank != rank) continue;
      const std::uint32_t gone = node.next;
      symbols_[i] = node.pair.merged;
      symbols_[gone] = kNoToken;
      nodes_[gone].pair = {};
      node.next = nodes_[gone].next;
      if (node.next != kNone) nodes_[node.next].previous = i;
      update_pair(i);
      if (node.previous != kNone) update_pair(node.previous);
    }
    std::erase(symbols_, kNoToken);
  }

  std::uint64_t make_entry(std::uint32_t i) const { return std::uint64_t{nodes_[i].pair.rank} << 32 | i; }

  static constexpr std::size_t kFew = 48;
  struct Node {
    std::uint32_t previous;
    std::uint32_t next;
    MergeTable::Merge pair;  // the pair with the next symbol
  };

  const Bpe& of_;
  WordCache cache_;
  WordCache parts_;  // for runs between boundaries with ignore_merges: as a whole piece, a run may have other tokens
  MergeTable pairs_;
  std::string buffer_;
  std::vector<TokenId> symbols_;
  std::vector<Node> nodes_;
  std::vector<std::uint64_t> heap_;
};

std::unique_ptr<PieceEncoder> Bpe::make_encoder() const { return std::make_unique<Encoder>(*this); }

}  // namespace

std::unique_ptr<const PieceModel> make_bpe(const Fields& fields, const ModelContext& context) {
  return std::make_unique<Bpe>(fields, context);
}

}  // namespace poise
