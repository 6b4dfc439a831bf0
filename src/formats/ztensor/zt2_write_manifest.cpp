#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <string>

#include <poise/error.hpp>

#include "formats/metadata.hpp"
#include "formats/ztensor/object.hpp"
#include "formats/ztensor/zt2.hpp"
#include "pack/digest.hpp"
#include "pack/part_digest.hpp"
#include "pack/pump.hpp"
#include "pack/zstd.hpp"
#include "syntax/cbor.hpp"

namespace poise::ztensor {
namespace {

// Encodes a part. Keys are in the order of their encodings: by length, then bytewise.
void encode_part(cbor::Encoder& out, const StoredPart& part, const BlobReference& reference,
                 const std::string& digest) {
  const auto count = [](bool present) { return present ? 1U : 0U; };
  out.begin_map(2U + count(!part.type.empty()) + count(!reference.shard.empty()) + count(!digest.empty()) +
                2 * count(reference.encoded));
  out.append_text("blob");
  out.begin_array(2);
  out.append_u64(reference.offset);
  out.append_u64(reference.length);
  if (!part.type.empty()) out.append_member("type", part.type);
  out.append_member("dtype", part.dtype);
  if (!reference.shard.empty()) out.append_member("shard", reference.shard);
  if (!digest.empty()) out.append_member("digest", digest);
  if (reference.encoded) {
    out.append_member("encoding", kZstdSeekable);
    out.append_member("decoded_length", part.blob->size());
  }
}

std::string encode_object(const StoredTensor& tensor, const std::vector<BlobReference>& references,
                          const std::vector<std::string>& digests) {
  std::vector<std::size_t> order(tensor.parts.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
    return cbor::is_key_before(tensor.parts[a].role, tensor.parts[b].role, cbor::KeyOrder::by_encoding);
  });
  cbor::Encoder out(cbor::KeyOrder::by_encoding);
  out.begin_map(tensor.attributes.empty() ? 3 : 4);
  out.append_text("parts");
  out.begin_map(order.size());
  for (const std::size_t i : order) {
    out.append_text(tensor.parts[i].role);
    encode_part(out, tensor.parts[i], references[i], digests[references[i].digest]);
  }
  out.append_text("shape");
  out.begin_array(tensor.shape.size());
  for (const std::uint64_t dimension : tensor.shape) out.append_u64(dimension);
  out.append_member("layout", tensor.layout);
  if (!tensor.attributes.empty()) out.append_member("attributes", tensor.attributes);
  return out.release();
}

struct ByEncoding {
  bool operator()(std::string_view a, std::string_view b) const {
    return cbor::is_key_before(a, b, cbor::KeyOrder::by_encoding);
  }
};
using EncodedObjects = std::map<std::string_view, std::string, ByEncoding>;

std::string encode_manifest(const Attributes& attributes, const std::vector<Shard>& shards,
                            const EncodedObjects& objects) {
  cbor::Encoder out(cbor::KeyOrder::by_encoding);
  out.begin_map(1U + (shards.empty() ? 0U : 1U) + (attributes.empty() ? 0U : 1U));
  if (!shards.empty()) {
    out.append_text("shards");
    std::vector<Attributes::Entry> table;
    for (const Shard& shard : shards)
      table.emplace_back(shard.name, Attributes{{"size", shard.size}, {"digest", shard.digest}});
    out.append_value(Attributes::from_unique(std::move(table)));
  }
  out.append_text("objects");
  out.begin_map(objects.size());
  for (const auto& [name, object] : objects) {
    out.append_text(name);
    out.append_encoded(object);
  }
  if (!attributes.empty()) out.append_member("attributes", attributes);
  return out.release();
}

}  // namespace

void write_manifest(Sink& sink, std::uint64_t alignment, const Attributes& attributes,
                    const std::vector<StoredTensor>& tensors, const WrittenBlobs& blobs) {
  EncodedObjects objects;
  for (std::size_t i = 0; i < tensors.size(); ++i)
    objects.emplace(tensors[i].name, encode_object(tensors[i], blobs.references[i], blobs.digests));
  const std::string manifest = encode_manifest(attributes, blobs.shards, objects);
  if (manifest.size() > kMaxManifestBytes)
    throw Error(ErrorKind::unsupported, "zTensor 2: the manifest would be larger than 1 GiB");
  require_readable(measure_manifest(attributes, tensors), manifest.size());
  sink.pad_to(alignment);
  const std::uint64_t offset = sink.position();
  sink.write(std::as_bytes(std::span(manifest)));
  sink.write(make_footer(offset, manifest).bytes());
}

ByteWriter make_footer(std::uint64_t offset, std::string_view manifest) {
  ByteWriter footer;
  footer.append_u64(offset);
  footer.append_u64(manifest.size());
  footer.append_u64(manifest.empty() ? 0 : compute_xxh3(std::as_bytes(std::span(manifest))));
  footer.append_u32(2);
  footer.append_u32(0);
  footer.append_text(kMagic2);
  return footer;
}

// The content digest of zTensor 2 does not depend on offsets, alignment, compression or shards.

namespace {

std::string compute_digest(const Blob& blob) {
  const auto hasher = make_hasher(DigestAlgorithm::xxh3);
  stream_chunks(blob, [&](std::span<const std::byte> bytes) { hasher->update(bytes); });
  return format_digest(DigestAlgorithm::xxh3, hasher->finish());
}

// Returns the digest of a part's decoded bytes, if the file that it was read from has one.
std::optional<Digest> find_known_digest(const StoredPart& part) {
  const bool known = part.digest && !part.digest->over_stored && is_computable(part.digest->algorithm);
  return known ? part.digest : std::nullopt;
}

class Content {
 public:
  void add(const Tensor& tensor) {
    const StoredTensor stored = convert_to_stored2(tensor);
    std::vector<Attributes::Entry> parts;
    for (const StoredPart& part : stored.parts) parts.emplace_back(part.role, describe_part(part));
    Attributes object{{"shape", Value::Array(stored.shape.begin(), stored.shape.end())},
                      {"layout", stored.layout},
                      {"parts", Attributes::from_unique(std::move(parts))}};
    if (!stored.attributes.empty()) object.set("attributes", stored.attributes);
    objects_.emplace_back(stored.name, std::move(object));
  }

  std::string make_digest() && {
    const bool sha256 = !objects_.empty() && all_sha256_;
    const std::string value = cbor::encode(Value::Array{"zt.content/1", Attributes::from_unique(std::move(objects_))});
    const DigestAlgorithm algorithm = sha256 ? DigestAlgorithm::sha256 : DigestAlgorithm::xxh3;
    const auto hasher = make_hasher(algorithm);
    hasher->update(std::as_bytes(std::span(value)));
    return format_digest(algorithm, hasher->finish());
  }

 private:
  Value describe_part(const StoredPart& part) {
    Attributes description{{"dtype", part.dtype}};
    if (!part.type.empty()) description.set("type", part.type);
    const std::optional<Digest> known = find_known_digest(part);
    all_sha256_ = all_sha256_ && known && known->algorithm == DigestAlgorithm::sha256;
    description.set("digest", known ? known->text : compute_digest(*part.blob));
    return description;
  }

  std::vector<Attributes::Entry> objects_;
  bool all_sha256_ = true;
};

}  // namespace

std::string compute_content_digest2(const Model& model) {
  Content content;
  for (const Tensor& tensor : model.tensors()) content.add(tensor);
  return std::move(content).make_digest();
}

}  // namespace poise::ztensor
