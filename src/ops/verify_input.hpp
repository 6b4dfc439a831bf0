// Verifies a file or directory that is open already, such as a stream.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include <poise/hash.hpp>
#include <poise/model.hpp>
#include <poise/progress.hpp>
#include <poise/verify.hpp>

#include "cluster/communicator.hpp"
#include "formats/input.hpp"

namespace poise {

// Requests more from verify_input(): the hashes of all parts, and calls of a function that reads the tensors while the
// page cache still has their bytes.
struct CheckHooks {
  // Receives the tensors whose parts have just been read. Meanwhile the check goes on with the next ones.
  std::function<void(std::span<const Tensor* const>)> after_batch;
  // Receives the hashes of the parts in the model's order, without those that could not be read.
  std::vector<PartHash>* hashes = nullptr;
};

// Verifies as verify() does, but does not compare files with their names in the Hub's cache. `ranks` is null for a
// single rank; otherwise each rank reads a share of the bytes, and the first one has all findings (ops/ranks.hpp).
// Requires: `hooks` or `ranks` is null.
VerifyReport verify_input(const Input& input, const ReadOptions& options, const Progress& progress,
                          const CheckHooks* hooks = nullptr, Communicator* ranks = nullptr);

}  // namespace poise
