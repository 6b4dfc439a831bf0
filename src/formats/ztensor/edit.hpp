// Edits and lists the root attributes of zTensor files, and checks the bytes outside their parts.
#pragma once

#include <memory>
#include <vector>

#include <poise/edit.hpp>
#include <poise/source.hpp>

#include "formats/format.hpp"
#include "formats/ztensor/object.hpp"
#include "syntax/cbor.hpp"

namespace poise::ztensor {

// The first function prepares an edit that rewrites the file, the second one that appends a new manifest. Each throws
// bad_argument for changes that the format does not allow; unsupported for versions 0.1 and 1.0, for data shards, and
// for a manifest that would be too large.
std::unique_ptr<PreparedEdit> edit_version_1(const Input& input, const AttributeChanges& changes);
std::unique_ptr<PreparedEdit> edit_version_2(const Input& input, const AttributeChanges& changes);

// Returns the root attributes of the manifest in `range`, with CBOR's types: "text", "integer", "array[3]". Throws the
// errors of reading the manifest.
std::vector<MetadataKey> list_keys(const Source& source, const ManifestRange& range, cbor::Rules rules);

// Each function returns warnings about bytes that nothing uses, and unknown types and layouts; for version 2, also
// about reserved bytes, and for its data shards, only about these.
std::vector<Finding> audit_version_1(const Input& input, const Model& model);
std::vector<Finding> audit_version_2(const Input& input, const Model& model);

}  // namespace poise::ztensor
