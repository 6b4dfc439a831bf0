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

// edit_version_1() prepares an edit that rewrites the file; edit_version_2(), one that appends a new manifest. Both
// throw bad_argument for changes that the format does not allow; unsupported for versions 0.1 and 1.0, for data shards,
// and for a manifest that would be too large.
std::unique_ptr<PreparedEdit> edit_version_1(const Input& input, const AttributeChanges& changes);
std::unique_ptr<PreparedEdit> edit_version_2(const Input& input, const AttributeChanges& changes);

// Returns the root attributes of the manifest in `range`, with the kinds of values: "text", "integer", "array[3]".
// Throws the errors of reading the manifest.
std::vector<MetadataKey> list_keys(const Source& source, const ManifestRange& range, cbor::Rules rules);

// Return warnings about unused bytes, unknown types and unknown layouts. audit_version_2() also warns of reserved bytes
// that are not 0, and checks nothing else in a data shard.
std::vector<Finding> audit_version_1(const Input& input, const Model& model);
std::vector<Finding> audit_version_2(const Input& input, const Model& model);

}  // namespace poise::ztensor
