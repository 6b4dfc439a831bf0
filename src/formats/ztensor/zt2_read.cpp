// The layout of a zTensor 2 file:
//
//   89 "ZT2" 0d 0a 1a 0a
//   blobs         each on a multiple of 4096, zero bytes between them; the manifest is one of them
//   u64 manifest_offset, u64 manifest_length, u64 XXH3-64 of the manifest, u32 version 2, u32 0
//   89 "ZT2" 0d 0a 1a 0a
//
// A data shard has no manifest, and three zeros for it. Parts may lie in shards: other files, which the manifest knows by a
// name, a size and a digest.
#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "formats/ztensor/audit.hpp"
#include "formats/ztensor/edit.hpp"
#include "formats/ztensor/zt2.hpp"
#include "io/zstd_seekable.hpp"
#include "model/metadata.hpp"
#include "tensor/part_digest.hpp"

namespace poise::ztensor {
namespace {

constexpr std::string_view kContext = "zt 2: manifest";

// One file that parts lie in.
struct Heap {
  std::string shard;           // its name; empty: the file with the manifest
  SourcePtr source;            // null: the shard is not there
  std::uint64_t data_end = 0;  // where its footer begins
};

class Heaps {
 public:
  Heaps(const Input& input, const ReadOptions& options, const Manifest2& manifest) {
    heaps_[""] = {"", input.source, input.source->size() - kFooterBytes2};
    for (const Shard& shard : manifest.shards)
      heaps_[shard.name] = {shard.name, open(shard_path(input.path, shard.name), shard, options), shard.size - kFooterBytes2};
  }

  // Null when the table has no such name.
  const Heap* find(const std::string& shard) const {
    const auto found = heaps_.find(shard);
    return found == heaps_.end() ? nullptr : &found->second;
  }

  void describe(Model& model, const std::filesystem::path& root) const {
    for (const auto& [name, heap] : heaps_) {
      if (name.empty()) continue;
      const auto path = shard_path(root, name);
      if (heap.source) {
        model.origin.files.push_back(path);
        model.origin.size += heap.source->size();
      } else {
        model.warnings.push_back({fmt::format("the shard {} is not here: its tensors are listed, not loaded", name), path.string(), std::nullopt});
      }
    }
  }

 private:
  // A shard that is there must be the one that is meant, as far as its size and ends tell.
  static SourcePtr open(const std::filesystem::path& path, const Shard& shard, const ReadOptions& options) {
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) return nullptr;
    SourcePtr source = Source::open(path, options.io);
    if (source->size() != shard.size) {
      throw Error(ErrorKind::invalid_file, fmt::format("zt 2: shard {}: it needs {} bytes, has {}", shard.name, shard.size, source->size()), source->name(),
                  source->size());
    }
    find_manifest2(*source);
    return source;
  }

  std::map<std::string, Heap> heaps_;
};

struct Extent {
  std::uint64_t begin = 0;
  std::uint64_t length = 0;
  const Object* object = nullptr;  // null: the manifest
  const Component* part = nullptr;
};

class ModelBuilder {
 public:
  ModelBuilder(const Input& input, const ReadOptions& options, Manifest2 manifest, const ManifestRange& range)
      : path_(input.source->name()), manifest_(std::move(manifest)), heaps_(input, options, manifest_) {
    extents_[""].push_back({range.begin, range.end - range.begin, nullptr, nullptr});
  }

  void build(Model& model, const std::filesystem::path& root) {
    for (const Object& object : manifest_.objects) {
      for (const Component& part : object.components) require_place(object, part);
    }
    for (auto& [shard, extents] : extents_) require_disjoint(extents);
    std::vector<std::pair<std::pair<std::string_view, std::uint64_t>, Object*>> order;
    for (Object& object : manifest_.objects) {
      std::ranges::stable_sort(object.components, {}, [](const Component& part) { return std::pair(std::string_view(part.shard), part.offset); });
      order.emplace_back(std::pair(std::string_view(object.components[0].shard), object.components[0].offset), &object);
    }
    std::ranges::stable_sort(order, [](const auto& a, const auto& b) { return a.first != b.first ? a.first < b.first : a.second->name < b.second->name; });
    model.reserve(order.size());
    for (const auto& [place, object] : order) model.add(tensor(std::exchange(*object, {})));
    model.attributes = std::move(manifest_.attributes);
    heaps_.describe(model, root);
  }

 private:
  [[noreturn]] void fail(const Object& object, std::uint64_t position, std::string_view problem) const {
    throw Error(ErrorKind::invalid_file, fmt::format("{}: objects: {}: {}", kContext, object.name, problem), path_, position);
  }
  [[noreturn]] void fail(const Object& object, const Component& part, std::string_view problem) const {
    fail(object, part.position, fmt::format("parts: {}: {}", part.role, problem));
  }

  void require_place(const Object& object, const Component& part) {
    const Heap* heap = heaps_.find(part.shard);
    if (heap == nullptr) fail(object, part, fmt::format("shard: \"{}\" is not in the table of shards", part.shard));
    if (part.offset % kLeastAlignment2 != 0 || part.offset < kLeastAlignment2) {
      fail(object, part, fmt::format("blob: offset {} is no positive multiple of {}", part.offset, kLeastAlignment2));
    }
    if (part.offset > heap->data_end || part.length > heap->data_end - part.offset) {
      fail(object, part, fmt::format("blob: {} bytes at {} reach behind the data, which end at {}", part.length, part.offset, heap->data_end));
    }
    if (part.length > 0) extents_[part.shard].push_back({part.offset, part.length, &object, &part});
  }

  // References into one file are the same range or share no byte.
  void require_disjoint(std::vector<Extent>& extents) const {
    const auto place = [](const Extent& extent) { return std::pair(extent.begin, extent.length); };
    std::ranges::stable_sort(extents, {}, place);
    for (std::size_t i = 1; i < extents.size(); ++i) {
      const Extent& before = extents[i - 1];
      const Extent& here = extents[i];
      if (place(before) == place(here) || here.begin - before.begin >= before.length) continue;
      const Extent& part = here.object != nullptr ? here : before;
      const Extent& other = here.object != nullptr ? before : here;
      const std::string name = other.object == nullptr ? "the manifest" : fmt::format("{}: {}", other.object->name, other.part->role);
      fail(*part.object, *part.part, fmt::format("blob: {} bytes at {} overlap {}", part.length, part.begin, name));
    }
  }

  Tensor tensor(Object object) const {
    Tensor tensor;
    tensor.name = std::move(object.name);
    tensor.shape = std::move(object.shape);
    tensor.layout_name = std::move(object.layout);
    tensor.attributes = std::move(object.attributes);
    for (Component& component : object.components) {
      Part& part = tensor.parts.emplace_back();
      part.blob = blob(tensor.name, component);
      part.role = std::move(component.role);
      part.dtype = component.dtype;
      part.dtype_name = std::move(component.dtype_name);
      if (!component.digest.empty()) part.digest = Digest{digest_algorithm(component.digest), std::move(component.digest), false};
    }
    try {
      from_stored2(tensor);
    } catch (const Error& error) {
      throw Error(error.kind(), fmt::format("{}: {}", kContext, error.message()), path_, object.position);
    }
    return tensor;
  }

  BlobPtr blob(const std::string& name, const Component& part) const {
    const Heap& heap = *heaps_.find(part.shard);
    const std::uint64_t size = part.decoded_length.value_or(part.length);
    if (!heap.source) return make_missing_blob(size, fmt::format("tensor {} lies in the shard {}, which is not here", short_name(name), part.shard));
    if (!part.decoded_length) return make_source_blob(heap.source, part.offset, part.length);
    Location location{heap.source, part.offset, part.length, part.encoding};
    if (part.encoding == kZstdSeekable) return make_zstd_seekable_blob(std::move(location), size);
    return make_opaque_blob(std::move(location), size,
                            fmt::format("the encoding \"{}\" of tensor {} is not known to this version of Poise", part.encoding, short_name(name)));
  }

  std::string path_;
  Manifest2 manifest_;
  Heaps heaps_;
  std::map<std::string, std::vector<Extent>> extents_;  // by shard
};

bool sniff(const Input& input) {
  const auto bytes = first_bytes(input, kMagic2.size());
  return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()) == kMagic2;
}

Model read(const Input& input, const ReadOptions& options) {
  Model model;
  model.origin = {input.path, "zt-v2", input.source->size(), {input.path}};
  const ManifestRange range = find_manifest2(*input.source);
  if (range.end == 0) {
    model.warnings.push_back({"this is a data shard: what its bytes mean stands in another file", input.path.string(), std::nullopt});
    return model;
  }
  ModelBuilder(input, options, parse_manifest2(*input.source, range), range).build(model, input.path);
  take_text_attributes(model);
  return model;
}

}  // namespace
}  // namespace poise::ztensor

namespace poise {

const Format kZtensor2 = {
    .info = {"zt", "a zTensor 2 file", ".zt", true, true},
    .extensions = {},
    .options = {.zstd_level = true, .digest = true, .align = true, .shard_size = true},
    .holds_bf16 = true,
    .layouts = {.affine = true, .groups = true, .sparse = true},
    .sniff = ztensor::sniff,
    .read = ztensor::read,
    .write = ztensor::write_zt2,
    .losses = ztensor::zt2_losses,
    .audit = ztensor::audit_version_2,
    .edit = ztensor::edit_version_2,
};

}  // namespace poise
