// What verify looks for in zTensor files beyond the tensors: bytes that belong to nothing, and shards that are not the ones
// the manifest means.
#pragma once

#include "formats/file_digests.hpp"
#include "formats/format.hpp"

namespace poise::ztensor {

std::vector<Finding> audit_version_1(const Input& input, const Model& model);
std::vector<Finding> audit_version_2(const Input& input, const Model& model);

// Of the shards that version 2's manifest names.
std::vector<FileDigest> shard_digests(const Model& model);

}  // namespace poise::ztensor
