// Writes ALT version 2: its canonical form, or that of the program alt.c.
//
// A model without configuration or vocabulary gets sections of zeros (ids of -1), which reading takes for none.
#include <deque>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "formats/alt/hints.hpp"
#include "formats/alt/parameters.hpp"
#include "formats/alt/tokens.hpp"
#include "formats/alt/write.hpp"
#include "formats/alt/write_alt_c.hpp"
#include "formats/alt/write_tensors.hpp"
#include "formats/refusal.hpp"
#include "views/affine.hpp"

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

SectionWriter tokenizer_section(const Vocabulary& vocabulary) {
  SectionWriter out("tokenizer");
  out.count("vocab_size", vocabulary.size());
  out.i32("bos_id", vocabulary.bos_id);
  out.i32("eos_id", vocabulary.eos_id);
  out.i32("pad_id", vocabulary.pad_id);
  out.i32("unk_id", vocabulary.unk_id);
  out.i32("seq_len", vocabulary.max_length);
  for (std::size_t id = 0; id < vocabulary.size(); ++id) {
    out.text(fmt::format("token {}", id), vocabulary.text(id));
    out.f32(written_score(vocabulary, id));
    out.i32("token_type", type_code(TypeNumbering::canonical, written_type(vocabulary, id)));
  }
  return out;
}

// What a tensor's bytes are called in the file. Throws unsupported, saying what would help.
std::int32_t data_type(const Tensor& tensor) {
  const bool affine = tensor.layout == Layout::affine;
  if (tensor.layout != Layout::dense && !affine) refuse_tensor("alt", tensor);
  const DType dtype = tensor.require("data").dtype;
  const bool known = dtype != DType::unknown && poise::info(dtype).alt >= 0;
  if (!known || affine != (poise::info(dtype).kind == DTypeKind::quantized)) refuse_tensor("alt", tensor);
  return poise::info(dtype).alt;
}

SectionWriter tensor_header(const Tensor& tensor, const Hints& hints, const Affine& affine) {
  SectionWriter out(fmt::format("tensor {}", tensor.name));
  out.i32("component_type", hints.component_type);
  out.i32("block_index", hints.block_index);
  out.i32("layer_type", hints.layer_type);
  out.i32("projection_type", hints.projection_type);
  out.count("n_dims", tensor.shape.size());
  for (const std::uint64_t dimension : tensor.shape) out.count("dimension", dimension);
  out.text("name", tensor.name);
  out.i32("data_type", data_type(tensor));
  if (affine.min > affine.max) {
    throw Error(ErrorKind::unsupported, fmt::format("alt cannot hold tensor {}: its min {} is above its max {}", tensor.name, affine.min, affine.max));
  }
  const bool symmetric = affine.min == affine.max;
  out.f32(affine.delta);
  out.f32(symmetric ? 0 : affine.min);
  out.f32(symmetric ? 0 : affine.max);
  out.flag(affine.packed);
  return out;
}

using HintsByTensor = std::unordered_map<const Tensor*, Hints>;

HintsByTensor all_hints(const std::vector<const Tensor*>& tensors) {
  HintsByTensor hints;
  std::int32_t other_block = kFirstOtherBlock;
  for (const Tensor* tensor : tensors) {
    const TensorRole role = role_from_name(tensor->name);
    hints.emplace(tensor, hints_from_role(role, other_block));
    if (role.component == Component::other) --other_block;
  }
  return hints;
}

// In canonical order, qint4 codes two to a byte.
std::deque<Tensor> packed_tensors(const Model& model) {
  std::deque<Tensor> tensors;
  for (const Tensor* tensor : in_canonical_order(model)) tensors.push_back(with_packed_codes(*tensor));
  return tensors;
}

std::vector<const Tensor*> pointers_to(const std::deque<Tensor>& tensors) {
  std::vector<const Tensor*> pointers;
  pointers.reserve(tensors.size());
  for (const Tensor& tensor : tensors) pointers.push_back(&tensor);
  return pointers;
}

SectionWriter tensor_counts(const Model& model, const TensorsSection& tensors) {
  const BlockCounts counts = count_blocks(model);
  SectionWriter out("tensors");
  out.i64(model.size());
  out.i64(tensors.shape_count());
  out.i32("block_count", counts.blocks);
  out.i32("unique_count", counts.unique);
  return out;
}

// The canonical form. Everything that can be refused is refused before the first byte is written.
class CanonicalFile {
 public:
  explicit CanonicalFile(const Model& model)
      : general_(general_section(model.card)),
        parameters_(parameters_section_v2(model.config ? *model.config : no_config(), ParameterOrder::canonical)),
        tokenizer_(tokenizer_section(model.vocabulary ? *model.vocabulary : Vocabulary{})),
        packed_(packed_tensors(model)),
        tensors_(section_of(pointers_to(packed_))),
        counts_(tensor_counts(model, tensors_)) {}
  CanonicalFile(const CanonicalFile&) = delete;  // it has pointers to its own tensors
  CanonicalFile& operator=(const CanonicalFile&) = delete;

  std::uint64_t bytes() const {
    CountingSink sink;
    write_before_tensors(sink);
    return sink.position() + tensors_.bytes(counts_) + sizeof kEndMarker;
  }

  void write(Sink& sink, const Progress& progress) const {
    write_before_tensors(sink);
    tensors_.write(sink, counts_, progress);
    ByteWriter end;
    end.i64(kEndMarker);
    sink.write(end.bytes());
  }

 private:
  static TensorsSection section_of(const std::vector<const Tensor*>& order) {
    return {order, [hints = all_hints(order)](const Tensor& tensor, const Affine& affine) { return tensor_header(tensor, hints.at(&tensor), affine); }};
  }

  void write_before_tensors(Sink& sink) const {
    write_start(sink);
    write_section(sink, Section::general, general_);
    write_section(sink, Section::parameters, parameters_);
    write_section(sink, Section::tokenizer, tokenizer_);
  }

  SectionWriter general_;
  SectionWriter parameters_;
  SectionWriter tokenizer_;
  std::deque<Tensor> packed_;
  TensorsSection tensors_;
  SectionWriter counts_;
};

}  // namespace

void write_v2(const Model& model, Output& output, const WriteOptions& options) {
  if (is_for_alt_c(options)) return write_alt_c(model, output.main());
  require_held_config(model);
  CanonicalFile(model).write(output.main(), options.progress);
}

FilePlan plan_v2(const Model& model, const WriteOptions& options) {
  FilePlan plan;
  if (is_for_alt_c(options)) {
    CountingSink sink;
    write_alt_c(model, sink);
    plan.bytes = sink.position();
    return plan;
  }
  require_held_config(model);
  plan.bytes = CanonicalFile(model).bytes();
  for (const Tensor& tensor : model.tensors()) plan.tensor_bytes.push_back(with_packed_codes(tensor).require("data").blob->size());
  return plan;
}

}  // namespace poise::alt
