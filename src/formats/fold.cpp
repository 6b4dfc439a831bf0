#include "formats/fold.hpp"

#include <algorithm>
#include <array>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "family/check.hpp"
#include "family/families.hpp"
#include "formats/input.hpp"
#include "schemes/make_tensors.hpp"
#include "schemes/scheme.hpp"
#include "views/dense.hpp"

namespace poise {
namespace {

namespace fs = std::filesystem;

bool is_all_zero(const Tensor& tensor) {
  const BlobPtr numbers = make_dense_blob(tensor, DType::f32);
  std::array<float, 4096> piece;
  for (std::uint64_t first = 0; first < tensor.elements();) {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(piece.size(), tensor.elements() - first));
    numbers->read(first * sizeof(float), std::as_writable_bytes(std::span(piece.data(), count)));
    if (std::any_of(piece.begin(), piece.begin() + count, [](float number) { return number != 0; })) return false;
    first += count;
  }
  return true;
}

// Returns true for the bias of a quantized matrix: one floating-point number for each row of the matrix.
bool is_bias_of_quantized(const Model& model, std::string_view name) {
  constexpr std::string_view kBias = ".bias";
  if (!name.ends_with(kBias)) return false;
  name.remove_suffix(kBias.size());
  const Tensor* matrix = model.find(fmt::format("{}.weight", name));
  const Tensor* bias = model.find(fmt::format("{}{}", name, kBias));
  return matrix != nullptr && matrix->layout != Layout::dense && matrix->shape.size() == 2 && bias != nullptr &&
         bias->shape == Shape{matrix->shape[0]} && has_float_elements(*bias);
}

Model leave_out_tensors(const std::unordered_set<std::string_view>& names, Model model, std::string warning) {
  Model result(model.header());
  for (const Tensor& tensor : model.tensors()) {
    if (!names.contains(tensor.name)) result.add(tensor);
  }
  warn(result.warnings, std::move(warning), model.origin.path);
  return result;
}

bool is_of_known_family(const Model& model) { return model.config && find_family(model.card.model_type) != nullptr; }

// Leaves out biases of zeros that the family lacks, with a warning. AutoGPTQ gives every quantized module a bias.
Model leave_out_zero_biases(Model model) {
  if (!is_of_known_family(model)) return model;
  std::unordered_set<std::string_view> zeros;
  std::string_view first;
  for (const std::string_view name : find_unknown_weights(model)) {
    if (!is_bias_of_quantized(model, name) || !is_all_zero(*model.find(std::string(name)))) continue;
    if (zeros.empty()) first = name;
    zeros.insert(name);
  }
  if (zeros.empty()) return model;
  const std::string what = zeros.size() == 1
                               ? fmt::format("tensor {} is left out: it holds", first)
                               : fmt::format("tensors {} and {} more are left out: they hold", first, zeros.size() - 1);
  std::string warning =
      fmt::format("{} zeros, and {} models have no such bias", what, find_family(model.card.model_type)->title);
  return leave_out_tensors(zeros, std::move(model), std::move(warning));
}

// Leaves out scales of inputs, outputs, attention and the cache (kNotOfWeights) that the family lacks, with a warning.
// Programs store such scales even for weights that are not quantized.
Model leave_out_other_scales(Model model) {
  const auto is_scale = [](std::string_view name) {
    return std::ranges::any_of(schemes::kNotOfWeights, [&](std::string_view end) { return name.ends_with(end); });
  };
  if (!is_of_known_family(model) ||
      std::ranges::none_of(model.tensors(), [&](const Tensor& tensor) { return is_scale(tensor.name); }))
    return model;
  std::unordered_set<std::string_view> scales;
  std::string_view first;
  for (const std::string_view name : find_unknown_weights(model)) {
    if (!is_scale(name)) continue;
    if (scales.empty()) first = name;
    scales.insert(name);
  }
  if (scales.empty()) return model;
  std::string warning = schemes::format_left_out_warning(first, scales.size());
  return leave_out_tensors(scales, std::move(model), std::move(warning));
}

}  // namespace

Model fold_file(Model model, const fs::path& path, const ReadOptions& options) {
  if (options.raw) return model;
  try {
    std::optional<Model> folded = merge_quantized_parts(model);
    return folded ? *std::move(folded) : std::move(model);
  } catch (const Error& error) {
    throw Error(error.kind(), error.message(), path.string());
  }
}

Model fold_directory(Model model, const fs::path& path, std::string_view quantization_file,
                     const ReadOptions& options) {
  if (options.raw) return model;
  const auto found = find_quantization(model.config_json);
  const bool is_from_file = found && !quantization_file.empty() && is_known_method(found->method);
  try {
    model = fold_matrices(std::move(model));
  } catch (const Error& error) {
    const std::string from =
        quantization_file.empty() ? "" : fmt::format(" (quantization_config is read from {})", quantization_file);
    throw Error(error.kind(), error.message() + from, path.string());
  }
  model = leave_out_other_scales(std::move(model));
  if (found && !find_quantization(model.config_json)) return leave_out_zero_biases(std::move(model));
  if (is_from_file && find_reversible_scheme(model.config_json) == nullptr) {
    model.config_json.erase("quantization_config");
    warn(model.warnings, fmt::format("{} describes quantized matrices, but the directory has none", quantization_file),
         path);
  }
  return model;
}

std::optional<Model> fold_remaining_parts(const Model& model) {
  std::optional<Model> parts = merge_quantized_parts(model);
  std::optional<Model> scaled = fold_comfy_ui(parts ? *parts : model);
  return scaled ? std::move(scaled) : std::move(parts);
}

}  // namespace poise
