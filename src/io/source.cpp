#include <poise/source.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "io/file_descriptor.hpp"

namespace poise {
namespace {

void require_inside(const Source& source, std::uint64_t offset, std::size_t length) {
  if (offset <= source.size() && length <= source.size() - offset) return;
  throw Error(ErrorKind::internal, fmt::format("read of {} bytes outside a source of {}", length, source.size()),
              source.name(), offset);
}

class MemorySource final : public Source {
 public:
  MemorySource(std::vector<std::byte> bytes, std::string name)
      : Source(std::move(name), bytes.size()), bytes_(std::move(bytes)) {}

  bool mapped() const override { return true; }
  std::span<const std::byte> bytes() const override { return bytes_; }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    require_inside(*this, offset, out.size());
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
  }

 private:
  std::vector<std::byte> bytes_;
};

class FileSource final : public Source {
 public:
  FileSource(std::string name, std::uint64_t size, FileDescriptor fd)
      : Source(std::move(name), size), fd_(std::move(fd)) {}

  bool mapped() const override { return false; }
  std::span<const std::byte> bytes() const override { return {}; }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    require_inside(*this, offset, out.size());
    read_at(fd_.get(), offset, out, name());
  }

  int descriptor() const override { return fd_.get(); }

  void will_need(std::uint64_t offset, std::uint64_t length) const override {
    ::posix_fadvise(fd_.get(), static_cast<off_t>(offset), static_cast<off_t>(length), POSIX_FADV_WILLNEED);
  }

 private:
  FileDescriptor fd_;
};

// Owns the mapped bytes of a file.
class Mapping {
 public:
  Mapping(const FileDescriptor& fd, std::uint64_t size)
      : size_(size), address_(size == 0 ? MAP_FAILED : ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd.get(), 0)) {}
  Mapping(Mapping&& other) noexcept : size_(other.size_), address_(std::exchange(other.address_, MAP_FAILED)) {}
  Mapping& operator=(Mapping&&) = delete;
  ~Mapping() {
    if (address_ != MAP_FAILED) ::munmap(address_, size_);
  }

  // Returns false if the system refused, because the file system cannot map files or the address space is too small.
  bool succeeded() const { return size_ == 0 || address_ != MAP_FAILED; }
  std::span<const std::byte> bytes() const {
    if (address_ == MAP_FAILED) return {};
    return {static_cast<const std::byte*>(address_), static_cast<std::size_t>(size_)};
  }
  void advise(std::uint64_t begin, std::uint64_t end, int advice) const {
    if (address_ != MAP_FAILED && begin < end)
      ::madvise(static_cast<std::byte*>(address_) + begin, end - begin, advice);
  }

 private:
  std::uint64_t size_;
  void* address_;
};

class MappedSource final : public Source {
  static constexpr std::size_t kSystemRead = 64 << 10;  // above this a system call is faster than the page faults

 public:
  MappedSource(std::string name, std::uint64_t size, FileDescriptor fd, Mapping mapping)
      : Source(std::move(name), size), fd_(std::move(fd)), mapping_(std::move(mapping)) {}

  bool mapped() const override { return true; }
  std::span<const std::byte> bytes() const override { return mapping_.bytes(); }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    require_inside(*this, offset, out.size());
    if (out.size() >= kSystemRead) return read_at(fd_.get(), offset, out, name());
    if (!out.empty()) std::memcpy(out.data(), bytes().data() + offset, out.size());
  }
  int descriptor() const override { return fd_.get(); }

  void will_need(std::uint64_t offset, std::uint64_t length) const override { advise(offset, length, MADV_WILLNEED); }
  void done_with(std::uint64_t offset, std::uint64_t length) const override { advise(offset, length, MADV_DONTNEED); }

 private:
  // Gives the operating system a hint for whole pages: widens a range that will be needed, and narrows one that is
  // released.
  void advise(std::uint64_t offset, std::uint64_t length, int advice) const {
    constexpr std::uint64_t kPage = 4096;
    if (offset > size()) return;
    std::uint64_t begin = offset;
    std::uint64_t end = offset + std::min(length, size() - offset);
    begin = advice == MADV_DONTNEED ? (begin + kPage - 1) / kPage * kPage : begin / kPage * kPage;
    if (advice == MADV_DONTNEED) end = end / kPage * kPage;
    mapping_.advise(begin, end, advice);
  }

  FileDescriptor fd_;
  Mapping mapping_;
};

SourcePtr make_source(std::string name, std::uint64_t size, FileDescriptor fd, IoMode mode) {
  if (mode == IoMode::map) {
    if (Mapping mapping(fd, size); mapping.succeeded())
      return std::make_shared<MappedSource>(std::move(name), size, std::move(fd), std::move(mapping));
  }
  return std::make_shared<FileSource>(std::move(name), size, std::move(fd));
}

std::string_view describe_file_type(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  return "not a regular file";
}

void require_regular(const struct stat& status, const std::string& name) {
  if (S_ISREG(status.st_mode)) return;
  throw Error(ErrorKind::bad_argument,
              fmt::format("this is {}; a regular file is needed", describe_file_type(status.st_mode)), name);
}

}  // namespace

void Source::will_need(std::uint64_t, std::uint64_t) const {}
void Source::done_with(std::uint64_t, std::uint64_t) const {}

SourcePtr Source::open(const std::filesystem::path& path, IoMode mode) {
  const std::string name = path.string();
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) throw_system_error("open", name);
  require_regular(status, name);  // before open(), which fails on sockets and makes some devices act
  // With O_NONBLOCK, open() does not wait if the file has been replaced by a pipe meanwhile.
  FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) throw_system_error("open", name);
  if (::fstat(fd.get(), &status) != 0) throw_system_error("stat", name);
  require_regular(status, name);
  const auto size = static_cast<std::uint64_t>(status.st_size);
  return make_source(name, size, std::move(fd), mode);
}

SourcePtr make_file_source(const FileDescriptor& file, std::string name, std::uint64_t size) {
  FileDescriptor fd(::fcntl(file.get(), F_DUPFD_CLOEXEC, 0));
  if (!fd) throw_system_error("open again", name);
  return make_source(std::move(name), size, std::move(fd), IoMode::map);
}

SourcePtr Source::from_memory(std::vector<std::byte> bytes, std::string name) {
  return std::make_shared<MemorySource>(std::move(bytes), std::move(name));
}

}  // namespace poise
