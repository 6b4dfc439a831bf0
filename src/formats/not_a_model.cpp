#include "formats/not_a_model.hpp"

#include <algorithm>
#include <array>
#include <string>

#include <poise/error.hpp>

#include "formats/format.hpp"
#include "io/lookalikes.hpp"

namespace poise {
namespace {

// Containers without any known format.
struct RefusedArchive {
  ContainerKind container;
  std::string_view message;
};

constexpr std::array kRefusedArchives = {
    RefusedArchive{
        ContainerKind::zip,
        "this is a zip archive in which Poise finds neither NumPy arrays, nor a PyTorch checkpoint, nor a Hugging Face "
        "directory"},
    RefusedArchive{
        ContainerKind::tar,
        "this is a tar archive in which Poise finds no Hugging Face directory: load one that PyTorch wrote before "
        "version 0.1.10 with torch and save it again; other ones are unpacked first"},
};

}  // namespace

void refuse_non_model(const Input& input) {
  if (!input.source) return;
  const std::string path = input.path.string();
  if (input.source->size() == 0) throw Error(ErrorKind::invalid_file, "the file is empty", path);
  refuse_lookalike(*input.source);
  const auto found = std::ranges::find(kRefusedArchives, container_of(input), &RefusedArchive::container);
  if (found == kRefusedArchives.end() || recognise(input, all_formats()) != nullptr) return;
  (void)open_container(found->container, input.path, input.source);  // throws if it cannot be read
  throw Error(ErrorKind::unsupported, std::string(found->message), path, 0);
}

void refuse_non_model(const Error& error, std::span<const SourcePtr> opened) {
  const SourcePtr source = refused_source(error, opened);
  if (source == nullptr) return;
  const Input input{source->name(), source};
  if (recognise(input, all_formats()) == nullptr) refuse_non_model(input);
}

}  // namespace poise
