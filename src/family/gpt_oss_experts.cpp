#include "family/gpt_oss_experts.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <poise/error.hpp>

#include "family/families.hpp"
#include "family/text_model.hpp"
#include "schemes/mxfp4.hpp"
#include "tensor/block_layout.hpp"
#include "views/dense.hpp"
#include "views/joined.hpp"
#include "views/mx_blocks.hpp"
#include "views/strided.hpp"

namespace poise {
namespace {

constexpr std::uint64_t kBlock = 32;  // numbers that share a scale
constexpr std::uint64_t kBlockBytes = 17;
constexpr std::string_view kExperts = "mlp.experts.";
constexpr std::string_view kQuantization = "quantization_config";

[[noreturn]] void fail(const Tensor& tensor, std::string_view problem) {
  throw Error(ErrorKind::invalid_file, fmt::format("tensor {}: {}", tensor.name, problem));
}

void require_rank(const Tensor& tensor, std::size_t rank) {
  if (tensor.shape.size() != rank)
    fail(tensor, fmt::format("its shape is {}, expected {} dimensions", to_string(tensor.shape), rank));
}

// Numbers of a dense tensor, or one made dense, and their strides.
struct Numbers {
  DType dtype;
  unsigned item;  // bytes
  BlobPtr data;

  explicit Numbers(const Tensor& tensor)
      : Numbers(tensor, has_float_elements(tensor) ? element_type(tensor) : DType::unknown) {}
  Numbers(const Tensor& tensor, DType type) : dtype(type), item(info(type).bits / 8) {
    if (!has_float_elements(tensor))
      fail(tensor, fmt::format("it is stored as {}, expected numbers", storage_name(tensor)));
    data = dtype == element_type(tensor) ? BlobPtr(make_dense_tensor(tensor).require("data").blob)
                                         : dense_blob(tensor, dtype);
  }
  Numbers(DType type, BlobPtr blob) : dtype(type), item(info(type).bits / 8), data(std::move(blob)) {}

  // Strides and offset count elements.
  Tensor strided(std::string name, const Shape& shape, std::vector<std::uint64_t> strides,
                 std::uint64_t offset = 0) const {
    std::vector<std::int64_t> bytes;
    for (const std::uint64_t stride : strides) bytes.push_back(static_cast<std::int64_t>(stride * item));
    return make_dense(
        std::move(name), shape, dtype,
        make_strided_blob(data,
                          {.shape = shape, .strides = std::move(bytes), .offset = offset * item, .item_bytes = item}));
  }
};

// The same numbers with other dimensions.
Tensor reshaped(Tensor tensor, Shape shape) {
  tensor.shape = std::move(shape);
  return tensor;
}

// Concatenates tensors, with a common type.
Numbers joined(const std::vector<const Tensor*>& tensors) {
  DType type = Numbers(*tensors.front()).dtype;
  if (!std::ranges::all_of(tensors, [&](const Tensor* tensor) { return Numbers(*tensor).dtype == type; }))
    type = DType::f32;
  std::vector<BlobPtr> blobs;
  for (const Tensor* tensor : tensors) blobs.push_back(Numbers(*tensor, type).data);
  return {type, make_joined_blob(std::move(blobs))};
}

// The tensors of one expert.
struct Separate {
  const Tensor* gate;
  const Tensor* up;
  const Tensor* down;
  const Tensor* gate_bias;
  const Tensor* up_bias;
  const Tensor* down_bias;
};

class Layer {
 public:
  // `prefix`: "model.layers.3.mlp.experts."
  Layer(const Model& model, std::string prefix, Model& out)
      : model_(model), family_(family_of(model)), prefix_(std::move(prefix)), out_(out) {}

  // The tensors that were converted to others.
  const std::set<const Tensor*>& used() const { return used_; }

  void make(GptOssForm from, GptOssForm to) {
    if (from == GptOssForm::separate) return to == GptOssForm::packed ? pack(experts()) : stack(experts());
    if (to == GptOssForm::numbers) return unpack();
    separate_biases(from == GptOssForm::packed ? separate_packed() : separate_numbers());
  }

 private:
  // There is one at least.
  std::vector<Separate> experts() {
    std::vector<Separate> all;
    const auto count = [&] { return fmt::format("{}.", all.size()); };
    while (all.empty() || find_weight(model_, family_, prefix_ + count() + "gate_proj.weight") != nullptr) {
      const auto weights_of = [&](std::string_view name) { return &required(count() + std::string(name)); };
      all.push_back({weights_of("gate_proj.weight"), weights_of("up_proj.weight"), weights_of("down_proj.weight"),
                     weights_of("gate_proj.bias"), weights_of("up_proj.bias"), weights_of("down_proj.bias")});
      const Separate& last = all.back();
      for (const Tensor* matrix : {last.gate, last.up, last.down}) require_rank(*matrix, 2);
      require_like(*last.gate, *all.front().gate);
      require_like(*last.up, *all.front().gate);
      require_like(*last.down, *all.front().down);
      for (const auto& [bias, matrix] : {std::pair(last.gate_bias, last.gate), std::pair(last.up_bias, last.up),
                                         std::pair(last.down_bias, last.down)})
        require_shape(*bias, {matrix->shape[0]});
    }
    return all;
  }

  const Tensor& required(std::string_view name) {
    const Tensor* tensor = find_weight(model_, family_, prefix_ + std::string(name));
    if (tensor == nullptr) throw Error(ErrorKind::invalid_file, fmt::format("tensor {}{} is missing", prefix_, name));
    used_.insert(tensor);
    return *tensor;
  }
  static void require_shape(const Tensor& tensor, const Shape& shape) {
    if (!(tensor.shape == shape))
      fail(tensor, fmt::format("its shape is {}, expected {}", to_string(tensor.shape), to_string(shape)));
  }
  static void require_like(const Tensor& tensor, const Tensor& other) {
    if (!(tensor.shape == other.shape))
      fail(tensor, fmt::format("its shape is {}, that of {} is {}", to_string(tensor.shape), other.name,
                               to_string(other.shape)));
  }
  std::string named(std::uint64_t expert, std::string_view module) const {
    return fmt::format("{}{}.{}", prefix_, expert, module);
  }
  Tensor mx(std::string_view name) {
    return joined_mx(required(fmt::format("{}{}", name, kMxfp4Blocks)),
                     required(fmt::format("{}{}", name, kMxfp4Scales)));
  }
  void carry(std::string_view name) {
    Tensor tensor = required(name);
    tensor.name = prefix_ + std::string(name);
    out_.add(std::move(tensor));
  }

  // [experts, out, in] to [experts, in, out].
  void unpack(std::string_view name) {
    const Tensor packed = mx(name);
    const auto [count, rows, columns] = std::tuple(packed.shape[0], packed.shape[1], packed.shape[2]);
    out_.add(
        Numbers(packed).strided(prefix_ + std::string(name), {count, columns, rows}, {rows * columns, 1, columns}));
  }
  void unpack() {
    unpack("gate_up_proj");
    carry("gate_up_proj_bias");
    unpack("down_proj");
    carry("down_proj_bias");
  }

  // Every step-th row of an expert's matrix, from `first` on, as ggml's blocks.
  void add_blocks(const Tensor& packed, std::uint64_t expert, std::string_view module, std::uint64_t first,
                  std::uint64_t step) {
    const std::uint64_t rows = packed.shape[1] / step;
    const std::uint64_t groups = packed.shape[2] / kBlock;
    const auto some = [&](const Part& part, std::uint64_t row_bytes) {
      const std::uint64_t offset = (expert * packed.shape[1] + first) * row_bytes;
      return make_strided_blob(part.blob, {.shape = {rows},
                                           .strides = {static_cast<std::int64_t>(step * row_bytes)},
                                           .offset = offset,
                                           .item_bytes = static_cast<unsigned>(row_bytes)});
    };
    out_.add(make_blocks(
        named(expert, module), {rows, packed.shape[2]}, *block_type_named("mxfp4"),
        make_mxfp4_blocks(some(packed.require("data"), groups * 16), some(packed.require("scales"), groups))));
  }

  // The sizes for its biases.
  struct Sizes {
    std::uint64_t count;
    std::uint64_t gate_up;
    std::uint64_t down;
  };

  Sizes separate_packed() {
    const Tensor gate_up = mx("gate_up_proj");
    const Tensor down = mx("down_proj");
    if (gate_up.shape[1] % 2 != 0)
      fail(required("gate_up_proj_blocks"),
           fmt::format("{} rows, expected those of gate and up by turns", gate_up.shape[1]));
    if (gate_up.shape[0] != down.shape[0])
      fail(required("down_proj_blocks"), fmt::format("{} experts, expected {}", down.shape[0], gate_up.shape[0]));
    for (std::uint64_t expert = 0; expert < gate_up.shape[0]; ++expert) {
      add_blocks(gate_up, expert, "gate_proj.weight", 0, 2);
      add_blocks(gate_up, expert, "up_proj.weight", 1, 2);
      add_blocks(down, expert, "down_proj.weight", 0, 1);
    }
    return {gate_up.shape[0], gate_up.shape[1], down.shape[1]};
  }

  Sizes separate_numbers() {
    const Tensor& gate_up = required("gate_up_proj");
    const Tensor& down = required("down_proj");
    require_rank(gate_up, 3);
    require_rank(down, 3);
    const auto [count, in, both] = std::tuple(gate_up.shape[0], gate_up.shape[1], gate_up.shape[2]);
    const auto [inner, out] = std::pair(down.shape[1], down.shape[2]);
    if (both % 2 != 0) fail(gate_up, fmt::format("{} columns, expected those of gate and up by turns", both));
    if (count != down.shape[0]) fail(down, fmt::format("{} experts, expected {}", down.shape[0], count));
    const Numbers first(gate_up);
    const Numbers second(down);
    for (std::uint64_t expert = 0; expert < count; ++expert) {
      const std::uint64_t at = expert * in * both;
      out_.add(first.strided(named(expert, "gate_proj.weight"), {both / 2, in}, {2, both}, at));
      out_.add(first.strided(named(expert, "up_proj.weight"), {both / 2, in}, {2, both}, at + 1));
      out_.add(second.strided(named(expert, "down_proj.weight"), {out, inner}, {1, out}, expert * inner * out));
    }
    return {count, both, out};
  }

  void separate_biases(const Sizes& sizes) {
    const Tensor& gate_up = required("gate_up_proj_bias");
    const Tensor& down = required("down_proj_bias");
    const auto [count, both, out] = sizes;
    require_shape(gate_up, {count, both});
    require_shape(down, {count, out});
    const Numbers first(gate_up);
    const Numbers second(down);
    for (std::uint64_t expert = 0; expert < count; ++expert) {
      out_.add(first.strided(named(expert, "gate_proj.bias"), {both / 2}, {2}, expert * both));
      out_.add(first.strided(named(expert, "up_proj.bias"), {both / 2}, {2}, expert * both + 1));
      out_.add(second.strided(named(expert, "down_proj.bias"), {out}, {1}, expert * out));
    }
  }

  // Of every expert, in order.
  static std::vector<const Tensor*> those(const std::vector<Separate>& experts,
                                          std::initializer_list<const Tensor * Separate::*> which) {
    std::vector<const Tensor*> all;
    for (const Separate& expert : experts) {
      for (const auto member : which) all.push_back(expert.*member);
    }
    return all;
  }

  void stack_biases(const std::vector<Separate>& experts) {
    const std::uint64_t count = experts.size();
    const std::uint64_t inner = experts.front().gate_bias->elements();
    const Numbers gate_up = joined(those(experts, {&Separate::gate_bias, &Separate::up_bias}));
    out_.add(reshaped(gate_up.strided(prefix_ + "gate_up_proj_bias", {count, inner, 2}, {2 * inner, 1, inner}),
                      {count, 2 * inner}));
    const Numbers down = joined(those(experts, {&Separate::down_bias}));
    const std::uint64_t out = experts.front().down_bias->elements();
    out_.add(down.strided(prefix_ + "down_proj_bias", {count, out}, {out, 1}));
  }

  void stack(const std::vector<Separate>& experts) {
    const std::uint64_t count = experts.size();
    const Shape& shape = experts.front().gate->shape;
    const auto [inner, in] = std::pair(shape[0], shape[1]);
    const Numbers gate_up = joined(those(experts, {&Separate::gate, &Separate::up}));
    out_.add(
        reshaped(gate_up.strided(prefix_ + "gate_up_proj", {count, in, inner, 2}, {2 * inner * in, 1, in, inner * in}),
                 {count, in, 2 * inner}));
    const Numbers down = joined(those(experts, {&Separate::down}));
    const Shape& second = experts.front().down->shape;
    out_.add(down.strided(prefix_ + "down_proj", {count, second[1], second[0]}, {second[0] * second[1], 1, second[1]}));
    stack_biases(experts);
  }

  // `rows` rows of blocks, in the order of transformers.
  void add_packed(std::string_view name, const Shape& rows, std::uint64_t columns, const BlobPtr& blocks) {
    Shape shape = rows;
    shape.push_back(columns / kBlock);
    out_.add(make_dense(fmt::format("{}{}{}", prefix_, name, kMxfp4Scales), shape, DType::u8, mxfp4_scales(blocks)));
    shape.push_back(16);
    out_.add(make_dense(fmt::format("{}{}{}", prefix_, name, kMxfp4Blocks), shape, DType::u8, mxfp4_codes(blocks)));
  }

  static BlobPtr blocks_of(const std::vector<const Tensor*>& tensors) {
    std::vector<BlobPtr> blobs;
    for (const Tensor* tensor : tensors) {
      check_block_parts(*tensor);
      blobs.emplace_back(tensor->require("data").blob);
    }
    return make_joined_blob(std::move(blobs));
  }

  void pack(const std::vector<Separate>& experts) {
    const std::uint64_t count = experts.size();
    const Shape& shape = experts.front().gate->shape;
    const auto [inner, in] = std::pair(shape[0], shape[1]);
    const std::uint64_t row = in / kBlock * kBlockBytes;
    const auto stride = [&](std::uint64_t rows) { return static_cast<std::int64_t>(rows * row); };
    const BlobPtr gate_up = make_strided_blob(blocks_of(those(experts, {&Separate::gate, &Separate::up})),
                                              {.shape = {count, inner, 2},
                                               .strides = {stride(2 * inner), stride(1), stride(inner)},
                                               .item_bytes = static_cast<unsigned>(row)});
    add_packed("gate_up_proj", {count, 2 * inner}, in, gate_up);
    const Shape& second = experts.front().down->shape;
    add_packed("down_proj", {count, second[0]}, second[1], blocks_of(those(experts, {&Separate::down})));
    stack_biases(experts);
  }

  const Model& model_;
  const Family& family_;
  std::string prefix_;
  Model& out_;
  std::set<const Tensor*> used_;
};

bool is_mxfp4(const Tensor& tensor) {
  return block_type(tensor.layout) != nullptr && block_type(tensor.layout)->name == "mxfp4";
}

std::string experts_of(const Family& family, std::int32_t layer) {
  return fmt::format("{}{}.{}", family.tensors.layers, layer, kExperts);
}

// The layer of a tensor of experts.
std::optional<std::int32_t> layer_of(const Family& family, std::string_view name) {
  const std::string canonical = table_name(family, name);
  const auto numbered = family.tensors.in_layer(canonical);
  return numbered && numbered->rest.starts_with(kExperts) ? std::optional(numbered->number) : std::nullopt;
}

// True if all matrices of experts are blocks of MXFP4.
bool all_are_mxfp4(const Model& model, const Family& family) {
  return std::ranges::all_of(model.tensors(), [&](const Tensor& tensor) {
    return !layer_of(family, tensor.name) || tensor.shape.size() != 2 || is_mxfp4(tensor);
  });
}

GptOssForm wanted(const Model& model, const Family& family, GptOssForm from, WeightReader reader, bool numbers) {
  if (reader == WeightReader::llama_cpp) return GptOssForm::separate;
  if (from == GptOssForm::packed) return numbers ? GptOssForm::numbers : from;
  if (from == GptOssForm::numbers || reader == WeightReader::any) return from;
  return !numbers && all_are_mxfp4(model, family) ? GptOssForm::packed : GptOssForm::numbers;
}

// The keys of quantization_config that another form drops, and that the packed form would write otherwise.
std::optional<std::string> lost_quantization(const Attributes& config_json) {
  const Value* value = config_json.find(kQuantization);
  const auto* config = value == nullptr ? nullptr : value->get_if<Attributes>();
  if (config == nullptr) return std::nullopt;
  const Attributes usual = mxfp4_config();
  std::vector<std::string_view> lost;
  for (const auto& [key, setting] : *config) {
    const Value* same = usual.find(key);
    if (same == nullptr || !(*same == setting)) lost.push_back(key);
  }
  if (lost.empty()) return std::nullopt;
  return fmt::format("quantization_config of config.json is dropped: a conversion back does not restore its {}",
                     fmt::join(lost, ", "));
}

}  // namespace

std::optional<Reformed> reformed_gpt_oss(const Model& model, WeightReader reader, bool numbers) {
  const Family& family = family_of(model);
  const auto from = static_cast<GptOssForm>(form_of(model, family));
  const GptOssForm to = wanted(model, family, from, reader, numbers);
  if (from == to) return text_model(model, reader, numbers);
  Reformed result{Model(model.header()), {}, {}};
  std::map<std::int32_t, Layer> made;
  for (const Tensor& tensor : model.tensors()) {
    if (const auto number = layer_of(family, tensor.name)) {
      const auto [layer, is_new] = made.try_emplace(*number, model, experts_of(family, *number), result.model);
      if (is_new) layer->second.make(from, to);
      if (layer->second.used().contains(&tensor)) {
        result.replaced.push_back(tensor.name);
        continue;
      }
    }
    Tensor named = tensor;
    if (reader == WeightReader::llama_cpp) named.name = table_name(family, tensor.name);
    if (named.name != tensor.name) result.replaced.push_back(tensor.name);
    result.model.add(std::move(named));
  }
  if (to == GptOssForm::packed) {
    result.model.config_json.set(std::string(kQuantization), mxfp4_config());
  } else {
    if (auto loss = lost_quantization(result.model.config_json)) result.losses.push_back(*std::move(loss));
    result.model.config_json.erase(kQuantization);
  }
  return result;
}

}  // namespace poise
