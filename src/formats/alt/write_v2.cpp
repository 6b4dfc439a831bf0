// Writes the canonical form of ALT version 2: every section, every field, in the order of the specification.
//
// A model without configuration or vocabulary gets sections of zeros (ids of -1), which reading takes for none.
#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/checked.hpp"
#include "formats/alt/hints.hpp"
#include "formats/alt/section_writer.hpp"
#include "formats/alt/write.hpp"
#include "io/meter.hpp"
#include "io/pump.hpp"

namespace poise::alt {
namespace {

void write_start(Sink& sink) {
  ByteWriter start;
  start.i64(kStartV2);
  start.u64(kAlignment);  // section_size
  start.i32(2);           // magic_version
  start.i32(static_cast<std::int32_t>(kAlignment));
  sink.write(start.bytes());
  sink.pad_to(kAlignment);
}

SectionWriter general_section(const Card& card) {
  SectionWriter out("general");
  out.text("model_type", card.model_type);
  out.text("base_model", card.base_model);
  out.text("author", card.author);
  out.text("created_at", card.created_at);
  out.text("last_modified", card.last_modified);
  out.text("license", card.license);
  out.text("uuid", card.uuid);
  return out;
}

Config no_config() {
  Config none;
  none.hidden_act.clear();
  none.rope_theta = none.rms_norm_eps = none.initializer_range = 0;
  return none;
}

SectionWriter parameters_section(const Config& config) {
  SectionWriter out("parameters");
  out.text("hidden_act", config.hidden_act);
  out.flag(config.tie_word_embeddings);
  out.i32("hidden_size", config.hidden_size);
  out.i32("intermediate_size", config.intermediate_size);
  out.i32("max_position_embeddings", config.max_position_embeddings);
  out.i32("num_attention_heads", config.num_attention_heads);
  out.i32("num_hidden_layers", config.num_hidden_layers);
  out.i32("num_key_value_heads", config.num_key_value_heads);
  out.i32("sliding_window", config.sliding_window);
  out.f32(config.rope_theta);
  out.f32(config.rms_norm_eps);
  out.f32(config.initializer_range);
  out.i32("head_size", config.head_dim);
  return out;
}

SectionWriter tokenizer_section(const Vocabulary& vocabulary) {
  SectionWriter out("tokenizer");
  out.i32("vocab_size", static_cast<std::int64_t>(vocabulary.size()));
  out.i32("bos_id", vocabulary.bos_id);
  out.i32("eos_id", vocabulary.eos_id);
  out.i32("pad_id", vocabulary.pad_id);
  out.i32("unk_id", vocabulary.unk_id);
  out.i32("seq_len", vocabulary.max_length);
  for (std::size_t id = 0; id < vocabulary.size(); ++id) {
    out.text(fmt::format("token {}", id), vocabulary.text(id));
    out.f32(vocabulary.score(id));
    out.i32("token_type", static_cast<std::int64_t>(written_type(vocabulary, id)));
  }
  return out;
}

// What a tensor's bytes are called in the file. Throws unsupported, saying what would help.
std::int32_t data_type(const Tensor& tensor) {
  const auto refuse = [&](std::string_view what) {
    throw Error(ErrorKind::unsupported,
                fmt::format("alt cannot hold tensor {} ({}): --dtype f32 or f16 converts it, --skip {} leaves it out", tensor.name, what, tensor.name));
  };
  const bool affine = tensor.layout == Layout::affine;
  if (tensor.layout != Layout::dense && !affine) refuse(to_string(tensor.layout));
  const DType dtype = tensor.require("data").dtype;
  const bool known = dtype != DType::unknown && poise::info(dtype).alt >= 0;
  if (!known || affine != (poise::info(dtype).kind == DTypeKind::quantized)) refuse(to_string(dtype));
  return poise::info(dtype).alt;
}

SectionWriter tensor_header(const Tensor& tensor, const Hints& hints, const Affine& affine) {
  SectionWriter out(fmt::format("tensor {}", tensor.name));
  out.i32("component_type", hints.component_type);
  out.i32("block_index", hints.block_index);
  out.i32("layer_type", hints.layer_type);
  out.i32("projection_type", hints.projection_type);
  if (tensor.shape.size() > kMaxRank)
    throw Error(ErrorKind::unsupported, fmt::format("alt: tensor {}: rank {} is more than {}", tensor.name, tensor.shape.size(), kMaxRank));
  out.i32("n_dims", static_cast<std::int64_t>(tensor.shape.size()));
  for (const std::uint64_t dimension : tensor.shape) out.i32("shape", dimension > INT32_MAX ? INT64_MAX : static_cast<std::int64_t>(dimension));
  out.text("name", tensor.name);
  out.i32("data_type", data_type(tensor));
  out.f32(affine.delta);
  out.f32(affine.min);
  out.f32(affine.max);
  out.flag(affine.packed);
  return out;
}

class TensorsWriter {
 public:
  explicit TensorsWriter(const Model& model) : model_(model), tensors_(in_canonical_order(model)) {
    std::int32_t other_block = kFirstOtherBlock;
    for (const Tensor* tensor : tensors_) {
      const TensorRole role = role_from_name(tensor->name);
      hints_.push_back(hints_from_role(role, other_block));
      if (role.component == Component::other) --other_block;
      // The scale may take a pass over the data to find; the size of the header does not depend on it.
      const SectionWriter header = tensor_header(*tensor, hints_.back(), Affine{});
      bytes_ += header.fields().size() + tensor->require("data").blob->size();
      data_bytes_ += tensor->require("data").blob->size();
      dimensions_ += tensor->shape.size();
    }
  }

  void write(Sink& sink, const Progress& progress) const {
    write_counts(sink);
    Meter meter(progress, data_bytes_);
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      const Tensor& tensor = *tensors_[i];
      const Affine affine = tensor.affine ? tensor.affine->get() : Affine{};
      sink.write(tensor_header(tensor, hints_[i], affine).fields().bytes());
      pump(*tensor.require("data").blob, sink, meter, tensor.name);
    }
    sink.pad_to(kAlignment);
  }

 private:
  void write_counts(Sink& sink) const {
    const BlockCounts counts = count_blocks(model_);
    SectionWriter fields("tensors");
    fields.i64(static_cast<std::int64_t>(tensors_.size()));
    fields.i64(static_cast<std::int64_t>(dimensions_));
    fields.i32("block_count", counts.blocks);
    fields.i32("unique_count", counts.unique);
    ByteWriter header;
    header.i64(info(Section::tensors).marker);
    header.u64(*checked_align(kHeaderBytes + fields.fields().size() + bytes_, kAlignment));
    sink.write(header.bytes());
    sink.write(fields.fields().bytes());
  }

  const Model& model_;
  std::vector<const Tensor*> tensors_;
  std::vector<Hints> hints_;
  std::uint64_t bytes_ = 0;       // of all tensors: metadata and data
  std::uint64_t data_bytes_ = 0;  // of these, data
  std::uint64_t dimensions_ = 0;
};

}  // namespace

TokenType written_type(const Vocabulary& vocabulary, std::size_t id) {
  const TokenType type = vocabulary.type(id);
  if (type != TokenType::normal && type != TokenType::control) return type;
  const auto is = [&](std::int32_t special) { return special >= 0 && static_cast<std::size_t>(special) == id; };
  if (is(vocabulary.bos_id)) return TokenType::bos;
  if (is(vocabulary.eos_id)) return TokenType::eos;
  if (is(vocabulary.pad_id)) return TokenType::pad;
  return type;
}

void write_v2(const Model& model, Output& output, const WriteOptions& options) {
  // Everything that can be refused is refused before the first byte is written.
  const SectionWriter general = general_section(model.card);
  const SectionWriter parameters = parameters_section(model.config ? *model.config : no_config());
  const SectionWriter tokenizer = tokenizer_section(model.vocabulary ? *model.vocabulary : Vocabulary{});
  const TensorsWriter tensors(model);
  Sink& sink = output.main();
  write_start(sink);
  write_section(sink, Section::general, general);
  write_section(sink, Section::parameters, parameters);
  write_section(sink, Section::tokenizer, tokenizer);
  tensors.write(sink, options.progress);
  ByteWriter end;
  end.i64(kEndMarker);
  sink.write(end.bytes());
}

}  // namespace poise::alt
