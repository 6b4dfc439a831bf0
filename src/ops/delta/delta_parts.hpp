// Makes and applies the parts of a delta. They describe how the bytes of a part differ from those of the base.
//
// An element is `word` bytes of a part (1, 2, 4, 8 or 16): a number, or a byte of codes. Blocks have 2^16 elements and
// groups 2^22; the last ones may be shorter.
//
//   xor      base ^ tuned, byte by byte. Shuffled: each group has the first bytes of all its elements, then the second
//            ones, ...
//   sparse   u32 per block: how many elements differ; then for each group, from its differing elements in order:
//            low bytes of the gaps, high bytes of the gaps, first bytes of base ^ tuned, second ones, ...
//            A gap is the number of equal elements since the differing element before, or since the block's beginning.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <poise/blob.hpp>
#include <poise/model.hpp>
#include <poise/tensor.hpp>

#include "io/meter.hpp"

namespace poise {

inline constexpr std::string_view kDeltaLayout = "poise.delta/1";
inline constexpr std::string_view kDeltaKey = "poise.delta";

inline constexpr std::uint64_t kDeltaBlock = std::uint64_t{1} << 16;  // elements
inline constexpr std::uint64_t kDeltaGroup = std::uint64_t{1} << 22;

// Describes how a part's change is stored.
struct DeltaForm {
  bool is_sparse = false;
  bool is_shuffled = false;  // only for the form xor
  std::size_t word = 1;

  friend bool operator==(const DeltaForm&, const DeltaForm&) = default;
};

// Returns fields that describe a delta: the hash of its base, its version, and how many tensors it changes, stores
// whole and removes. Empty for other models.
Attributes summarize_delta(const Model& delta);

bool is_delta_word(std::uint64_t word);

// Returns the size in bytes of a part's elements in a delta: that of its numbers if is_delta_word(), else 1.
std::size_t choose_delta_word(const Part& part);

// Holds a part that both models have, with equal sizes.
struct PartPair {
  std::string tensor;
  BlobPtr base;
  BlobPtr tuned;
  std::size_t word = 1;
};

struct PartChange {
  std::uint64_t changed = 0;  // the number of changed elements; 0: the parts are equal
  // The form that compresses a sample best; sparse only if gaps and changes together are not longer than the part.
  DeltaForm form = {};
  std::vector<std::uint32_t> counts;  // the number of changed elements in each block; empty unless the form is sparse
};

// Compares parts on all processors, in pieces. Throws what reading them throws, and cancelled.
std::vector<PartChange> compare_parts(std::span<const PartPair> pairs, Meter& meter);

// Returns the bytes that a delta stores for the change, computed when they are read. For the sparse form, reading
// throws io if a block no longer has as many changes as change.counts states, because an input has changed.
BlobPtr make_delta_blob(const PartPair& pair, const PartChange& change);

// Returns the tuned part's bytes, computed when they are read. Throws invalid_file (without path, naming `where`) if
// the delta's size or counts do not fit; reading does so if gaps do not fit. Requires: is_delta_word(form.word).
BlobPtr apply_delta_blob(const std::string& where, BlobPtr base, BlobPtr delta, const DeltaForm& form);

}  // namespace poise
