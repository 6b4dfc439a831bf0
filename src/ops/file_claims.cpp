#include "ops/file_claims.hpp"

#include <map>
#include <string>

#include "pack/part_digest.hpp"

namespace poise {

std::vector<FileClaim> file_claims(const Model& model, const std::function<bool(const Tensor&)>& is_wanted) {
  std::vector<FileClaim> claims;
  if (model.origin.file_digests.empty()) return claims;
  std::map<std::string, FileClaim> undigested;  // by path
  for (const Tensor& tensor : model.tensors()) {
    if (!is_wanted(tensor)) continue;
    for (const Part& part : tensor.parts) {
      if (part.digest && is_computable(part.digest->algorithm)) continue;
      const auto at = part.blob->stored();
      if (!at) continue;
      FileClaim& claim = undigested[at->source->name()];
      if (claim.part == nullptr) claim = {nullptr, &tensor, &part, make_source_blob(at->source, 0, at->source->size())};
    }
  }
  for (const FileDigest& file : model.origin.file_digests) {
    const auto found = undigested.find(file.path);
    if (found == undigested.end()) continue;
    found->second.file = &file;
    claims.push_back(found->second);
  }
  return claims;
}

}  // namespace poise
