#include "formats/input.hpp"

#include <algorithm>
#include <string>

#include "formats/format.hpp"
#include "io/lookalikes.hpp"

namespace poise {

std::vector<std::byte> read_first_bytes(const Input& input, std::size_t count) {
  if (!input.source) return {};
  std::vector<std::byte> bytes(static_cast<std::size_t>(std::min<std::uint64_t>(count, input.source->size())));
  input.source->read(0, bytes);
  return bytes;
}

MemberNames list_member_names(const Input& input, ContainerKind kind) {
  try {
    return open_container(kind, input.path, input.source)->list_names();
  } catch (const Error&) {
    return {};
  }
}

void refuse_non_model(const Input& input) {
  if (!input.source) return;
  const std::string path = input.path.string();
  if (input.source->size() == 0) throw Error(ErrorKind::invalid_file, "the file is empty", path);
  refuse_lookalike(*input.source);
  if (find_container_kind(input) != ContainerKind::zip || recognise_format(input, list_all_formats()) != nullptr)
    return;
  (void)open_container(ContainerKind::zip, input.path, input.source);  // throws if it cannot be read
  throw Error(
      ErrorKind::unsupported,
      "this is a zip archive in which Poise finds neither NumPy arrays, nor a PyTorch checkpoint, nor a Hugging "
      "Face directory",
      path, 0);
}

void refuse_non_model(const Error& error, std::span<const SourcePtr> opened) {
  const SourcePtr source = find_refused_source(error, opened);
  if (source == nullptr) return;
  const Input input{source->name(), source};
  if (recognise_format(input, list_all_formats()) == nullptr) refuse_non_model(input);
}

}  // namespace poise
