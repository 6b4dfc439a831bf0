#include "io/hidden_name.hpp"

#include <sys/random.h>

#include <cstdint>
#include <string>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "io/system_error.hpp"

namespace poise {
namespace {

constexpr std::size_t kLongestName = 255;

}  // namespace

std::filesystem::path directory_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

std::filesystem::path temporary_name(const std::filesystem::path& target) {
  std::uint64_t random = 0;
  if (::getrandom(&random, sizeof random, 0) != sizeof random) throw_system_error("get random bytes", target.string());
  // A long target name must not make the temporary one longer than a file system allows.
  const std::string stem = target.filename().string().substr(0, 200);
  return directory_of(target) / fmt::format(".{}.{:016x}.tmp", stem, random);
}

std::filesystem::path finished_name(const std::filesystem::path& target) {
  const std::string name = fmt::format(".{}.poise-new", target.filename().string());
  return name.size() <= kLongestName ? directory_of(target) / name : temporary_name(target);
}

std::filesystem::path undo_name(const std::filesystem::path& target) {
  const std::string name = fmt::format(".{}.poise-undo", target.filename().string());
  if (name.size() <= kLongestName) return directory_of(target) / name;
  throw Error(ErrorKind::unsupported, "the file's name is too long for a hidden file next to it", target.string());
}

}  // namespace poise
