// Checks whether the headers of a model agree, for verify().
#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include <poise/finding.hpp>
#include <poise/model.hpp>

namespace poise {

// Checks that configuration, vocabulary and shapes agree, and that there is a tokenizer for the vocabulary. With `runs`
// also that a model of a known family can be run: a model that load_weights() refuses as invalid is an error; a model
// that Poise does not support is a warning. The findings name `path`.
std::vector<Finding> check_headers(const Model& model, const std::filesystem::path& path, bool runs = true);

// Finds digests of whole files, which cover parts without a digest of their own.

// Names a file with a digest of the whole file, and a part that only this digest covers.
struct FileClaim {
  const FileDigest* file = nullptr;  // Poise may not know the kind of its digest
  // The first part in the file without a digest that can be computed.
  const Tensor* tensor = nullptr;
  const Part* part = nullptr;
  BlobPtr bytes;  // the whole file
};

// Returns a claim for each file that holds such a part of a wanted tensor. Borrowed: the model.
std::vector<FileClaim> find_file_claims(const Model& model, const std::function<bool(const Tensor&)>& is_wanted);

}  // namespace poise
