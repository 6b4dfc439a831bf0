#include <poise/edit.hpp>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "formats/format.hpp"
#include "io/file_lock.hpp"
#include "io/in_place.hpp"

namespace poise {

EditReport edit(const std::filesystem::path& named, const AttributeChanges& changes) {
  // What a link leads to is changed, not the link.
  std::error_code unknown;
  std::filesystem::path path = named;
  if (std::filesystem::is_symlink(named, unknown)) path = std::filesystem::canonical(named, unknown);
  if (unknown) path = named;  // opening it says why
  const FileLock lock(path);  // an edit goes on from what it read
  roll_back(path);            // an edit that was interrupted
  Opened opened = open_with_format(
      named, {});  // the whole structure is checked before anything changes; other parts are beside the link
  opened.input.path = path;
  if (opened.format->edit == nullptr) {
    throw Error(
        ErrorKind::unsupported,
        fmt::format("{} files have no attributes that can be edited, zt and gguf files have", opened.format->info.name),
        path.string())
        .with({.kind = Remedy::Kind::convert, .value = "zt"});
  }
  return opened.format->edit(opened.input, changes);
}

}  // namespace poise
