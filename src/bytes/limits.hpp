// The limits that files are held to, beyond what their formats say. docs/limits.md tells users of them.
//
// Most sizes need none: they are bounded by the bytes of the file that have to be there for them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace poise {

// What is parsed as a whole.
inline constexpr std::uint64_t kMaxSafetensorsHeaderBytes = 100'000'000;           // the limit of its own reader
inline constexpr std::uint64_t kMaxManifestBytes = std::uint64_t{1} << 30;         // zTensor, all versions
inline constexpr std::uint64_t kMaxJsonFileBytes = std::uint64_t{256} << 20;       // config.json, an index, ...
inline constexpr std::uint64_t kMaxTokenizerFileBytes = std::uint64_t{256} << 20;  // vocab.txt, merges.txt

// Nesting.
inline constexpr std::size_t kMaxNesting = 64;           // JSON, and CBOR of zTensor 0.1 to 1.2
inline constexpr std::size_t kMaxManifestNesting2 = 32;  // CBOR of zTensor 2, below its root

// Memory for the values of JSON and CBOR that are kept as a tree.
inline constexpr std::uint64_t max_value_bytes(std::uint64_t text_bytes) { return (std::uint64_t{80} << 20) + 2 * text_bytes; }

// Tensors and names.
inline constexpr std::size_t kMaxTensors = 250'000;      // of a model
inline constexpr std::size_t kMaxParts = 400'000;        // of all tensors of a model
inline constexpr std::size_t kMaxRank = 64;              // PyTorch's own limit, and that of zTensor 2
inline constexpr std::size_t kMaxNameBytes2 = 1024;      // zTensor 2
inline constexpr std::size_t kMaxTypeNameBytes = 256;    // element types, layouts, encodings and digests of zTensor
inline constexpr std::size_t kMaxShards = 65'536;        // zTensor 2
inline constexpr std::size_t kMaxShardNameBytes2 = 64;   // zTensor 2
inline constexpr std::uint64_t kMaxGroupSize = 1 << 20;  // elements that share a scale, when Poise quantizes

// Tokenizers.
inline constexpr std::size_t kMaxTokens = 300'000;
inline constexpr std::size_t kMaxMerges = 500'000;

// Configurations.
inline constexpr std::int64_t kMaxModelSize = INT32_MAX;  // hidden_size, vocab_size, ...: formats hold them in 32 bits
inline constexpr std::int64_t kMaxLayers = 65536;         // layers, heads, head_dim

// zstd.
inline constexpr int kMaxZstdWindowLog = 27;                       // 128 MiB: what every decoder accepts by default
inline constexpr std::uint64_t kMinZstdBlockBytes = 4;             // a block has 4 bytes or more ...
inline constexpr std::uint64_t kMaxZstdBlockContent = 128 << 10;   // ... and decodes to at most so many (RFC 8878)
inline constexpr std::uint32_t kMaxSeekableFrameBytes = 16 << 20;  // of content: zt.zstd-seekable/1

// Indices and words of codes that have to be in memory as a whole, when they are stored compressed.
inline constexpr std::uint64_t max_decoded_bytes(std::uint64_t stored_bytes) { return (16 << 20) + 16 * stored_bytes; }

}  // namespace poise
