// Finds parts that share their bytes. Many tensors may name one range of a file; the range is read once for all of
// them.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <poise/error.hpp>
#include <poise/model.hpp>

namespace poise {

// Identifies the decoded bytes of a part and its digest in the file: a digest check of the part depends only on these.
// Requires: the part outlives this.
struct DigestedBytes {
  // Requires: the part's blob has a place in a file.
  explicit DigestedBytes(const Part& part);
  friend auto operator<=>(const DigestedBytes&, const DigestedBytes&) = default;

  const Source* source;
  std::uint64_t offset;
  std::uint64_t length;
  std::string encoding;
  unsigned swapped;
  std::uint64_t size;
  std::string_view digest;  // the text of the digest; empty: none
  bool over_stored = false;
};

struct PartRef {
  const Tensor* tensor;
  const Part* part;
};
std::vector<PartRef> list_parts(const Model& model);

using SameBefore = std::vector<std::optional<std::size_t>>;

// Returns for each of `count` items the index of the first item with an equal key; std::nullopt if the item is the
// first itself. `keys` has keys and the indices of their items; an item without a key equals no other.
template <typename Key>
SameBefore find_first_equal(std::size_t count, std::vector<std::pair<Key, std::size_t>> keys) {
  SameBefore same(count);
  std::ranges::sort(keys);
  for (std::size_t first = 0, i = 1; i < keys.size(); ++i) {
    if (keys[i].first == keys[first].first) {
      same[keys[i].second] = keys[first].second;
    } else {
      first = i;
    }
  }
  return same;
}

// Finds parts with the same bytes and the same digest.
SameBefore find_first_with_same_bytes(const std::vector<PartRef>& parts);
// Finds parts with the same bytes, digest and rules for values, for which verify() finds the same faults.
SameBefore find_first_with_same_values(const std::vector<PartRef>& parts);
// Finds sparse tensors with the same indices under the same rules; their values may differ.
SameBefore find_first_with_same_indices(const Model& model);

// The functions below add tensor, part and place to errors. An error of a decoder has only the place in a file. An
// error of a cast or a quantization has only the tensor.

// Returns the error with "tensor NAME: ROLE: " before its message, if it reports damage inside a part of one of the
// models and names no tensor yet. If it names a tensor but no file, adds the place of the tensor's part. If tensors
// share their bytes, the first counts.
Error add_part_name(const Error& error, const std::vector<const Model*>& models);

// Returns work(). Adds the part to the errors that it throws.
template <typename Work>
auto run_naming_parts(const std::vector<const Model*>& models, const Work& work) {
  try {
    return work();
  } catch (const Error& error) {
    throw add_part_name(error, models);
  }
}

}  // namespace poise
