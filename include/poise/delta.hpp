// delta: makes and applies small files with the changes from a model, the base, to another one (docs/deltas.md).
//
//   poise::make_delta("base/", "tuned/", "step-100.zt");
//   poise::convert("base/", "tuned-again/", {.delta = "step-100.zt"});
//
// The file is a zTensor 2 file. It leaves out tensors that are equal in both models. It has whole tensors that the base
// lacks, or has with another shape, type, layout or attributes. Of each other part that differs, it has the elements
// that differ or the xor of all bytes, whichever is likely to be smaller after compression.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <poise/format.hpp>
#include <poise/model.hpp>

namespace poise {

struct DeltaOptions {
  ReadOptions read = {};
  // How parts are stored. Defaults: zstd_level 3, and the least alignment, since deltas have many small parts. With the
  // level 0, parts are not compressed.
  WriteOptions write = {};
  // Computes the whole delta and its size, and writes no file.
  bool dry_run = false;
};

// Describes a tensor that the delta changes.
struct DeltaTensor {
  std::string name;
  std::string form;           // "whole", or the form of the first changed part: "sparse" or "xor"
  std::uint64_t changed = 0;  // elements that differ, in all parts; all elements if the tensor is stored whole
  std::uint64_t elements = 0;
  std::uint64_t bytes = 0;  // the size of the tensor's parts in the delta, before compression
};

struct DeltaReport {
  std::filesystem::path output;      // empty for a dry run
  std::string base;                  // hash(base).model
  std::size_t equal = 0;             // tensors
  std::vector<DeltaTensor> changed;  // also new tensors, in the tuned model's order
  std::vector<std::string> removed;  // names of tensors that only the base has
  std::vector<std::string> fields;   // "card", "config", "vocabulary", "attributes", if they differ
  std::uint64_t bytes_in = 0;        // the files of both models
  std::uint64_t bytes_out = 0;       // the delta
  double seconds = 0;                // the wall time
};

// Writes a file with the changes from `base` to `tuned`. Throws what open() throws; bad_argument when an input is a
// delta, or the output exists without options.write.overwrite or is a file of an input; invalid_file for a wrong digest
// in an input; unsupported for models that zTensor 2 cannot hold; io; cancelled. If it throws, no output appears.
DeltaReport make_delta(const std::filesystem::path& base, const std::filesystem::path& tuned,
                       const std::filesystem::path& output, const DeltaOptions& options = {});

// Returns true if the model is a delta, which has to be applied to its base.
bool is_delta(const Model& model);

// Returns the tuned model, whose changed tensors are computed when they are read. Checks the delta's structure, and
// reads none of the base's tensors: require_base() checks that the base is the right one. Throws invalid_file for a
// delta that breaks a rule of the form or does not fit the base, and what reading the delta throws.
Model apply_delta(const Model& base, const Model& delta);

// Throws bad_argument, with both hashes, if `base` is not the model that the delta was made from. Reads the whole base.
void require_base(const Model& base, const Model& delta, const Progress& progress = {});

}  // namespace poise
