#include "model/same_headers.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "pack/digest.hpp"

namespace poise {

std::string describe_part(const Tensor& tensor, const Part& part) {
  std::string text =
      fmt::format("{}/{} {} {} {} {}", std::string_view(tensor.name), std::string_view(part.role),
                  to_string(tensor.shape), tensor.layout.name(), part.type_name(), to_json(tensor.attributes));
  if (const AffineSource* affine = tensor.layout.affine())
    text += fmt::format(" {} {} {}", affine->get().delta, affine->get().min, affine->get().max);
  return text;
}

namespace {

// Returns a digest of everything that makes the same tokens of the same text, except the bytes of the tensors.
std::string digest_headers(const Model& model) {
  const auto hasher = make_xxh3();
  const auto add = [&](std::string_view text) {
    hasher->update(std::as_bytes(std::span(text)));
    hasher->update(std::as_bytes(std::span("\n", 1)));
  };
  for (const Tensor& tensor : model.tensors()) {
    for (const Part& part : tensor.parts) add(fmt::format("{} {}", describe_part(tensor, part), part.blob->size()));
  }
  add(to_json(whole_config(model)));
  add(to_json(model.attributes));
  if (model.vocabulary) {
    for (std::size_t id = 0; id < model.vocabulary->size(); ++id) add(model.vocabulary->text(id));
    for (std::size_t rank = 0; rank < model.vocabulary->merges.size(); ++rank)
      add(model.vocabulary->merges.joined(rank));
  }
  return hasher->finish();
}

}  // namespace

void require_same_headers(const Model& model, Communicator& ranks) {
  if (ranks.size() == 1) return;
  const std::vector<std::string> digests = ranks.gather(digest_headers(model));
  const auto other =
      std::ranges::find_if(digests, [&](const std::string& digest) { return digest != digests.front(); });
  if (other == digests.end()) return;
  throw Error(ErrorKind::invalid_file,
              fmt::format("rank {} has another model than rank 0: the digests of their headers are {} and {}; copy the "
                          "same files to every machine",
                          other - digests.begin(), *other, digests.front()),
              model.origin.path.string());
}

}  // namespace poise
