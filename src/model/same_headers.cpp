#include "model/same_headers.hpp"

#include <algorithm>
#include <cerrno>
#include <fstream>
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

// Returns a digest of the headers that decide what the model computes. It leaves out the bytes of tensors.
std::string digest_headers(const Model& model) {
  const auto hasher = make_xxh3();
  const auto add = [&](std::string_view text) {
    hasher->update(std::as_bytes(std::span(text)));
    hasher->update(std::as_bytes(std::span("\n", 1)));
  };
  for (const Tensor& tensor : model.tensors()) {
    for (const Part& part : tensor.parts)
      add(fmt::format("{} {}", describe_part(tensor, part), part.blob->stated_size().value_or(0)));
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

void hash_file(Hasher& hasher, const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> piece(1 << 20);
  while (file.read(piece.data(), static_cast<std::streamsize>(piece.size())) || file.gcount() > 0)
    hasher.update(std::as_bytes(std::span(piece).first(static_cast<std::size_t>(file.gcount()))));
  if (!file.eof())
    throw Error(ErrorKind::io, "cannot read the file to compare it with that of other ranks", path.string());
}

std::string digest_files(const std::filesystem::path& path) {
  std::vector<std::filesystem::path> files;
  if (std::filesystem::is_directory(path)) {
    for (const auto& entry : std::filesystem::directory_iterator(path)) {
      if (entry.path().filename().string().starts_with("adapter_")) files.push_back(entry.path());
    }
    std::ranges::sort(files);
  } else {
    files.push_back(path);
  }
  const auto hasher = make_xxh3();
  for (const std::filesystem::path& file : files) hash_file(*hasher, file);
  return hasher->finish();
}

// Throws if a rank has another digest than rank 0. `input` ("model") and `what` ("headers") are words of the message.
void require_same_digest(const std::string& digest, std::string_view input, std::string_view what,
                         const std::filesystem::path& path, Communicator& ranks) {
  const std::vector<std::string> digests = ranks.gather(digest);
  const auto other = std::ranges::find_if(digests, [&](const std::string& found) { return found != digests.front(); });
  if (other == digests.end()) return;
  throw Error(ErrorKind::invalid_file,
              fmt::format("rank {} has another {} than rank 0: the digests of their {} are {} and {}; copy the same "
                          "files to every machine",
                          other - digests.begin(), input, what, *other, digests.front()),
              path.string());
}

}  // namespace

void require_same_headers(const Model& model, Communicator& ranks) {
  if (ranks.size() > 1) require_same_digest(digest_headers(model), "model", "headers", model.origin.path, ranks);
}

void require_same_bytes(const std::filesystem::path& path, Communicator& ranks) {
  if (ranks.size() > 1) require_same_digest(digest_files(path), "file", "bytes", path, ranks);
}

}  // namespace poise
