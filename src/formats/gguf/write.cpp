#include "formats/gguf/write.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/checked.hpp"
#include "formats/gguf/limits.hpp"
#include "formats/gguf/metadata.hpp"
#include "formats/gguf/read.hpp"
#include "formats/gguf/row_order.hpp"
#include "formats/gguf/types.hpp"
#include "formats/gguf/write_metadata.hpp"
#include "formats/refusal.hpp"
#include "io/meter.hpp"
#include "pack/pump.hpp"
#include "tensor/block_layout.hpp"
#include "views/dense.hpp"

namespace poise::gguf {
namespace {

// llama.cpp's llama_ftype for a type of most tensors; where recipes mix types, the one that people mean by its name.
constexpr std::array<std::pair<std::uint32_t, std::uint32_t>, 26> kFileTypes = {
    {{0, 0},   {1, 1},   {2, 2},   {3, 3},   {6, 8},   {7, 9},   {8, 7},   {10, 10}, {11, 12}, {12, 15}, {13, 17}, {14, 18}, {16, 19},
     {17, 20}, {18, 23}, {19, 24}, {20, 25}, {21, 26}, {22, 28}, {23, 30}, {29, 31}, {30, 32}, {34, 36}, {35, 37}, {39, 38}, {40, 39}}};

struct Stored {
  std::string name;
  const Tensor* tensor;
  Shape shape;
  std::uint32_t type = 0;
  HeldBlob blob;
  std::uint64_t bytes() const { return blob->size(); }
};

std::uint32_t type_number(const Tensor& tensor) {
  if (const BlockType* blocks = tensor.layout.blocks()) return blocks->number;
  if (tensor.layout != Layout::dense) refuse_tensor("gguf", tensor);
  const auto number = spelling_in(kSpellings, tensor.require("data").dtype);
  if (!number) refuse_tensor("gguf", tensor);
  return *number;
}

// Without heads llama.cpp's order of rows cannot be made.
const Architecture* architecture_for(const Model& model) {
  const Architecture* architecture = architecture_of(model.card.model_type);
  if (architecture == nullptr || !model.config || model.config->num_attention_heads < 1 || model.config->num_key_value_heads < 1) return nullptr;
  return architecture;
}

class Preparer {
 public:
  explicit Preparer(const Model& model) : model_(model), architecture_(architecture_for(model)) {}

  Stored prepare(const Tensor& tensor) const {
    const auto known = architecture_ == nullptr ? std::nullopt : gguf_name(*architecture_, tensor.name);
    Stored stored{known ? known->name : tensor.name, &tensor, tensor.shape, type_number(tensor), tensor.require("data").blob};
    if (stored.name.size() > kMaxWrittenName) {
      throw Error(ErrorKind::unsupported,
                  fmt::format("gguf cannot hold {}: the name has {} bytes, llama.cpp takes {}", tensor.name, stored.name.size(), kMaxWrittenName));
    }
    if (tensor.shape.size() > kMaxDimensions) {
      throw Error(ErrorKind::unsupported,
                  fmt::format("gguf cannot hold {}: {} dimensions, at most {} are allowed", tensor.name, tensor.shape.size(), kMaxDimensions));
    }
    // llama.cpp computes with norms and biases in float32.
    if (architecture_ != nullptr && tensor.shape.size() < 2 && tensor.layout == Layout::dense && has_float_elements(tensor) &&
        element_type(tensor) != DType::f64) {
      stored.blob = dense_blob(tensor, DType::f32);
      stored.type = 0;
    }
    if (known && known->rows != RowOrder::same && stored.bytes() > 0) put_in_order(stored, known->rows);
    return stored;
  }

  const Architecture* architecture() const { return architecture_; }

 private:
  void put_in_order(Stored& stored, RowOrder order) const {
    const auto heads = static_cast<std::uint64_t>(order == RowOrder::queries ? model_.config->num_attention_heads : model_.config->num_key_value_heads);
    const std::uint64_t rows = stored.shape.empty() ? 1 : stored.shape.front();
    const auto head_rows = rows_of_head(rows, heads);
    if (!head_rows) {
      throw Error(ErrorKind::unsupported,
                  fmt::format("gguf cannot hold {}: its {} rows are not {} heads of an even number of rows", stored.tensor->name, rows, heads));
    }
    const std::uint64_t row_bytes = stored.bytes() / rows;
    stored.blob = reorder_rows(std::move(stored.blob), row_bytes, *head_rows, RowOrderOf::llama_cpp);
  }

  const Model& model_;
  const Architecture* architecture_;
};

std::uint32_t file_type(const std::vector<Stored>& tensors) {
  std::map<std::uint32_t, std::uint64_t> bytes;
  for (const Stored& tensor : tensors) {
    if (tensor.shape.size() >= 2) bytes[tensor.type] += tensor.bytes();
  }
  const auto most = std::ranges::max_element(bytes, {}, [](const auto& entry) { return entry.second; });
  if (most == bytes.end()) return 0;
  const auto* row = std::ranges::find(kFileTypes, most->first, &std::pair<std::uint32_t, std::uint32_t>::first);
  return row == kFileTypes.end() ? 0 : row->second;
}

// Tensors [first, last) and the header before them.
struct Part {
  std::size_t first = 0;
  std::size_t last = 0;
  ByteWriter header;
  std::uint64_t data_bytes = 0;
};

class File {
 public:
  File(const Model& model, const WriteOptions& options) : alignment_(options.align.value_or(kUsualAlignment)) {
    const Preparer preparer(model);
    std::uint64_t embeddings = 0;
    for (const Tensor& tensor : model.tensors()) {
      const Stored& stored = tensors_.emplace_back(preparer.prepare(tensor));
      if (preparer.architecture() != nullptr && stored.name == "token_embd.weight" && !stored.shape.empty()) embeddings = stored.shape.front();
    }
    metadata_ = metadata_of(model, preparer.architecture(), file_type(tensors_), embeddings);
    cut(options.shard_size);
    for (std::size_t i = 0; i < parts_.size(); ++i) make_header(i);
  }

  std::uint64_t bytes() const {
    std::uint64_t sum = 0;
    for (const Part& part : parts_) sum += part.header.size() + part.data_bytes;
    return sum;
  }

  void write(Output& output, const Progress& progress) const {
    std::uint64_t total = 0;
    for (const Stored& tensor : tensors_) total += tensor.bytes();
    Meter meter(progress, total);
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      Sink& sink = parts_.size() == 1 ? output.main() : sink_of(output, i);
      const Part& part = parts_[i];
      sink.write(part.header.bytes());
      for (std::size_t t = part.first; t < part.last; ++t) {
        pump(*tensors_[t].blob, sink, meter, tensors_[t].name);
        sink.pad_to(alignment_);
      }
    }
  }

 private:
  // The first part has the metadata, and is what the others are found by.
  Sink& sink_of(Output& output, std::size_t index) const {
    std::string name = output.name();
    if (name.ends_with(".gguf")) name.resize(name.size() - 5);
    name = split_name(name, index, parts_.size());
    return index == 0 ? output.main_named(name) : output.sibling(name);
  }

  std::uint64_t aligned(std::uint64_t bytes) const {
    const auto result = checked_align(bytes, alignment_);
    if (!result) throw Error(ErrorKind::unsupported, "gguf: the tensors take more than 2^64 bytes");
    return *result;
  }

  void cut(const std::optional<std::uint64_t>& most) {
    parts_.emplace_back();
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      const std::uint64_t bytes = aligned(tensors_[i].bytes());
      if (most && parts_.back().data_bytes > 0 && saturating_add(parts_.back().data_bytes, bytes) > *most) {
        parts_.emplace_back();
        parts_.back().first = i;
      }
      parts_.back().last = i + 1;
      parts_.back().data_bytes = saturating_add(parts_.back().data_bytes, bytes);
    }
    if (parts_.size() > kMaxSplits) throw Error(ErrorKind::unsupported, fmt::format("gguf: more than {} files; a larger shard size makes fewer", kMaxSplits));
  }

  void make_header(std::size_t index) {
    Part& part = parts_[index];
    KeyValues own;
    if (alignment_ != kUsualAlignment) own.u32(kAlignmentKey, alignment_);
    if (parts_.size() > 1) {
      own.u16("split.no", static_cast<std::uint16_t>(index));
      own.u16("split.count", static_cast<std::uint16_t>(parts_.size()));
      own.i32("split.tensors.count", static_cast<std::int32_t>(tensors_.size()));
    }
    const bool is_first = index == 0;
    part.header.text(kMagic);
    part.header.u32(kLastVersion);
    part.header.u64(part.last - part.first);
    part.header.u64(own.count() + (is_first ? metadata_.count() : 0));
    if (is_first) part.header.append(metadata_.bytes());
    part.header.append(own.bytes());
    std::uint64_t offset = 0;
    for (std::size_t t = part.first; t < part.last; ++t) {
      const Stored& tensor = tensors_[t];
      KeyValues::append_text(part.header, tensor.name);
      part.header.u32(static_cast<std::uint32_t>(tensor.shape.size()));
      for (std::size_t d = tensor.shape.size(); d-- > 0;) part.header.u64(tensor.shape[d]);
      part.header.u32(tensor.type);
      part.header.u64(offset);
      offset = aligned(saturating_add(offset, tensor.bytes()));
    }
    part.header.zeros(static_cast<std::size_t>(aligned(part.header.size()) - part.header.size()));
  }

  std::uint64_t alignment_;
  std::vector<Stored> tensors_;
  KeyValues metadata_;
  std::vector<Part> parts_;
};

}  // namespace

void write(const Model& model, Output& output, const WriteOptions& options) { File(model, options).write(output, options.progress); }

FilePlan plan(const Model& model, const WriteOptions& options) {
  FilePlan plan;
  plan.bytes = File(model, options).bytes();
  const Preparer preparer(model);
  for (const Tensor& tensor : model.tensors()) plan.tensor_bytes.push_back(preparer.prepare(tensor).bytes());
  return plan;
}

std::vector<std::string> losses(const Model& model, const WriteOptions&) { return metadata_losses(model, architecture_for(model)); }

}  // namespace poise::gguf
