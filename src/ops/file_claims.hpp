// Digests of whole files: they count for parts that have none of their own.
#pragma once

#include <functional>
#include <vector>

#include <poise/model.hpp>

namespace poise {

struct FileClaim {
  const FileDigest* file = nullptr;  // the kind of its digest may not be known
  // The first part in the file that has no digest which can be computed.
  const Tensor* tensor = nullptr;
  const Part* part = nullptr;
  BlobPtr bytes;  // the whole file
};

// One for each file that holds such a part of a tensor that is wanted. Borrowed: the model.
std::vector<FileClaim> file_claims(const Model& model, const std::function<bool(const Tensor&)>& is_wanted);

}  // namespace poise
