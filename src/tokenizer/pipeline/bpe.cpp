// Byte pair encoding by a list of merges, as tokenizer.json has it:
//
//   1. Cut the piece into characters; each is a token, or its bytes are (byte_fallback), or it is unknown.
//   2. Merge neighbours, the pair of the lowest rank first, of equal ones the leftmost, until no pair merges.
//
// Merges come from the list, or from the tokens' scores where "merge_by_score" says so (GGUF, tekken.json): then two tokens merge whose texts
// together are a token's, the one of the highest score first.
//
// Where a file has no pre-tokenizer that cuts at words (Gemma), a piece is a whole text. It is cut between characters that no merge ever puts
// together, which changes nothing, and makes words of it that the cache knows.
#include <algorithm>
#include <array>
#include <optional>
#include <queue>
#include <string>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "tokenizer/pipeline/merge_table.hpp"
#include "tokenizer/pipeline/models.hpp"
#include "tokenizer/pipeline/score_merges.hpp"
#include "tokenizer/pipeline/unicode.hpp"
#include "tokenizer/pipeline/word_cache.hpp"

namespace poise {
namespace {

constexpr TokenId kNoToken = -1;

// Pairs of characters that are neighbours in some token. May say yes to others, too.
class Neighbours {
 public:
  void add(std::string_view text) {
    char32_t before = 0;
    bool first = true;
    unicode::for_each(text, [&](char32_t code, std::string_view) {
      if (!first) bits_[place(before, code) / 64] |= std::uint64_t{1} << place(before, code) % 64;
      before = code;
      first = false;
    });
  }
  bool contains(char32_t left, char32_t right) const { return (bits_[place(left, right) / 64] >> place(left, right) % 64 & 1) != 0; }

 private:
  static constexpr unsigned kLogBits = 22;
  static std::size_t place(char32_t left, char32_t right) {
    return static_cast<std::size_t>((std::uint64_t{left} << 21 | right) * 0x9E3779B97F4A7C15U >> (64 - kLogBits));
  }
  std::vector<std::uint64_t> bits_ = std::vector<std::uint64_t>((std::size_t{1} << kLogBits) / 64);
};

class Bpe final : public PieceModel {
 public:
  Bpe(const Fields& fields, const ModelContext& context)
      : vocabulary_(context.vocabulary),
        ids_(context.ids),
        prefix_(fields.text("continuing_subword_prefix", "")),
        suffix_(fields.text("end_of_word_suffix", "")),
        fuse_unknown_(fields.boolean("fuse_unk", false)),
        byte_fallback_(fields.boolean("byte_fallback", false)),
        ignore_merges_(fields.boolean("ignore_merges", false)) {
    if (const auto unknown = fields.optional_text("unk_token")) {
      // A file may name one that it does not have, as long as no text needs it.
      unknown_ = context.ids.find(*unknown).value_or(kNoToken);
      unknown_named_ = true;
    }
    random_ = dropout(fields) != 0;
    bytes_.fill(kNoToken);
    for (unsigned byte = 0; byte < 256 && byte_fallback_; ++byte) bytes_[byte] = ids_.find(fmt::format("<0x{:02X}>", byte)).value_or(kNoToken);
    read_characters();
    if (fields.boolean("merge_by_score", false)) {
      merge_by_score();
    } else {
      read_merges(fields);
    }
    find_neighbours();
  }

  std::unique_ptr<PieceEncoder> start() const override;

 private:
  class AtWork;

  static double dropout(const Fields& fields) {
    const Value* value = fields.find("dropout");
    const auto* number = value == nullptr ? nullptr : value->get_if<double>();
    return number == nullptr ? 0 : *number;
  }

  // The ids of characters below U+0800, which most texts are made of.
  void read_characters() {
    characters_.fill(kNoToken);
    std::string text;
    for (std::size_t code = 0; code < characters_.size(); ++code) {
      text.clear();
      unicode::append(text, static_cast<char32_t>(code));
      characters_[code] = ids_.find(text).value_or(kNoToken);
    }
  }

  TokenId id_of(char32_t code, std::string_view bytes) const { return code < characters_.size() ? characters_[code] : ids_.find(bytes).value_or(kNoToken); }

  // GGUF files list merges of texts that are no tokens; "skip_unknown_merges" passes over them.
  void read_merges(const Fields& fields) {
    const bool skip_unknown = fields.boolean("skip_unknown_merges", false);
    merges_.reserve(vocabulary_.merges.size());
    std::string both;
    std::uint32_t rank = 0;
    for (const auto& [left, right] : vocabulary_.merges) {
      if (right.size() < prefix_.size()) fields.fail("merges", fmt::format("\"{}\" is shorter than the prefix of tokens that go on", right));
      (both = left).append(right, prefix_.size());
      const auto left_id = ids_.find(left);
      const auto right_id = ids_.find(right);
      const auto merged = ids_.find(both);
      if (skip_unknown && (!left_id || !right_id || !merged)) {
        ++rank;
        continue;
      }
      if (!left_id || !right_id || !merged) fields.fail("merges", fmt::format("\"{}\" is no token", !left_id ? left : !right_id ? right : both));
      merges_.set(*left_id, *right_id, {rank++, *merged});
      note_merge(*left_id, *right_id);
    }
  }

  void merge_by_score() {
    for_each_score_merge(vocabulary_, ids_, [this](const ScoreMerge& merge) {
      merges_.set(merge.left, merge.right, {merge.rank, merge.merged});
      note_merge(merge.left, merge.right);
    });
  }

  void note_merge(TokenId left, TokenId right) {
    if (!byte_fallback_) return;
    const auto is_byte = [&](TokenId id) {
      return vocabulary_.text(static_cast<std::size_t>(id)).starts_with("<0x") && std::ranges::find(bytes_, id) != bytes_.end();
    };
    bytes_merge_ = bytes_merge_ || is_byte(left) || is_byte(right);
  }

  // Where a piece may be cut: nothing may depend on what is on the other side.
  void find_neighbours() {
    const bool all_bytes = std::ranges::find(bytes_, kNoToken) == bytes_.end();
    cuts_ = prefix_.empty() && suffix_.empty() && !bytes_merge_ && !ignore_merges_ && (all_bytes || !unknown_named_ || !fuse_unknown_);
    if (!cuts_) return;
    for (std::size_t id = 0; id < vocabulary_.size(); ++id) {
      const std::string_view text = vocabulary_.text(id);
      if (text.size() > 1 && ids_.find(text) == static_cast<TokenId>(id)) neighbours_.add(text);
    }
  }

  const Vocabulary& vocabulary_;
  const TokenIndex& ids_;
  std::string prefix_;
  std::string suffix_;
  bool fuse_unknown_;
  bool byte_fallback_;
  bool ignore_merges_;
  bool random_ = false;
  TokenId unknown_ = kNoToken;
  bool unknown_named_ = false;
  std::array<TokenId, 256> bytes_{};
  std::array<TokenId, 0x800> characters_{};
  MergeTable merges_;
  bool bytes_merge_ = false;  // do tokens of bytes merge?
  bool cuts_ = false;
  Neighbours neighbours_;
};

class Bpe::AtWork final : public PieceEncoder {
 public:
  explicit AtWork(const Bpe& of) : of_(of) {
    if (of.random_) throw Error(ErrorKind::unsupported, "tokenizer: model.dropout: it makes tokens at random, which is for training");
  }

  void encode(std::string_view piece, std::vector<TokenId>& tokens) override {
    if (piece.size() > WordCache::kLongestWord && of_.cuts_) return cut(piece, tokens);
    encode_word(piece, tokens);
  }

 private:
  // Between characters that never become one token.
  void cut(std::string_view piece, std::vector<TokenId>& tokens) {
    std::size_t begin = 0;
    char32_t before = unicode::at(piece, 0).code;
    for (std::size_t at = unicode::at(piece, 0).bytes; at < piece.size();) {
      const auto next = unicode::at(piece, at);
      if (!of_.neighbours_.contains(before, next.code)) {
        encode_word(piece.substr(begin, at - begin), tokens);
        begin = at;
      }
      before = next.code;
      at += next.bytes;
    }
    encode_word(piece.substr(begin), tokens);
  }

  void encode_word(std::string_view word, std::vector<TokenId>& tokens) {
    const bool short_word = word.size() <= WordCache::kLongestWord;
    if (short_word) {
      if (const auto known = cache_.find(word); !known.empty()) {
        tokens.insert(tokens.end(), known.begin(), known.end());
        return;
      }
    }
    const std::size_t before = tokens.size();
    merge(word, tokens);
    if (short_word) cache_.keep(word, std::span(tokens).subspan(before));
  }

  void merge(std::string_view word, std::vector<TokenId>& tokens) {
    if (of_.ignore_merges_) {
      if (const auto id = of_.ids_.find(word)) return tokens.push_back(*id);
    }
    symbols_.clear();
    read_symbols(word);
    if (symbols_.size() < kFew) {
      merge_few();
    } else {
      merge_many();
    }
    tokens.insert(tokens.end(), symbols_.begin(), symbols_.end());
  }

  void read_symbols(std::string_view word) {
    const bool affixes = !of_.prefix_.empty() || !of_.suffix_.empty();
    bool after_unknown = false;
    std::string text;
    std::size_t at = 0;
    unicode::for_each(word, [&](char32_t code, std::string_view bytes) {
      TokenId id = kNoToken;
      std::string_view name = bytes;
      if (affixes) {
        text = at == 0 ? std::string() : of_.prefix_;
        text += bytes;
        if (at + bytes.size() == word.size()) text += of_.suffix_;
        name = text;
        id = of_.ids_.find(name).value_or(kNoToken);
      } else {
        id = of_.id_of(code, bytes);
      }
      at += bytes.size();
      if (id != kNoToken) {
        symbols_.push_back(id);
        after_unknown = false;
      } else if (!of_.byte_fallback_ || !append_bytes(name)) {
        append_unknown(name, after_unknown);
        after_unknown = true;
      }
    });
  }

  bool append_bytes(std::string_view text) {
    const auto token = [&](char byte) { return of_.bytes_[static_cast<unsigned char>(byte)]; };
    if (std::ranges::any_of(text, [&](char byte) { return token(byte) == kNoToken; })) return false;
    for (const char byte : text) symbols_.push_back(token(byte));
    return true;
  }

  // Without an unknown token, what has none vanishes.
  void append_unknown(std::string_view text, bool after_unknown) {
    if (!of_.unknown_named_ || (after_unknown && of_.fuse_unknown_)) return;
    if (of_.unknown_ == kNoToken) throw Error(ErrorKind::unsupported, fmt::format("there is no token for \"{}\", and no unknown token", text));
    symbols_.push_back(of_.unknown_);
  }

  // Looks at all pairs for each merge, which is quickest for words.
  void merge_few() {
    std::array<MergeTable::Merge, kFew> pairs;
    std::size_t size = symbols_.size();
    for (std::size_t i = 0; i + 1 < size; ++i) pairs[i] = of_.merges_.find(symbols_[i], symbols_[i + 1]);
    while (size > 1) {
      std::size_t best = 0;
      for (std::size_t i = 1; i + 1 < size; ++i) {
        if (pairs[i].rank < pairs[best].rank) best = i;
      }
      if (pairs[best].rank == UINT32_MAX) break;
      symbols_[best] = pairs[best].merged;
      symbols_.erase(symbols_.begin() + static_cast<std::ptrdiff_t>(best) + 1);
      std::copy(pairs.begin() + static_cast<std::ptrdiff_t>(best) + 1, pairs.begin() + static_cast<std::ptrdiff_t>(size) - 1,
                pairs.begin() + static_cast<std::ptrdiff_t>(best));
      --size;
      if (best > 0) pairs[best - 1] = of_.merges_.find(symbols_[best - 1], symbols_[best]);
      if (best + 1 < size) pairs[best] = of_.merges_.find(symbols_[best], symbols_[best + 1]);
    }
  }

  // Keeps pairs in a heap, by rank and place. An entry counts as long as the pair at its place has that rank.
  void merge_many() {
    constexpr std::uint32_t kNone = UINT32_MAX;
    if (symbols_.size() >= kNone) throw Error(ErrorKind::unsupported, "the text is too long");
    const auto size = static_cast<std::uint32_t>(symbols_.size());
    nodes_.resize(size);
    heap_.clear();
    for (std::uint32_t i = 0; i < size; ++i) {
      nodes_[i] = {i == 0 ? kNone : i - 1, i + 1 == size ? kNone : i + 1, {}};
      if (i + 1 < size) nodes_[i].pair = of_.merges_.find(symbols_[i], symbols_[i + 1]);
      if (nodes_[i].pair.rank != kNone) heap_.push_back(entry(i));
    }
    std::ranges::make_heap(heap_, std::greater());
    const auto look = [&](std::uint32_t i) {
      Node& node = nodes_[i];
      node.pair = node.next == kNone ? MergeTable::Merge{} : of_.merges_.find(symbols_[i], symbols_[node.next]);
      if (node.pair.rank == kNone) return;
      heap_.push_back(entry(i));
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
      look(i);
      if (node.previous != kNone) look(node.previous);
    }
    std::erase(symbols_, kNoToken);
  }

  std::uint64_t entry(std::uint32_t i) const { return std::uint64_t{nodes_[i].pair.rank} << 32 | i; }

  static constexpr std::size_t kFew = 48;
  struct Node {
    std::uint32_t previous;
    std::uint32_t next;
    MergeTable::Merge pair;  // with the next
  };

  const Bpe& of_;
  WordCache cache_;
  std::vector<TokenId> symbols_;
  std::vector<Node> nodes_;
  std::vector<std::uint64_t> heap_;
};

std::unique_ptr<PieceEncoder> Bpe::start() const { return std::make_unique<AtWork>(*this); }

}  // namespace

std::unique_ptr<const PieceModel> make_bpe(const Fields& fields, const ModelContext& context) { return std::make_unique<Bpe>(fields, context); }

}  // namespace poise
