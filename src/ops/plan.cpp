// plan(): describes a conversion before it is carried out.
#include <fmt/format.h>

#include "ops/conversion.hpp"
#include "views/dense.hpp"

namespace poise {
namespace {

PlannedTensor planned(const Tensor& before, const Tensor& after) {
  return {.name = after.name,
          .shape = after.shape,
          .from = stored_type_name(before),
          .to = stored_type_name(after),
          .bytes_in = before.size_bytes(),
          .bytes_out = {}};
}

Plan described(std::shared_ptr<Plan::Work> work) {
  const Transformed& transformed = work->transformed;
  const Model& model = transformed.model;
  const FilePlan file = work->file().plan();
  Plan plan;
  plan.format = work->format->info.name;
  plan.skipped = transformed.skipped;
  plan.warnings = model.warnings;
  if (!work->replaces.empty()) plan.warnings.push_back({Severity::warning, work->replaces, {}, std::nullopt});
  plan.losses = work->reported_losses();
  if (transformed.perhaps_sparse.empty()) plan.bytes_out = file.bytes;
  plan.exact = file.exact;
  plan.decoded = transformed.decoded;
  plan.merged = transformed.merged;
  plan.tensors.reserve(file.tensor_bytes.size());
  const Model& before = transformed.reformed ? transformed.reformed->model : *work->input;
  for (std::size_t i = 0; i < file.tensor_bytes.size(); ++i) {
    const Tensor& tensor = model.tensors()[i];
    PlannedTensor& to = plan.tensors.emplace_back(planned(*before.find(tensor.name), tensor));
    if (!transformed.perhaps_sparse.contains(tensor.name)) to.bytes_out = file.tensor_bytes[i];
  }
  plan.work = std::move(work);
  return plan;
}

}  // namespace

Plan plan(const Model& model, std::string_view format, const ConvertOptions& changes) {
  return described(prepare(model, format, changes));
}

Plan plan(const std::filesystem::path& input, const std::filesystem::path& output, const ConvertOptions& options) {
  Plan plan = described(prepare(input, output, options));
  const std::string name = output.filename().string();
  const std::string main_name = plan.work->file().main_name(name);
  plan.output = main_name == name ? output : output.parent_path() / main_name;
  return plan;
}

}  // namespace poise
