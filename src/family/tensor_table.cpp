#include "family/tensor_table.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "family/check.hpp"
#include "family/decoder_plan.hpp"
#include "family/families.hpp"

namespace poise {
namespace {

constexpr std::int64_t kNoLayer = -1;

Shape compute_shape(const TensorRow& row, const ConfigView& view) {
  Shape shape;
  for (const Length length : row.axes) {
    if (length != nullptr) shape.push_back(length(view));
  }
  return shape;
}

bool is_needed(const TensorRow& row, const ConfigView& view, std::int64_t layer) {
  return (row.needed == nullptr || row.needed(view)) && (row.needed_in == nullptr || row.needed_in(view, layer));
}

std::vector<ExpectedTensor> list_expected(std::span<const TensorRow> rows, const ConfigView& view,
                                          const std::string& prefix = {}, std::int64_t layer = kNoLayer) {
  std::vector<ExpectedTensor> tensors;
  tensors.reserve(rows.size());
  for (const TensorRow& row : rows) {
    if (!is_needed(row, view, layer)) continue;
    const auto star = row.name.find('*');
    if (star == std::string_view::npos) {
      tensors.push_back({prefix + std::string(row.name), compute_shape(row, view)});
      continue;
    }
    for (std::uint64_t i = 0; i < row.copies(view); ++i) {
      tensors.push_back({fmt::format("{}{}{}{}", prefix, row.name.substr(0, star), i, row.name.substr(star + 1)),
                         compute_shape(row, view)});
    }
  }
  return tensors;
}

// Returns true if the row has that name. A "*" matches any number below `copies`.
bool is_named(const TensorRow& row, std::string_view name, std::uint64_t copies) {
  const auto star = row.name.find('*');
  if (star == std::string_view::npos) return row.name == name;
  if (!name.starts_with(row.name.substr(0, star))) return false;
  const auto numbered = split_number(name.substr(star));
  return numbered && static_cast<std::uint64_t>(numbered->number) < copies &&
         row.name.substr(star + 2) == numbered->rest;
}

bool has_row(std::span<const TensorRow> rows, std::string_view name) {
  return std::ranges::any_of(rows, [&](const TensorRow& row) { return is_named(row, name, UINT64_MAX); });
}

// Returns the row of that name which the configuration needs; null if there is none.
const TensorRow* find_row(std::span<const TensorRow> rows, std::string_view name, const ConfigView& view,
                          std::int64_t layer) {
  const auto found = std::ranges::find_if(rows, [&](const TensorRow& row) {
    return is_named(row, name, UINT64_MAX) && is_needed(row, view, layer) &&
           is_named(row, name, row.copies == nullptr ? 0 : row.copies(view));
  });
  return found == rows.end() ? nullptr : &*found;
}

const TensorRow* find_table_row(const TensorTable& table, std::string_view name, const ConfigView& view) {
  const auto numbered = table.split_layer_name(name);
  if (numbered) return find_row(table.layer, numbered->rest, view, numbered->number);
  const TensorRow* const found = find_row(table.first, name, view, kNoLayer);
  return found != nullptr ? found : find_row(table.last, name, view, kNoLayer);
}

}  // namespace

std::optional<NumberedName> split_number(std::string_view name) {
  std::int32_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc() || number < 0 || end == name.data() + name.size() || *end != '.') return std::nullopt;
  const auto digits = static_cast<std::size_t>(end - name.data());
  if (fmt::format("{}", number).size() != digits) return std::nullopt;
  return NumberedName{number, name.substr(digits + 1)};
}

std::vector<ExpectedTensor> TensorTable::list_before_layers(const ConfigView& view) const {
  return list_expected(first, view);
}
std::vector<ExpectedTensor> TensorTable::list_after_layers(const ConfigView& view) const {
  return list_expected(last, view);
}

std::vector<ExpectedTensor> TensorTable::list_layer(const ConfigView& view, std::int64_t layer_number) const {
  return list_expected(layer, view, fmt::format("{}{}.", layers, layer_number), layer_number);
}

std::vector<ExpectedTensor> TensorTable::list_all(const ConfigView& view) const {
  std::vector<ExpectedTensor> tensors = list_before_layers(view);
  for (std::int64_t number = 0; number < view.config.num_hidden_layers; ++number)
    std::ranges::move(list_layer(view, number), std::back_inserter(tensors));
  std::ranges::move(list_after_layers(view), std::back_inserter(tensors));
  return tensors;
}

bool TensorTable::has(std::string_view name) const {
  const auto numbered = split_layer_name(name);
  return numbered ? has_row(layer, numbered->rest) : has_row(first, name) || has_row(last, name);
}

bool TensorTable::has(std::string_view name, const ConfigView& view) const {
  return find_table_row(*this, name, view) != nullptr;
}

std::optional<Shape> TensorTable::find_shape(std::string_view name, const ConfigView& view) const {
  const auto numbered = split_layer_name(name);
  if (numbered && numbered->number >= view.config.num_hidden_layers) return std::nullopt;
  const TensorRow* const row = find_table_row(*this, name, view);
  return row == nullptr ? std::nullopt : std::optional(compute_shape(*row, view));
}

std::optional<NumberedName> TensorTable::split_layer_name(std::string_view name) const {
  return name.starts_with(layers) ? split_number(name.substr(layers.size())) : std::nullopt;
}

std::optional<DecoderPlan> make_known_plan(const Model& model) {
  const std::string& type = model.card.model_type;
  if (!model.config || (!type.empty() && find_family(type) == nullptr)) return std::nullopt;
  const Family& family = find_family_or_llama(model);
  const ConfigView view = make_config_view(model);
  if (!check_config(view, family).empty()) return std::nullopt;
  try {
    return family.plan(view);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::internal) throw;
    return std::nullopt;
  }
}

bool is_stored_transposed(const DecoderPlan& plan, std::string_view matrix) {
  if (matrix == plan.output) return plan.output_transposed;
  return plan.transposed && matrix.starts_with(plan.layer_names);
}

}  // namespace poise
