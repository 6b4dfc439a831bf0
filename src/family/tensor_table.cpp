#include "family/tensor_table.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>

#include <fmt/format.h>

namespace poise {
namespace {

Shape shape_of(const TensorRow& row, const Config& config) {
  Shape shape;
  for (const Length length : row.axes) {
    if (length != nullptr) shape.push_back(length(config));
  }
  return shape;
}

std::vector<ExpectedTensor> expected(std::span<const TensorRow> rows, const Config& config, const std::string& prefix = {}) {
  std::vector<ExpectedTensor> tensors;
  tensors.reserve(rows.size());
  for (const TensorRow& row : rows) {
    if (row.needed == nullptr || row.needed(config)) tensors.push_back({prefix + std::string(row.name), shape_of(row, config)});
  }
  return tensors;
}

bool names(std::span<const TensorRow> rows, std::string_view name) { return std::ranges::find(rows, name, &TensorRow::name) != rows.end(); }

}  // namespace

std::optional<NumberedName> split_number(std::string_view name) {
  std::int32_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc() || number < 0 || end == name.data() + name.size() || *end != '.') return std::nullopt;
  const auto digits = static_cast<std::size_t>(end - name.data());
  if (fmt::format("{}", number).size() != digits) return std::nullopt;
  return NumberedName{number, name.substr(digits + 1)};
}

std::vector<ExpectedTensor> TensorTable::before_layers(const Config& config) const { return expected(first, config); }
std::vector<ExpectedTensor> TensorTable::after_layers(const Config& config) const { return expected(last, config); }

std::vector<ExpectedTensor> TensorTable::of_layer(const Config& config, std::int64_t layer_number) const {
  return expected(layer, config, fmt::format("{}{}.", layers, layer_number));
}

std::vector<ExpectedTensor> TensorTable::all(const Config& config) const {
  std::vector<ExpectedTensor> tensors = before_layers(config);
  for (std::int64_t number = 0; number < config.num_hidden_layers; ++number) std::ranges::move(of_layer(config, number), std::back_inserter(tensors));
  std::ranges::move(after_layers(config), std::back_inserter(tensors));
  return tensors;
}

bool TensorTable::has(std::string_view name) const {
  const auto numbered = in_layer(name);
  return numbered ? names(layer, numbered->rest) : names(first, name) || names(last, name);
}

std::optional<NumberedName> TensorTable::in_layer(std::string_view name) const {
  return name.starts_with(layers) ? split_number(name.substr(layers.size())) : std::nullopt;
}

}  // namespace poise
