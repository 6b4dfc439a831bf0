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

bool is_castable(DType dtype) { return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16; }

// Decides what floating-point tensors become.
class Types {
 public:
  Types(const Format& target, const ConvertOptions& options) : target_(target), options_(options), used_(options.keep.size(), false) {
    if (options.dtype && options.quantize) {
      throw Error(ErrorKind::bad_argument, "--dtype and --quantize exclude each other; --keep GLOB=DTYPE gives some tensors another type");
    }
    if (options.quantize && !options.quantize->quantized()) {
      throw Error(ErrorKind::bad_argument, fmt::format("tensors are quantized to qint8 or qint4, not {}", to_string(options.quantize->dtype)));
    }
    if (options.dtype) require_castable(*options.dtype);
    for (const ConvertOptions::Keep& keep : options.keep) {
      if (!keep.type.quantized()) require_castable(keep.type.dtype);
    }
  }

  // Nothing when the tensor stays as it is.
  std::optional<StoredType> wanted(const Tensor& tensor) {
    const auto kept = kept_type(tensor.name);
    if (!has_float_elements(tensor)) return std::nullopt;
    const auto type = kept ? kept : requested(tensor);
    if (!type) return std::nullopt;
    // The values of vectors (norms, mostly) weigh too much, and their bytes too little, for codes.
    const StoredType result = type->quantized() && tensor.shape.size() < 2 ? StoredType{} : *type;
    const bool one_part = tensor.layout == Layout::dense || tensor.layout == Layout::affine;
    const bool same = one_part && tensor.parts.front().dtype == result.dtype;
    return same ? std::nullopt : std::optional(result);
  }

  void require_all_used() const {
    for (std::size_t i = 0; i < used_.size(); ++i) {
      if (!used_[i]) throw Error(ErrorKind::bad_argument, fmt::format("the pattern \"{}\" matches no tensor", options_.keep[i].pattern));
    }
  }

 private:
  static void require_castable(DType dtype) {
    if (!is_castable(dtype)) throw Error(ErrorKind::bad_argument, fmt::format("tensors become f32, f16 or bf16, not {}", to_string(dtype)));
  }

  std::optional<StoredType> kept_type(const std::string& name) {
    std::optional<StoredType> type;
    for (std::size_t i = 0; i < used_.size(); ++i) {
      if (!glob_matches(options_.keep[i].pattern, name)) continue;
      used_[i] = true;
      if (!type) type = options_.keep[i].type;
    }
    return type;
  }

  std::optional<StoredType> requested(const Tensor& tensor) const {
    if (options_.quantize) return options_.quantize;
    if (options_.dtype) return StoredType{*options_.dtype};
    // ALT's canonical types have no bf16 (it is an extension, written when asked for by name); f16 has the same width.
    const bool replaced = tensor.layout == Layout::dense && tensor.parts.front().dtype == DType::bf16 && !target_.holds_bf16;
    return replaced ? std::optional(StoredType{DType::f16}) : std::nullopt;
  }

  const Format& target_;
  const ConvertOptions& options_;
  std::vector<bool> used_;
};

Tensor quantize_tensor(const Tensor& tensor, const StoredType& type, std::vector<QuantizedTensor>& done) {
  const auto report = std::make_shared<QuantizationReport>();
  Tensor quantized = quantize(tensor, type, report);
  done.push_back({tensor.name, type, tensor.size_bytes(), quantized.size_bytes(), report});
  return quantized;
}

Tensor cast_tensor(const Tensor& tensor, DType to, CastReports& casts) {
  auto& report = casts[{tensor.parts.front().dtype, to}];
  if (!report) report = std::make_shared<CastReport>();
  Tensor cast = make_dense(tensor.name, tensor.shape, to, dense_blob(tensor, to, report));
  if (tensor.layout == Layout::dense) cast.attributes = tensor.attributes;  // other layouts' describe their codes
  return cast;
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
  Transformed result;
  result.model.origin = model.origin;
  result.model.card = std::move(model.card);
  replace_fields(result.model.card, options.card);
  result.model.config = std::move(model.config);
  result.model.vocabulary = std::move(model.vocabulary);
  result.model.attributes = std::move(model.attributes);
  result.model.warnings = std::move(model.warnings);
  Selection selection(options);
  Types types(target, options);
  for (const Tensor& tensor : model.tensors()) {
    if (!selection.keeps(tensor.name)) {
      ++result.skipped;
      continue;
    }
    const auto type = types.wanted(tensor);
    if (!type) {
      result.model.add(tensor);
    } else if (type->quantized()) {
      result.model.add(quantize_tensor(tensor, *type, result.quantized));
    } else {
      result.model.add(cast_tensor(tensor, type->dtype, result.casts));
    }
  }
  selection.require_all_used();
  types.require_all_used();
  return result;
}

}  // namespace poise
