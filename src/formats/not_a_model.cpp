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
  Container container;
  std::string_view message;
};

constexpr std::array kRefusedArchives = {
    RefusedArchive{Container::zip,
                   "this is a zip archive in which Poise finds neither NumPy arrays nor a PyTorch checkpoint"},
    RefusedArchive{Container::tar,
                   "this is a tar archive, which PyTorch wrote before version 0.1.10: load it with torch and save it "
                   "again; other ones are unpacked first"},
};

}  // namespace

void refuse_non_model(const Input& input) {
  if (!input.source) return;
  const std::string path = input.path.string();
  if (input.source->size() == 0) throw Error(ErrorKind::invalid_file, "the file is empty", path);
  refuse_lookalike(*input.source);
  const auto found = std::ranges::find(kRefusedArchives, container_of(input), &RefusedArchive::container);
  if (found != kRefusedArchives.end() && recognise(input, all_formats()) == nullptr)
    throw Error(ErrorKind::unsupported, std::string(found->message), path, 0);
}

void refuse_non_model(const Error& error, std::span<const SourcePtr> opened) {
  const SourcePtr source = refused_source(error, opened);
  if (source == nullptr) return;
  const Input input{source->name(), source};
  if (recognise(input, all_formats()) == nullptr) refuse_non_model(input);
}

}  // namespace poise
