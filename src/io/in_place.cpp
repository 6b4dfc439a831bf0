// An undo file has kMagic, the offset and the number of the bytes (8 bytes each), the old bytes, and the new bytes.
#include "io/in_place.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <poise/error.hpp>

#include "bytes/little_endian.hpp"
#include "io/atomic_file.hpp"

namespace poise {
namespace {

namespace fs = std::filesystem;

using Bytes = std::vector<std::byte>;

constexpr std::array<char, 16> kMagic = {'p', 'o', 'i', 's', 'e', ' ', 'u', 'n', 'd', 'o', ' ', '1', '\n', 0, 0, 0};
constexpr std::size_t kHeadBytes = kMagic.size() + 2 * sizeof(std::uint64_t);

constexpr std::uint64_t kChunkBytes = 1 << 20;

// Returns the path of the undo file; empty if the file's name is too long for one.
fs::path find_undo_file(const fs::path& path) {
  try {
    return make_undo_name(path);
  } catch (const Error&) {
    return {};
  }
}

bool has_undo_file(const fs::path& path) {
  const fs::path name = find_undo_file(path);
  std::error_code unknown;
  return !name.empty() && fs::is_regular_file(fs::symlink_status(name, unknown));
}

void write_undo_file(const fs::path& name, std::uint64_t offset, std::span<const std::byte> old_bytes,
                     std::span<const std::byte> new_bytes) {
  AtomicFile file(name, true);
  std::array<std::byte, kHeadBytes> head{};
  std::ranges::copy(std::as_bytes(std::span(kMagic)), head.begin());
  store_le(head.data() + kMagic.size(), offset);
  store_le(head.data() + kMagic.size() + sizeof(std::uint64_t), std::uint64_t{old_bytes.size()});
  file.write(head);
  file.write(old_bytes);
  file.write(new_bytes);
  file.commit();
}

// Removes an undo file. A failure does no harm, because the bytes are then all old or all new.
void remove_undo_file(const fs::path& name) { ::unlink(name.c_str()); }

// Reads an undo file, in chunks of limited size because it may be hostile.
class Undo {
 public:
  // Opens the undo file of a file of `size` bytes. If it does not fit that file, the object has a length of 0.
  Undo(const fs::path& path, std::uint64_t size) : source_(Source::open(make_undo_name(path), IoMode::read)) {
    std::array<std::byte, kHeadBytes> head{};
    if (source_->size() < head.size()) return;
    source_->read(0, head);
    if (!std::ranges::equal(std::span(head).first(kMagic.size()), std::as_bytes(std::span(kMagic)))) return;
    const auto offset = load_le<std::uint64_t>(head.data() + kMagic.size());
    const auto length = load_le<std::uint64_t>(head.data() + kMagic.size() + sizeof(std::uint64_t));
    const std::uint64_t kept = source_->size() - head.size();
    if (length != kept / 2 || kept % 2 != 0 || offset > size || length > size - offset) return;
    offset_ = offset;
    length_ = length;
  }

  // Returns true if each byte of the range is an old or a new one, and the range is neither all old nor all new.
  bool is_mixture(const Source& file) const {
    bool all_old = true;
    bool all_new = true;
    bool known = true;
    for_each_chunk([&](std::uint64_t done, std::size_t count) {
      const Bytes old_bytes = read(*source_, kHeadBytes + done, count);
      const Bytes new_bytes = read(*source_, kHeadBytes + length_ + done, count);
      const Bytes bytes = read(file, offset_ + done, count);
      all_old = all_old && bytes == old_bytes;
      all_new = all_new && bytes == new_bytes;
      for (std::size_t i = 0; i < count; ++i) known = known && (bytes[i] == old_bytes[i] || bytes[i] == new_bytes[i]);
      return known;
    });
    return known && !all_old && !all_new;
  }

  void roll_back(const FileDescriptor& file, const std::string& name) const {
    for_each_chunk([&](std::uint64_t done, std::size_t count) {
      write_at(file.get(), offset_ + done, read(*source_, kHeadBytes + done, count), name);
      return true;
    });
    sync_file(file.get(), name);
  }

 private:
  static Bytes read(const Source& source, std::uint64_t offset, std::size_t count) {
    Bytes bytes(count);
    source.read(offset, bytes);
    return bytes;
  }

  // Calls use_chunk(done, count) for each chunk of the replaced range, until a call returns false. `done` is the number
  // of bytes before the chunk, `count` the number of its bytes.
  template <typename UseChunk>
  void for_each_chunk(const UseChunk& use_chunk) const {
    for (std::uint64_t done = 0; done < length_; done += kChunkBytes) {
      if (!use_chunk(done, static_cast<std::size_t>(std::min(kChunkBytes, length_ - done)))) return;
    }
  }

  SourcePtr source_;
  std::uint64_t offset_ = 0;
  std::uint64_t length_ = 0;
};

bool is_mixture(const fs::path& path) {
  if (!has_undo_file(path)) return false;
  const SourcePtr file = Source::open(path, IoMode::read);
  return Undo(path, file->size()).is_mixture(*file);
}

FileDescriptor open_for_writing(const fs::path& path) {
  FileDescriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!file) throw_system_error("open for writing", path.string());
  return file;
}

}  // namespace

void replace_in_place(const fs::path& path, std::uint64_t offset, std::span<const std::byte> bytes) {
  const FileDescriptor file = open_for_writing(path);
  const fs::path undo_file = make_undo_name(path);
  const std::string name = path.string();
  Bytes old_bytes(bytes.size());
  read_at(file.get(), offset, old_bytes, name);
  write_undo_file(undo_file, offset, old_bytes, bytes);
  try {
    write_at(file.get(), offset, bytes, name);
    sync_file(file.get(), name);
  } catch (...) {
    write_at(file.get(), offset, old_bytes, name);
    sync_file(file.get(), name);
    remove_undo_file(undo_file);
    throw;
  }
  remove_undo_file(undo_file);
}

bool is_interrupted(const fs::path& path) {
  if (!is_mixture(path)) return false;
  const FileLock lock(path);
  return is_mixture(path);
}

void require_not_interrupted(const Source& source, std::string_view format) {
  if (source.descriptor() < 0 || !is_interrupted(source.name())) return;
  throw Error(ErrorKind::invalid_file,
              std::string(format) +
                  ": an edit of this file was interrupted: its header is half old, half new. The next "
                  "edit restores the old one",
              source.name());
}

void roll_back(const fs::path& path) {
  if (!has_undo_file(path)) return;
  const FileDescriptor file = open_for_writing(path);
  const SourcePtr source = Source::open(path, IoMode::read);
  const Undo undo(path, source->size());
  if (undo.is_mixture(*source)) undo.roll_back(file, path.string());
  remove_undo_file(make_undo_name(path));
}

FileTail::FileTail(std::filesystem::path path) : path_(std::move(path)), fd_(open_for_writing(path_)) {
  struct stat status {};
  if (::fstat(fd_.get(), &status) != 0) throw_system_error("stat", path_.string());
  size_ = static_cast<std::uint64_t>(status.st_size);
}

void FileTail::append(std::uint64_t offset, std::span<const std::byte> bytes, std::uint64_t footer_offset,
                      std::span<const std::byte> footer) {
  std::vector<std::byte> old_footer(footer.size());
  read_at(fd_.get(), size_ - footer.size(), old_footer, path_.string());
  try {
    // Reserves space, so that a full disk is detected before anything changes. Some file systems cannot do that.
    const auto length = static_cast<off_t>(footer_offset + footer.size() - size_);
    if (::fallocate(fd_.get(), FALLOC_FL_KEEP_SIZE, static_cast<off_t>(size_), length) != 0 && errno != EOPNOTSUPP)
      throw_system_error("write", path_.string());
    write(footer_offset, old_footer);
    write(offset, bytes);
    sync();
    write(footer_offset, footer);
    sync();
  } catch (...) {
    undo(footer_offset, old_footer);
    throw;
  }
}

void FileTail::undo(std::uint64_t footer_offset, std::span<const std::byte> old_footer) noexcept {
  try {
    // If the file cannot be truncated, ending with the old footer makes it valid.
    if (::ftruncate(fd_.get(), static_cast<off_t>(size_)) != 0) write(footer_offset, old_footer);
    sync();
  } catch (...) {  // append() throws the first error
  }
}

void FileTail::write(std::uint64_t offset, std::span<const std::byte> bytes) {
  write_at(fd_.get(), offset, bytes, path_.string());
}

void FileTail::sync() { sync_file(fd_.get(), path_.string()); }

}  // namespace poise
