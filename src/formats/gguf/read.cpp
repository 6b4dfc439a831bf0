#include "formats/gguf/read.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/checked.hpp"
#include "codec/block_type.hpp"
#include "formats/gguf/header.hpp"
#include "formats/gguf/limits.hpp"
#include "formats/gguf/metadata.hpp"
#include "formats/gguf/row_order.hpp"
#include "formats/gguf/swapped_blocks.hpp"
#include "formats/gguf/types.hpp"
#include "io/extents.hpp"
#include "io/source_range.hpp"
#include "tensor/block_layout.hpp"
#include "views/byte_swap.hpp"

namespace poise::gguf {
namespace {

constexpr std::string_view kFormat = "gguf";

// One file: its metadata, and where its tensors are.
struct File {
  SourcePtr source;
  std::uint32_t version = 0;
  bool big_endian = false;
  std::optional<Metadata> metadata;
  std::vector<TensorInfo> tensors;
  std::uint64_t data_begin = 0;
  std::uint64_t data_bytes = 0;
};

File read_file(SourcePtr source) {
  File file;
  file.source = std::move(source);
  const SourceRange range(*file.source);
  HeaderReader header(range);
  file.version = header.version();
  file.big_endian = header.is_big_endian();
  file.metadata.emplace(header);
  header.tensors([&](TensorInfo tensor) { file.tensors.push_back(std::move(tensor)); });
  // Without tensors there may be no padding.
  file.data_begin = std::min(*checked_align(header.end(), file.metadata->alignment()), file.source->size());
  file.data_bytes = file.source->size() - file.data_begin;
  return file;
}

// What the rows of rotating matrices are put back with.
struct Heads {
  std::uint64_t queries = 0;
  std::uint64_t keys = 0;
};

std::uint64_t number_of(const Metadata& metadata, const std::string& key) {
  const Value* value = metadata.find(key);
  const auto* number = value == nullptr ? nullptr : value->get_if<std::uint64_t>();
  return number == nullptr ? 0 : *number;
}

Heads heads_of(const Metadata& metadata) {
  if (metadata.architecture() == nullptr) return {};
  const std::string prefix = std::string(metadata.architecture()->name) + ".attention.";
  const std::uint64_t queries = number_of(metadata, prefix + "head_count");
  const std::uint64_t keys = number_of(metadata, prefix + "head_count_kv");
  return {queries, keys != 0 ? keys : queries};
}

class TensorAdder {
 public:
  TensorAdder(const Metadata& metadata, Model& model) : architecture_(metadata.architecture()), heads_(heads_of(metadata)), model_(model) {}

  void add_all(File& file) {
    file_ = &file;
    std::vector<std::optional<std::uint64_t>> sizes;
    for (const TensorInfo& info : file.tensors) sizes.push_back(known_bytes(info));
    require_disjoint(sizes);
    offsets_.clear();
    for (const TensorInfo& info : file.tensors) offsets_.push_back(info.offset);
    std::ranges::sort(offsets_);
    for (std::size_t i = 0; i < file.tensors.size(); ++i) {
      const TensorInfo& info = file.tensors[i];
      try {
        model_.add(tensor(info, sizes[i] ? *sizes[i] : bytes_to_next(info)));
      } catch (const Error& error) {
        if (error.offset()) throw;
        throw Error(error.kind(), fmt::format("gguf: {}", error.message()), file.source->name(), info.position);
      }
    }
  }

 private:
  [[noreturn]] void fail(const TensorInfo& info, std::string_view problem) const {
    throw Error(ErrorKind::invalid_file, fmt::format("gguf: tensor {}: {}", info.name, problem), file_->source->name(), info.position);
  }

  // Nothing for a type that is not known.
  std::optional<std::uint64_t> known_bytes(const TensorInfo& info) const {
    const auto elements = element_count(info.shape);
    if (!elements) fail(info, fmt::format("shape {} overflows", to_string(info.shape)));
    std::optional<std::uint64_t> bytes;
    if (const auto dtype = dtype_spelled(kSpellings, info.type)) {
      bytes = packed_bytes(*dtype, *elements);
    } else if (const BlockType* type = block_type_numbered(info.type)) {
      const std::uint64_t row = info.shape.empty() ? 1 : info.shape.back();
      if (row % type->elements != 0) fail(info, fmt::format("rows of {} elements are no whole blocks of {} ({})", row, type->elements, type->name));
      bytes = checked_mul(*elements / type->elements, type->bytes);
    } else {
      require_place(info, 0);
      return std::nullopt;
    }
    if (!bytes) fail(info, fmt::format("shape {} overflows", to_string(info.shape)));
    require_place(info, *bytes);
    return bytes;
  }

  void require_place(const TensorInfo& info, std::uint64_t bytes) const {
    const std::uint64_t alignment = file_->metadata->alignment();
    if (info.offset % alignment != 0) fail(info, fmt::format("offset {} is no multiple of {}", info.offset, alignment));
    if (info.offset > file_->data_bytes || bytes > file_->data_bytes - info.offset) {
      fail(info, fmt::format("{} bytes at offset {} reach beyond the data, which have {}", bytes, info.offset, file_->data_bytes));
    }
  }

  void require_disjoint(const std::vector<std::optional<std::uint64_t>>& sizes) const {
    std::vector<Extent> extents;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (sizes[i].value_or(0) > 0) extents.push_back({file_->tensors[i].offset, *sizes[i], file_->tensors[i].position, static_cast<std::uint32_t>(i), 0});
    }
    const auto overlap = find_overlap(std::move(extents));
    if (!overlap) return;
    const auto& [before, here] = *overlap;
    fail(file_->tensors[here.tensor],
         fmt::format("its {} bytes at offset {} overlap those of {}", here.length, here.begin, file_->tensors[before.tensor].name));
  }

  // All bytes up to the next tensor, for types whose sizes are not known.
  std::uint64_t bytes_to_next(const TensorInfo& info) const {
    const auto next = std::ranges::upper_bound(offsets_, info.offset);
    return (next == offsets_.end() ? file_->data_bytes : *next) - info.offset;
  }

  Tensor tensor(const TensorInfo& info, std::uint64_t bytes) const {
    const auto known = architecture_ == nullptr ? std::nullopt : canonical_name(*architecture_, info.name);
    HeldBlob blob = SourceBlob(file_->source, file_->data_begin + info.offset, bytes);
    std::string name = known ? known->name : info.name;
    if (const auto dtype = dtype_spelled(kSpellings, info.type)) {
      if (file_->big_endian) blob = make_byte_swapped_blob(blob, number_bytes(*dtype));
      return make_dense(std::move(name), info.shape, *dtype, in_order(info, known, std::move(blob), bytes));
    }
    const BlockType* type = block_type_numbered(info.type);
    if (type != nullptr && (!file_->big_endian || type->swapped)) {
      if (file_->big_endian) blob = make_swapped_blocks(std::move(blob), *type);
      return make_blocks(std::move(name), info.shape, *type, in_order(info, known, std::move(blob), bytes));
    }
    // Rows stay in their order, and so the tensor keeps its name.
    Tensor listed = make_dense(info.name, info.shape, DType::u8, std::move(blob));
    listed.layout = TensorLayout::other(type_name(info, type));
    return listed;
  }

  static std::string type_name(const TensorInfo& info, const BlockType* type) {
    if (type != nullptr) return fmt::format("gguf.{}.big_endian/1", type->name);
    const auto* removed = std::ranges::find(kRemovedTypes, info.type, &RemovedType::number);
    return removed != kRemovedTypes.end() ? fmt::format("gguf.{}.removed/1", removed->name) : fmt::format("gguf.type_{}/1", info.type);
  }

  HeldBlob in_order(const TensorInfo& info, const std::optional<TensorName>& known, HeldBlob blob, std::uint64_t bytes) const {
    if (!known || known->rows == RowOrder::same || bytes == 0) return blob;
    const std::uint64_t rows = info.shape.empty() ? 1 : info.shape.front();
    const std::uint64_t heads = known->rows == RowOrder::queries ? heads_.queries : heads_.keys;
    if (heads == 0) fail(info, "the metadata does not say how many heads its rows are");
    const auto head_rows = rows_of_head(rows, heads);
    if (!head_rows) fail(info, fmt::format("its {} rows are not {} heads of an even number of rows", rows, heads));
    return reorder_rows(std::move(blob), bytes / rows, *head_rows, RowOrderOf::transformers);
  }

  const Architecture* architecture_;
  Heads heads_;
  Model& model_;
  const File* file_ = nullptr;
  std::vector<std::uint64_t> offsets_;  // of the file's tensors, ascending
};

// Opens the other parts of a split model. The first has the metadata.
std::vector<File> read_parts(const Input& input, const ReadOptions& options) {
  std::vector<File> files;
  files.push_back(read_file(input.source));
  const Split split = files.front().metadata->split();
  if (split.count < 2) return files;
  const std::string name = input.path.filename().string();
  const auto prefix = split_prefix(name, split.number, split.count);
  if (!prefix) {
    throw Error(ErrorKind::invalid_file,
                fmt::format("gguf: this is part {} of {}, and the other parts cannot be found: its name does not end in {}", split.number + 1, split.count,
                            split_name("", split.number, split.count)),
                input.path.string());
  }
  std::vector<File> all;
  for (std::uint64_t number = 0; number < split.count; ++number) {
    if (number == split.number) {
      all.push_back(std::move(files.front()));
      continue;
    }
    const auto path = input.path.parent_path() / split_name(*prefix, number, split.count);
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) {
      throw Error(ErrorKind::not_found, fmt::format("gguf: this is part {} of {}; {} is not there", split.number + 1, split.count, path.filename().string()),
                  input.path.string());
    }
    File& file = all.emplace_back(read_file(Source::open(path, options.io)));
    const Split& other = file.metadata->split();
    if (other.count != split.count || other.number != number) {
      throw Error(
          ErrorKind::invalid_file,
          fmt::format("gguf: it says that it is part {} of {}, its name that it is part {} of {}", other.number + 1, other.count, number + 1, split.count),
          path.string());
    }
  }
  std::uint64_t tensors = 0;
  for (const File& file : all) tensors += file.tensors.size();
  if (const std::uint64_t promised = all.front().metadata->split().tensors; promised != 0 && promised != tensors) {
    throw Error(ErrorKind::invalid_file, fmt::format("gguf: split.tensors.count: {} tensors, the parts hold {}", promised, tensors), input.path.string());
  }
  return all;
}

}  // namespace

std::string split_name(const std::string& prefix, std::uint64_t number, std::uint64_t count) {
  return fmt::format("{}-{:05}-of-{:05}.gguf", prefix, number + 1, count);
}

std::optional<std::string> split_prefix(const std::string& name, std::uint64_t number, std::uint64_t count) {
  const std::string ending = split_name("", number, count);
  if (!name.ends_with(ending)) return std::nullopt;
  return name.substr(0, name.size() - ending.size());
}

Model read(const Input& input, const ReadOptions& options) {
  std::vector<File> files = read_parts(input, options);
  Model model;
  Metadata& metadata = *files.front().metadata;
  model.origin = {input.path, fmt::format("{}-v{}", kFormat, files.front().version), 0, {}};
  TensorAdder adder(metadata, model);
  for (File& file : files) {
    model.origin.size += file.source->size();
    model.origin.files.push_back(file.source == input.source ? input.path : std::filesystem::path(file.source->name()));
    adder.add_all(file);
  }
  const bool has_tensors = model.size() > 0;
  metadata.give_to(model, has_tensors && model.find("lm_head.weight") == nullptr, input.path.string());
  return model;
}

}  // namespace poise::gguf
