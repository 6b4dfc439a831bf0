// An undo file: kMagic; where the bytes begin and how many they are, 8 bytes each; the old bytes; the new ones.
#include "io/in_place.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>
#include <system_error>
#include <vector>

#include <poise/error.hpp>

#include "bytes/little_endian.hpp"
#include "io/atomic_file.hpp"
#include "io/file_descriptor.hpp"
#include "io/file_lock.hpp"
#include "io/hidden_name.hpp"
#include "io/positioned_io.hpp"
#include "io/system_error.hpp"

namespace poise {
namespace {

namespace fs = std::filesystem;

using Bytes = std::vector<std::byte>;

constexpr std::array<char, 16> kMagic = {'p', 'o', 'i', 's', 'e', ' ', 'u', 'n', 'd', 'o', ' ', '1', '\n', 0, 0, 0};
constexpr std::size_t kHeadBytes = kMagic.size() + 2 * sizeof(std::uint64_t);

struct Undo {
  std::uint64_t offset = 0;
  Bytes old_bytes;
  Bytes new_bytes;
};

// Empty for a name that is too long for one beside it.
fs::path undo_file(const fs::path& path) {
  try {
    return undo_name(path);
  } catch (const Error&) {
    return {};
  }
}

bool has_undo_file(const fs::path& path) {
  const fs::path name = undo_file(path);
  std::error_code unknown;
  return !name.empty() && fs::is_regular_file(fs::symlink_status(name, unknown));
}

void write_undo_file(const fs::path& name, const Undo& undo) {
  AtomicFile file(name, true);
  std::array<std::byte, kHeadBytes> head{};
  std::ranges::copy(std::as_bytes(std::span(kMagic)), head.begin());
  store_le(head.data() + kMagic.size(), undo.offset);
  store_le(head.data() + kMagic.size() + sizeof(std::uint64_t), std::uint64_t{undo.old_bytes.size()});
  file.write(head);
  file.write(undo.old_bytes);
  file.write(undo.new_bytes);
  file.commit();
}

// One that stays changes nothing: the bytes are all old or all new then.
void remove_undo_file(const fs::path& name) { ::unlink(name.c_str()); }

// What an undo file says; one that says nothing of a file of `size` bytes has no bytes.
Undo read_undo_file(const fs::path& path, std::uint64_t size) {
  const SourcePtr source = Source::open(undo_name(path), IoMode::read);
  std::array<std::byte, kHeadBytes> head{};
  if (source->size() < head.size()) return {};
  source->read(0, head);
  if (!std::ranges::equal(std::span(head).first(kMagic.size()), std::as_bytes(std::span(kMagic)))) return {};
  Undo undo;
  undo.offset = load_le<std::uint64_t>(head.data() + kMagic.size());
  const auto length = load_le<std::uint64_t>(head.data() + kMagic.size() + sizeof(std::uint64_t));
  const std::uint64_t kept = source->size() - head.size();
  if (length != kept / 2 || kept % 2 != 0 || undo.offset > size || length > size - undo.offset) return {};
  undo.old_bytes.resize(static_cast<std::size_t>(length));
  undo.new_bytes.resize(static_cast<std::size_t>(length));
  source->read(head.size(), undo.old_bytes);
  source->read(head.size() + length, undo.new_bytes);
  return undo;
}

bool is_mixture(const Source& file, const Undo& undo) {
  Bytes bytes(undo.old_bytes.size());
  file.read(undo.offset, bytes);
  if (bytes == undo.old_bytes || bytes == undo.new_bytes) return false;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] != undo.old_bytes[i] && bytes[i] != undo.new_bytes[i]) return false;
  }
  return true;
}

bool is_mixture(const fs::path& path) {
  if (!has_undo_file(path)) return false;
  const SourcePtr file = Source::open(path, IoMode::read);
  return is_mixture(*file, read_undo_file(path, file->size()));
}

FileDescriptor open_for_writing(const fs::path& path) {
  FileDescriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!file) throw_system_error("open for writing", path.string());
  return file;
}

}  // namespace

void replace_in_place(const fs::path& path, std::uint64_t offset, std::span<const std::byte> bytes) {
  const FileDescriptor file = open_for_writing(path);
  const fs::path undo_file = undo_name(path);
  const std::string name = path.string();
  Undo undo{offset, Bytes(bytes.size()), Bytes(bytes.begin(), bytes.end())};
  read_at(file.get(), offset, undo.old_bytes, name);
  write_undo_file(undo_file, undo);
  try {
    write_at(file.get(), offset, bytes, name);
    sync_file(file.get(), name);
  } catch (...) {
    write_at(file.get(), offset, undo.old_bytes, name);
    sync_file(file.get(), name);
    remove_undo_file(undo_file);
    throw;
  }
  remove_undo_file(undo_file);
}

bool is_half_replaced(const fs::path& path) {
  if (!is_mixture(path)) return false;
  const FileLock lock(path);
  return is_mixture(path);
}

void bring_back(const fs::path& path) {
  if (!has_undo_file(path)) return;
  const FileDescriptor file = open_for_writing(path);
  const SourcePtr source = Source::open(path, IoMode::read);
  const Undo undo = read_undo_file(path, source->size());
  if (is_mixture(*source, undo)) {
    write_at(file.get(), undo.offset, undo.old_bytes, path.string());
    sync_file(file.get(), path.string());
  }
  remove_undo_file(undo_name(path));
}

}  // namespace poise
