// Checks whether the headers of a model agree, and finds digests of whole files, for verify().
#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include <poise/finding.hpp>
#include <poise/model.hpp>

namespace poise {

// Checks that configuration, vocabulary and shapes agree, and that there is a tokenizer for the vocabulary. If `runs`,
// checks that a model of a known family can run: returns an error if load_weights() would refuse it as invalid, and a
// warning if Poise does not support it. Findings without a file of their own get `path`.
std::vector<Finding> check_headers(const Model& model, const std::filesystem::path& path, bool runs = true);

// Names a file with a digest of the whole file, and a part that only this digest covers.
struct FileClaim {
  const FileDigest* file = nullptr;  // Poise may not know the kind of its digest
  // The first part of the file without a digest of its own, or with one of a kind that Poise does not compute.
  const Tensor* tensor = nullptr;
  const Part* part = nullptr;
  BlobPtr bytes;  // the whole file
};

// Returns a claim for each file that has a digest and holds a part of a wanted tensor that only this digest covers. The
// claims refer to the model.
std::vector<FileClaim> find_file_claims(const Model& model, const std::function<bool(const Tensor&)>& is_wanted);

}  // namespace poise
