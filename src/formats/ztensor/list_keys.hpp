// The root attributes of a zTensor file, key by key.
#pragma once

#include <vector>

#include <poise/source.hpp>

#include "formats/format.hpp"
#include "formats/ztensor/manifest_bytes.hpp"
#include "syntax/cbor.hpp"

namespace poise::ztensor {

// The keys of the manifest in `range`, with CBOR's types: "text", "integer", "array[3]". Throws what reading them
// throws.
std::vector<MetadataKey> list_keys(const Source& source, const ManifestRange& range, cbor::Rules rules);

}  // namespace poise::ztensor
