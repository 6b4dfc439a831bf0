// hash: computes SHA-256 of every part of every tensor, over decoded bytes, and one for the model.
//
//   std::cout << poise::hash(poise::open("model.alt")).model << "\n";
#pragma once

#include <string>
#include <vector>

#include <poise/model.hpp>
#include <poise/progress.hpp>

namespace poise {

struct PartHash {
  std::string tensor;
  std::string role;
  std::string sha256;  // 64 lower-case hexadecimal digits
};

struct ModelHash {
  std::vector<PartHash> parts;  // sorted by tensor, then role, bytewise
  // SHA-256 of the lines "sha256  tensor/role\n" in that order: the same for the same parts in any format and any
  // order.
  std::string model;
  // The content digest of a zTensor 2 file ("xxh3:..." or "sha256:..."), independent of offsets, compression and
  // shards. Empty for other formats.
  std::string content;
};

// Computes the hashes, in one pass over all bytes. Throws what reading the blobs throws, cancelled, and invalid_file
// for a part that does not match its digest in the file.
ModelHash hash(const Model& model, const Progress& progress = {});

}  // namespace poise
