// A zTensor 2 file has this layout:
//
//   89 "ZT2" 0d 0a 1a 0a
//   blobs         each on a multiple of 4096, zero bytes between them; the manifest is one of them
//   u64 manifest_offset, u64 manifest_length, u64 XXH3-64 of the manifest, u32 version 2, u32 0
//   89 "ZT2" 0d 0a 1a 0a
//
// A data shard has no manifest: the manifest's offset, length and hash are 0. Parts may be in shards: other files, for
// which the manifest has a name, a size and a digest.
#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "formats/faulty_model.hpp"
#include "formats/metadata.hpp"
#include "formats/ztensor/edit.hpp"
#include "formats/ztensor/zt2.hpp"
#include "io/extents.hpp"
#include "pack/zstd.hpp"

namespace poise::ztensor {
namespace {

constexpr std::string_view kContext2 = "zt 2: manifest";
constexpr std::string_view kOrigin2 = "zt-v2";

// Holds one of the files that store parts: the main file or a shard.
struct Heap {
  std::string shard;           // empty for the file with the manifest
  SourcePtr source;            // null if the shard is missing
  std::uint64_t data_end = 0;  // the offset of the file's footer
  Digest digest = {};          // the digest of the whole shard
  std::uint32_t rank = 0;      // the position in the list of heaps, which is sorted by name
  std::vector<Extent> extents = {};
};

class Heaps {
 public:
  Heaps(const Input& input, const ReadOptions& options, const std::vector<Shard>& shards) {
    heaps_[""] = {"", input.source, input.source->size() - kFooterBytes2};
    for (const Shard& shard : shards) {
      heaps_[shard.name] = {
          shard.name, input.has_folder ? open_shard(make_shard_path(input.path, shard.name), shard, options) : nullptr,
          shard.size - kFooterBytes2, Digest{parse_digest_algorithm2(shard.digest), shard.digest, true}};
    }
    std::uint32_t rank = 0;
    for_each([&](Heap& heap) { heap.rank = rank++; });
  }

  // Returns the heap of a shard; null if the manifest does not list the shard.
  Heap* find(std::string_view shard) {
    const auto found = heaps_.find(shard);
    return found == heaps_.end() ? nullptr : &found->second;
  }

  template <typename Use>
  void for_each(const Use& use) {
    for (auto& [name, heap] : heaps_) use(heap);
  }

  void add_shards_to(Model& model, const std::filesystem::path& root) const {
    for (const auto& [name, heap] : heaps_) {
      if (name.empty()) continue;
      const auto path = make_shard_path(root, name);
      if (heap.source) {
        model.origin.files.push_back(path);
        model.origin.size += heap.source->size();
        model.origin.file_digests.push_back({heap.source->name(), "shard " + name, heap.digest});
      } else {
        model.warnings.push_back(
            {Severity::warning,
             fmt::format(
                 "the shard {} is missing: its tensors are listed, but cannot be read until the file is at this path",
                 name),
             path.string(), std::nullopt});
      }
    }
  }

 private:
  // Opens a shard, and checks its size, magic numbers and footer. Returns null if there is no such file.
  static SourcePtr open_shard(const std::filesystem::path& path, const Shard& shard, const ReadOptions& options) {
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) return nullptr;
    SourcePtr source = Source::open(path, options.io);
    if (source->size() != shard.size) {
      throw Error(ErrorKind::invalid_file,
                  fmt::format("zt 2: shard {}: it needs {} bytes, has {}", shard.name, shard.size, source->size()),
                  source->name(), source->size());
    }
    find_manifest2(*source);
    return source;
  }

  std::map<std::string, Heap, std::less<>> heaps_;
};

// Makes a tensor from each object as soon as the parser has read it. finish() sorts the tensors by the shards and the
// offsets of their first parts.
class ModelBuilder {
 public:
  ModelBuilder(Model& model, const Input& input, const ReadOptions& options, const ManifestRange& range)
      : model_(model), input_(input), options_(options), range_(range) {}

  void begin(const std::vector<Shard>& shards, std::size_t objects) {
    heaps_.emplace(input_, options_, shards);
    model_.reserve(objects);
    offsets_.reserve(objects);
    if (!shards.empty()) ranks_.reserve(objects);
    has_shards_ = !shards.empty();
    heaps_->find("")->extents.reserve(objects + 1);
  }

  void add_object(StoredObject& object) {
    const std::size_t before = model_.size();
    if (faults_.attempt([&] { add_tensor(object); }, object.name)) return;
    offsets_.resize(before);
    if (has_shards_) ranks_.resize(before);
    heaps_->for_each([&](Heap& heap) {
      while (!heap.extents.empty() && heap.extents.back().tensor == before) heap.extents.pop_back();
    });
  }

  // Sorts the tensors. Throws a FaultyModel if there are faults; blobs that overlap are a fault, too. Requires: the
  // manifest has been read.
  void finish() {
    heaps_->find("")->extents.push_back({range_.begin, range_.end - range_.begin, kManifest});
    heaps_->for_each(
        [this](Heap& heap) { faults_.attempt([&] { require_disjoint(std::exchange(heap.extents, {})); }); });
    sort_tensors();
    heaps_->add_shards_to(model_, input_.path);
    faults_.throw_if_any();
  }

 private:
  void add_tensor(StoredObject& object) {
    if (object.components.size() > 1) {
      std::ranges::stable_sort(object.components, {},
                               [](const Component& part) { return std::pair(part.shard, part.offset); });
    }
    const auto index = static_cast<std::uint32_t>(model_.size());
    Tensor tensor;
    tensor.name = object.name;
    tensor.shape = std::move(object.shape);
    tensor.attributes = std::move(object.attributes);
    tensor.parts.reserve(object.components.size());
    for (std::uint32_t i = 0; i < object.components.size(); ++i) {
      Component& component = object.components[i];
      Heap& heap = find_heap(tensor.name, component);
      if (i == 0) offsets_.push_back(component.offset);
      if (i == 0 && has_shards_) ranks_.push_back(heap.rank);
      if (component.length > 0)
        heap.extents.push_back(
            {component.offset, component.length, index, compute_manifest_offset(component.position)});
      tensor.parts.push_back(make_part(tensor.name, heap, component));
    }
    try {
      convert_from_stored2(tensor, object.layout);
    } catch (const Error& error) {
      throw Error(error.kind(), fmt::format("{}: {}", kContext2, error.message()), input_.source->name(),
                  object.position);
    }
    model_.add(std::move(tensor));
  }

  static constexpr std::uint32_t kManifest = UINT32_MAX;  // the tensor number of the manifest's extent

  [[noreturn]] void fail(std::string_view object, std::string_view role, std::uint64_t position,
                         std::string_view problem) const {
    throw Error(ErrorKind::invalid_file,
                fmt::format("{}: objects: {}: parts: {}: {}", kContext2, object, role, problem), input_.source->name(),
                position);
  }

  Heap& find_heap(std::string_view tensor, const Component& part) {
    const auto fail_here = [&](std::string_view problem) { fail(tensor, part.role, part.position, problem); };
    Heap* const heap = heaps_->find(part.shard);
    if (heap == nullptr) fail_here(fmt::format("shard: \"{}\" is not in the table of shards", part.shard));
    if (part.offset % kLeastAlignment2 != 0 || part.offset < kLeastAlignment2) {
      fail_here(fmt::format("blob: offset {} is not a positive multiple of {}", part.offset, kLeastAlignment2));
    }
    if (part.offset > heap->data_end || part.length > heap->data_end - part.offset) {
      fail_here(fmt::format("blob: {} bytes at {} reach beyond the data, which end at {}", part.length, part.offset,
                            heap->data_end));
    }
    return *heap;
  }

  const Tensor& get_tensor(std::uint32_t index) const { return model_.tensors()[index]; }

  void sort_tensors() {
    const auto is_before = [this](std::uint32_t a, std::uint32_t b) {
      if (has_shards_ && ranks_[a] != ranks_[b]) return ranks_[a] < ranks_[b];
      return offsets_[a] != offsets_[b] ? offsets_[a] < offsets_[b] : get_tensor(a).name < get_tensor(b).name;
    };
    std::vector<std::uint32_t> order(offsets_.size());
    std::iota(order.begin(), order.end(), std::uint32_t{0});
    if (std::ranges::is_sorted(order, is_before)) return;
    std::ranges::sort(order, is_before);
    model_.reorder(order);
  }

  void require_disjoint(std::vector<Extent> extents) const {
    const auto overlap = find_overlap(std::move(extents));
    if (!overlap) return;
    const auto& [before, here] = *overlap;
    const auto [part, other] = here.tensor != kManifest ? std::pair(here, before) : std::pair(before, here);
    const std::string name = other.tensor == kManifest
                                 ? "the manifest"
                                 : fmt::format("{}: {}", get_tensor(other.tensor).name, find_role(other));
    fail(get_tensor(part.tensor).name, find_role(part), range_.begin + part.position,
         fmt::format("blob: {} bytes at {} overlap {}", part.length, part.begin, name));
  }

  std::string_view find_role(const Extent& extent) const {
    return find_stored_role2(get_tensor(extent.tensor), find_part(get_tensor(extent.tensor), extent));
  }

  std::uint32_t compute_manifest_offset(std::uint64_t position) const {
    return static_cast<std::uint32_t>(position - range_.begin);
  }

  Part make_part(std::string_view tensor, const Heap& heap, Component& component) {
    Part part;
    part.blob = make_blob(tensor, heap, component);
    part.role = component.role;
    part.dtype = component.dtype;
    part.spelling = std::move(component.spelling);
    if (!component.digest.empty())
      part.digest = Digest{parse_digest_algorithm2(component.digest), std::string(component.digest), false};
    return part;
  }

  BlobPtr make_blob(std::string_view name, const Heap& heap, const Component& part) {
    const std::uint64_t size = part.decoded_length.value_or(part.length);
    if (!heap.source)
      return make_missing_blob(
          size, fmt::format("tensor {} is in the shard {}, which is missing: put it next to the file with the manifest",
                            shorten_name(name), part.shard));
    if (!part.decoded_length) return make_source_blob(heap.source, part.offset, part.length);
    StoredRange range{heap.source, part.offset, part.length};
    if (part.encoding == kZstdSeekable) {
      BlobPtr& shared = seekable_[{&heap, part.offset, part.length, size}];
      if (!shared) shared = make_zstd_seekable_blob(std::move(range), size);
      return shared;
    }
    return make_opaque_blob({std::move(range), std::string(part.encoding)}, size,
                            fmt::format("the encoding \"{}\" of tensor {} is not known to this version of Poise",
                                        part.encoding, shorten_name(name)));
  }

  Model& model_;
  const Input& input_;
  const ReadOptions& options_;
  ManifestRange range_;
  std::optional<Heaps> heaps_;
  // Maps place and decoded size to a blob: parts at the same place share the blob, which keeps a table of frames.
  std::map<std::tuple<const Heap*, std::uint64_t, std::uint64_t, std::uint64_t>, BlobPtr> seekable_;
  std::vector<std::uint64_t> offsets_;  // the offset of each tensor's first part
  std::vector<std::uint32_t> ranks_;    // Heap::rank of each tensor's first part; empty if there are no shards
  bool has_shards_ = false;
  TensorFaults faults_{model_};
};

bool sniff2(const Input& input) {
  const auto bytes = read_first_bytes(input, kMagic2.size());
  return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()) == kMagic2;
}

Model read2(const Input& input, const ReadOptions& options) {
  Model model;
  model.origin = {input.path, std::string(kOrigin2), input.source->size(), {input.path}};
  const ManifestRange range = find_manifest2(*input.source);
  if (range.end == 0) {
    model.warnings.push_back(
        {Severity::warning, "this is a data shard: another file has the manifest", input.path.string(), std::nullopt});
    return model;
  }
  ModelBuilder builder(model, input, options, range);
  const auto begin = [&](const std::vector<Shard>& shards, std::size_t objects) { builder.begin(shards, objects); };
  const auto add_object = [&](StoredObject& object) { builder.add_object(object); };
  const ObjectReceiver2 receiver{begin, add_object};
  model.attributes = parse_manifest2(*input.source, range, &receiver).attributes;
  builder.finish();
  parse_text_attributes(model);
  return model;
}

std::vector<MetadataKey> list_keys2(const Input& input) {
  const ManifestRange range = find_manifest2(*input.source);
  if (range.end == 0) return {};  // a data shard
  return list_keys(*input.source, range, cbor::Rules::deterministic);
}

}  // namespace
}  // namespace poise::ztensor

namespace poise {

const Format kZtensor2 = {
    .info = {"zt", "a zTensor 2 file", ".zt"},
    .options = {.zstd_level = true,
                .digest = true,
                .align = Alignments{.usual = ztensor::kCanonicalAlignment2, .least = ztensor::kLeastAlignment2},
                .shard_size = true},
    .holds_bf16 = true,
    .holds_layout = [](const LayoutType&) { return true; },  // every layout has a name in version 2
    .sniff = ztensor::sniff2,
    .read = ztensor::read2,
    .prepare = prepare_with<ztensor::plan_zt2, ztensor::write_zt2, ztensor::list_zt2_losses>,
    .audit = ztensor::audit_version_2,
    .edit = ztensor::edit_version_2,
    .list_keys = ztensor::list_keys2,
    .find_content_digest = ztensor::compute_content_digest2,
    .origin = ztensor::kOrigin2,
};

}  // namespace poise
