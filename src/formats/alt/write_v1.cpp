// Writes ALT version 1: start magic, parameters, tokenizer, tensors, end marker.
//
// It has no scales, scores or token types; losses_v1() says what of a model it leaves out.
#include <fmt/format.h>

#include <poise/error.hpp>

#include "family/families.hpp"
#include "formats/alt/parameters.hpp"
#include "formats/alt/roles.hpp"
#include "formats/alt/write.hpp"
#include "formats/alt/write_tensors.hpp"
#include "formats/refusal.hpp"

namespace poise::alt {
namespace {

SectionWriter parameters_section(const Model& model) {
  // Readers of version 1, which has no hidden_act, take it for the usual one.
  if (const Family& family = family_of(model); family.hidden_act != Config{}.hidden_act) {
    throw Error(ErrorKind::unsupported, fmt::format("alt1 says nothing of what makes a {}", family.title)).with({.kind = Remedy::Kind::format, .value = "alt"});
  }
  const Config config = model.config ? *model.config : no_config();
  const std::int64_t vocabulary_length = model.vocabulary ? model.vocabulary->max_length : 0;
  SectionWriter out("parameters");
  out.text("model_type", model.card.model_type);
  out.i32("hidden_size", config.hidden_size);
  out.i32("num_hidden_layers", config.num_hidden_layers);
  out.i32("intermediate_size", config.intermediate_size);
  out.i32("num_attention_heads", config.num_attention_heads);
  out.i32("num_key_value_heads", config.num_key_value_heads);
  out.i32("sliding_window", config.sliding_window);
  out.f32(config.rope_theta);
  out.f32(config.rms_norm_eps);
  out.i32("head_size", config.head_dim);
  out.i32("data_type", prevailing_type(model));
  const std::int64_t positions = model.config ? config.max_position_embeddings : vocabulary_length;
  if (positions < 0) throw Error(ErrorKind::unsupported, fmt::format("alt1: context_length: {}, expected 0 or more", positions));
  out.i32("context_length", positions);
  return out;
}

SectionWriter tokenizer_section(const Vocabulary& vocabulary) {
  SectionWriter out("tokenizer");
  out.count("vocab_size", vocabulary.size());
  out.i32("bos_id", vocabulary.bos_id);
  out.i32("eos_id", vocabulary.eos_id);
  out.i32("pad_id", vocabulary.pad_id);
  out.i32("unk_id", vocabulary.unk_id);
  for (std::size_t id = 0; id < vocabulary.size(); ++id) out.text(fmt::format("token {}", id), vocabulary.text(id));
  return out;
}

std::int32_t data_type(const Tensor& tensor) {
  if (tensor.layout == Layout::affine) {
    throw Error(ErrorKind::unsupported, fmt::format("alt1 has no scales, so it cannot hold the quantized tensor {}", tensor.name))
        .with({.kind = Remedy::Kind::dtype, .value = "f16 or f32"});
  }
  const bool dense = tensor.layout == Layout::dense;
  const DType dtype = dense ? tensor.require("data").dtype : DType::unknown;
  if (dtype == DType::f32) return 0;
  if (dtype == DType::f16) return 1;
  if (dtype == DType::i8) return 2;
  refuse_tensor("alt1", tensor);
}

SectionWriter tensor_header(const Tensor& tensor, const Affine&) {
  SectionWriter out(fmt::format("tensor {}", tensor.name));
  out.count("n_dims", tensor.shape.size());
  out.text_length("name", tensor.name);
  out.i32("data_type", data_type(tensor));
  for (const std::uint64_t dimension : tensor.shape) out.count("dimension", dimension);
  out.text_bytes(tensor.name);
  return out;
}

SectionWriter tensor_counts(const Model& model, const TensorsSection& tensors) {
  SectionWriter out("tensors");
  out.i64(model.size());
  out.i64(tensors.shape_count());
  return out;
}

// Everything that can be refused is refused before the first byte is written.
class File {
 public:
  explicit File(const Model& model)
      : tensors_(in_canonical_order(model), tensor_header),
        parameters_(parameters_section(model)),
        tokenizer_(tokenizer_section(model.vocabulary ? *model.vocabulary : Vocabulary{})),
        counts_(tensor_counts(model, tensors_)) {}

  std::uint64_t bytes() const {
    CountingSink sink;
    write_before_tensors(sink);
    return sink.position() + tensors_.bytes(counts_) + sizeof(std::int32_t);
  }

  void write(Sink& sink, const Progress& progress) const {
    write_before_tensors(sink);
    tensors_.write(sink, counts_, progress);
    write_marker(sink, kEndMarker);
  }

 private:
  static void write_marker(Sink& sink, std::int64_t value) {
    ByteWriter marker;
    marker.i32(static_cast<std::int32_t>(value));
    sink.write(marker.bytes());
  }

  void write_before_tensors(Sink& sink) const {
    write_marker(sink, kStartAltc);
    sink.pad_to(kAlignment);
    write_section(sink, Section::parameters, parameters_);
    write_section(sink, Section::tokenizer, tokenizer_);
  }

  TensorsSection tensors_;
  SectionWriter parameters_;
  SectionWriter tokenizer_;
  SectionWriter counts_;
};

}  // namespace

void write_v1(const Model& model, Output& output, const WriteOptions& options) {
  require_held_config(model);
  File(model).write(output.main(), options.progress);
}

FilePlan plan_v1(const Model& model, const WriteOptions&) {
  require_held_config(model);
  FilePlan plan;
  plan.bytes = File(model).bytes();
  for (const Tensor& tensor : model.tensors()) plan.tensor_bytes.push_back(tensor.require("data").blob->size());
  return plan;
}

}  // namespace poise::alt
