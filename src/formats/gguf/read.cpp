// Reads a GGUF file: its header (header.hpp), the metadata as card, configuration and vocabulary, and the tensors. The
// name of a file that is one of several ends in -00001-of-00003.gguf. Source: the GGUF specification of
// github.com/ggml-org/ggml.
#include "formats/gguf/gguf.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>
#include <poise/values.hpp>

#include "bytes/checked.hpp"
#include "codec/block_type.hpp"
#include "formats/gguf/changes.hpp"
#include "formats/gguf/header.hpp"
#include "formats/gguf/types.hpp"
#include "io/extents.hpp"
#include "io/in_place.hpp"
#include "tensor/block_layout.hpp"
#include "views/dense.hpp"
#include "views/integer_blobs.hpp"

namespace poise::gguf {
namespace {

// Holds one file: its metadata, and the places of its tensors.
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
  HeaderReader header(*file.source);
  file.version = header.version();
  file.big_endian = header.is_big_endian();
  file.metadata.emplace(header);
  header.read_tensors([&](TensorInfo tensor) { file.tensors.push_back(std::move(tensor)); });
  // Without tensors the padding may be missing.
  file.data_begin = std::min(*checked_align(header.end(), file.metadata->alignment()), file.source->size());
  file.data_bytes = file.source->size() - file.data_begin;
  return file;
}

void require_finished_edit(const std::filesystem::path& path) {
  if (!is_interrupted(path)) return;
  throw Error(ErrorKind::invalid_file,
              "gguf: an edit of this file was interrupted, so its header is partly old and partly new; edit it again, "
              "which restores the old header first",
              path.string());
}

class TensorAdder {
 public:
  TensorAdder(const Metadata& metadata, Model& model) : architecture_(metadata.architecture()), model_(model) {
    if (architecture_ == nullptr) return;
    heads_ = read_heads(metadata.entries(), *architecture_);
    has_scaling_ = find_scaling_type(metadata.entries(), *architecture_) != "none";
  }

  // Returns the factors of rotary embeddings that were found in tensors. They belong to the configuration.
  const RopeFactors& factors() const { return factors_; }

  void add_tensors(File& file) {
    file_ = &file;
    std::vector<std::optional<std::uint64_t>> sizes;
    for (const TensorInfo& info : file.tensors) sizes.push_back(count_known_bytes(info));
    require_disjoint(sizes);
    offsets_.clear();
    for (const TensorInfo& info : file.tensors) offsets_.push_back(info.offset);
    std::ranges::sort(offsets_);
    for (std::size_t i = 0; i < file.tensors.size(); ++i) {
      const TensorInfo& info = file.tensors[i];
      try {
        add_tensor(info, sizes[i] ? *sizes[i] : count_bytes_to_next(info));
      } catch (const Error& error) {
        if (error.offset()) throw;
        throw Error(error.kind(), fmt::format("gguf: {}", error.message()), file.source->name(), info.position);
      }
    }
  }

 private:
  [[noreturn]] void fail(const TensorInfo& info, std::string_view problem) const {
    throw Error(ErrorKind::invalid_file, fmt::format("gguf: tensor {}: {}", info.name, problem), file_->source->name(),
                info.position);
  }

  // Returns the size of a tensor's data; std::nullopt for an unknown type. Throws invalid_file for an impossible shape
  // or place.
  std::optional<std::uint64_t> count_known_bytes(const TensorInfo& info) const {
    const auto elements = element_count(info.shape);
    if (!elements) fail(info, fmt::format("shape {} overflows 64 bits", poise::to_string(info.shape)));
    const BlockType* type = find_numbered_block_type(info.type);
    if (type == nullptr && !find_spelled_dtype(kSpellings, info.type)) {
      require_place(info, 0);
      return std::nullopt;
    }
    const std::uint64_t row = info.shape.empty() ? 1 : info.shape.back();
    if (type != nullptr && row % type->elements != 0)
      fail(info, fmt::format("rows of {} elements are not whole blocks of {} ({})", row, type->elements, type->name));
    const auto bytes = count_stored_bytes(info.type, *elements);
    if (!bytes) fail(info, fmt::format("shape {} overflows 64 bits", poise::to_string(info.shape)));
    require_place(info, *bytes);
    return bytes;
  }

  void require_place(const TensorInfo& info, std::uint64_t bytes) const {
    const std::uint64_t alignment = file_->metadata->alignment();
    if (info.offset % alignment != 0)
      fail(info, fmt::format("offset {} is not a multiple of {}", info.offset, alignment));
    if (info.offset > file_->data_bytes || bytes > file_->data_bytes - info.offset) {
      const std::uint64_t needed = saturating_add(file_->data_begin, saturating_add(info.offset, bytes));
      fail(info,
           fmt::format(
               "{} bytes at offset {} reach beyond the data, which have {}: the file is cut off, since it needs at "
               "least {} bytes and has {}",
               bytes, info.offset, file_->data_bytes, needed, file_->source->size()));
    }
  }

  void require_disjoint(const std::vector<std::optional<std::uint64_t>>& sizes) const {
    std::vector<Extent> extents;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (sizes[i].value_or(0) > 0)
        extents.push_back({file_->tensors[i].offset, *sizes[i], static_cast<std::uint32_t>(i)});
    }
    const auto overlap = find_overlap(std::move(extents));
    if (!overlap) return;
    const auto& [before, here] = *overlap;
    fail(file_->tensors[here.tensor], fmt::format("its {} bytes at offset {} overlap those of {}", here.length,
                                                  here.begin, file_->tensors[before.tensor].name));
  }

  // Returns the number of bytes up to the next tensor or the end of the data, for types of unknown size.
  std::uint64_t count_bytes_to_next(const TensorInfo& info) const {
    const auto next = std::ranges::upper_bound(offsets_, info.offset);
    return (next == offsets_.end() ? file_->data_bytes : *next) - info.offset;
  }

  void add_tensor(const TensorInfo& info, std::uint64_t bytes) {
    const auto known = architecture_ == nullptr ? std::nullopt : find_poise_name(*architecture_, info.name);
    if (known && known->change == Change::stacked && info.shape.size() == (known->name.ends_with(".bias") ? 2U : 3U) &&
        is_decodable(info)) {
      return add_experts(info, known->name, bytes);
    }
    Tensor stored = make_stored_tensor(info, bytes);
    if (read_factors(info, stored)) return;
    if (known && known->change != Change::stacked && is_decodable(info)) {
      if (auto put_back = undo_change(stored, known->change, heads_)) {
        stored = std::move(*put_back);
        stored.name = known->expert ? make_expert_name(known->name, *known->expert) : known->name;
        stored.file_name = std::make_shared<const std::string>(info.name);
      }
    }
    model_.add(std::move(stored));
  }

  void add_experts(const TensorInfo& info, std::string_view name, std::uint64_t bytes) {
    const std::uint64_t experts = info.shape.front();
    if (experts > kMaxExperts) fail(info, fmt::format("{} experts, at most {} are read", experts, kMaxExperts));
    if (experts == 0 || bytes / experts < kLeastExpertBytes)
      fail(info, fmt::format("{} bytes are too few for {} experts, expected at least {} for each", bytes, experts,
                             kLeastExpertBytes));
    TensorInfo expert = info;
    expert.shape = Shape(info.shape.begin() + 1, info.shape.end());
    const auto file_name = std::make_shared<const std::string>(info.name);
    for (std::uint64_t i = 0; i < experts; ++i) {
      expert.name = make_expert_name(name, i);
      Tensor made = make_stored_tensor(expert, bytes / experts);
      made.file_name = file_name;
      model_.add(std::move(made));
      expert.offset += bytes / experts;
    }
  }

  // Reads factors of rotary embeddings from their tensor; returns false for another tensor, for invalid factors, and if
  // the architecture has no such factors.
  bool read_factors(const TensorInfo& info, const Tensor& stored) {
    const auto* row = std::ranges::find(kRopeFactorRows, info.name, &RopeFactorRow::gguf);
    if (row == kRopeFactorRows.end() || architecture_ == nullptr ||
        !(row->for_any_context ? architecture_->holds_frequency_factors : architecture_->holds_long_factors))
      return false;
    // With another scaling, llama.cpp divides by both. A tensor that stays has no place in the family, so Poise does
    // not run the model.
    if (row->for_any_context && has_scaling_) return false;
    if (info.shape.size() != 1 || stored.elements() > kMaxRopeFactors || !has_float_elements(stored)) return false;
    std::vector<float> factors = values(stored);
    if (!std::ranges::all_of(factors, [](float factor) { return std::isfinite(factor); })) return false;
    factors_.*(row->factors) = std::move(factors);
    return true;
  }

  // Returns the tensor's block type; null if Poise cannot read it, or cannot swap its bytes in a big-endian file.
  const BlockType* find_readable_block_type(const TensorInfo& info) const {
    const BlockType* type = find_numbered_block_type(info.type);
    return type != nullptr && file_->big_endian && !type->swapped ? nullptr : type;
  }

  // Returns true for tensors that Poise can decode. Poise lists and copies the other ones, which keep llama.cpp's names
  // and order of rows.
  bool is_decodable(const TensorInfo& info) const {
    return find_spelled_dtype(kSpellings, info.type) || find_readable_block_type(info) != nullptr;
  }

  // Returns the tensor as the file stores it, except that decodable tensors become little-endian.
  Tensor make_stored_tensor(const TensorInfo& info, std::uint64_t bytes) const {
    BlobPtr blob = make_source_blob(file_->source, file_->data_begin + info.offset, bytes);
    if (const auto dtype = find_spelled_dtype(kSpellings, info.type)) {
      if (file_->big_endian) blob = make_byte_swapped_blob(blob, get_number_bytes(*dtype));
      return make_dense(info.name, info.shape, *dtype, std::move(blob));
    }
    if (const BlockType* type = find_readable_block_type(info)) {
      if (file_->big_endian) blob = make_swapped_blocks(std::move(blob), *type);
      return make_blocks(info.name, info.shape, *type, std::move(blob));
    }
    Tensor listed = make_dense(info.name, info.shape, DType::u8, std::move(blob));
    listed.layout = TensorLayout::other(make_layout_name(info, find_numbered_block_type(info.type)));
    return listed;
  }

  static std::string make_layout_name(const TensorInfo& info, const BlockType* type) {
    if (type != nullptr) return fmt::format("gguf.{}.big_endian/1", type->name);
    const auto* removed = std::ranges::find(kRemovedTypes, info.type, &RemovedType::number);
    return removed != kRemovedTypes.end() ? fmt::format("gguf.{}.removed/1", removed->name)
                                          : fmt::format("gguf.type_{}/1", info.type);
  }

  const Architecture* architecture_;
  Heads heads_;
  bool has_scaling_ = false;  // the metadata scale rotary embeddings
  RopeFactors factors_;
  Model& model_;
  const File* file_ = nullptr;
  std::vector<std::uint64_t> offsets_;  // the offsets of the file's tensors, ascending
};

// Opens all files of a model, in order. The first has the metadata.
std::vector<File> read_parts(const Input& input, const ReadOptions& options) {
  std::vector<File> files;
  if (input.has_folder) require_finished_edit(input.path);
  files.push_back(read_file(input.source));
  const Split split = files.front().metadata->split();
  if (split.count < 2) return files;
  const std::string this_part = fmt::format("gguf: this is part {} of {}", split.number + 1, split.count);
  const auto fail = [&](ErrorKind kind, std::string_view problem) {
    throw Error(kind, fmt::format("{}{}", this_part, problem), input.path.string());
  };
  if (!input.has_folder)
    fail(ErrorKind::unsupported, " in memory, where the other parts cannot be found: open the first file by its path");
  const auto prefix = find_split_prefix(input.path.filename().string(), split.number, split.count);
  if (!prefix)
    fail(ErrorKind::invalid_file, fmt::format(", and the other parts cannot be found: its name does not end in {}",
                                              make_split_name("", split.number, split.count)));
  std::vector<File> all;
  for (std::uint64_t number = 0; number < split.count; ++number) {
    if (number == split.number) {
      all.push_back(std::move(files.front()));
      continue;
    }
    const auto path = input.path.parent_path() / make_split_name(*prefix, number, split.count);
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored))
      fail(ErrorKind::not_found, fmt::format("; {} is missing", path.filename().string()));
    require_finished_edit(path);
    File& file = all.emplace_back(read_file(Source::open(path, options.io)));
    const Split& other = file.metadata->split();
    if (other.count != split.count || other.number != number) {
      throw Error(ErrorKind::invalid_file,
                  fmt::format("gguf: its header states part {} of {}, its name part {} of {}", other.number + 1,
                              other.count, number + 1, split.count),
                  path.string());
    }
  }
  std::uint64_t tensors = 0;
  for (const File& file : all) tensors += file.tensors.size();
  for (const File& file : all) {
    const std::uint64_t promised = file.metadata->split().tensors;
    if (promised == 0 || promised == tensors) continue;
    throw Error(ErrorKind::invalid_file,
                fmt::format("gguf: {} is {}, but the parts hold {} tensors", kSplitTensorsKey, promised, tensors),
                file.source->name());
  }
  return all;
}

}  // namespace

std::string make_split_name(const std::string& prefix, std::uint64_t number, std::uint64_t count) {
  return fmt::format("{}-{:05}-of-{:05}.gguf", prefix, number + 1, count);
}

std::optional<std::string> find_split_prefix(const std::string& name, std::uint64_t number, std::uint64_t count) {
  const std::string ending = make_split_name("", number, count);
  if (!name.ends_with(ending)) return std::nullopt;
  return name.substr(0, name.size() - ending.size());
}

Model read(const Input& input, const ReadOptions& options) {
  std::vector<File> files = read_parts(input, options);
  Model model;
  Metadata& metadata = *files.front().metadata;
  model.origin = {input.path, fmt::format("gguf-v{}", files.front().version), 0, {}};
  TensorAdder adder(metadata, model);
  for (File& file : files) {
    model.origin.size += file.source->size();
    model.origin.files.push_back(file.source == input.source ? input.path : std::filesystem::path(file.source->name()));
    adder.add_tensors(file);
  }
  metadata.move_into(model, adder.factors(), input.path.string());
  return model;
}

}  // namespace poise::gguf
