#include "ops/ranked_output.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <poise/error.hpp>

#include "io/atomic_file.hpp"
#include "ops/ranks.hpp"

namespace poise {
namespace {

// Describes a file that all ranks write: the path to open, and an inode and length by which a rank recognizes the right
// file.
struct Meeting {
  std::string path;
  std::uint64_t inode = 0;
  std::uint64_t length = 0;  // chosen at random
  std::string target;        // the path of the output, for messages
};

// Sends rank 0's description of the file to all ranks, and returns it.
Meeting share_meeting(const Meeting& own, Communicator& ranks) {
  std::string message;
  append_text(message, own.path);
  append_number(message, own.inode);
  append_number(message, own.length);
  append_text(message, own.target);
  const std::string first = ranks.gather(message)[0];
  std::string_view left = first;
  Meeting meeting;
  meeting.path = read_text(left);
  meeting.inode = read_number(left);
  meeting.length = read_number(left);
  meeting.target = read_text(left);
  return meeting;
}

// Opens the file, if this rank sees it. Waits up to `patience`, because a file server may show a new name only after a
// moment.
FileDescriptor open_shared(const Meeting& meeting, std::chrono::milliseconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (true) {
    FileDescriptor file(::open(meeting.path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
    struct stat status {};
    if (file && ::fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode) && status.st_ino == meeting.inode &&
        static_cast<std::uint64_t>(status.st_size) == meeting.length)
      return file;
    if (std::chrono::steady_clock::now() >= end) return FileDescriptor();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

}  // namespace

// Writes the parts of this rank, and on rank 0 also the bytes outside of parts.
class RankedOutput::File final : public Sink {
 public:
  File(RankedOutput& all, AtomicFile* own, FileDescriptor opened, std::string path)
      : all_(all),
        own_(own),
        opened_(std::move(opened)),
        path_(std::move(path)),
        fd_(own != nullptr ? own->descriptor() : opened_.get()),
        writes_(own != nullptr),
        common_(make_xxh3()) {
    buffer_.reserve(kBufferBytes);
  }

  bool begin_part(std::uint64_t bytes) override {
    in_part_ = true;
    return writes_ = all_.assign_part(bytes);
  }
  void end_part() override {
    in_part_ = false;
    writes_ = own_ != nullptr;
  }

  // Waits until the bytes of this rank are on the disk.
  void flush() {
    flush_buffer();
    if (has_written_ && ::fsync(fd_) != 0) throw_system_error("write", path_);
  }
  // Sets the length of the file to position(): the random length that open() has set may be greater, and padding at the
  // end is not written.
  void set_length() const {
    if (::ftruncate(fd_, static_cast<::off_t>(position())) != 0) throw_system_error("write", path_);
  }
  // Returns a text that must be equal on all ranks: it includes a hash of the bytes outside of parts.
  std::string describe() { return fmt::format("{} {} {}\n", path_, position(), common_->finish()); }

 protected:
  void do_write(std::span<const std::byte> bytes) override {
    if (!in_part_) common_->update(bytes);
    if (!writes_) return;
    if (buffer_begin_ + buffer_.size() != position() || buffer_.size() + bytes.size() > kBufferBytes) flush_buffer();
    if (bytes.size() > kBufferBytes / 4) return write_here(position(), bytes);
    if (buffer_.empty()) buffer_begin_ = position();
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  }
  void do_pad(std::uint64_t) override {}  // the file has a hole there
  void do_skip(std::uint64_t) override {}
  void do_copy(const Source& source, std::uint64_t offset, std::uint64_t length) override {
    flush_buffer();
    std::vector<std::byte> chunk(static_cast<std::size_t>(std::min<std::uint64_t>(length, kBufferBytes)));
    for (std::uint64_t done = 0; done < length && writes_;) {
      const auto piece = std::span(chunk).first(std::min<std::uint64_t>(chunk.size(), length - done));
      source.read(offset + done, piece);
      write_here(position() + done, piece);
      done += piece.size();
    }
  }

 private:
  static constexpr std::size_t kBufferBytes = 1 << 20;

  void flush_buffer() {
    write_here(buffer_begin_, buffer_);
    buffer_.clear();
  }

  void write_here(std::uint64_t place, std::span<const std::byte> bytes) {
    if (bytes.empty()) return;
    write_at(fd_, place, bytes, path_);
    has_written_ = true;
  }

  RankedOutput& all_;
  AtomicFile* own_;  // null on ranks other than 0
  FileDescriptor opened_;
  std::string path_;
  int fd_;
  bool writes_;
  bool in_part_ = false;
  bool has_written_ = false;
  std::unique_ptr<Hasher> common_;  // hashes the bytes outside of parts
  std::uint64_t buffer_begin_ = 0;
  std::vector<std::byte> buffer_;
};

RankedOutput::RankedOutput(std::unique_ptr<SavedOutput> own, std::uint64_t bytes, Communicator& ranks, bool has_names)
    : own_(std::move(own)),
      bytes_(bytes),
      ranks_(ranks),
      has_names_(has_names),
      name_(ranks.gather(own_ ? own_->name() : std::string())[0]) {}

RankedOutput::~RankedOutput() = default;

bool RankedOutput::assign_part(std::uint64_t bytes) {
  const std::uint64_t left = bytes_ - std::min(bytes_, dealt_);
  const double middle = static_cast<double>(dealt_) + static_cast<double>(std::min(bytes, left)) / 2;
  dealt_ += std::min(bytes, left);
  const auto size = static_cast<double>(ranks_.size());
  const double place = bytes_ == 0 ? 0 : middle / static_cast<double>(bytes_) * size;
  return std::min(static_cast<std::size_t>(place), ranks_.size() - 1) == ranks_.rank();
}

Sink& RankedOutput::open(const std::function<Sink&()>& open_own) {
  AtomicFile* const own = own_ ? &dynamic_cast<AtomicFile&>(open_own()) : nullptr;
  FileDescriptor opened;
  std::string target;
  // Tries without a name first: processes of this machine can open the file through rank 0's process.
  for (const bool has_name : {false, true}) {
    if (has_names_ && !has_name) continue;
    Meeting meeting;
    if (own != nullptr) {
      std::uint32_t random = 0;
      if (::getrandom(&random, sizeof random, 0) != sizeof random) throw_system_error("get random bytes", "ranks");
      meeting.length = 1 + random % (1U << 30);
      struct stat status {};
      if (::ftruncate(own->descriptor(), static_cast<::off_t>(meeting.length)) != 0 ||
          ::fstat(own->descriptor(), &status) != 0)
        throw_system_error("write", own->target().string());
      meeting.inode = status.st_ino;
      meeting.target = own->target().string();
      meeting.path = has_name ? std::filesystem::absolute(own->add_hidden_name()).string()
                              : fmt::format("/proc/{}/fd/{}", ::getpid(), own->descriptor());
    }
    meeting = share_meeting(meeting, ranks_);
    target = meeting.target;
    constexpr std::chrono::milliseconds kPatience{5000};
    if (own == nullptr) opened = open_shared(meeting, has_name ? kPatience : std::chrono::milliseconds(0));
    const std::vector<std::string> seen = ranks_.gather(own != nullptr || opened ? "seen" : "");
    const auto blind = std::ranges::find(seen, std::string());
    if (blind == seen.end()) break;
    if (has_name)
      throw Error(ErrorKind::io,
                  fmt::format("rank {} does not see the file that rank 0 has begun there; write to a file system that "
                              "all machines share",
                              blind - seen.begin()),
                  target);
  }
  return files_.emplace_back(*this, own, std::move(opened), std::move(target));
}

Sink& RankedOutput::main() {
  if (main_ == nullptr) main_ = &static_cast<File&>(open([this]() -> Sink& { return own_->main(); }));
  return *main_;
}

Sink& RankedOutput::open_main(const std::string& name) {
  main_ = &static_cast<File&>(open([&]() -> Sink& { return own_->open_main(name); }));
  return *main_;
}

Sink& RankedOutput::open_sibling(const std::string& name) {
  return open([&]() -> Sink& { return own_->open_sibling(name); });
}

void RankedOutput::complete_texts(std::span<std::string> texts) {
  std::string own;
  for (const std::string& text : texts) own += text + "\n";
  const std::vector<std::string> all = ranks_.gather(own);
  for (const std::string& message : all) {
    std::string_view left = message;
    for (std::string& text : texts) {
      const std::size_t end = left.find('\n');
      if (text.empty()) text = left.substr(0, end);
      left.remove_prefix(std::min(left.size(), end) + 1);
    }
  }
}

std::uint64_t RankedOutput::bytes() const {
  std::uint64_t sum = 0;
  for (const File& file : files_) sum += file.position();
  return sum;
}

std::uint64_t RankedOutput::padding() const {
  std::uint64_t sum = 0;
  for (const File& file : files_) sum += file.padding();
  return sum;
}

std::vector<std::filesystem::path> RankedOutput::paths() const {
  std::string own;
  if (own_) {
    for (const std::filesystem::path& path : own_->paths()) append_text(own, path.string());
  }
  const std::string message = ranks_.gather(own)[0];
  std::vector<std::filesystem::path> paths;
  for (std::string_view left = message; !left.empty();) paths.emplace_back(read_text(left));
  return paths;
}

std::string RankedOutput::describe_replacements() const { return own_ ? own_->describe_replacements() : std::string(); }

void RankedOutput::commit() {
  std::string written;
  for (File& file : files_) {
    file.flush();
    written += file.describe();
  }
  const std::vector<std::string> all = ranks_.gather(written);
  const auto other = std::ranges::find_if(all, [&](const std::string& text) { return text != all.front(); });
  if (other != all.end())
    throw Error(ErrorKind::invalid_file,
                fmt::format("rank {} would write another file than rank 0: the inputs or the options of the ranks "
                            "differ; copy the same files to every machine",
                            other - all.begin()),
                name_);
  if (!own_) return;
  for (const File& file : files_) file.set_length();
  own_->commit();
}

}  // namespace poise
