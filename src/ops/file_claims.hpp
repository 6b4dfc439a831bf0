// Digests of whole files: they cover parts without a digest of their own.
#pragma once

#include <functional>
#include <vector>

#include <poise/model.hpp>

namespace poise {

struct FileClaim {
  const FileDigest* file = nullptr;  // the kind of its digest may be unknown
  // The first part in the file without a digest that can be computed.
  const Tensor* tensor = nullptr;
  const Part* part = nullptr;
  BlobPtr bytes;  // the whole file
};

// One for each file that holds such a part of a wanted tensor. Borrowed: the model.
std::vector<FileClaim> file_claims(const Model& model, const std::function<bool(const Tensor&)>& is_wanted);

}  // namespace poise
