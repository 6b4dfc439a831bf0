// Reads, verifies and writes zTensor 2 (docs/formats/ztensor.md), by default in canonical form.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <poise/digest.hpp>
#include <poise/format.hpp>
#include <poise/value.hpp>

#include "bytes/byte_writer.hpp"
#include "bytes/function_ref.hpp"
#include "formats/format.hpp"
#include "formats/ztensor/object.hpp"
#include "io/sink.hpp"

namespace poise {

extern const Format kZtensor2;

namespace ztensor {

inline constexpr std::string_view kMagic2 = "\x89ZT2\r\n\x1a\n";
inline constexpr std::uint64_t kLeastAlignment2 = 4096;
inline constexpr std::uint64_t kCanonicalAlignment2 = 65536;
inline constexpr std::uint64_t kMostAlignment2 = 1 << 30;  // for writing: the size of the largest memory pages
inline constexpr std::uint64_t kFooterBytes2 = 40;
// An edit puts the whole footer into one block of this size, because disks write such a block in one piece.
inline constexpr std::uint64_t kFooterBlock2 = 512;
inline constexpr std::uint64_t kLeastFileBytes2 = 48;

struct Shard {
  std::string name;
  std::uint64_t size = 0;
  std::string digest;
};

struct Manifest2 {
  Attributes attributes;
  std::vector<Shard> shards;
};

// Receives the objects of a manifest, in order.
struct ObjectReceiver2 {
  // The parser calls this once, before the first object. `objects` is the number of objects, or a smaller one if the
  // manifest claims an impossible number.
  FunctionRef<void(const std::vector<Shard>& shards, std::size_t objects)> begin;
  // The parser calls this for each object. The callee may move out of the object.
  FunctionRef<void(StoredObject& object)> add_object;
};

// Returns the place of the manifest; an empty range for a data shard. Throws invalid_file for a file that is too short,
// and for wrong magic numbers, bounds or manifest hash; unsupported for another version.
ManifestRange find_manifest2(const Source& source);

// Parses a manifest, and passes its objects to the receiver, if there is one. Throws invalid_file, naming the key and
// its offset, if the manifest breaks a rule.
Manifest2 parse_manifest2(const Source& source, const ManifestRange& range, const ObjectReceiver2* receiver = nullptr);

// Returns the algorithm of a part's or shard's digest. Version 2 defines xxh3 and sha256; others are `unknown`.
DigestAlgorithm parse_digest_algorithm2(std::string_view text);

// Returns the path of a shard's file: "model-00001.zt" next to "model.zt".
std::filesystem::path make_shard_path(const std::filesystem::path& root, std::string_view shard);

// Checks a tensor by the rules of its layout in version 2. Accepts unknown layouts and logical types. Throws
// invalid_file (without path).
void check_layout2(const Tensor& tensor);

// Returns true for layouts that version 2 or Poise defines; opening a file checks their rules.
bool is_known_layout2(std::string_view layout);

// Holds a part as version 2 stores it.
struct StoredPart {
  std::string role;
  std::string dtype;  // the storage type
  std::string type;   // the logical type; empty: none
  BlobPtr blob;
  // Holds the digest that the part has in the file it was read from; std::nullopt if there is none, or if `blob` has
  // replaced the part's blob.
  std::optional<Digest> digest = {};
};
// Holds a tensor as version 2 stores it.
struct StoredTensor {
  std::string name;
  Shape shape;
  std::string layout;
  Attributes attributes;
  std::vector<StoredPart> parts;  // sorted by role
};
// Converts a tensor to the form in which version 2 stores it. Leaves out the parts of a dense tensor besides data.
// Throws unsupported if version 2 cannot hold it, and what convert_to_stored_affine() throws.
StoredTensor convert_to_stored2(const Tensor& tensor);

// Converts a tensor with version 2's roles and attributes back to Poise's form. `layout` is the name of its layout in
// version 2. Throws invalid_file (without path) if attributes or parts do not fit the layout.
void convert_from_stored2(Tensor& tensor, std::string_view layout);

// Returns the part's role in version 2: "data" for the packed_weight of groups, else the same role.
std::string_view find_stored_role2(const Tensor& tensor, const Part& part);

// Returns the digest that identifies a model's content. It covers the deterministic CBOR value ["zt.content/1",
// {name: {shape, layout, attributes?, parts: {role: {dtype, type?, digest}}}}]. A part's digest is the file's digest of
// its decoded bytes, or xxh3 if the file has none. The result is sha256 if there are parts and all have sha256 digests,
// else xxh3. Throws unsupported when version 2 cannot hold the model, and what reading the parts throws.
std::string compute_content_digest2(const Model& model);

void write_zt2(const Model& model, Output& output, const WriteOptions& options);
FilePlan plan_zt2(const Model& model, const WriteOptions& options);
std::vector<std::string> list_zt2_losses(const Model& model, const WriteOptions& options);

}  // namespace ztensor
}  // namespace poise

namespace poise::ztensor {

// Holds the options for storing parts. The constructor throws bad_argument for values that version 2 does not allow.
struct BlobStorage {
  explicit BlobStorage(const WriteOptions& options);

  std::uint64_t alignment;
  std::optional<int> zstd_level;
  DigestAlgorithm digest;
};

// Holds the place of a part that has been written.
struct BlobReference {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;  // stored
  std::string shard;
  bool encoded = false;
  std::size_t digest = 0;  // the index in WrittenBlobs::digests
};

// Holds the places and digests of the parts that have been written, and the shards.
struct WrittenBlobs {
  std::vector<std::vector<BlobReference>> references;  // the first index is the tensor, the second the part
  std::vector<std::string> digests;                    // the texts of the digests; empty for a part without one
  std::vector<Shard> shards;
};

// Writes the magic number and the parts. Most parts of equal bytes share a blob. Throws io, cancelled, and unsupported
// for more shards than readers accept.
WrittenBlobs write_blobs(const std::vector<StoredTensor>& tensors, const BlobStorage& storage,
                         const WriteOptions& options, Output& output);

// Writes the manifest and the footer after the blobs. Throws unsupported for a manifest that readers refuse.
void write_manifest(Sink& sink, std::uint64_t alignment, const Attributes& attributes,
                    const std::vector<StoredTensor>& tensors, const WrittenBlobs& blobs);

// Makes the footer of a file. `offset` is the place of the manifest, and `manifest` holds its bytes; 0 and empty for a
// data shard.
ByteWriter make_footer(std::uint64_t offset, std::string_view manifest);

}  // namespace poise::ztensor
