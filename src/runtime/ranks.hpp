// Ranks: processes that compute one model together, each with a share of its weights.
//
// Split by heads, a rank has some heads of queries with their heads of keys and values, some inner numbers of each
// feed-forward network, some experts, and some tokens of the output: rows of q, k, v, gate, up and the output, and the
// columns of o and down that meet their results. The results of o and down are then parts of a sum over all ranks; the
// first rank's has the bias. Embedding, norms and routers are whole in each rank, and so is the text: every rank
// computes the same tokens. A share may be empty, and then counts as zeros.
//
// Split by layers, a rank has some layers and hands the hidden states on. The bits are those of one process.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cluster/communicator.hpp"
#include "kernels/stored_rows.hpp"

namespace poise {

enum class RankSplit : std::uint8_t { heads, layers };

// Gives the heads of a rank. Ranks share a head of keys and values where there are more ranks than such heads.
struct HeadShare {
  IndexRange heads;
  IndexRange kv_heads;
  bool is_first = true;  // of the ranks that have these heads of keys and values
};

struct Ranks {
  Communicator* communicator = nullptr;  // null: one rank
  RankSplit split = RankSplit::heads;

  std::size_t rank() const { return communicator == nullptr ? 0 : communicator->rank(); }
  std::size_t count() const { return communicator == nullptr ? 1 : communicator->size(); }
  bool splits_matrices() const { return count() > 1 && split == RankSplit::heads; }
  bool splits_layers() const { return count() > 1 && split == RankSplit::layers; }

  // Returns a rank's share of what is split.
  IndexRange find_share(std::size_t units, std::size_t rank) const {
    return {units * rank / count(), units * (rank + 1) / count()};
  }

  // Return what this rank has: of the parts of matrices, and of layers.
  IndexRange find_share(std::size_t units) const {
    return splits_matrices() ? find_share(units, rank()) : IndexRange{0, units};
  }
  IndexRange find_layers(std::size_t layers) const {
    return splits_layers() ? find_share(layers, rank()) : IndexRange{0, layers};
  }
  HeadShare find_heads(std::size_t heads, std::size_t kv_heads) const;

  // Returns the rank that has a layer.
  std::size_t find_owner(std::size_t layer, std::size_t layers) const;
};

}  // namespace poise
