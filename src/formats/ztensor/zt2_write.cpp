// Writes zTensor 2, by default in canonical form: blobs on multiples of 64 KiB in the order of (object, part), one blob
// for parts of equal bytes (see SharedBlobs), an xxh3 digest for every part, no shards. The same tensors and attributes
// give the same file.
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>
#include <set>

#include <fmt/format.h>
#include <utf8proc.h>

#include <poise/error.hpp>

#include "bytes/utf8.hpp"
#include "formats/metadata.hpp"
#include "formats/ztensor/affine.hpp"
#include "formats/ztensor/object.hpp"
#include "formats/ztensor/zt2.hpp"
#include "pack/digest.hpp"
#include "pack/part_digest.hpp"
#include "views/sparse.hpp"

namespace poise::ztensor {
namespace {

// Converts a name to Unicode's normal form C, which canonical files have. Returns invalid UTF-8 unchanged.
std::string normalize_to_nfc(std::string_view text) {
  utf8proc_uint8_t* normal = nullptr;
  const auto bytes =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()),
                   &normal, static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  if (bytes == UTF8PROC_ERROR_NOMEM) throw std::bad_alloc();
  if (bytes < 0) return std::string(text);
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(normal, std::free);
  return {reinterpret_cast<const char*>(normal), static_cast<std::size_t>(bytes)};
}

// The values of root attributes begin at the third level of the manifest's 32, those of an object's attributes at the
// fifth.
constexpr std::size_t kMaxRootDepth = 30;
constexpr std::size_t kMaxObjectDepth = 28;

void require_name(std::string_view what, std::string_view name) {
  if (!name.empty() && name.size() <= kMaxNameBytes2 && name.find('\0') == std::string_view::npos && is_utf8(name))
    return;
  throw Error(ErrorKind::unsupported,
              fmt::format("zTensor 2 cannot hold the {} \"{}\": names are 1 to {} bytes of UTF-8 without NUL", what,
                          name.substr(0, 100), kMaxNameBytes2));
}

std::size_t measure_depth(const Value& value) {
  std::size_t deepest = 0;
  if (const auto* items = value.get_if<Value::Array>()) {
    for (const Value& item : *items) deepest = std::max(deepest, measure_depth(item));
  } else if (const auto* map = value.get_if<Attributes>()) {
    for (const auto& [key, item] : *map) deepest = std::max(deepest, measure_depth(item));
  } else if (const auto* pairs = value.get_if<Value::Pairs>()) {
    for (const auto& [key, item] : *pairs) deepest = std::max({deepest, measure_depth(key), measure_depth(item)});
  } else {
    return 0;
  }
  return deepest + 1;
}

void require_holdable_attributes(const Attributes& attributes, std::size_t most_levels) {
  for (const auto& [key, value] : attributes) {
    require_name("attribute", key);
    if (measure_depth(value) > most_levels)
      throw Error(
          ErrorKind::unsupported,
          fmt::format("zTensor 2 cannot hold the attribute \"{}\": it nests too deep, expected at most {} levels", key,
                      most_levels));
  }
}

void require_holdable_tensor(const StoredTensor& tensor) {
  require_name("tensor", tensor.name);
  if (tensor.parts.empty())
    throw Error(ErrorKind::unsupported, fmt::format("zTensor 2 cannot hold {}: it has no parts", tensor.name));
  for (const StoredPart& part : tensor.parts) require_name("part", part.role);
  require_holdable_attributes(tensor.attributes, kMaxObjectDepth);
}

// Converts a tensor. Sorts the columns in each row of CSR, because version 2 requires that order. Throws invalid_file
// for a sparse tensor that breaks the rules of its original format.
StoredTensor convert_tensor(const Tensor& tensor) {
  if (tensor.layout == Layout::sparse_csr) return convert_to_stored2(sort_sparse_columns(tensor));
  if (tensor.layout == Layout::sparse_coo) validate_sparse(tensor, get_sparse_rules(tensor));
  return convert_to_stored2(tensor);
}

// Converts the model's tensors with `store`, and sorts them by name.
template <typename Store>
std::vector<StoredTensor> convert_tensors(const Model& model, Store&& store) {
  std::vector<StoredTensor> tensors;
  for (const Tensor& tensor : model.tensors()) {
    StoredTensor& stored = tensors.emplace_back(store(tensor));
    stored.name = normalize_to_nfc(stored.name);
    for (StoredPart& part : stored.parts) part.role = normalize_to_nfc(part.role);
    require_holdable_tensor(stored);
  }
  std::ranges::sort(tensors, {}, &StoredTensor::name);
  const auto twice = std::ranges::adjacent_find(tensors, {}, &StoredTensor::name);
  if (twice != tensors.end())
    throw Error(ErrorKind::unsupported,
                fmt::format("zTensor 2: two tensors have the name {} in Unicode's normal form C", twice->name));
  return tensors;
}

Attributes collect_root_attributes(const Model& model) {
  Attributes attributes = model.attributes;
  for (const auto& [key, value] : make_metadata_attributes(model)) attributes.set(key, value);
  require_holdable_attributes(attributes, kMaxRootDepth);
  return attributes;
}

// Returns true if two parts have the same size: they may share a blob, and the file is then smaller than planned.
bool has_parts_of_equal_size(const std::vector<StoredTensor>& tensors) {
  std::set<std::uint64_t> sizes;
  for (const StoredTensor& tensor : tensors) {
    for (const StoredPart& part : tensor.parts) {
      if (!sizes.insert(part.blob->size()).second) return true;
    }
  }
  return false;
}

}  // namespace

void write_zt2(const Model& model, Output& output, const WriteOptions& options) {
  const Attributes attributes = collect_root_attributes(model);
  const std::vector<StoredTensor> tensors = convert_tensors(model, convert_tensor);
  const BlobStorage storage(options);
  const WrittenBlobs blobs = write_blobs(tensors, storage, options, output);
  write_manifest(output.main(), storage.alignment, attributes, tensors, blobs);
}

FilePlan plan_zt2(const Model& model, const WriteOptions& options) {
  FilePlan plan;
  const Attributes attributes = collect_root_attributes(model);
  const std::vector<StoredTensor> tensors = convert_tensors(model, [&](const Tensor& tensor) {
    if (tensor.layout == Layout::affine) plan.exact = false;
    StoredTensor stored = convert_to_stored2(set_longest_scale(tensor));
    plan.tensor_bytes.push_back(sum_sizes(list_part_blobs(std::span(&stored, 1))));
    return stored;
  });
  const BlobStorage storage(options);
  CountingSink sink;
  sink.write(std::as_bytes(std::span(kMagic2)));
  WrittenBlobs blobs{.references = {}, .digests = {compute_empty_digest(storage.digest)}, .shards = {}};
  for (const StoredTensor& tensor : tensors) {
    auto& references = blobs.references.emplace_back();  // places as if no part had the same bytes as another
    for (const StoredPart& part : tensor.parts) {
      sink.pad_to(storage.alignment);
      references.push_back({.offset = sink.position(),
                            .length = part.blob->size(),
                            .shard = {},
                            .encoded = storage.zstd_level.has_value()});
      sink.pad(part.blob->size());
    }
  }
  write_manifest(sink, storage.alignment, attributes, tensors, blobs);
  if (!options.zstd_level && !options.shard_size) plan.bytes = sink.position();
  plan.exact = plan.exact && !has_parts_of_equal_size(tensors);
  return plan;
}

std::vector<std::string> list_zt2_losses(const Model& model, const WriteOptions&) {
  std::vector<std::string> losses;
  for (const Tensor& tensor : model.tensors()) {
    if (is_utf8(tensor.name) && normalize_to_nfc(tensor.name) != tensor.name)
      losses.push_back(fmt::format("the name {} is written in Unicode's normal form C", tensor.name));
  }
  return losses;
}

}  // namespace poise::ztensor
