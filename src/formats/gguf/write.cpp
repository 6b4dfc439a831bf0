#include "formats/gguf/gguf.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <poise/error.hpp>
#include <poise/values.hpp>

#include "bytes/checked.hpp"
#include "bytes/short_text.hpp"
#include "bytes/utf8.hpp"
#include "family/check.hpp"
#include "family/families.hpp"
#include "formats/gguf/changes.hpp"
#include "formats/gguf/header.hpp"
#include "formats/gguf/types.hpp"
#include "formats/losses.hpp"
#include "formats/metadata.hpp"
#include "io/meter.hpp"
#include "pack/pump.hpp"
#include "pack/read_ahead.hpp"
#include "schemes/scheme.hpp"
#include "tensor/block_layout.hpp"
#include "views/dense.hpp"
#include "views/row_order.hpp"

namespace poise::gguf {
namespace {

constexpr std::string_view kOutput = "output.weight";

struct Stored {
  std::string name;
  Shape shape;
  std::uint32_t type = 0;
  BlobPtr blob;
  std::uint64_t bytes() const { return blob->size(); }
};

[[noreturn]] void refuse(std::string_view tensor, std::string_view problem) {
  throw Error(ErrorKind::unsupported, fmt::format("gguf cannot hold {}: {}", tensor, problem));
}

std::uint32_t find_type_number(const Tensor& tensor) {
  if (const BlockType* blocks = get_block_type(tensor.layout)) return blocks->number;
  if (tensor.layout != Layout::dense) refuse_tensor("gguf", tensor);
  const auto number = find_spelling(kSpellings, tensor.require("data").dtype);
  if (!number) refuse_tensor("gguf", tensor);
  return *number;
}

bool is_vector(const Tensor& tensor) { return tensor.shape.size() < 2 || tensor.name.ends_with(".bias"); }

// Returns the model's architecture. Returns null for an unknown model_type, and for a model without a configuration, or
// without a number of heads on which the order of rows depends, because llama.cpp could not use its tensors.
const Architecture* find_architecture(const Model& model) {
  const Architecture* architecture = find_family_architecture(model.card.model_type);
  if (architecture == nullptr || (!model.config && model.config_json.empty())) return nullptr;
  const bool changes_row_order =
      std::ranges::find(architecture->layer, Change::queries, &NameRow::change) != architecture->layer.end();
  return changes_row_order && make_hyperparameters(model, *architecture).heads.queries == 0 ? nullptr : architecture;
}

class Preparer {
 public:
  explicit Preparer(const Model& model)
      : architecture_(find_architecture(model)),
        family_(&find_family_or_llama(model)),
        is_from_gguf_(is_from_gguf(model)) {
    if (architecture_ != nullptr) hyperparameters_ = make_hyperparameters(model, *architecture_);
  }

  const Architecture* architecture() const { return architecture_; }
  const Hyperparameters& hyperparameters() const { return hyperparameters_; }

  std::optional<TensorName> find_name(const Tensor& tensor) const {
    return architecture_ == nullptr ? std::nullopt : find_gguf_name(*architecture_, tensor.name);
  }

  // Returns the number of experts in a layer; std::nullopt for a model without experts.
  std::optional<std::uint64_t> find_expert_count() const {
    if (architecture_ == nullptr) return std::nullopt;
    const std::string key = fmt::format("{}.expert_count", architecture_->name);
    const auto entry = std::ranges::find(hyperparameters_.entries, key, &Attributes::Entry::first);
    const auto* count = entry == hyperparameters_.entries.end() ? nullptr : entry->second.get_if<std::uint64_t>();
    return count == nullptr ? std::nullopt : std::optional(*count);
  }

  // Returns true for a tensor that llama.cpp has no name for, because it computes the tensor from the configuration.
  // Returns false for tensors from a GGUF file, because other programs may read them.
  bool is_computed(const Tensor& tensor) const {
    return architecture_ != nullptr && !is_from_gguf_ && !find_name(tensor) &&
           find_computed_tensor(*family_, tensor.name) != nullptr;
  }

  // Returns true if llama.cpp has a name for the tensor, or computes it. Names that begin with "blk." are llama.cpp's
  // already.
  bool has_place(const Tensor& tensor) const {
    return find_name(tensor) || is_computed(tensor) || tensor.name.starts_with("blk.");
  }

  Stored prepare_tensor(const Tensor& tensor) const {
    const auto name = find_name(tensor);
    (void)find_type_number(tensor);
    Tensor changed = name ? apply_change(tensor, name->change, hyperparameters_.heads) : tensor;
    if (architecture_ != nullptr && is_vector(changed) && changed.layout == Layout::dense &&
        has_float_elements(changed) && find_element_type(changed) != DType::f64) {
      changed = make_dense(changed.name, changed.shape, DType::f32, make_dense_blob(changed, DType::f32));
    }
    if (get_block_direction(changed.layout) == BlocksAlong::columns)
      refuse_tensor("gguf", tensor, "its blocks run along columns");
    Stored stored{name ? name->name : std::string(tensor.name), changed.shape, find_type_number(changed),
                  changed.require("data").blob};
    if (stored.name.empty()) refuse(tensor.name, "the name is empty");
    if (!is_utf8(stored.name)) refuse(tensor.name, "the name is not UTF-8");
    if (stored.name.size() > kMaxWrittenName)
      refuse(tensor.name,
             fmt::format("the name has {} bytes, llama.cpp allows {}", stored.name.size(), kMaxWrittenName));
    if (tensor.shape.size() > kMaxDimensions)
      refuse(tensor.name, fmt::format("{} dimensions, at most {} are allowed", tensor.shape.size(), kMaxDimensions));
    return stored;
  }

 private:
  const Architecture* architecture_;
  const Family* family_;
  bool is_from_gguf_;
  Hyperparameters hyperparameters_;
};

// Maps numbers of experts to their matrices, for one stacked tensor.
using Experts = std::map<std::uint64_t, Stored>;

Stored stack_experts(Experts experts) {
  const Stored& first = experts.begin()->second;
  Stored result{first.name, {experts.size()}, first.type, first.blob};
  std::vector<BlobPtr> blobs;
  for (auto& [number, one] : experts) {
    if (number != blobs.size()) refuse(one.name, fmt::format("expert {} is missing", blobs.size()));
    if (one.type != first.type || !(one.shape == first.shape))
      refuse(one.name, fmt::format("expert {} is {} {}, and expert 0 is {} {}; all experts need one shape and one "
                                   "type, which dtype or quantize can choose",
                                   number, find_type_name(one.type), poise::to_string(one.shape),
                                   find_type_name(first.type), poise::to_string(first.shape)));
    blobs.emplace_back(one.blob);
  }
  const std::size_t rank = first.name.ends_with(".bias") ? 1 : 2;
  if (first.shape.size() != rank)
    refuse(first.name, fmt::format("the shape of an expert is {}, expected {} dimension{}",
                                   poise::to_string(first.shape), rank, rank == 1 ? "" : "s"));
  for (const std::uint64_t length : first.shape) result.shape.push_back(length);
  result.blob = make_joined_blob(std::move(blobs));
  return result;
}

Stored make_factors_tensor(std::string_view name, const std::vector<float>& factors) {
  const Tensor tensor = make_tensor(std::string(name), {factors.size()}, factors);
  return {tensor.name, tensor.shape, find_type_number(tensor), tensor.require("data").blob};
}

std::optional<std::uint32_t> choose_file_type(const std::vector<Stored>& tensors, std::string_view recipe) {
  std::vector<TypedMatrix> matrices;
  for (const Stored& tensor : tensors) {
    if (tensor.shape.size() >= 2)
      matrices.push_back({tensor.name, tensor.type, element_count(tensor.shape).value_or(0)});
  }
  return find_file_type(matrices, recipe);
}

// Holds the header of one file, and the range [first, last) of its tensors.
struct Part {
  std::size_t first = 0;
  std::size_t last = 0;
  ByteWriter header;
  std::uint64_t data_bytes = 0;
};

// Throws unsupported for adapters of other formats: GGUF holds only models and its own adapters.
void require_own_adapter(const Model& model) {
  if (read_adapter(model, nullptr) || !parse_adapter(model, nullptr)) return;
  throw Error(
      ErrorKind::unsupported,
      "this is an adapter in PEFT's form. The names of its matrices in GGUF and the order of their rows depend on the "
      "base model: use `poise lora convert --base MODEL`, or merge the adapter into that model first")
      .with({.kind = Remedy::Kind::lora, .value = model.origin.path.string()});
}

// Checks that llama.cpp can run the written file. Skips models without a configuration, and models from GGUF files,
// which may be for other programs. Experts and the required output matrix of a tied model must be there; list_losses()
// reports other missing tensors.
class RunnableCheck {
 public:
  // Requires: `model` and `preparer` outlive this.
  RunnableCheck(const Model& model, const Preparer& preparer) : model_(model), preparer_(preparer) {
    const bool has_config = model.config || !model.config_json.empty();
    is_needed_ = !model.card.model_type.empty() && has_config && !is_from_gguf(model);
  }

  void require_architecture() const {
    if (!is_needed_ || find_family_architecture(model_.card.model_type) != nullptr) return;
    refuse(fmt::format("Poise does not know llama.cpp's names for {} models, only for {}", model_.card.model_type,
                       fmt::join(list_model_types(), ", ")),
           "; llama.cpp's own convert_hf_to_gguf.py may convert a Hugging Face directory");
  }

  // Throws unsupported if the architecture lacks a name for a tensor, because llama.cpp does not load such a tensor.
  void require_names() const {
    if (!is_needed_ || preparer_.architecture() == nullptr) return;
    std::vector<std::string_view> strangers;
    for (const Tensor& tensor : model_.tensors()) {
      if (!preparer_.has_place(tensor)) strangers.push_back(tensor.name);
    }
    if (strangers.empty()) return;
    Error error = make_refusal(
        fmt::format("it has no name for {} in {} models", list_names(strangers), preparer_.architecture()->model_type));
    // Leaving out a weight of the family would change what the model computes.
    const std::vector<std::string_view> unknown = find_unknown_weights(model_);
    const Family& family = find_family_or_llama(model_);
    for (const std::string_view name : strangers) {
      const bool is_weight =
          family.tensors.has(find_table_name(family, name)) && std::ranges::find(unknown, name) == unknown.end();
      if (!is_weight) error = std::move(error).with({.kind = Remedy::Kind::skip, .tensor = std::string(name)});
    }
    throw error;
  }

  // Throws unsupported for a configuration that llama.cpp cannot compute, and for a layer without experts in a model
  // with experts.
  void require_computation() const {
    if (!is_needed_ || preparer_.architecture() == nullptr) return;
    if (const std::string& reason = preparer_.hyperparameters().refusal; !reason.empty()) refuse(reason);
    if (!preparer_.architecture()->has_experts) return;
    for (const Tensor& tensor : model_.tensors()) {
      const auto name = preparer_.find_name(tensor);
      if (name && name->name.ends_with(".ffn_down.weight"))
        refuse(fmt::format("it needs experts in each layer of {} models, and {} belongs to a layer without",
                           preparer_.architecture()->model_type, tensor.name));
    }
  }

  // Throws unsupported unless all experts are there. `least` is the number of experts in the smallest stack.
  void require_experts(std::uint64_t least) const {
    if (!is_needed_) return;
    if (const auto count = preparer_.find_expert_count(); count && least < *count)
      refuse(fmt::format("it loads all experts of a layer as one tensor, but a layer has {} of {} experts", least,
                         *count));
  }

  // Throws unsupported if llama.cpp requires an output matrix, and a tied model with an embedding lacks it. A
  // conversion stores the output of a tied model, but other callers may not.
  void require_output(const std::vector<Stored>& tensors) const {
    const auto has_tensor = [&](std::string_view name) {
      return std::ranges::find(tensors, name, &Stored::name) != tensors.end();
    };
    if (!is_needed_ || !requires_output(model_) || !has_tensor(kEmbedding) || has_tensor(kOutput)) return;
    if (model_.config && !model_.config->tie_word_embeddings) return;  // parts of a model may be missing
    refuse(fmt::format("it requires {} in {} models, even if it equals the embedding", kOutput,
                       preparer_.architecture()->model_type));
  }

 private:
  Error make_refusal(const std::string& reason, const std::string& more = {}) const {
    return {ErrorKind::unsupported, fmt::format("gguf: llama.cpp could not run the file: {}. zt, safetensors and "
                                                "huggingface hold the model{}",
                                                reason, more)};
  }
  [[noreturn]] void refuse(const std::string& reason, const std::string& more = {}) const {
    throw make_refusal(reason, more);
  }

  const Model& model_;
  const Preparer& preparer_;
  bool is_needed_ = false;
};

class GgufFile {
 public:
  GgufFile(const Model& model, const WriteOptions& options)
      : model_(model), preparer_(model), alignment_(options.align.value_or(kUsualAlignment)) {
    if (!std::has_single_bit(alignment_) || alignment_ < kLeastAlignment || alignment_ > kMaxAlignment)
      throw Error(ErrorKind::bad_argument,
                  fmt::format("align: expected a power of two from {} to {}, found {}; with less llama.cpp exits",
                              kLeastAlignment, kMaxAlignment, alignment_));
    require_own_adapter(model);
    if (options.shard_size && read_adapter(model, nullptr))
      throw Error(ErrorKind::unsupported,
                  "an adapter is one file: llama.cpp would apply the matrices of the first shard alone");
    const RunnableCheck check(model, preparer_);
    check.require_architecture();
    check.require_names();
    check.require_computation();
    add_tensors();
    check.require_experts(least_experts_);
    check.require_output(tensors_);
    metadata_ = make_metadata(model, preparer_.architecture(), preparer_.hyperparameters(),
                              choose_file_type(tensors_, model.origin.recipe), list_counted_tensors());
    cut_into_parts(options.shard_size);
    for (std::size_t i = 0; i < parts_.size(); ++i) make_header(i);
  }

  FilePlan plan() const {
    FilePlan plan;
    plan.bytes = count_bytes();
    for (const Tensor& tensor : model_.tensors())
      plan.tensor_bytes.push_back(preparer_.is_computed(tensor) ? 0 : preparer_.prepare_tensor(tensor).bytes());
    return plan;
  }

  std::vector<std::string> list_losses() const {
    std::vector<std::string> losses = metadata_.losses;
    if (preparer_.architecture() == nullptr) return losses;
    if (const auto count = preparer_.find_expert_count(); count && least_experts_ < *count)
      losses.push_back(
          fmt::format("llama.cpp will not load the file: a layer has {} of {} experts", least_experts_, *count));
    // The losses below do not apply to a model from a GGUF file, which may be for another program.
    if (is_from_gguf(model_)) return losses;
    if (const auto found = find_quantization(model_.config_json)) {
      losses.push_back(
          fmt::format("llama.cpp ignores {}, whose quant_method is {}", found->key, to_json(Value(found->method))));
    }
    std::vector<std::string> computed;
    for (const Tensor& tensor : model_.tensors()) {
      if (preparer_.is_computed(tensor)) computed.push_back(tensor.name);
    }
    if (!computed.empty())
      losses.push_back(
          fmt::format("left out: {}, which llama.cpp computes from the configuration", list_names(computed)));
    std::vector<Finding> faults = find_inconsistencies(model_);
    std::erase_if(faults, [](const Finding& finding) { return finding.tensor.empty(); });
    if (!faults.empty())
      losses.push_back(fmt::format("llama.cpp may not load the file: {}{}", faults.front().message,
                                   faults.size() == 1 ? "" : fmt::format(" (and {} more)", faults.size() - 1)));
    return losses;
  }

  std::string make_main_name(const std::string& name) const {
    return parts_.size() == 1 ? name : make_part_name(name, 0);
  }

  void write(Output& output, const Progress& progress) const {
    std::uint64_t total = 0;
    for (const Stored& tensor : tensors_) total += tensor.bytes();
    Meter meter(progress, total);
    const ReadAhead ahead(
        ReadAhead::list_blobs(tensors_, [](const Stored& tensor) -> const Blob& { return *tensor.blob; }));
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      Sink& sink = parts_.size() == 1 ? output.main() : open_sink(output, i);
      const Part& part = parts_[i];
      sink.write(part.header.bytes());
      for (std::size_t t = part.first; t < part.last; ++t) {
        write_blob(ahead[t], sink, meter, tensors_[t].name);
        sink.pad_to(alignment_);
      }
    }
  }

 private:
  std::vector<CountedTensor> list_counted_tensors() const {
    std::vector<CountedTensor> tensors;
    tensors.reserve(tensors_.size());
    for (const Stored& tensor : tensors_) tensors.push_back({tensor.name, tensor.shape});
    return tensors;
  }

  std::uint64_t count_bytes() const {
    std::uint64_t sum = 0;
    for (const Part& part : parts_) sum += part.header.size() + part.data_bytes;
    return sum;
  }

  std::string make_part_name(std::string name, std::size_t index) const {
    if (name.ends_with(".gguf")) name.resize(name.size() - 5);
    return make_split_name(name, index, parts_.size());
  }

  // Opens the output of one part. The first part has the metadata; readers find the others by its name.
  Sink& open_sink(Output& output, std::size_t index) const {
    const std::string name = make_part_name(output.name(), index);
    return index == 0 ? output.open_main(name) : output.open_sibling(name);
  }

  std::uint64_t align_or_throw(std::uint64_t bytes) const {
    const auto result = checked_align(bytes, alignment_);
    if (!result) throw Error(ErrorKind::unsupported, "gguf: the tensors take more than 2^64 bytes");
    return *result;
  }

  void add_tensors() {
    std::map<std::string, Experts> experts;  // the keys are the names of the stacked tensors
    std::map<std::string, std::size_t> places;
    for (const Tensor& tensor : model_.tensors()) {
      if (preparer_.is_computed(tensor)) continue;
      Stored stored = preparer_.prepare_tensor(tensor);
      const auto known = preparer_.find_name(tensor);
      if (known && known->expert) {
        // All experts are written at the place of the first.
        if (places.try_emplace(stored.name, tensors_.size()).second) tensors_.push_back(stored);
        experts[stored.name].emplace(*known->expert, std::move(stored));
      } else {
        tensors_.push_back(std::move(stored));
      }
    }
    for (auto& [name, all] : experts) {
      least_experts_ = std::min<std::uint64_t>(least_experts_, all.size());
      tensors_[places.at(name)] = stack_experts(std::move(all));
    }
    for (const RopeFactorRow& row : kRopeFactorRows) {
      const std::vector<float>& factors = preparer_.hyperparameters().factors.*(row.factors);
      if (!factors.empty()) tensors_.push_back(make_factors_tensor(row.gguf, factors));
    }
  }

  void cut_into_parts(const std::optional<std::uint64_t>& most) {
    parts_.emplace_back();
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      const std::uint64_t bytes = align_or_throw(tensors_[i].bytes());
      if (most && parts_.back().data_bytes > 0 && saturating_add(parts_.back().data_bytes, bytes) > *most) {
        parts_.emplace_back();
        parts_.back().first = i;
      }
      parts_.back().last = i + 1;
      parts_.back().data_bytes = saturating_add(parts_.back().data_bytes, bytes);
    }
    if (parts_.size() > kMaxSplits)
      throw Error(ErrorKind::unsupported, fmt::format("gguf: the model takes more than {} files of this shard size, "
                                                      "the most that GGUF allows; choose a larger one",
                                                      kMaxSplits));
  }

  void make_header(std::size_t index) {
    Part& part = parts_[index];
    KeyValues own;
    if (alignment_ != kUsualAlignment) own.add_u32(kAlignmentKey, alignment_);
    if (parts_.size() > 1) {
      own.add_u16(kSplitNumberKey, static_cast<std::uint16_t>(index));
      own.add_u16(kSplitCountKey, static_cast<std::uint16_t>(parts_.size()));
      own.add_i32(kSplitTensorsKey, static_cast<std::int32_t>(tensors_.size()));
    }
    const bool is_first = index == 0;
    append_file_start(part.header, kLastVersion, part.last - part.first,
                      own.count() + (is_first ? metadata_.entries.count() : 0));
    if (is_first) part.header.append(metadata_.entries.bytes());
    part.header.append(own.bytes());
    std::uint64_t offset = 0;
    for (std::size_t t = part.first; t < part.last; ++t) {
      const Stored& tensor = tensors_[t];
      KeyValues::append_text(part.header, tensor.name);
      part.header.append_u32(static_cast<std::uint32_t>(tensor.shape.size()));
      for (std::size_t d = tensor.shape.size(); d-- > 0;) part.header.append_u64(tensor.shape[d]);
      part.header.append_u32(tensor.type);
      part.header.append_u64(offset);
      offset = align_or_throw(saturating_add(offset, tensor.bytes()));
    }
    part.header.append_zeros(static_cast<std::size_t>(align_or_throw(part.header.size()) - part.header.size()));
  }

  const Model& model_;
  Preparer preparer_;
  std::uint64_t alignment_;
  std::vector<Stored> tensors_;
  // Holds the smallest number of experts in a stacked tensor.
  std::uint64_t least_experts_ = std::numeric_limits<std::uint64_t>::max();
  WrittenMetadata metadata_;
  std::vector<Part> parts_;
};

}  // namespace

bool requires_output(const Model& model) {
  const Architecture* architecture = find_architecture(model);
  return architecture != nullptr && architecture->needs_output;
}

bool has_transposed_blocks(const Model& model, std::string_view tensor) {
  const Architecture* architecture = find_family_architecture(model.card.model_type);
  const auto name = architecture == nullptr ? std::nullopt : find_gguf_name(*architecture, tensor);
  return name && name->change == Change::transposed && find_architecture(model) != nullptr;
}

std::function<bool(const Tensor&)> make_f32_test(const Model& model) {
  const bool is_known = find_architecture(model) != nullptr;
  return [is_known](const Tensor& tensor) { return is_known && is_vector(tensor); };
}

PreparedFile prepare(const Model& model, const WriteOptions& options) {
  const auto file = std::make_shared<const GgufFile>(model, options);
  return {.plan = [file] { return file->plan(); },
          .losses = file->list_losses(),
          .write = [file](Output& output, const Progress& progress) { file->write(output, progress); },
          .main_name = [file](const std::string& name) { return file->make_main_name(name); }};
}

}  // namespace poise::gguf
