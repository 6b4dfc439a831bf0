// The digests that a model's files have for whole files, beside those of parts.
#pragma once

#include <string>
#include <vector>

#include <poise/model.hpp>

namespace poise {

struct FileDigest {
  std::string path;  // the name of its parts' Source
  std::string what;  // "shard 00001"
  Digest digest;
};

// Of the files that hold parts of the model, as far as they are here. Throws io, and what reading the model's main file again throws.
std::vector<FileDigest> file_digests(const Model& model);

}  // namespace poise
