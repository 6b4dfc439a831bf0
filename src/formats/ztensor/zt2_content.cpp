// The content digest of zTensor 2, independent of offsets, alignment, compression and shards.
#include <algorithm>
#include <optional>

#include "formats/ztensor/zt2.hpp"
#include "pack/part_digest.hpp"
#include "pack/pump.hpp"
#include "syntax/cbor_encoder.hpp"

namespace poise::ztensor {
namespace {

std::string computed_digest(const Blob& blob) {
  const auto hasher = make_hasher(DigestAlgorithm::xxh3);
  stream_chunks(blob, [&](std::span<const std::byte> bytes) { hasher->update(bytes); });
  return digest_text(DigestAlgorithm::xxh3, hasher->finish());
}

// The file's digest of the decoded bytes of a part that is written as it was read.
std::optional<Digest> known_digest(const StoredPart& part) {
  const bool known = part.digest && !part.digest->over_stored && part.digest->algorithm != DigestAlgorithm::none;
  return known ? part.digest : std::nullopt;
}

class Content {
 public:
  void add(const Tensor& tensor) {
    const StoredTensor stored = to_stored2(tensor);
    Attributes parts;
    for (const StoredPart& part : stored.parts) parts.set(part.role, describe(part));
    Attributes object{{"shape", Value::Array(stored.shape.begin(), stored.shape.end())},
                      {"layout", stored.layout},
                      {"parts", std::move(parts)}};
    if (!stored.attributes.empty()) object.set("attributes", stored.attributes);
    objects_.emplace_back(stored.name, std::move(object));
  }

  std::string digest() && {
    const bool sha256 = !objects_.empty() && all_sha256_;
    const std::string value = cbor::encode(Value::Array{"zt.content/1", Attributes::from_unique(std::move(objects_))});
    const DigestAlgorithm algorithm = sha256 ? DigestAlgorithm::sha256 : DigestAlgorithm::xxh3;
    const auto hasher = make_hasher(algorithm);
    hasher->update(std::as_bytes(std::span(value)));
    return digest_text(algorithm, hasher->finish());
  }

 private:
  Value describe(const StoredPart& part) {
    Attributes description{{"dtype", part.dtype}};
    if (!part.type.empty()) description.set("type", part.type);
    const std::optional<Digest> known = known_digest(part);
    all_sha256_ = all_sha256_ && known && known->algorithm == DigestAlgorithm::sha256;
    description.set("digest", known ? known->text : computed_digest(*part.blob));
    return description;
  }

  std::vector<Attributes::Entry> objects_;
  bool all_sha256_ = true;
};

}  // namespace

std::string content_digest2(const Model& model) {
  Content content;
  for (const Tensor& tensor : model.tensors()) content.add(tensor);
  return std::move(content).digest();
}

}  // namespace poise::ztensor
