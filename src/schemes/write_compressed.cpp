#include "schemes/scheme.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/checked.hpp"
#include "bytes/little_endian.hpp"
#include "io/read_fully.hpp"
#include "numeric/integers.hpp"
#include "tensor/group_scheme.hpp"
#include "views/computed_blob.hpp"
#include "views/dense.hpp"
#include "views/layout_type.hpp"

namespace poise {
namespace {

constexpr std::string_view kWeight = ".weight";
constexpr std::uint64_t kWordBits = 32;

std::vector<float> read_numbers(const Part& part, std::size_t count) {
  std::vector<float> numbers(count);
  const LoadedBlob loaded(part.blob);
  if (is_integer(part.dtype)) {
    visit_integer(part.dtype, [&](auto zero) {
      using T = decltype(zero);
      for (std::size_t i = 0; i < count; ++i) numbers[i] = static_cast<float>(loaded.at<T>(i));
    });
  } else {
    widen(part.dtype, loaded.bytes().data(), numbers);
  }
  return numbers;
}

bool is_code(float number, unsigned bits) {
  return number >= 0 && number < static_cast<float>(1U << bits) && number == std::floor(number);
}

// Returns true if the zero points may be codes: they are integers, or float16 numbers that are all codes.
bool may_be_codes(const Part& zeros, unsigned bits) {
  constexpr std::uint64_t kMost = 32 << 10;
  if (is_integer(zeros.dtype)) return true;
  if (zeros.dtype != DType::f16) return false;
  if (find_change(*zeros.blob, StoredAs::Change::codes) != nullptr) return true;
  const auto stream = zeros.blob->stream();
  std::vector<std::byte> bytes(kMost * sizeof(std::uint16_t));
  std::vector<float> numbers(kMost);
  while (const std::size_t count = stream->read(bytes) / sizeof(std::uint16_t)) {
    const std::span<float> read = std::span(numbers).first(count);
    widen(DType::f16, bytes.data(), read);
    if (!std::ranges::all_of(read, [&](float number) { return is_code(number, bits); })) return false;
  }
  return true;
}

// Packs zero points [rows, groups] as codes: neighbours along a column share a word.
class ZeroWords final : public Blob {
 public:
  ZeroWords(const Tensor& tensor, unsigned bits, std::uint64_t groups)
      : name_(tensor.name), zeros_(tensor.require("zeros")), rows_(tensor.shape[0]), groups_(groups), bits_(bits) {}

  std::uint64_t words() const { return ceil_div(rows_, per_word()); }
  std::uint64_t size() const override { return words() * groups_ * sizeof(std::uint32_t); }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    const auto codes =
        kept_.get([this] { return std::make_shared<const std::vector<std::uint8_t>>(read_zero_codes()); });
    for (std::size_t i = 0; i < out.size(); ++i) {
      const std::uint64_t word = (offset + i) / sizeof(std::uint32_t);
      const std::uint64_t first = word / groups_ * per_word() + (offset + i) % sizeof(std::uint32_t) * (8 / bits_);
      unsigned byte = 0;
      for (unsigned j = 0; j < 8 / bits_ && first + j < rows_; ++j)
        byte |= unsigned{(*codes)[static_cast<std::size_t>((first + j) * groups_ + word % groups_)]} << bits_ * j;
      out[i] = static_cast<std::byte>(byte);
    }
    if (offset + out.size() == size()) kept_.release();
  }

 private:
  std::uint64_t per_word() const { return kWordBits / bits_; }

  std::vector<std::uint8_t> read_zero_codes() const {
    const std::vector<float> numbers = read_numbers(zeros_, static_cast<std::size_t>(rows_ * groups_));
    std::vector<std::uint8_t> codes;
    for (const float number : numbers) {
      if (!is_code(number, bits_)) {
        throw Error(ErrorKind::unsupported,
                    fmt::format("tensor {}: the zero point {} is not a code of {} bits, as compressed-tensors requires",
                                name_, number, bits_))
            .with({.kind = Remedy::Kind::dtype, .value = "f16"});
      }
      codes.push_back(static_cast<std::uint8_t>(number));
    }
    return codes;
  }

  std::string name_;
  Part zeros_;
  std::uint64_t rows_;
  std::uint64_t groups_;
  unsigned bits_;
  LazyValue<const std::vector<std::uint8_t>> kept_;
};

}  // namespace

std::string_view explain_numbers(const Tensor& tensor, unsigned bits, std::string_view embedding) {
  if (tensor.name == embedding) return "compressed-tensors has no codes for embeddings";
  const bool has_parts =
      tensor.name.ends_with(kWeight) && tensor.shape.size() == 2 && tensor.shape[1] * bits % kWordBits == 0;
  return has_parts ? "" : "compressed-tensors has codes only for matrices X.weight with rows of whole 32-bit words";
}

namespace {

// Returns why the codes of a tensor become float32 numbers; empty if compressed-tensors' parts can hold them.
std::string_view explain_float_fallback(const Tensor& tensor, std::string_view embedding) {
  const GroupScheme* scheme = get_group_scheme(tensor.layout);
  if (scheme == nullptr) return "a type of its parts is not known";
  if (const std::string_view why = explain_numbers(tensor, scheme->bits, embedding); !why.empty()) return why;
  check_parts(tensor);
  const bool in_rows =
      scheme->axis == 1 && scheme->group_size > 0 && (scheme->packing_axis == 1 || scheme->per_word == 1);
  const bool in_words = (scheme->bits == 4 || scheme->bits == 8) && !scheme->high_bits_first &&
                        scheme->per_word * scheme->bits == info(scheme->word).bits;
  if (!in_rows || !in_words) return "codes are packed otherwise";
  if (scheme->power_of_two || scheme->zeros != GroupScheme::Zeros::plain || !can_widen(tensor.require("scales").dtype))
    return "scales or zero points have another form";
  return may_be_codes(tensor.require("zeros"), scheme->bits) ? "" : "zero points are not codes";
}

class Unfolding {
 public:
  Unfolding(const Model& model, std::string_view embedding, std::string_view tied)
      : model_(model), embedding_(embedding), result_{Model(model.header()), {}, {}} {
    if (tied.ends_with(kWeight) && model.find(tied) == nullptr) ignored_.push_back(remove_weight_ending(tied));
  }

  UnfoldedModel unfold() {
    for (const Tensor& tensor : model_.tensors()) add_tensor(tensor);
    if (!modules_.empty()) result_.config = make_config();
    return std::move(result_);
  }

 private:
  using Form = std::pair<unsigned, std::uint64_t>;  // bits; columns in a group, 0 for a whole row

  void add_tensor(const Tensor& tensor) {
    if (tensor.layout != Layout::quantized_group) {
      const bool is_linear = tensor.shape.size() == 2 && tensor.name != embedding_;
      if (is_linear && tensor.name.ends_with(kWeight)) ignored_.push_back(remove_weight_ending(tensor.name));
      result_.model.add(tensor);
      return;
    }
    if (const std::string_view why = explain_float_fallback(tensor, embedding_); !why.empty()) {
      result_.losses.push_back(fmt::format("tensor {} becomes float32: {}", tensor.name, why));
      if (tensor.name != embedding_ && tensor.name.ends_with(kWeight))
        ignored_.push_back(remove_weight_ending(tensor.name));
      result_.model.add(make_dense(tensor.name, tensor.shape, DType::f32, make_dense_blob(tensor, DType::f32)));
      return;
    }
    add_parts(tensor);
  }

  static std::string remove_weight_ending(std::string_view weight) {
    return std::string(weight.substr(0, weight.size() - kWeight.size()));
  }

  void add_parts(const Tensor& tensor) {
    const GroupScheme& scheme = *get_group_scheme(tensor.layout);
    const std::string module = remove_weight_ending(tensor.name);
    const std::uint64_t groups = tensor.shape[1] / scheme.group_size;
    const Part& scales = tensor.require("scales");
    const auto add = [&](std::string_view ending, Shape shape, DType type, BlobPtr blob) {
      result_.model.add(make_dense(module + std::string(ending), std::move(shape), type, std::move(blob)));
    };
    add(".weight_packed", {tensor.shape[0], tensor.shape[1] * scheme.bits / kWordBits}, DType::i32,
        tensor.require("packed_weight").blob);
    add(".weight_scale", {tensor.shape[0], groups}, scales.dtype, scales.blob);
    std::vector<std::byte> shape(2 * sizeof(std::uint64_t));
    for (std::size_t axis = 0; axis < 2; ++axis)
      store_le<std::uint64_t>(shape.data() + axis * sizeof(std::uint64_t), tensor.shape[axis]);
    add(".weight_shape", {2}, DType::i64, make_memory_blob(std::move(shape), "shape"));
    auto zeros = std::make_shared<const ZeroWords>(tensor, scheme.bits, groups);
    add(".weight_zero_point", {zeros->words(), groups}, DType::i32, zeros);
    modules_[{scheme.bits, groups == 1 ? 0 : scheme.group_size}].push_back(module);
  }

  // Makes the quantization_config. If all modules have the same form, the target is the class Linear; otherwise each
  // group lists its modules. `ignore` lists the matrices without codes.
  Attributes make_config() const {
    std::vector<Attributes::Entry> groups;
    for (const auto& [form, modules] : modules_) {
      const auto [bits, size] = form;
      Value::Array targets = {"Linear"};
      if (modules_.size() > 1) targets.assign(modules.begin(), modules.end());
      const Attributes weights = {{"actorder", nullptr},
                                  {"block_structure", nullptr},
                                  {"dynamic", false},
                                  {"group_size", size == 0 ? Value() : Value(size)},
                                  {"num_bits", std::uint64_t{bits}},
                                  {"observer", "minmax"},
                                  {"observer_kwargs", Attributes{}},
                                  {"strategy", size == 0 ? "channel" : "group"},
                                  {"symmetric", false},
                                  {"type", "int"}};
      groups.emplace_back(fmt::format("group_{}", groups.size()), Attributes{{"input_activations", nullptr},
                                                                             {"output_activations", nullptr},
                                                                             {"targets", std::move(targets)},
                                                                             {"weights", weights}});
    }
    return {{"config_groups", Attributes::from_unique(std::move(groups))},
            {"format", "pack-quantized"},
            {"global_compression_ratio", nullptr},
            {"ignore", Value::Array(ignored_.begin(), ignored_.end())},
            {"kv_cache_scheme", nullptr},
            {"quant_method", "compressed-tensors"},
            {"quantization_status", "compressed"}};
  }

  const Model& model_;
  std::string_view embedding_;
  UnfoldedModel result_;
  std::map<Form, std::vector<std::string>> modules_;
  std::vector<std::string> ignored_;
};

}  // namespace

std::optional<UnfoldedModel> unfold_groups(const Model& model, std::string_view embedding, std::string_view tied) {
  const bool has_groups = std::ranges::any_of(
      model.tensors(), [](const Tensor& tensor) { return tensor.layout == Layout::quantized_group; });
  return has_groups ? std::optional(Unfolding(model, embedding, tied).unfold()) : std::nullopt;
}

}  // namespace poise
