// Describes ranks: processes that compute one model together, each with a share of its weights.
//
// If the matrices are split, a rank has some query heads with their heads of keys and values, some inner numbers of
// each feed-forward network, some experts, and some of the scores. It has rows of the matrices q, k, v, gate, up and
// output, and the columns of o and down that multiply the results of these rows. The results of o and down are then
// terms of a sum over all ranks; the first rank adds the bias. Embedding, norms and routers are whole in each rank.
// Every rank computes the same tokens of the text. A share may be empty; its results are zeros.
//
// If the layers are split, a rank has some layers, and sends the hidden states after the last of these to all ranks.
// The results have the same bits as those of one process.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cluster/communicator.hpp"
#include "kernels/stored_rows.hpp"

namespace poise {

enum class RankSplit : std::uint8_t { heads, layers };

// Names the heads of a rank. Ranks share a head of keys and values if there are more ranks than such heads.
struct HeadShare {
  IndexRange heads;
  IndexRange kv_heads;
  bool is_first = true;  // true for the first of the ranks that share kv_heads
};

struct Ranks {
  Communicator* communicator = nullptr;  // null: one rank
  RankSplit split = RankSplit::heads;

  std::size_t rank() const { return communicator == nullptr ? 0 : communicator->rank(); }
  std::size_t count() const { return communicator == nullptr ? 1 : communicator->size(); }
  bool splits_matrices() const { return count() > 1 && split == RankSplit::heads; }
  bool splits_layers() const { return count() > 1 && split == RankSplit::layers; }

  // Returns the share of a rank, a part of [0, units).
  IndexRange find_share(std::size_t units, std::size_t rank) const {
    return {units * rank / count(), units * (rank + 1) / count()};
  }

  // Each function returns the share of this rank: units of a matrix, layers, or heads.
  IndexRange find_share(std::size_t units) const {
    return splits_matrices() ? find_share(units, rank()) : IndexRange{0, units};
  }
  IndexRange find_layers(std::size_t layers) const {
    return splits_layers() ? find_share(layers, rank()) : IndexRange{0, layers};
  }
  HeadShare find_heads(std::size_t heads, std::size_t kv_heads) const;

  // Returns the rank that has a layer. Requires: splits_layers().
  std::size_t find_owner(std::size_t layer, std::size_t layers) const;
};

}  // namespace poise
