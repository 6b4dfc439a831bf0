// Writes ALT version 1: start magic, parameters, tokenizer, tensors, end marker.
//
// It has no scales, scores or token types; losses_v1() says what of a model it leaves out.
#include <fmt/format.h>

#include <poise/error.hpp>

#include "formats/alt/parameters.hpp"
#include "formats/alt/write.hpp"
#include "formats/alt/write_tensors.hpp"
#include "formats/refusal.hpp"
#include "model/roles.hpp"
#include "model/tiny_llama.hpp"

namespace poise::alt {
namespace {

SectionWriter parameters_section(const Model& model) {
  if (model.card.model_type == kTinyLlama) {
    throw Error(ErrorKind::unsupported, "alt1 says nothing of what makes a Tiny Llama").with({.kind = Remedy::Kind::format, .value = "alt"});
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

}  // namespace

void write_v1(const Model& model, Output& output, const WriteOptions& options) {
  require_held_config(model);
  const TensorsSection tensors(in_canonical_order(model), tensor_header);
  const SectionWriter parameters = parameters_section(model);
  const SectionWriter tokenizer = tokenizer_section(model.vocabulary ? *model.vocabulary : Vocabulary{});
  SectionWriter counts("tensors");
  counts.i64(model.size());
  counts.i64(tensors.shape_count());
  Sink& sink = output.main();
  ByteWriter marker;
  marker.i32(static_cast<std::int32_t>(kStartAltc));
  sink.write(marker.bytes());
  sink.pad_to(kAlignment);
  write_section(sink, Section::parameters, parameters);
  write_section(sink, Section::tokenizer, tokenizer);
  tensors.write(sink, counts, options.progress);
  marker.clear();
  marker.i32(static_cast<std::int32_t>(kEndMarker));
  sink.write(marker.bytes());
}

}  // namespace poise::alt
