#include "formats/not_a_model.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

#include <poise/error.hpp>

namespace poise {
namespace {

struct Lookalike {
  std::string_view start;  // of the file, in lower case
  ErrorKind kind;
  std::string_view message;
};

constexpr std::array kLookalikes = {
    Lookalike{"version https://git-lfs", ErrorKind::invalid_file,
              "this is a Git LFS pointer, not the file itself; `git lfs pull` in its repository fetches the weights"},
    Lookalike{"<!doctype html", ErrorKind::invalid_file, "this is an HTML page, perhaps a login or error page saved instead of the download"},
    Lookalike{"<html", ErrorKind::invalid_file, "this is an HTML page, perhaps a login or error page saved instead of the download"},
    Lookalike{"<?xml", ErrorKind::invalid_file, "this is an XML document, perhaps a server's error message saved instead of the download"},
    Lookalike{"\x1f\x8b", ErrorKind::unsupported, "this is a gzip archive; unpack it first"},
    Lookalike{"\x28\xb5\x2f\xfd", ErrorKind::unsupported, "this is a zstd archive; unpack it with `zstd -d` first"},
};

// Containers in which no format has been found.
struct Archive {
  Container container;
  std::string_view message;
};

constexpr std::array kArchives = {
    Archive{Container::zip, "this is a zip archive (PyTorch checkpoints are); Poise reads safetensors: save the model with safe_serialization=True"},
    Archive{Container::tar, "this is a tar archive; unpack it first"},
};

std::string lower_case_start(const Input& input) {
  const auto bytes = first_bytes(input, 256);
  std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  text.erase(0, std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

}  // namespace

void refuse_what_is_no_model(const Input& input) {
  if (!input.source) return;
  const std::string path = input.path.string();
  if (input.source->size() == 0) throw Error(ErrorKind::invalid_file, "the file is empty", path);
  const std::string start = lower_case_start(input);
  for (const Lookalike& lookalike : kLookalikes) {
    if (start.starts_with(lookalike.start)) throw Error(lookalike.kind, std::string(lookalike.message), path, 0);
  }
  const auto found = std::ranges::find(kArchives, container_of(input), &Archive::container);
  if (found != kArchives.end()) throw Error(ErrorKind::unsupported, std::string(found->message), path, 0);
}

}  // namespace poise
