// This step chooses a type for each floating-point tensor, by dtype, quantize, recipe, keep and budget, and by the
// types that the target supports.
#include <algorithm>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "codec/block_type.hpp"
#include "family/families.hpp"
#include "ops/block_recipe.hpp"
#include "ops/transform/transform.hpp"
#include "patterns/glob.hpp"
#include "schemes/scheme.hpp"
#include "schemes/unfolded_codes.hpp"
#include "tensor/block_layout.hpp"
#include "views/dense.hpp"
#include "views/layout_type.hpp"
#include "views/sparse.hpp"

namespace poise {
namespace {

bool is_castable(DType dtype) { return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16; }

void require_castable(DType dtype) {
  if (!is_castable(dtype))
    throw Error(ErrorKind::bad_argument, fmt::format("tensors become f32, f16 or bf16, not {}", to_string(dtype)));
}

// Returns `type`, or the type that llama-quantize uses in its place for rows that are not whole blocks.
StoredType choose_type_for_rows(StoredType type, std::uint64_t columns) {
  const BlockType* wanted = get_block_type(type);
  if (wanted == nullptr) return type;
  const BlockType* fitting = choose_block_type_for_rows(*wanted, columns);
  if (fitting == nullptr) return StoredType{DType::f16};
  type.blocks = fitting->name;
  return type;
}

// Returns true if the tensor has that type. `along` is the direction of blocks in the new type.
bool is_stored_as_type(const Tensor& tensor, const StoredType& type, BlocksAlong along) {
  const LayoutType& layout = find_layout_type(tensor.layout);
  if (&layout != &find_layout_type(type) || layout.is_stored_as == nullptr) return false;
  return layout.is_stored_as(tensor, type) && (type.blocks.empty() || get_block_direction(tensor.layout) == along);
}

class ChooseType final : public Step {
 public:
  explicit ChooseType(const Conversion& conversion)
      : conversion_(conversion),
        target_(conversion.target),
        options_(conversion.options),
        scales_(conversion.input),
        stored_as_f32_(target_.make_f32_test == nullptr ? nullptr : target_.make_f32_test(conversion.described)),
        explain_numbers_(target_.make_codes_test == nullptr ? nullptr : target_.make_codes_test(conversion.described)),
        embedding_(find_family_or_llama(conversion.described).embedding),
        keep_used_(options_.keep.size(), false),
        keep_parts_(options_.keep.size()) {
    if ((options_.dtype ? 1 : 0) + (options_.quantize ? 1 : 0) + (options_.recipe.empty() ? 0 : 1) +
            (options_.budget ? 1 : 0) >
        1) {
      throw Error(ErrorKind::bad_argument,
                  "dtype, quantize, recipe and budget exclude each other; keep gives some tensors another type");
    }
    if (!options_.recipe.empty()) {
      recipe_.emplace(options_.recipe, conversion.input);
      if (!holds_layout(target_, layouts::blocks)) refuse_type(options_.recipe);
    }
    if (options_.quantize && !options_.quantize->quantized()) {
      throw Error(ErrorKind::bad_argument,
                  fmt::format("tensors are quantized to qint8, qint4, group8, group4 or ggml's blocks, not {}",
                              to_string(options_.quantize->dtype)));
    }
    if (options_.dtype) require_castable(*options_.dtype);
    if (options_.quantize) require_possible(*options_.quantize);
    for (const ConvertOptions::Keep& keep : options_.keep) require_possible(keep.type);
  }

  void apply(TensorPlan& plan) override {
    const auto kept = find_kept_type(plan.tensor);
    const bool has_floats = has_float_elements(plan.tensor);
    if (has_floats) {
      plan.type = choose_type(plan, kept);
      if (plan.type) require_numbers(plan.tensor);
    } else if (matches_part_) {
      plan.warn(fmt::format("it is a part of a quantized matrix, so keep does not change it: {}", kAllAtOnce));
    } else if (kept && plan.tensor.layout != Layout::other) {
      plan.warn("its elements are not floating-point numbers, so keep does not change them");
    }
    if (plan.type && plan.type->quantized() && find_layout_type(plan.tensor.layout).quantized)
      plan.warn("its codes are quantized again, so errors add up; the loss is that of the second time alone");
    if ((kept || options_.dtype || options_.quantize || recipe_ || conversion_.types) &&
        keeps_type_against_request(plan)) {
      plan.warnings.push_back({fmt::format("{} ({})", plan.tensor.name, describe_storage(plan.tensor)),
                               "stored in a way that cannot be cast or quantized, so the type stays"});
    }
  }

  void finish(Model&) override {
    for (std::size_t i = 0; i < keep_used_.size(); ++i) {
      if (keep_used_[i]) continue;
      const std::string& pattern = options_.keep[i].pattern;
      if (keep_parts_[i].empty()) refuse_pattern("keep", pattern);
      throw Error(ErrorKind::bad_argument,
                  fmt::format("keep: the pattern \"{}\" matches only parts of quantized matrices, such as {}, and "
                              "{} files hold these matrices by their parts: {}",
                              pattern, keep_parts_[i], target_.info.name, kAllAtOnce))
          .with({.kind = Remedy::Kind::dtype, .value = "bf16"});
    }
  }

 private:
  // Throws unsupported for codes that a tensor next to them scales: as numbers they would be wrong.
  void require_numbers(const Tensor& tensor) const {
    const Tensor* scale = find_scale_of_codes(conversion_.input, tensor);
    if (scale == nullptr) scale = scales_.find(tensor);
    if (scale == nullptr) return;
    throw Error(ErrorKind::unsupported, fmt::format("tensor {} holds codes ({}) that {} scales, but no configuration "
                                                    "describes how; without another type, they are copied as they are",
                                                    tensor.name, describe_storage(tensor), scale->name))
        .with({.kind = Remedy::Kind::skip, .tensor = tensor.name});
  }

  [[noreturn]] void refuse_type(std::string_view type) const {
    throw Error(ErrorKind::bad_argument, fmt::format("{} files hold no {} tensors", target_.info.name, type));
  }

  void require_possible(const StoredType& type) const {
    if (!type.quantized()) return require_castable(type.dtype);
    if (!holds_layout(target_, find_layout_type(type))) refuse_type(to_string(type));
  }

  static constexpr std::string_view kAllAtOnce = "parts stay as they are, or all matrices become numbers of one type";

  // Returns the type of the first pattern of keep that matches. A part of a quantized matrix gets no type: a pattern
  // that matches its name, or the matrix's, only sets matches_part_.
  std::optional<StoredType> find_kept_type(const Tensor& tensor) {
    std::optional<StoredType> type;
    matches_part_ = false;
    if (keep_used_.empty()) return type;
    const std::vector<std::string> names = list_pattern_names(conversion_.input.config_json, tensor.name);
    for (std::size_t i = 0; i < keep_used_.size(); ++i) {
      const auto is_match = [&](const std::string& other) { return matches_glob(options_.keep[i].pattern, other); };
      if (std::ranges::none_of(names, is_match) && !(tensor.file_name && is_match(*tensor.file_name))) continue;
      if (names.size() > 1) {
        matches_part_ = true;
        if (keep_parts_[i].empty()) keep_parts_[i] = tensor.name;
        continue;
      }
      keep_used_[i] = true;
      if (!type) type = options_.keep[i].type;
    }
    return type;
  }

  // Returns std::nullopt if the tensor keeps its type.
  std::optional<StoredType> choose_type(TensorPlan& plan, const std::optional<StoredType>& kept) const {
    const Tensor& tensor = plan.tensor;
    const bool along_columns = needs_blocks_along_columns(conversion_, tensor);
    const std::uint64_t row_length = tensor.shape.empty() ? 1
                                     : along_columns      ? tensor.shape.front()
                                                          : tensor.shape.back();
    const bool always_f32 = stored_as_f32_ && stored_as_f32_(tensor);
    auto type = kept ? kept : find_requested_type(plan, row_length);
    if (!type && always_f32 && becomes_dense(tensor) && find_element_type(tensor) != DType::f64) type = StoredType{};
    if (!type) return std::nullopt;
    // Vectors (most are norms) are small and sensitive to errors, so they are not quantized.
    const bool is_small =
        tensor.shape.size() < 2 || (!type->blocks.empty() && !kept && is_never_quantized(tensor.name));
    if (kept && kept->quantized() && is_small) {
      plan.warn("vectors are not quantized, so it is f32");
    } else if (kept && always_f32 && *kept != StoredType{}) {
      plan.warn(fmt::format("{} files store it as f32, so keep has no effect", target_.info.name));
    }
    const bool is_f32 = always_f32 || (type->quantized() && is_small);
    const StoredType result = is_f32 ? StoredType{} : choose_type_for_rows(*type, row_length);
    if (const std::string_view why = explain_numbers(tensor, result); !why.empty()) {
      if (kept || tensor.name != embedding_) plan.warn(fmt::format("{}, so it is not quantized", why));
      return std::nullopt;
    }
    const bool encodes_again = plan.is_by_budget && conversion_.types->encodes_again;
    if (!encodes_again && is_stored_as_type(tensor, result, along_columns ? BlocksAlong::columns : BlocksAlong::rows))
      return std::nullopt;
    return result;
  }

  // Returns why the target's files hold no codes of the type for the tensor; empty if they do, or for numbers.
  std::string_view explain_numbers(const Tensor& tensor, const StoredType& type) const {
    return explain_numbers_ && type.quantized() ? explain_numbers_(tensor, type) : "";
  }

  std::optional<StoredType> find_requested_type(TensorPlan& plan, std::uint64_t row_length) const {
    const Tensor& tensor = plan.tensor;
    if (options_.quantize) return options_.quantize;
    if (recipe_) {
      return StoredType{.dtype = DType::u8,
                        .blocks = recipe_->choose_type(tensor.name, row_length, !options_.imatrix.empty()).name};
    }
    if (options_.dtype) return StoredType{*options_.dtype};
    if (conversion_.types != nullptr) {
      if (tensor.shape.size() < 2 || is_never_quantized(tensor.name)) return StoredType{};
      const auto chosen = conversion_.types->chosen.find(tensor.name);
      const auto& type = chosen == conversion_.types->chosen.end() ? conversion_.types->others : chosen->second;
      plan.is_by_budget = type.has_value();
      if (type) return type;
    }
    if (const auto own = find_own_type(plan)) return own;
    // Formats without `holds_bf16`, such as ALT, get bf16 only if the user asks for it. Otherwise f32 replaces bf16,
    // because f16 has a smaller range.
    const bool is_replaced = becomes_dense(tensor) && find_element_type(tensor) == DType::bf16 && !target_.holds_bf16;
    return is_replaced ? std::optional(StoredType{}) : std::nullopt;
  }

  // Returns the type that a matrix had before adapters changed it; std::nullopt for other tensors, and if Poise cannot
  // encode the type or the target cannot hold it.
  std::optional<StoredType> find_own_type(TensorPlan& plan) const {
    if (conversion_.merged == nullptr) return std::nullopt;
    const auto own = conversion_.merged->find(plan.tensor.name);
    if (own == conversion_.merged->end()) return std::nullopt;
    auto type = stored_type_from_name(own->second);
    // A type that needs an importance matrix is encoded only if an option asks for it.
    const BlockType* const blocks = type ? get_block_type(*type) : nullptr;
    if (blocks != nullptr && blocks->needs_importance) type.reset();
    if (type && type->quantized()) return holds_layout(target_, find_layout_type(*type)) ? type : std::nullopt;
    if (type && is_castable(type->dtype))
      return type->dtype == DType::bf16 && !target_.holds_bf16 ? std::nullopt : type;
    if (!type && has_float_elements(plan.tensor) && own->second != to_string(find_element_type(plan.tensor)))
      plan.warn(fmt::format("it becomes f32 with the adapter's change, because Poise cannot encode its own type, {}{}",
                            own->second, blocks != nullptr ? ", without an importance matrix" : ""));
    return std::nullopt;
  }

  bool becomes_dense(const Tensor& tensor) const {
    return tensor.layout == Layout::dense || !has_layout_for(target_, tensor);
  }

  // Returns true if the tensor keeps its type although another one was asked for.
  static bool keeps_type_against_request(const TensorPlan& plan) {
    if (is_sparse(plan.tensor)) return plan.type && plan.type->quantized();
    const bool is_unknown = plan.tensor.layout == Layout::dense && plan.tensor.require("data").dtype == DType::unknown;
    return is_unknown || (plan.tensor.layout == Layout::other && !has_float_elements(plan.tensor));
  }

  const Conversion& conversion_;
  const Format& target_;
  const ConvertOptions& options_;
  NearbyScales scales_;
  std::function<bool(const Tensor&)> stored_as_f32_;  // Format::make_f32_test of the model; empty: never
  // Format::make_codes_test of the model; empty: files hold codes of all tensors.
  std::function<std::string_view(const Tensor&, const StoredType&)> explain_numbers_;
  std::string_view embedding_;
  std::optional<BlockRecipe> recipe_;
  std::vector<bool> keep_used_;
  std::vector<std::string> keep_parts_;  // for each pattern, the first part of a quantized matrix that it matches
  bool matches_part_ = false;            // true if the tensor is such a part
};

}  // namespace

std::unique_ptr<Step> make_choose_type_step(const Conversion& conversion) {
  return std::make_unique<ChooseType>(conversion);
}

}  // namespace poise
