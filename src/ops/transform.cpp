#include "ops/transform.hpp"

#include <fmt/format.h>

#include <poise/error.hpp>

#include "ops/glob.hpp"
#include "tensor/dense.hpp"

namespace poise {
namespace {

// Which tensors go on, and whether every pattern had something to say.
class Selection {
 public:
  explicit Selection(const ConvertOptions& options) : only_(counted(options.only)), skip_(counted(options.skip)) {}

  bool keeps(const std::string& name) {
    const bool wanted = only_.empty() || matches(only_, name);
    const bool unwanted = matches(skip_, name);
    return wanted && !unwanted;
  }

  void require_all_used() const {
    for (const auto* patterns : {&only_, &skip_}) {
      for (const auto& [pattern, used] : *patterns) {
        if (!used) throw Error(ErrorKind::bad_argument, fmt::format("the pattern \"{}\" matches no tensor", pattern));
      }
    }
  }

 private:
  using Patterns = std::vector<std::pair<std::string, bool>>;  // pattern, has it matched

  static Patterns counted(const std::vector<std::string>& patterns) {
    Patterns result;
    for (const std::string& pattern : patterns) result.emplace_back(pattern, false);
    return result;
  }

  static bool matches(Patterns& patterns, const std::string& name) {
    bool any = false;
    for (auto& [pattern, used] : patterns) {
      if (glob_matches(pattern, name)) any = used = true;
    }
    return any;
  }

  Patterns only_;
  Patterns skip_;
};

// The type a floating-point tensor is to have in the target.
DType target_dtype(DType from, const Format& target, const ConvertOptions& options) {
  if (options.dtype) return *options.dtype;
  // ALT's canonical types have no bf16 (it is an extension, written when asked for by name); f16 has the same width.
  return from == DType::bf16 && !target.holds_bf16 ? DType::f16 : from;
}

// The type as which a tensor's elements go on; nothing when they stay as they are.
std::optional<DType> wanted_dtype(const Tensor& tensor, const Format& target, const ConvertOptions& options) {
  if (!has_float_elements(tensor)) return std::nullopt;
  if (tensor.layout != Layout::dense) return options.dtype;
  const DType from = tensor.require("data").dtype;
  const DType to = target_dtype(from, target, options);
  return from == to ? std::nullopt : std::optional(to);
}

Tensor cast_tensor(const Tensor& tensor, const Format& target, const ConvertOptions& options, CastReports& casts) {
  const auto to = wanted_dtype(tensor, target, options);
  if (!to) return tensor;
  auto& report = casts[{tensor.parts.front().dtype, *to}];
  if (!report) report = std::make_shared<CastReport>();
  Tensor cast = make_dense(tensor.name, tensor.shape, *to, dense_blob(tensor, *to, report));
  if (tensor.layout == Layout::dense) cast.attributes = tensor.attributes;  // other layouts' describe their codes
  return cast;
}

void require_castable(const ConvertOptions& options) {
  if (!options.dtype || *options.dtype == DType::f32 || *options.dtype == DType::f16 || *options.dtype == DType::bf16) return;
  throw Error(ErrorKind::bad_argument, fmt::format("tensors become f32, f16 or bf16, not {}", to_string(*options.dtype)));
}

void replace_fields(Card& card, const Card& with) {
  const auto replace = [](std::string& field, const std::string& value) {
    if (!value.empty()) field = value;
  };
  replace(card.model_type, with.model_type);
  replace(card.base_model, with.base_model);
  replace(card.author, with.author);
  replace(card.created_at, with.created_at);
  replace(card.last_modified, with.last_modified);
  replace(card.license, with.license);
  replace(card.uuid, with.uuid);
}

}  // namespace

Transformed transform(Model model, const Format& target, const ConvertOptions& options) {
  require_castable(options);
  Transformed result;
  result.model.origin = model.origin;
  result.model.card = std::move(model.card);
  replace_fields(result.model.card, options.card);
  result.model.config = std::move(model.config);
  result.model.vocabulary = std::move(model.vocabulary);
  result.model.attributes = std::move(model.attributes);
  result.model.warnings = std::move(model.warnings);
  Selection selection(options);
  for (const Tensor& tensor : model.tensors()) {
    if (!selection.keeps(tensor.name)) {
      ++result.skipped;
      continue;
    }
    result.model.add(cast_tensor(tensor, target, options, result.casts));
  }
  selection.require_all_used();
  return result;
}

}  // namespace poise
