#include "schemes/unfolded_codes.hpp"

#include <algorithm>
#include <array>
#include <span>

#include <fmt/format.h>

#include "bytes/utf8.hpp"
#include "tensor/part_types.hpp"

namespace poise {
namespace {

// Names two parts in which programs store a matrix: codes and scales.
struct PartNames {
  std::string_view codes;
  std::string_view scales;
  std::string_view programs;
};
constexpr std::array kPartNames = std::to_array<PartNames>({{".qweight", ".scales", "GPTQ and AWQ"},
                                                            {".weight_packed", ".weight_scale", "compressed-tensors"},
                                                            {".W_q", ".scale", "HQQ"},
                                                            {".weight", ".weight.absmax", "bitsandbytes"},
                                                            {".weight", ".SCB", "bitsandbytes"},
                                                            {".weight", ".scales", "MLX"},
                                                            {"._weight_qdata", "._weight_scale", "torchao"},
                                                            {"_blocks", "_scales", "gpt-oss"}});

// Returns the part of a name before the last dot; empty if there is no dot.
std::string_view find_module(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : name.substr(0, dot);
}

}  // namespace

std::optional<UnfoldedCodes> find_unfolded_codes(const Model& model, const Tensor& tensor) {
  if (const Tensor* scale = find_scale_of_codes(model, tensor)) return UnfoldedCodes{scale, {}};
  constexpr std::array kTypes = {DType::u8, DType::i8, DType::i32, DType::u32};
  if (tensor.layout != Layout::dense || tensor.shape.size() < 2 ||
      std::ranges::find(kTypes, tensor.require("data").dtype) == kTypes.end())
    return std::nullopt;
  const std::string_view name = tensor.name;
  for (const PartNames& row : kPartNames) {
    if (!name.ends_with(row.codes)) continue;
    const std::string_view matrix = name.substr(0, name.size() - row.codes.size());
    if (const Tensor* scale = model.find(fmt::format("{}{}", matrix, row.scales)))
      return UnfoldedCodes{scale, row.programs};
  }
  return std::nullopt;
}

const Tensor* find_scale_of_codes(const Model& model, const Tensor& tensor) {
  static constexpr std::array kBytes = {DType::f8_e4m3,     DType::f8_e5m2, DType::f8_e4m3fnuz,
                                        DType::f8_e5m2fnuz, DType::u8,      DType::i8};
  // bitsandbytes may store codes of four bits as the bytes of these types.
  static constexpr std::array kNumbers = {DType::bf16, DType::f16, DType::f32, DType::f64};
  struct Scale {
    std::string_view ending;
    std::span<const DType> types;
  };
  static constexpr std::array<Scale, 3> kScales = {{{"_scale", kBytes}, {"_scale_inv", kBytes}, {".absmax", kNumbers}}};
  const std::string_view name = tensor.name;
  if (!name.ends_with(".weight") || tensor.layout != Layout::dense || tensor.shape.size() < 2) return nullptr;
  const DType type = tensor.require("data").dtype;
  for (const Scale& row : kScales) {
    if (std::ranges::find(row.types, type) == row.types.end()) continue;
    if (const Tensor* scale = model.find(fmt::format("{}{}", name, row.ending))) return scale;
  }
  return nullptr;
}

bool has_unfolded_codes(const Model& model) {
  return std::ranges::any_of(model.tensors(),
                             [&](const Tensor& tensor) { return find_unfolded_codes(model, tensor).has_value(); });
}

NearbyScales::NearbyScales(const Model& model) {
  for (const Tensor& tensor : model.tensors()) {
    const std::string_view name = tensor.name;
    const std::string_view module = find_module(name);
    const std::string last = to_lower_ascii(name.substr(module.empty() ? 0 : module.size() + 1));
    if (last.find("scale") == std::string::npos) continue;
    std::vector<const Tensor*>& scales = scales_[module];
    if (scales.size() < 2) scales.push_back(&tensor);  // two, because one may be the argument of find()
  }
}

const Tensor* NearbyScales::find(const Tensor& tensor) const {
  if (tensor.layout != Layout::dense || tensor.shape.size() < 2) return nullptr;
  const DType type = tensor.require("data").dtype;
  if (!is_floating(type) || info(type).bits > 8) return nullptr;
  for (const std::string_view module : {find_module(tensor.name), std::string_view(tensor.name)}) {
    const auto found = scales_.find(module);
    if (found == scales_.end()) continue;
    for (const Tensor* scale : found->second) {
      if (scale->name != tensor.name) return scale;
    }
  }
  return nullptr;
}

}  // namespace poise
