// Writes ALT version 2: its canonical form, or that of the program alt.c.
//
// A model without configuration or vocabulary gets sections of zeros (ids of -1), which read as missing.
#include <deque>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <poise/error.hpp>

#include "codec/affine.hpp"
#include "formats/alt/hints.hpp"
#include "formats/alt/parameters.hpp"
#include "formats/alt/write.hpp"
#include "formats/alt/write_alt_c.hpp"
#include "formats/alt/write_sections.hpp"
#include "formats/alt/write_tensors.hpp"
#include "formats/refusal.hpp"
#include "views/affine.hpp"

namespace poise::alt {
namespace {

// The data_type code of a tensor. Throws unsupported with remedies.
std::int32_t data_type(const Tensor& tensor) {
  const bool affine = tensor.layout == Layout::affine;
  if (tensor.layout != Layout::dense && !affine) refuse_tensor("alt", tensor);
  const DType dtype = tensor.require("data").dtype;
  const auto code = spelling_in(kCodes, dtype);
  if (!code || affine != (poise::info(dtype).kind == DTypeKind::quantized)) refuse_tensor("alt", tensor);
  return *code;
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
  if (const auto problems = problems_of(affine); !problems.empty()) {
    throw Error(ErrorKind::unsupported,
                fmt::format("alt cannot hold tensor {}: {}", tensor.name, fmt::join(problems, "; ")));
  }
  if (affine.min > affine.max) {
    throw Error(ErrorKind::unsupported, fmt::format("alt cannot hold tensor {}: its min {} is above its max {}",
                                                    tensor.name, affine.min, affine.max));
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

// In canonical order, with qint4 codes packed.
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

// The canonical form. All errors are thrown before the first byte is written.
class CanonicalFile {
 public:
  explicit CanonicalFile(const Model& model)
      : sections_(model, kVersion2),
        packed_(packed_tensors(model)),
        section_(section_of(pointers_to(packed_))),
        counts_(tensor_counts(model, section_)) {}
  CanonicalFile(const CanonicalFile&) = delete;  // it has pointers to its own tensors
  CanonicalFile& operator=(const CanonicalFile&) = delete;

  std::uint64_t bytes() const { return sections_.bytes(Tensors{section_, counts_}); }
  void write(Sink& sink, const Progress& progress) const {
    sections_.write(sink, Tensors{section_, counts_}, progress);
  }

 private:
  static TensorsSection section_of(const std::vector<const Tensor*>& order) {
    return {order, [hints = all_hints(order)](const Tensor& tensor, const Affine& affine) {
              return tensor_header(tensor, hints.at(&tensor), affine);
            }};
  }

  FileWriter sections_;
  std::deque<Tensor> packed_;
  TensorsSection section_;
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
  for (const Tensor& tensor : model.tensors())
    plan.tensor_bytes.push_back(with_packed_codes(tensor).require("data").blob->size());
  return plan;
}

}  // namespace poise::alt
