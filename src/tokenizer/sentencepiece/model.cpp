// Reads and writes tokenizer.model, a protocol buffer message; model.hpp lists the fields. Source:
// src/sentencepiece_model.proto of github.com/google/sentencepiece.
#include "tokenizer/sentencepiece/model.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include <poise/blob.hpp>
#include <poise/error.hpp>

#include "bytes/byte_reader.hpp"
#include "bytes/text_table.hpp"
#include "model/limits.hpp"
#include "syntax/protobuf.hpp"
#include "tokenizer/sentencepiece/normalizer.hpp"
#include "tokenizer/tokens/byte_level.hpp"
#include "tokenizer/tokens/token_types.hpp"

namespace poise {
namespace {

constexpr std::string_view kContext = "SentencePiece model";

using protobuf::Message;

// Holds a TrainerSpec. The defaults are those of SentencePiece's message definitions.
struct Trainer {
  enum class Type : std::uint8_t { unigram = 1, bpe = 2, word = 3, character = 4 } type = Type::unigram;
  bool byte_fallback = false;
  bool space_as_suffix = false;
  std::string unk = "<unk>";
  std::string bos = "<s>";
  std::string eos = "</s>";
  std::string pad = "<pad>";
};

struct NamedRules {
  std::string name;
  NormalizerRules rules;
};

struct Piece {
  std::string text;
  float score = 0;
  TokenType type = TokenType::normal;
  std::uint64_t offset = 0;
};

// Returns true for the types whose pieces SentencePiece keeps in a table of their own. A piece of another type may have
// the same text.
bool is_reserved(TokenType type) {
  return type == TokenType::control || type == TokenType::unknown || type == TokenType::byte;
}

class SentencePieceReader {
 public:
  explicit SentencePieceReader(const Source& source) : source_(source) {}

  Vocabulary read() {
    Message model(source_, std::string(kContext), 0, source_.size());
    while (model.next()) {
      switch (model.number()) {
        case 1:
          read_piece(model.read_message("pieces", fmt::format("piece {}", pieces_.size())), model.field_offset());
          break;
        case 2: read_trainer(model.read_message("trainer_spec", "trainer_spec")); break;
        case 3: read_normalizer(model.read_message("normalizer_spec", "normalizer_spec"), normalizer_); break;
        case 5: read_normalizer(model.read_message("denormalizer_spec", "denormalizer_spec"), denormalizer_); break;
        default: break;
      }
    }
    check_pieces();
    return make_vocabulary();
  }

 private:
  void read_piece(Message message, std::uint64_t offset) {
    if (pieces_.size() == kMaxTokens) message.fail("pieces", fmt::format("more than {} pieces", kMaxTokens));
    Piece piece;
    piece.offset = offset;
    while (message.next()) {
      switch (message.number()) {
        case 1: piece.text = message.read_text("piece"); break;
        case 2: piece.score = message.read_f32("score"); break;
        case 3: piece.type = read_type(message); break;
        default: break;
      }
    }
    pieces_.push_back(std::move(piece));
  }

  static TokenType read_type(Message& message) {
    const std::uint64_t number = message.read_integer("type");
    if (const auto type = find_token_type(number)) return *type;
    message.fail("type", fmt::format("{}, expected 1 to 6", number));
  }

  void read_trainer(Message message) {
    // An empty name means the default. SentencePiece compares names only up to a NUL.
    const auto read_name = [&](std::string_view field, std::string& value) {
      const std::string_view found = message.read_text(field);
      if (!found.empty()) value = found.substr(0, found.find('\0'));
    };
    while (message.next()) {
      switch (message.number()) {
        case 3: trainer_.type = read_model_type(message); break;
        case 24: trainer_.space_as_suffix = message.read_boolean("treat_whitespace_as_suffix"); break;
        case 35: trainer_.byte_fallback = message.read_boolean("byte_fallback"); break;
        case 45: read_name("unk_piece", trainer_.unk); break;
        case 46: read_name("bos_piece", trainer_.bos); break;
        case 47: read_name("eos_piece", trainer_.eos); break;
        case 48: read_name("pad_piece", trainer_.pad); break;
        default: break;
      }
    }
  }

  static Trainer::Type read_model_type(Message& message) {
    const std::uint64_t number = message.read_integer("model_type");
    if (number < 1 || number > 4) message.fail("model_type", fmt::format("{}, expected 1 to 4", number));
    return static_cast<Trainer::Type>(number);
  }

  static void read_normalizer(Message message, NamedRules& normalizer) {
    while (message.next()) {
      switch (message.number()) {
        case 1: normalizer.name = message.read_text("name"); break;
        case 2: normalizer.rules.charsmap = message.read_text("precompiled_charsmap"); break;
        case 3: normalizer.rules.add_dummy_prefix = message.read_boolean("add_dummy_prefix"); break;
        case 4: normalizer.rules.remove_extra_whitespaces = message.read_boolean("remove_extra_whitespaces"); break;
        case 5: normalizer.rules.escape_whitespaces = message.read_boolean("escape_whitespaces"); break;
        default: break;
      }
    }
  }

  void check_pieces() {
    const auto get_text_at = [this](std::uint32_t at) -> std::string_view { return pieces_[at].text; };
    TextTable names;
    TextTable reserved;
    std::vector<bool> bytes(256);
    for (std::size_t id = 0; id < pieces_.size(); ++id) {
      const Piece& piece = pieces_[id];
      if (piece.text.empty()) fail(id, "the text is empty");
      if (piece.text.find('\0') != std::string::npos) fail(id, "the text has a NUL in it");
      if (!std::isfinite(piece.score)) fail(id, fmt::format("its score is {}, expected a finite number", piece.score));
      TextTable& table = is_reserved(piece.type) ? reserved : names;
      if (table.insert(piece.text, static_cast<std::uint32_t>(id), get_text_at))
        fail(id, fmt::format("\"{}\" appears twice", piece.text));
      if (piece.type == TokenType::unknown) {
        if (unk_id_ >= 0) fail(id, fmt::format("a second unknown piece; the first is piece {}", unk_id_));
        unk_id_ = static_cast<std::int32_t>(id);
      }
      if (piece.type == TokenType::byte) check_byte(id, bytes);
    }
    if (unk_id_ < 0)
      throw Error(ErrorKind::invalid_file,
                  fmt::format("{}: none of its {} pieces is the unknown one", kContext, pieces_.size()),
                  source_.name());
    const auto missing = std::find(bytes.begin(), bytes.end(), false);
    if (trainer_.byte_fallback && missing != bytes.end()) {
      throw Error(
          ErrorKind::invalid_file,
          fmt::format("{}: byte_fallback is set, but there is no piece <0x{:02X}>", kContext, missing - bytes.begin()),
          source_.name());
    }
  }

  void check_byte(std::size_t id, std::vector<bool>& bytes) const {
    const auto byte = parse_byte_piece(pieces_[id].text);
    if (!byte) fail(id, fmt::format("\"{}\" is a byte piece, expected <0x00> to <0xFF>", pieces_[id].text));
    if (!trainer_.byte_fallback)
      fail(id, fmt::format("\"{}\" is a byte piece, but byte_fallback is not set", pieces_[id].text));
    bytes[*byte] = true;
  }

  [[noreturn]] void fail(std::size_t id, const std::string& problem) const {
    throw Error(ErrorKind::invalid_file, fmt::format("{}: piece {}: {}", kContext, id, problem), source_.name(),
                pieces_[id].offset);
  }

  // Finds the control piece with that name, and sets its type to `type` if it has no other role. Returns its id, or -1.
  std::int32_t mark_special(const std::string& name, TokenType type) {
    const auto found = std::find_if(pieces_.begin(), pieces_.end(),
                                    [&](const Piece& piece) { return is_control(piece.type) && piece.text == name; });
    if (found == pieces_.end()) return -1;
    if (found->type == TokenType::control) found->type = type;
    return static_cast<std::int32_t>(found - pieces_.begin());
  }

  VocabularyKind choose_kind() const {
    switch (trainer_.type) {
      case Trainer::Type::unigram: return VocabularyKind::sentencepiece_unigram;
      case Trainer::Type::bpe: return VocabularyKind::sentencepiece_bpe;
      case Trainer::Type::word:
      case Trainer::Type::character: break;
    }
    throw Error(ErrorKind::unsupported,
                fmt::format("{}: model_type {} (words or characters) is not supported, only unigram and bpe", kContext,
                            static_cast<int>(trainer_.type)),
                source_.name());
  }

  // Sets the normalization. SentencePiece uses the rules in the charsmap, not their name.
  void set_normalization(Vocabulary& result) {
    if (!normalizer_.rules.charsmap.empty())
      result.normalizer = normalizer_.name.empty() || normalizer_.name == "identity" ? "precompiled" : normalizer_.name;
    normalizer_.rules.treat_whitespace_as_suffix = trainer_.space_as_suffix;
    set_normalizer(result, normalizer_.rules);
    if (!denormalizer_.rules.charsmap.empty()) set_denormalizer(result, denormalizer_.rules);
  }

  Vocabulary make_vocabulary() {
    Vocabulary result;
    result.kind = choose_kind();
    result.unk_id = unk_id_;
    result.bos_id = mark_special(trainer_.bos, TokenType::bos);
    result.eos_id = mark_special(trainer_.eos, TokenType::eos);
    result.pad_id = mark_special(trainer_.pad, TokenType::pad);
    set_normalization(result);
    std::size_t bytes = 0;
    for (const Piece& piece : pieces_) bytes += piece.text.size();
    result.reserve(pieces_.size(), bytes);
    for (const Piece& piece : pieces_) result.add(piece.text, piece.score, piece.type);
    return result;
  }

  const Source& source_;
  std::vector<Piece> pieces_;
  Trainer trainer_;
  NamedRules normalizer_;
  NamedRules denormalizer_;
  std::int32_t unk_id_ = -1;
};

}  // namespace

Vocabulary read_sentencepiece(const Source& source) {
  if (source.mapped()) return SentencePieceReader(source).read();
  // Copies the file to memory, because each message has its own reader, which would read the file again.
  std::vector<std::byte> bytes(source.size());
  source.read(0, bytes);
  return SentencePieceReader(*Source::from_memory(std::move(bytes), source.name())).read();
}

namespace {

protobuf::MessageWriter make_normalizer_message(std::string_view name, const NormalizerRules& rules) {
  protobuf::MessageWriter message;
  if (!name.empty()) message.append_text(1, name);
  if (!rules.charsmap.empty()) message.append_text(2, rules.charsmap);
  message.append_boolean(3, rules.add_dummy_prefix);
  message.append_boolean(4, rules.remove_extra_whitespaces);
  message.append_boolean(5, rules.escape_whitespaces);
  return message;
}

}  // namespace

std::string format_sentencepiece(const Vocabulary& vocabulary) {
  protobuf::MessageWriter model;
  bool bytes = false;
  for (std::size_t id = 0; id < vocabulary.size(); ++id) {
    protobuf::MessageWriter piece;
    piece.append_text(1, vocabulary.text(id));
    piece.append_f32(2, vocabulary.score(id));
    piece.append_integer(3, static_cast<std::uint64_t>(find_token_type_number(vocabulary.type(id))));
    model.append_message(1, piece);
    bytes = bytes || vocabulary.type(id) == TokenType::byte;
  }
  protobuf::MessageWriter trainer;
  trainer.append_integer(
      3, static_cast<std::uint64_t>(vocabulary.kind == VocabularyKind::sentencepiece_unigram ? Trainer::Type::unigram
                                                                                             : Trainer::Type::bpe));
  trainer.append_integer(4, vocabulary.size());
  const NormalizerRules rules = read_normalizer_rules(vocabulary);
  if (rules.treat_whitespace_as_suffix) trainer.append_boolean(24, true);
  trainer.append_boolean(35, bytes);
  struct Special {
    std::uint64_t id_field;
    std::uint64_t piece_field;
    std::int32_t id;
  };
  for (const Special& special : {Special{40, 45, vocabulary.unk_id}, Special{41, 46, vocabulary.bos_id},
                                 Special{42, 47, vocabulary.eos_id}, Special{43, 48, vocabulary.pad_id}}) {
    trainer.append_signed(special.id_field, special.id);
    if (special.id >= 0)
      trainer.append_text(special.piece_field, vocabulary.text(static_cast<std::size_t>(special.id)));
  }
  model.append_message(2, trainer);
  model.append_message(3, make_normalizer_message(vocabulary.normalizer, rules));
  if (const auto denormalizer = read_denormalizer_rules(vocabulary))
    model.append_message(5, make_normalizer_message("", *denormalizer));
  return model.release();
}

}  // namespace poise
