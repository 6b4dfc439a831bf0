// The blobs of a zTensor 2 file that is being written: where each part is stored, by the options.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <poise/digest.hpp>
#include <poise/format.hpp>

#include "formats/ztensor/zt2.hpp"
#include "io/sink.hpp"

namespace poise::ztensor {

// How parts are stored, by the options. Throws bad_argument for options that version 2 lacks.
struct Storage {
  explicit Storage(const WriteOptions& options);

  std::uint64_t alignment;
  std::optional<int> zstd_level;
  DigestAlgorithm digest;
};

// The manifest's description of a part that has been written.
struct BlobReference {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;  // stored
  std::string shard;
  bool encoded = false;
  std::size_t digest = 0;  // its number among the digests of all parts
};

// The blobs that have been written.
struct WrittenBlobs {
  std::vector<std::vector<BlobReference>> references;  // by tensor and part
  std::vector<std::string> digests;                    // texts, by BlobReference::digest; empty for none
  std::vector<Shard> shards;
};

// Writes the magic number and every part once: parts of equal bytes share a blob. Throws io, cancelled, unsupported for
// more shards than readers accept.
WrittenBlobs write_blobs(const std::vector<StoredTensor>& tensors, const Storage& storage, const WriteOptions& options,
                         Output& output);

}  // namespace poise::ztensor
