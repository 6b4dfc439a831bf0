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
#include "formats/ztensor/extents.hpp"
#include "formats/ztensor/zt2.hpp"
#include "io/zstd_seekable.hpp"
#include "model/metadata.hpp"
#include "tensor/part_digest.hpp"

namespace poise::ztensor {
namespace {

constexpr std::string_view kContext = "zt 2: manifest";

// One file that parts lie in.
struct Heap {
  SourcePtr source;            // null: the shard is not there
  std::uint64_t data_end = 0;  // where its footer begins
  std::vector<Extent> extents = {};
};

// By the names of shards; the file with the manifest has none.
class Heaps {
 public:
  Heaps(const Input& input, const ReadOptions& options, const std::vector<Shard>& shards) {
    heaps_[""] = {input.source, input.source->size() - kFooterBytes2};
    for (const Shard& shard : shards) heaps_[shard.name] = {open(shard_path(input.path, shard.name), shard, options), shard.size - kFooterBytes2};
  }

  // Null when the table has no such name.
  const Heap* find(const std::string& shard) const {
    const auto found = heaps_.find(shard);
    return found == heaps_.end() ? nullptr : &found->second;
  }
  Heap& at(const std::string& shard) { return heaps_.at(shard); }

  template <typename Use>
  void for_each(const Use& use) {
    for (auto& [name, heap] : heaps_) use(heap);
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

// Objects in the order of their bytes: by shard, offset and name.
class FileOrder {
 public:
  explicit FileOrder(std::vector<Object>& objects) {
    places_.reserve(objects.size());
    for (Object& object : objects) {
      const auto place = [](const Component& part) { return std::pair(std::string_view(part.shard), part.offset); };
      if (object.components.size() > 1) std::ranges::stable_sort(object.components, {}, place);
      places_.push_back({object.components[0].shard, object.components[0].offset, &object});
    }
    std::ranges::sort(places_, [](const Place& a, const Place& b) {
      if (a.shard != b.shard) return a.shard < b.shard;
      return a.offset != b.offset ? a.offset < b.offset : a.object->name < b.object->name;
    });
  }

  template <typename Use>
  void for_each(const Use& use) const {
    for (const Place& place : places_) use(*place.object);
  }

 private:
  struct Place {
    std::string_view shard;
    std::uint64_t offset;
    Object* object;
  };
  std::vector<Place> places_;
};

class ModelBuilder {
 public:
  ModelBuilder(const Input& input, const ReadOptions& options, Manifest2 manifest, const ManifestRange& range)
      : path_(input.source->name()), manifest_(std::move(manifest)), range_(range), heaps_(input, options, manifest_.shards) {}

  void build(Model& model, const std::filesystem::path& root) {
    for (const Object& object : manifest_.objects) {
      for (const Component& part : object.components) require_place(object, part);
    }
    const FileOrder order(manifest_.objects);
    order.for_each([this](const Object& object) { take_extents(object); });
    heaps_.at("").extents.push_back({range_.begin, range_.end - range_.begin});
    heaps_.for_each([this](Heap& heap) { require_disjoint(std::exchange(heap.extents, {})); });
    model.reserve(manifest_.objects.size());
    order.for_each([&](Object& object) { model.add(tensor(object)); });
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

  void require_place(const Object& object, const Component& part) const {
    const Heap* heap = heaps_.find(part.shard);
    if (heap == nullptr) fail(object, part, fmt::format("shard: \"{}\" is not in the table of shards", part.shard));
    if (part.offset % kLeastAlignment2 != 0 || part.offset < kLeastAlignment2) {
      fail(object, part, fmt::format("blob: offset {} is no positive multiple of {}", part.offset, kLeastAlignment2));
    }
    if (part.offset > heap->data_end || part.length > heap->data_end - part.offset) {
      fail(object, part, fmt::format("blob: {} bytes at {} reach behind the data, which end at {}", part.length, part.offset, heap->data_end));
    }
  }

  void take_extents(const Object& object) {
    for (const Component& part : object.components) {
      if (part.length > 0) heaps_.at(part.shard).extents.push_back({part.offset, part.length, &object, &part});
    }
  }

  void require_disjoint(std::vector<Extent> extents) const {
    const auto overlap = find_overlap(std::move(extents));
    if (!overlap) return;
    const auto& [before, here] = *overlap;
    const Extent& part = here.object != nullptr ? here : before;
    const Extent& other = here.object != nullptr ? before : here;
    const std::string name = other.object == nullptr ? "the manifest" : fmt::format("{}: {}", other.object->name, other.component->role);
    fail(*part.object, *part.component, fmt::format("blob: {} bytes at {} overlap {}", part.length, part.begin, name));
  }

  // Takes the object apart.
  Tensor tensor(Object& object) const {
    Tensor tensor;
    tensor.name = std::move(object.name);
    tensor.shape = std::move(object.shape);
    tensor.layout_name = std::move(object.layout);
    tensor.attributes = std::move(object.attributes);
    tensor.parts.reserve(object.components.size());
    for (Component& component : std::exchange(object.components, {})) {
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
  ManifestRange range_;
  Heaps heaps_;
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
