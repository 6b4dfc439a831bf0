// Reads ALT version 2.
//
//   start       i64 0x616C7400, i64 section_size, i32 magic_version (2), i32 magic_alignment (32)
//   general     seven texts: model_type, base_model, author, created_at, last_modified, license, uuid
//   parameters  text hidden_act, u8 tie_word_embeddings, i32 hidden_size, intermediate_size, max_position_embeddings,
//               num_attention_heads, num_hidden_layers, num_key_value_heads, sliding_window (0: none),
//               f32 rope_theta, rms_norm_eps, initializer_range, i32 head_size
//   tokenizer   i32 vocab_size, bos_id, eos_id, pad_id, unk_id, seq_len; per token: text, f32 score, i32 type
//   tensors     see tensors.cpp
//   end         i64 0x0FFFFFFF, and nothing behind it
#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/checked.hpp"
#include "formats/alt/file_reader.hpp"
#include "formats/alt/read.hpp"
#include "formats/alt/tensors.hpp"
#include "io/source_range.hpp"

namespace poise::alt {
namespace {

constexpr std::uint64_t kLeastTokenBytes = 4 + 4 + 4;

class ReaderV2 {
 public:
  ReaderV2(const Input& input, const ByteRange& range) : source_(input.source), reader_(range, "alt v2"), bytes_(reader_.bytes()) {
    model_.origin = {input.path, "alt-v2", input.source->size(), {input.path}};
  }

  Model read() {
    start();
    std::size_t next = 0;  // the first section that may still come
    while (!at_end_marker()) {
      const std::size_t found = section_here(next);
      for (; next < found; ++next) missing(kSections[next]);
      read_section(static_cast<Section>(found));
      next = found + 1;
    }
    for (; next < kSections.size(); ++next) missing(kSections[next]);
    end();
    set_vocab_size();
    model_.warnings = reader_.take_warnings();
    return std::move(model_);
  }

 private:
  void start() {
    const auto scope = bytes_.scope("start");
    const std::int64_t marker = bytes_.i64("section_marker");
    if (marker == kStartAltc) {
      reader_.warn("section_marker", fmt::format("expected 0x{:x}, found 0x{:x}, the magic of version 1", kStartV2, marker), 0);
    } else if (marker != kStartV2) {
      bytes_.fail("section_marker", fmt::format("expected 0x{:x}, found 0x{:x}", kStartV2, marker), 0);
    }
    const OpenSection section{0, bytes_.i64("section_size")};
    const std::int32_t version = bytes_.i32("magic_version");
    if (version != 2) bytes_.fail("magic_version", fmt::format("expected 2, found {}", version), 16);
    const std::int32_t alignment = bytes_.i32("magic_alignment");
    if (alignment != static_cast<std::int32_t>(kAlignment)) bytes_.fail("magic_alignment", fmt::format("expected {}, found {}", kAlignment, alignment), 20);
    reader_.close_section(section);
  }

  // Does the file end here? Moves nothing.
  bool at_end_marker() {
    const std::uint64_t here = bytes_.position();
    const std::int32_t low = bytes_.i32("end marker");
    const bool is_long = bytes_.remaining() >= 4;
    const std::int32_t high = is_long ? bytes_.i32("end marker") : 0;
    bytes_.seek(here);
    return low == kEndMarker && high == 0;
  }

  std::size_t section_here(std::size_t next) {
    const std::uint64_t here = bytes_.position();
    const std::int64_t marker = bytes_.i64("section_marker");
    bytes_.seek(here);
    for (std::size_t i = 0; i < kSections.size(); ++i) {
      if (kSections[i].marker != marker) continue;
      if (i < next) bytes_.fail("section_marker", fmt::format("the {} section stands twice or too late", kSections[i].name), here);
      return i;
    }
    bytes_.fail("section_marker", fmt::format("expected a section or the end marker 0x{:x}, found 0x{:x}", kEndMarker, marker), here);
  }

  void missing(const SectionInfo& section) { reader_.warn(section.name, "the section is missing", bytes_.position()); }

  void read_section(Section section) {
    const auto scope = bytes_.scope(info(section).name);
    const OpenSection open = reader_.open_section(section);
    switch (section) {
      case Section::general: general(); break;
      case Section::parameters: parameters(); break;
      case Section::tokenizer: tokenizer(); break;
      case Section::tensors: read_tensors_v2(reader_, source_, model_); break;
    }
    reader_.close_section(open);
  }

  void general() {
    Card& card = model_.card;
    card.model_type = reader_.text("model_type");
    card.base_model = reader_.text("base_model");
    card.author = reader_.text("author");
    card.created_at = reader_.text("created_at");
    card.last_modified = reader_.text("last_modified");
    card.license = reader_.text("license");
    card.uuid = reader_.text("uuid");
  }

  void parameters() {
    Config config;
    config.hidden_act = reader_.text("hidden_act");
    config.tie_word_embeddings = reader_.flag("tie_word_embeddings");
    config.hidden_size = bytes_.i32("hidden_size");
    config.intermediate_size = bytes_.i32("intermediate_size");
    config.max_position_embeddings = bytes_.i32("max_position_embeddings");
    config.num_attention_heads = bytes_.i32("num_attention_heads");
    config.num_hidden_layers = bytes_.i32("num_hidden_layers");
    config.num_key_value_heads = bytes_.i32("num_key_value_heads");
    config.sliding_window = sliding_window();
    config.rope_theta = bytes_.f32("rope_theta");
    config.rms_norm_eps = bytes_.f32("rms_norm_eps");
    config.initializer_range = bytes_.f32("initializer_range");
    config.head_dim = bytes_.i32("head_size");
    Config none;
    none.hidden_act.clear();
    none.rope_theta = none.rms_norm_eps = none.initializer_range = 0;
    if (!(config == none)) model_.config = config;
  }

  std::int64_t sliding_window() {
    const std::uint64_t at = bytes_.position();
    const std::int32_t window = bytes_.i32("sliding_window");
    if (window >= 0) return window;
    reader_.warn("sliding_window", fmt::format("expected 0 for none, found {}", window), at);
    return 0;
  }

  void tokenizer() {
    const std::uint64_t at = bytes_.position();
    const std::int32_t size = reader_.count32("vocab_size");
    Vocabulary vocabulary;
    vocabulary.bos_id = bytes_.i32("bos_id");
    vocabulary.eos_id = bytes_.i32("eos_id");
    vocabulary.pad_id = bytes_.i32("pad_id");
    vocabulary.unk_id = bytes_.i32("unk_id");
    vocabulary.max_length = bytes_.i32("seq_len");
    if (static_cast<std::uint64_t>(size) > bytes_.remaining() / kLeastTokenBytes) {
      bytes_.fail("vocab_size", fmt::format("{} tokens need at least {} bytes each, {} bytes are left", size, kLeastTokenBytes, bytes_.remaining()), at);
    }
    vocabulary.reserve(static_cast<std::size_t>(size), 0);
    for (std::int32_t id = 0; id < size; ++id) {
      const auto scope = bytes_.scope("token", id);
      const std::string text = reader_.text("token_data");
      const float score = bytes_.f32("token_score");
      vocabulary.add(text, score, token_type());
    }
    if (!(vocabulary == Vocabulary{})) model_.vocabulary = std::move(vocabulary);
  }

  TokenType token_type() {
    const std::uint64_t at = bytes_.position();
    const std::int32_t type = bytes_.i32("token_type");
    if (type < 0 || type > static_cast<std::int32_t>(TokenType::user_defined)) bytes_.fail("token_type", fmt::format("expected 0 to 8, found {}", type), at);
    return static_cast<TokenType>(type);
  }

  void end() {
    const std::uint64_t begin = bytes_.position();
    const std::uint64_t width = bytes_.remaining() == 4 ? 4 : 8;
    bytes_.skip(width, "end marker");
    if (bytes_.remaining() > 0)
      bytes_.fail("end marker", fmt::format("expected the end of the file behind it, found {} more bytes", bytes_.remaining()), begin + width);
    if (width == 4) reader_.warn("end marker", "expected 8 bytes, found 4", begin);
  }

  // The file does not store it.
  void set_vocab_size() {
    if (!model_.config) return;
    const Tensor* embedding = model_.find("model.embed_tokens.weight");
    if (embedding != nullptr && embedding->shape.size() == 2) {
      model_.config->vocab_size = static_cast<std::int64_t>(embedding->shape[0]);
    } else if (model_.vocabulary) {
      model_.config->vocab_size = static_cast<std::int64_t>(model_.vocabulary->size());
    }
  }

  SourcePtr source_;
  FileReader reader_;
  ByteReader& bytes_;
  Model model_;
};

}  // namespace

Model read_v2(const Input& input, const ReadOptions&) {
  const SourceRange range(*input.source);
  return ReaderV2(input, range).read();
}

}  // namespace poise::alt
