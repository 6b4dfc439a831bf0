// Writes ALT version 1.
//
// It has no scales, scores or token types; losses_v1() lists what it loses.
#include <fmt/format.h>

#include <poise/error.hpp>

#include "family/families.hpp"
#include "formats/alt/parameters.hpp"
#include "formats/alt/roles.hpp"
#include "formats/alt/write.hpp"
#include "formats/alt/write_sections.hpp"
#include "formats/alt/write_tensors.hpp"
#include "formats/refusal.hpp"

namespace poise::alt {
namespace {

// Includes the empty name of a model without configuration.
bool is_usual_activation(std::string_view name) {
  return name.empty() || name == Config{}.hidden_act || name == "swish";
}

std::int32_t data_type(const Tensor& tensor) {
  if (tensor.layout == Layout::affine) {
    throw Error(ErrorKind::unsupported,
                fmt::format("alt1 has no scales, so it cannot hold the quantized tensor {}", tensor.name))
        .with({.kind = Remedy::Kind::dtype, .value = "f32"});
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

// All errors are thrown before the first byte is written.
struct File {
  explicit File(const Model& model)
      : section(in_canonical_order(model), tensor_header),
        counts(tensor_counts(model, section)),
        sections(model, kVersion1) {
    // Version 1 has no hidden_act; readers assume the usual one.
    if (const Family& family = family_of(model); family.hidden_act != Config{}.hidden_act) {
      throw Error(ErrorKind::unsupported, fmt::format("alt1 says nothing of what makes a {}", family.title))
          .with({.kind = Remedy::Kind::format, .value = "alt"});
    }
    if (model.config && !is_usual_activation(model.config->hidden_act)) {
      throw Error(ErrorKind::unsupported,
                  fmt::format("alt1 cannot hold hidden_act \"{}\": its readers would compute another model",
                              model.config->hidden_act))
          .with({.kind = Remedy::Kind::format, .value = "alt"});
    }
  }
  Tensors tensors() const { return {section, counts}; }

  TensorsSection section;
  SectionWriter counts;
  FileWriter sections;
};

}  // namespace

void write_v1(const Model& model, Output& output, const WriteOptions& options) {
  require_held_config(model);
  const File file(model);
  file.sections.write(output.main(), file.tensors(), options.progress);
}

FilePlan plan_v1(const Model& model, const WriteOptions&) {
  require_held_config(model);
  const File file(model);
  FilePlan plan;
  plan.bytes = file.sections.bytes(file.tensors());
  for (const Tensor& tensor : model.tensors()) plan.tensor_bytes.push_back(tensor.require("data").blob->size());
  return plan;
}

}  // namespace poise::alt
