#include "formats/input.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <utility>

#include <poise/error.hpp>

#include "io/directory.hpp"
#include "pack/zip.hpp"

namespace poise {
namespace {

// An unreadable container has no names; opening it reports why.
MemberNames names_in_zip(const Input& input) {
  MemberNames names;
  try {
    const ZipArchive archive(input.source);
    for (const ZipMember& member : archive.members()) names.push_back(member.name);
  } catch (const Error&) {
  }
  return names;
}

MemberNames names_in_directory(const std::filesystem::path& directory) {
  MemberNames names;
  try {
    for (DirectoryEntry& entry : list_directory(directory)) names.push_back(std::move(entry.name));
  } catch (const Error&) {
  }
  return names;
}

// How an archive is recognized, and how its members are listed; null if Poise does not read it.
struct Archive {
  Container container;
  std::uint64_t offset;
  std::string_view magic;
  MemberNames (*names)(const Input& input);
};

constexpr std::array kArchives = {
    Archive{Container::zip, 0, "PK\x03\x04", names_in_zip},
    Archive{Container::zip, 0, "PK\x05\x06", names_in_zip},  // without members
    Archive{Container::tar, 257, "ustar", nullptr},
};

bool has_magic(const Input& input, const Archive& archive) {
  const std::uint64_t size = input.source->size();
  if (size < archive.offset || size - archive.offset < archive.magic.size()) return false;
  std::array<char, 8> bytes{};
  const auto there = std::span(bytes).first(archive.magic.size());
  input.source->read(archive.offset, std::as_writable_bytes(there));
  return std::string_view(there.data(), there.size()) == archive.magic;
}

}  // namespace

std::vector<std::byte> first_bytes(const Input& input, std::size_t count) {
  if (!input.source) return {};
  std::vector<std::byte> bytes(static_cast<std::size_t>(std::min<std::uint64_t>(count, input.source->size())));
  input.source->read(0, bytes);
  return bytes;
}

std::optional<Container> container_of(const Input& input) {
  if (!input.source) return Container::directory;
  const auto found = std::ranges::find_if(kArchives, [&](const Archive& archive) { return has_magic(input, archive); });
  return found == kArchives.end() ? std::nullopt : std::optional(found->container);
}

std::optional<MemberNames> member_names(const Input& input, Container container) {
  if (container == Container::directory) return names_in_directory(input.path);
  const auto found = std::ranges::find(kArchives, container, &Archive::container);
  if (found == kArchives.end() || found->names == nullptr) return std::nullopt;
  return found->names(input);
}

}  // namespace poise
