// Writes zTensor 2, by default in canonical form: blobs on multiples of 64 KiB in the order of (object, part),
// identical parts stored once, an xxh3 digest for every part, no shards. The same tensors give the same file.
#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/byte_writer.hpp"
#include "bytes/checked.hpp"
#include "bytes/utf8.hpp"
#include "formats/metadata.hpp"
#include "formats/ztensor/affine.hpp"
#include "formats/ztensor/blobs.hpp"
#include "formats/ztensor/limits.hpp"
#include "formats/ztensor/normal_form.hpp"
#include "formats/ztensor/zt2.hpp"
#include "io/meter.hpp"
#include "pack/digest.hpp"
#include "pack/hashing_sink.hpp"
#include "pack/part_digest.hpp"
#include "pack/pump.hpp"
#include "pack/same_bytes.hpp"
#include "pack/writer_digests.hpp"
#include "pack/zstd.hpp"
#include "pack/zstd_seekable.hpp"
#include "syntax/cbor_encoder.hpp"
#include "views/sparse.hpp"

namespace poise::ztensor {
namespace {

constexpr std::size_t kMaxAttributeDepth = 28;  // an object's attributes begin at the fourth level of the manifest's 32

void write_text(Sink& sink, std::string_view text) { sink.write(std::as_bytes(std::span(text))); }

void write_footer(Sink& sink, std::uint64_t offset, std::string_view manifest) {
  ByteWriter footer;
  footer.u64(offset);
  footer.u64(manifest.size());
  footer.u64(manifest.empty() ? 0 : xxh3_64(std::as_bytes(std::span(manifest))));
  footer.u32(2);
  footer.u32(0);
  footer.text(kMagic2);
  sink.write(footer.bytes());
}

// The manifest's description of a part that has been written.
struct Reference {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;  // stored
  std::string shard;
  bool encoded = false;
  std::size_t digest = 0;  // its number among the digests of all parts
};

// The files of one save: the main one, or data shards; each shard begins when the one before is full.
class ShardWriter {
 public:
  ShardWriter(Output& output, const WriteOptions& options)
      : output_(output),
        shard_size_(options.shard_size),
        shard_digest_(options.digest == DigestAlgorithm::sha256 ? DigestAlgorithm::sha256 : DigestAlgorithm::xxh3) {
    write_text(output_.main(), kMagic2);
  }

  // The sink for the next blob, which will take that many bytes or, compressed, fewer.
  Sink& sink_for(std::uint64_t bytes, std::uint64_t alignment) {
    if (!shard_size_) return output_.main();
    if (hashing_) {
      const std::uint64_t begin = (hashing_->position() + alignment - 1) / alignment * alignment;
      if (begin + bytes + kFooterBytes2 > *shard_size_) finish_shard();
    }
    if (!hashing_) begin_shard();
    return *hashing_;
  }

  // The name of the current shard; empty for the main file.
  std::string shard() const { return hashing_ ? shards_.back().name : std::string(); }

  std::vector<Shard> finish() {
    if (hashing_) finish_shard();
    return std::move(shards_);
  }

 private:
  void begin_shard() {
    if (shards_.size() == kMaxShards)
      throw Error(ErrorKind::unsupported,
                  fmt::format("zTensor 2: more than {} shards; a larger shard size makes fewer", kMaxShards));
    Shard& shard = shards_.emplace_back();
    shard.name = fmt::format("{:05}", shards_.size());
    const std::string file = shard_path(output_.name(), shard.name).string();
    hasher_ = make_hasher(shard_digest_);
    hashing_.emplace(output_.sibling(file), *hasher_);
    write_text(*hashing_, kMagic2);
  }

  void finish_shard() {
    write_footer(*hashing_, 0, {});
    shards_.back().size = hashing_->position();
    shards_.back().digest = digest_text(shard_digest_, hasher_->finish());
    hashing_.reset();
  }

  Output& output_;
  std::optional<std::uint64_t> shard_size_;
  DigestAlgorithm shard_digest_;
  std::vector<Shard> shards_;
  std::unique_ptr<Hasher> hasher_;
  std::optional<HashingSink> hashing_;  // the open shard
};

// Finds parts that have been written already. Compares only a few parts, of equal size and hash of the beginning, so
// that tensors are usually read once, and never once for each other.
class SharedBlobs {
 public:
  explicit SharedBlobs(const std::vector<StoredTensor>& tensors) {
    for (const StoredTensor& tensor : tensors) {
      for (const StoredPart& part : tensor.parts) ++sizes_[part.blob->size()];
    }
  }

  const Reference* find(const Blob& blob) {
    if (sizes_[blob.size()] < 2) return nullptr;
    key_ = {blob.size(), hash_of_beginning(blob)};
    const auto& candidates = written_[key_];
    const auto found =
        std::ranges::find_if(candidates, [&](const auto& written) { return same_bytes(*written.first, blob); });
    return found == candidates.end() ? nullptr : &found->second;
  }

  // Requires: find() was called with this blob just before.
  void add(const Blob& blob, const Reference& reference) {
    if (sizes_[blob.size()] >= 2 && written_[key_].size() < kMostCandidates)
      written_[key_].emplace_back(&blob, reference);
  }

 private:
  using Key = std::pair<std::uint64_t, std::uint64_t>;
  static constexpr std::size_t kMostCandidates = 4;

  std::map<std::uint64_t, std::size_t> sizes_;  // how many parts have each size
  std::map<Key, std::vector<std::pair<const Blob*, Reference>>> written_;
  Key key_;
};

// How parts are stored, by the options. Throws bad_argument for options that version 2 lacks.
struct Storage {
  explicit Storage(const WriteOptions& options)
      : alignment(options.align.value_or(kCanonicalAlignment2)),
        zstd_level(options.zstd_level),
        digest(options.digest.value_or(DigestAlgorithm::xxh3)) {
    if (alignment < kLeastAlignment2 || alignment > kMostAlignment2 || !std::has_single_bit(alignment)) {
      throw Error(ErrorKind::bad_argument,
                  fmt::format("align: {} is not a power of two from {} to {}, which Poise aligns zTensor 2 to",
                              alignment, kLeastAlignment2, kMostAlignment2));
    }
    if (zstd_level) require_zstd_level(*zstd_level);
    if (digest == DigestAlgorithm::crc32c)
      throw Error(ErrorKind::bad_argument, "zTensor 2 has the digests xxh3, sha256 and none, not crc32c");
  }

  std::uint64_t alignment;
  std::optional<int> zstd_level;
  DigestAlgorithm digest;
};

class BlobWriter {
 public:
  BlobWriter(ShardWriter& heap, const Storage& storage, const Progress& progress, const std::vector<BlobPtr>& blobs)
      : heap_(heap),
        alignment_(storage.alignment),
        zstd_level_(storage.zstd_level),
        digests_(storage.digest),
        meter_(progress, total_size(blobs)) {}

  Reference write(const std::string& name, const Blob& blob) {
    Sink& sink = heap_.sink_for(blob.size(), alignment_);
    sink.pad_to(alignment_);
    Reference reference;
    reference.offset = sink.position();
    reference.shard = heap_.shard();
    Hasher* const hasher = digests_.begin(zstd_level_ ? nullptr : &sink);
    if (zstd_level_) {
      reference.encoded = true;
      write_zstd_seekable(blob, *zstd_level_, sink, meter_, name, hasher);
    } else {
      pump(blob, sink, meter_, name, hasher);
    }
    reference.length = sink.position() - reference.offset;
    reference.digest = digests_.end();
    return reference;
  }

  void skip(const std::string& name, const Blob& blob) { meter_.advance(blob.size(), name); }

  // The texts of the digests by number, empty for none.
  std::vector<std::string> finish() { return digests_.finish(); }

 private:
  ShardWriter& heap_;
  std::uint64_t alignment_;
  std::optional<int> zstd_level_;
  WriterDigests digests_;
  Meter meter_;
};

// Keys are in the order of their encodings: by length, then bytewise.
void encode_part(cbor::Encoder& out, const StoredPart& part, const Reference& reference, const std::string& digest) {
  const auto count = [](bool present) { return present ? 1U : 0U; };
  out.map(2U + count(!part.type.empty()) + count(!reference.shard.empty()) + count(!digest.empty()) +
          2 * count(reference.encoded));
  out.text("blob");
  out.array(2);
  out.u64(reference.offset);
  out.u64(reference.length);
  if (!part.type.empty()) {
    out.text("type");
    out.text(part.type);
  }
  out.text("dtype");
  out.text(part.dtype);
  if (!reference.shard.empty()) {
    out.text("shard");
    out.text(reference.shard);
  }
  if (!digest.empty()) {
    out.text("digest");
    out.text(digest);
  }
  if (reference.encoded) {
    out.text("encoding");
    out.text(kZstdSeekable);
    out.text("decoded_length");
    out.u64(part.blob->size());
  }
}

std::string encode_object(const StoredTensor& tensor, const std::vector<Reference>& references,
                          const std::vector<std::string>& digests) {
  std::vector<std::size_t> order(tensor.parts.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
    return cbor::key_before(tensor.parts[a].role, tensor.parts[b].role, cbor::KeyOrder::by_encoding);
  });
  cbor::Encoder out(cbor::KeyOrder::by_encoding);
  out.map(tensor.attributes.empty() ? 3 : 4);
  out.text("parts");
  out.map(order.size());
  for (const std::size_t i : order) {
    out.text(tensor.parts[i].role);
    encode_part(out, tensor.parts[i], references[i], digests[references[i].digest]);
  }
  out.text("shape");
  out.array(tensor.shape.size());
  for (const std::uint64_t dimension : tensor.shape) out.u64(dimension);
  out.text("layout");
  out.text(tensor.layout);
  if (!tensor.attributes.empty()) {
    out.text("attributes");
    out.value(tensor.attributes);
  }
  return out.take();
}

struct ByEncoding {
  bool operator()(std::string_view a, std::string_view b) const {
    return cbor::key_before(a, b, cbor::KeyOrder::by_encoding);
  }
};
using EncodedObjects = std::map<std::string_view, std::string, ByEncoding>;

std::string encode_manifest(const Attributes& attributes, const std::vector<Shard>& shards,
                            const EncodedObjects& objects) {
  cbor::Encoder out(cbor::KeyOrder::by_encoding);
  out.map(1U + (shards.empty() ? 0U : 1U) + (attributes.empty() ? 0U : 1U));
  if (!shards.empty()) {
    out.text("shards");
    Attributes table;
    for (const Shard& shard : shards) table.set(shard.name, Attributes{{"size", shard.size}, {"digest", shard.digest}});
    out.value(table);
  }
  out.text("objects");
  out.map(objects.size());
  for (const auto& [name, object] : objects) {
    out.text(name);
    out.encoded(object);
  }
  if (!attributes.empty()) {
    out.text("attributes");
    out.value(attributes);
  }
  return out.take();
}

void require_name(std::string_view what, std::string_view name) {
  if (!name.empty() && name.size() <= kMaxNameBytes2 && name.find('\0') == std::string_view::npos && is_utf8(name))
    return;
  throw Error(ErrorKind::unsupported,
              fmt::format("names are 1 to {} bytes of UTF-8 without NUL: zTensor 2 cannot hold the {} \"{}\"",
                          kMaxNameBytes2, what, name.substr(0, 100)));
}

std::size_t depth_of(const Value& value) {
  std::size_t deepest = 0;
  if (const auto* items = value.get_if<Value::Array>()) {
    for (const Value& item : *items) deepest = std::max(deepest, depth_of(item));
  } else if (const auto* map = value.get_if<Attributes>()) {
    for (const auto& [key, item] : *map) deepest = std::max(deepest, depth_of(item));
  } else if (const auto* pairs = value.get_if<Value::Pairs>()) {
    for (const auto& [key, item] : *pairs) deepest = std::max({deepest, depth_of(key), depth_of(item)});
  } else {
    return 0;
  }
  return deepest + 1;
}

void require_attributes(const Attributes& attributes) {
  for (const auto& [key, value] : attributes) {
    require_name("attribute", key);
    if (depth_of(value) >= kMaxAttributeDepth)
      throw Error(ErrorKind::unsupported,
                  fmt::format("zTensor 2 cannot hold the attribute \"{}\": it nests too deep", key));
  }
}

void require_holdable(const StoredTensor& tensor) {
  require_name("tensor", tensor.name);
  if (tensor.parts.empty())
    throw Error(ErrorKind::unsupported, fmt::format("zTensor 2 cannot hold {}: it has no parts", tensor.name));
  for (const StoredPart& part : tensor.parts) require_name("part", part.role);
  require_attributes(tensor.attributes);
}

// The sparse profiles are stricter than other formats: columns in order, no repeated cell.
StoredTensor stored_tensor(const Tensor& tensor) {
  if (tensor.layout == Layout::sparse_csr) return to_stored2(with_ascending_columns(tensor));
  if (tensor.layout == Layout::sparse_coo) validate_sparse(tensor, SparseRules::any_order);
  return to_stored2(tensor);
}

// The model's tensors by name, converted by `store`.
template <typename Store>
std::vector<StoredTensor> stored_tensors(const Model& model, Store&& store) {
  std::vector<StoredTensor> tensors;
  for (const Tensor& tensor : model.tensors()) {
    StoredTensor& stored = tensors.emplace_back(store(tensor));
    stored.name = normal_form_c(stored.name);
    for (StoredPart& part : stored.parts) part.role = normal_form_c(part.role);
    require_holdable(stored);
  }
  std::ranges::sort(tensors, {}, &StoredTensor::name);
  const auto twice = std::ranges::adjacent_find(tensors, {}, &StoredTensor::name);
  if (twice != tensors.end())
    throw Error(ErrorKind::unsupported,
                fmt::format("zTensor 2: two tensors have the name {} in Unicode's normal form C", twice->name));
  return tensors;
}

Attributes root_attributes(const Model& model) {
  Attributes attributes = model.attributes;
  for (const auto& [key, value] : metadata_attributes(model)) attributes.set(key, value);
  require_attributes(attributes);
  return attributes;
}

using References = std::vector<std::vector<Reference>>;  // by tensor and part

// Manifest and footer, after the parts.
void write_end(Sink& sink, const Storage& storage, const Attributes& attributes,
               const std::vector<StoredTensor>& tensors, const References& written,
               const std::vector<std::string>& digests, const std::vector<Shard>& shards) {
  EncodedObjects objects;
  for (std::size_t i = 0; i < tensors.size(); ++i)
    objects.emplace(tensors[i].name, encode_object(tensors[i], written[i], digests));
  const std::string manifest = encode_manifest(attributes, shards, objects);
  if (manifest.size() > kMaxManifestBytes)
    throw Error(ErrorKind::unsupported, "zTensor 2: the manifest would be larger than 1 GiB");
  require_readable(manifest_cost(attributes, tensors), manifest.size());
  sink.pad_to(storage.alignment);
  const std::uint64_t offset = sink.position();
  write_text(sink, manifest);
  write_footer(sink, offset, manifest);
}

bool has_parts_of_one_size(const std::vector<StoredTensor>& tensors) {
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
  const Attributes attributes = root_attributes(model);
  const std::vector<StoredTensor> tensors = stored_tensors(model, stored_tensor);
  const Storage storage(options);
  ShardWriter heap(output, options);
  BlobWriter writer(heap, storage, options.progress, blobs_of(tensors));
  SharedBlobs shared(tensors);
  References written;
  written.reserve(tensors.size());
  for (const StoredTensor& tensor : tensors) {
    auto& references = written.emplace_back();
    for (const StoredPart& part : tensor.parts) {
      if (const Reference* same = shared.find(*part.blob)) {
        references.push_back(*same);
        writer.skip(tensor.name, *part.blob);
      } else {
        references.push_back(writer.write(tensor.name, *part.blob));
        shared.add(*part.blob, references.back());
      }
    }
  }
  const std::vector<std::string> digests = writer.finish();
  write_end(output.main(), storage, attributes, tensors, written, digests, heap.finish());
}

FilePlan plan_zt2(const Model& model, const WriteOptions& options) {
  FilePlan plan;
  const Attributes attributes = root_attributes(model);
  const std::vector<StoredTensor> tensors = stored_tensors(model, [&](const Tensor& tensor) {
    if (tensor.layout == Layout::affine) plan.exact = false;
    StoredTensor stored = to_stored2(with_longest_scale(tensor));
    plan.tensor_bytes.push_back(total_size(blobs_of(std::span(&stored, 1))));
    return stored;
  });
  const Storage storage(options);
  CountingSink sink;
  write_text(sink, kMagic2);
  References written;  // each part once, since none is like another
  for (const StoredTensor& tensor : tensors) {
    auto& references = written.emplace_back();
    for (const StoredPart& part : tensor.parts) {
      sink.pad_to(storage.alignment);
      references.push_back({.offset = sink.position(),
                            .length = part.blob->size(),
                            .shard = {},
                            .encoded = storage.zstd_level.has_value()});
      sink.pad(part.blob->size());
    }
  }
  write_end(sink, storage, attributes, tensors, written, {digest_of_nothing(storage.digest)}, {});
  if (!options.zstd_level && !options.shard_size) plan.bytes = sink.position();
  plan.exact = plan.exact && !has_parts_of_one_size(tensors);
  return plan;
}

std::vector<std::string> zt2_losses(const Model& model, const WriteOptions&) {
  std::vector<std::string> losses;
  for (const Tensor& tensor : model.tensors()) {
    if (is_utf8(tensor.name) && normal_form_c(tensor.name) != tensor.name)
      losses.push_back(fmt::format("the name {} is written in Unicode's normal form C", tensor.name));
  }
  return losses;
}

}  // namespace poise::ztensor
