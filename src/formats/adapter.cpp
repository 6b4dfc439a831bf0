#include "formats/adapter.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>

#include <fmt/format.h>

#include <poise/error.hpp>
#include <poise/format.hpp>
#include <poise/source.hpp>

#include "formats/format.hpp"
#include "io/source_range.hpp"
#include "numeric/float_formats.hpp"
#include "views/dense.hpp"

namespace poise {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMostDescription = 16 << 20;  // bytes

// Returns "q_proj" for "model.layers.0.self_attn.q_proj", and "attn_q" for "blk.0.attn_q.weight".
std::string find_target(std::string_view name) {
  constexpr std::string_view kWeight = ".weight";
  if (name.ends_with(kWeight)) name.remove_suffix(kWeight.size());
  return std::string(name.substr(name.rfind('.') + 1));
}

template <typename T>
Value unwrap_single(const std::vector<T>& items) {
  if (items.size() == 1) return Value(items.front());
  return Value(Value::Array(items.begin(), items.end()));
}

}  // namespace

double compute_alpha(const AdaptedMatrix& matrix) {
  const double alpha = static_cast<double>(matrix.change.scale) * static_cast<double>(matrix.rank());
  if (!(std::abs(alpha) <= static_cast<double>(std::numeric_limits<float>::max()))) return alpha;
  return convert_by_spelling(static_cast<float>(alpha));
}

Model open_adapter(const fs::path& path) {
  std::error_code ignored;
  const fs::path directory = path.has_parent_path() ? path.parent_path() : fs::path(".");
  const fs::path description = directory / kAdapter;
  if (!fs::is_regular_file(path, ignored) || !fs::is_regular_file(description, ignored)) return open(path);
  if (path.filename() == kAdapter) return open(directory);
  Model model = open(path);
  if (model.attributes.find(kAdapterConfig) != nullptr) return model;
  const SourcePtr source = Source::open(description);
  if (source->size() > kMostDescription)
    throw Error(ErrorKind::invalid_file,
                fmt::format("expected at most {1} bytes, found {0}", source->size(), kMostDescription),
                description.string());
  model.attributes.set(std::string(kAdapterConfig), read_text(*source, source->size()));
  return model;
}

std::optional<Adapter> parse_adapter(const Model& file, const Model* base) {
  for (const Format* format : list_all_formats()) {
    if (format->read_adapter == nullptr) continue;
    if (auto found = format->read_adapter(file, base)) return found;
  }
  return std::nullopt;
}

const AdapterForm* find_adapter_form(const Model& file) {
  const auto* const form = std::ranges::find_if(kAdapterForms, [&](const AdapterForm& row) {
    return find_format_by_name(row.format).read_adapter(file, nullptr).has_value();
  });
  return form == kAdapterForms.end() ? nullptr : form;
}

const AdapterForm& choose_adapter_form(const Format& target) {
  const auto* const form = std::ranges::find(kAdapterForms, target.info.name, &AdapterForm::format);
  return form == kAdapterForms.end() ? kAdapterForms.front() : *form;
}

Attributes summarize_adapter(const Adapter& adapter) {
  constexpr std::size_t kMostNamed = 100;
  std::set<std::uint64_t> ranks;
  std::set<std::string> targets;
  for (const AdaptedMatrix& matrix : adapter.matrices) {
    if (ranks.size() < kMostNamed) ranks.insert(matrix.rank());
    if (targets.size() < kMostNamed) targets.insert(find_target(matrix.file_name));
  }
  Attributes summary = {{"kind", "lora"}, {"alpha", adapter.alpha}};
  if (!ranks.empty()) summary.set("rank", unwrap_single(std::vector<std::uint64_t>(ranks.begin(), ranks.end())));
  summary.set("targets", Value::Array(targets.begin(), targets.end()));
  summary.set("matrices", static_cast<std::uint64_t>(adapter.matrices.size()));
  if (!adapter.whole.empty()) summary.set("whole_tensors", static_cast<std::uint64_t>(adapter.whole.size()));
  if (!adapter.base_model.empty()) summary.set("base_model", adapter.base_model);
  return summary;
}

std::vector<Finding> check_adapter(const Model& file) {
  std::vector<Finding> findings;
  const auto adapter = parse_adapter(file, nullptr);
  if (!adapter) return findings;
  const auto add = [&](Severity severity, const std::vector<std::string>& problems) {
    for (const std::string& problem : problems)
      findings.push_back({severity, fmt::format("adapter: {}", problem), file.origin.path.string(), std::nullopt});
  };
  add(Severity::error, adapter->faults);
  add(Severity::warning, adapter->refusals);
  add(Severity::warning, adapter->deviations);
  return findings;
}

std::optional<std::string> ThinMatrices::find_fault(std::string_view left_name, std::string_view right_name) const {
  if (left == nullptr || right == nullptr)
    return fmt::format("{} is missing", left == nullptr ? left_name : right_name);
  for (const Tensor* tensor : {left, right}) {
    if (tensor->shape.size() != 2 || !has_float_elements(*tensor))
      return fmt::format("{} is {} of shape {}, expected a matrix of numbers", tensor->name, describe_storage(*tensor),
                         to_string(tensor->shape));
  }
  if (left->shape[1] == right->shape[0] && left->shape[1] != 0) return std::nullopt;
  return fmt::format("{} is {} and {} is {}: their ranks differ, or are 0", left_name, to_string(left->shape),
                     right_name, to_string(right->shape));
}

}  // namespace poise
