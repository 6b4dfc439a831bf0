// Downloads files of a repository. A file is first NAME.incomplete, in the folder of its final name, and is renamed
// when its digest is right.
//
// In the Hub's cache (io/hub_cache.hpp), a file is blobs/DIGEST, and snapshots/COMMIT/NAME is a relative link to it.
// Files with the same content are one blob, which is fetched once.
#include <algorithm>
#include <atomic>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <poise/error.hpp>
#include <poise/fetch.hpp>

#include "bytes/checked.hpp"
#include "io/file_descriptor.hpp"
#include "io/hub_cache.hpp"
#include "pack/digest.hpp"
#include "patterns/glob.hpp"
#include "remote/hub.hpp"

namespace poise {
namespace {

using namespace remote;
namespace fs = std::filesystem;

constexpr std::size_t kMostParallel = 16;
constexpr std::size_t kReadPiece = 1 << 20;

// Holds a file of the repository, and its place on the disk. In the cache, `file` is one of those with this content.
struct FetchedFile {
  const HubFile* file = nullptr;
  fs::path target;
  std::vector<fs::path> links;  // the names in the snapshot of the cache; empty without a cache

  std::size_t count_names() const { return std::max<std::size_t>(links.size(), 1); }
};

std::unique_ptr<Hasher> make_hasher(const HubFile& file) {
  return classify_hub_blob_name(file.digest) == HubBlobName::git_sha1 ? make_git_sha1(*file.size) : make_sha256();
}

void create_folders(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) throw Error(ErrorKind::io, fmt::format("cannot create the directory: {}", error.message()), path.string());
}

class Fetch {
 public:
  Fetch(const std::string& url, const FetchOptions& options)
      : url_(url), options_(options), client_(make_http_options()), named_(parse_hub_name(url)) {}

  FetchReport run() {
    if (options_.parallel < 1 || options_.parallel > kMostParallel)
      throw Error(ErrorKind::bad_argument,
                  fmt::format("parallel: expected 1 to {} files at once, found {}", kMostParallel, options_.parallel));
    repository_ = list_hub_repository(client_, named_);
    report_.commit = repository_.commit;
    choose_directory();
    choose_files();
    for (const FetchedFile& file : files_) total_ = saturating_add(total_, *file.file->size);
    run_on_threads(std::min(options_.parallel, files_.size()), [this] { fetch_files(); });
    if (failure_) std::rethrow_exception(failure_);
    if (!cache_.empty()) link_files();
    for (const FetchedFile& file : files_) report_.files += file.count_names();
    report_.bytes = received_;
    return report_;
  }

 private:
  void choose_directory() {
    if (!options_.output.empty()) {
      report_.directory = options_.output;
      return;
    }
    const fs::path cache = find_hub_cache();
    if (cache.empty())
      throw Error(ErrorKind::bad_argument, "no Hugging Face cache is known, since HOME is not set; name a directory");
    std::string folder = "models--" + named_.repository;
    folder.replace(folder.find('/'), 1, "--");
    cache_ = cache / folder;
    report_.directory = cache_ / "snapshots" / repository_.commit;
  }

  bool is_wanted(const std::string& name) const {
    if (!named_.file.empty() && name != named_.file) return false;
    return options_.only.empty() ||
           std::ranges::any_of(options_.only, [&](const std::string& pattern) { return matches_glob(pattern, name); });
  }

  void choose_files() {
    for (const std::string& pattern : options_.only) {
      if (std::ranges::none_of(repository_.files,
                               [&](const HubFile& file) { return matches_glob(pattern, file.name); }))
        throw Error(ErrorKind::bad_argument, fmt::format("no file of the repository matches \"{}\"", pattern), url_);
    }
    std::map<std::string_view, std::size_t> places;  // in files_, by digest
    for (const HubFile& file : repository_.files) {
      if (!is_wanted(file.name)) continue;
      if (!file.size || file.digest.empty())
        throw Error(ErrorKind::unsupported,
                    fmt::format("the server states no size or digest of {}, so it cannot be checked", file.name), url_);
      if (file.name.ends_with(kIncompleteEnding))
        throw Error(ErrorKind::unsupported,
                    fmt::format("{} has the name of a file that is being fetched; leave it out", file.name), url_);
      if (cache_.empty()) {
        files_.push_back({&file, options_.output / file.name, {}});
      } else {
        const auto [place, is_new] = places.emplace(file.digest, files_.size());
        if (is_new) files_.push_back({&file, cache_ / "blobs" / file.digest, {}});
        files_[place->second].links.push_back(report_.directory / file.name);
      }
    }
    if (files_.empty()) throw Error(ErrorKind::not_found, "the repository has no such file", url_);
    // Before anything is fetched, refuses targets that are not regular files.
    for (const FetchedFile& file : files_) {
      struct stat status {};
      if (::lstat(file.target.c_str(), &status) == 0 && !S_ISREG(status.st_mode))
        throw Error(ErrorKind::bad_argument, "this exists, and is not a regular file", file.target.string());
    }
  }

  void fetch_files() noexcept {
    for (;;) {
      const std::size_t index = next_++;
      if (index >= files_.size() || has_failed_) return;
      try {
        fetch_file(files_[index]);
      } catch (...) {
        const std::scoped_lock lock(mutex_);
        if (!failure_) failure_ = std::current_exception();
        has_failed_ = true;
      }
    }
  }

  void fetch_file(const FetchedFile& place) {
    const HubFile& file = *place.file;
    create_folders(place.target.parent_path());
    if (is_complete(place)) {
      const std::scoped_lock lock(mutex_);
      report_.kept += place.count_names();
      report_.bytes_kept += *file.size;
      return;
    }
    const fs::path partial = place.target.string() + std::string(kIncompleteEnding);
    FileDescriptor fd(::open(partial.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
    if (!fd) throw_system_error("create", partial.string());
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0)
      throw Error(ErrorKind::io, "another program fetches this file; try again when it has ended", partial.string());
    const auto hasher = make_hasher(file);
    const std::uint64_t kept = hash_kept_bytes(fd, partial, *file.size, *hasher);
    receive(file, fd, partial, kept, *hasher);
    if (hasher->finish() != file.digest) {
      ::unlink(partial.c_str());
      throw Error(ErrorKind::invalid_file,
                  fmt::format("the received bytes do not have the digest that the server states, {}; fetch it again",
                              file.digest),
                  place.target.string());
    }
    sync_file(fd.get(), partial.string());
    if (::rename(partial.c_str(), place.target.c_str()) != 0) throw_system_error("rename", place.target.string());
    sync_directory(place.target.parent_path());
  }

  // Hashes `size` bytes on the disk. read(offset, piece) fills a piece.
  template <typename Read>
  void hash_bytes(Hasher& hasher, std::uint64_t size, const std::string& item, const Read& read) {
    std::vector<std::byte> piece;
    for (std::uint64_t at = 0; at < size; at += piece.size()) {
      piece.resize(static_cast<std::size_t>(std::min<std::uint64_t>(kReadPiece, size - at)));
      read(at, std::span(piece));
      hasher.update(piece);
      report_progress(piece.size(), item);
    }
  }

  // Returns true if the file exists with the right content. Throws if its content differs and may not be replaced.
  bool is_complete(const FetchedFile& place) {
    std::error_code ignored;
    if (!fs::exists(fs::symlink_status(place.target, ignored))) return false;
    const SourcePtr source = Source::open(place.target, IoMode::read);
    if (source->size() == *place.file->size) {
      const auto hasher = make_hasher(*place.file);
      hash_bytes(*hasher, source->size(), place.file->name,
                 [&](std::uint64_t at, std::span<std::byte> piece) { source->read(at, piece); });
      if (hasher->finish() == place.file->digest) return true;
    }
    // The digest is the name of a blob in the cache, so a blob with other content is damaged.
    if (options_.overwrite || !cache_.empty()) return false;
    throw Error(ErrorKind::bad_argument, "this file exists with another content", place.target.string())
        .with({.kind = Remedy::Kind::overwrite});
  }

  // Hashes the bytes that an interrupted fetch has left, and returns their number. Empties a partial file that is
  // longer than `size`, and returns 0.
  std::uint64_t hash_kept_bytes(const FileDescriptor& fd, const fs::path& partial, std::uint64_t size, Hasher& hasher) {
    struct stat status {};
    if (::fstat(fd.get(), &status) != 0) throw_system_error("stat", partial.string());
    const auto found = static_cast<std::uint64_t>(status.st_size);
    if (!S_ISREG(status.st_mode)) throw Error(ErrorKind::io, "this is not a regular file", partial.string());
    if (found > size) {
      if (::ftruncate(fd.get(), 0) != 0) throw_system_error("truncate", partial.string());
      return 0;
    }
    hash_bytes(hasher, found, partial.filename().string(),
               [&](std::uint64_t at, std::span<std::byte> piece) { read_at(fd.get(), at, piece, partial.string()); });
    const std::scoped_lock lock(mutex_);
    report_.bytes_kept += found;
    return found;
  }

  void receive(const HubFile& file, const FileDescriptor& fd, const fs::path& partial, std::uint64_t kept,
               Hasher& hasher) {
    std::uint64_t position = kept;
    const auto write = [&](std::span<const std::byte> piece) {
      if (has_failed_) throw Error(ErrorKind::cancelled, "another file has failed", partial.string());
      write_at(fd.get(), position, piece, partial.string());
      hasher.update(piece);
      position += piece.size();
      received_ += piece.size();
      report_progress(piece.size(), file.name);
    };
    (void)client_.get_range({.url = repository_.make_url(file.name),
                             .begin = kept,
                             .end = *file.size,
                             .total = file.size,
                             .most_whole = *file.size},
                            write);
  }

  void report_progress(std::uint64_t bytes, const std::string& item) {
    if (!options_.progress) return;
    const std::scoped_lock lock(mutex_);
    done_ += bytes;
    if (!options_.progress({std::min(done_, total_), total_, item}))
      throw Error(ErrorKind::cancelled, "the fetch was cancelled", url_);
  }

  // Links the names in the snapshot to the blobs. Then writes the commit to refs/REVISION, unless REVISION is the
  // commit itself.
  void link_files() {
    for (const FetchedFile& file : files_) {
      for (const fs::path& link : file.links) link_to(file.target, link);
    }
    if (named_.revision == repository_.commit) return;
    write_reference(cache_ / "refs", named_.revision);
  }

  static void link_to(const fs::path& blob, const fs::path& link) {
    create_folders(link.parent_path());
    const fs::path target = blob.lexically_relative(link.parent_path());
    std::error_code ignored;
    if (fs::read_symlink(link, ignored) == target) return;
    const fs::path temporary = link.string() + std::string(kIncompleteEnding);
    ::unlink(temporary.c_str());
    if (::symlink(target.c_str(), temporary.c_str()) != 0 || ::rename(temporary.c_str(), link.c_str()) != 0)
      throw_system_error("link", link.string());
  }

  void write_reference(const fs::path& folder, const std::string& revision) {
    const fs::path path = folder / revision;
    create_folders(path.parent_path());
    const fs::path temporary = path.string() + std::string(kIncompleteEnding);
    const FileDescriptor fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666));
    if (!fd) throw_system_error("create", temporary.string());
    write_at(fd.get(), 0, std::as_bytes(std::span(repository_.commit)), temporary.string());
    if (::rename(temporary.c_str(), path.c_str()) != 0) throw_system_error("rename", path.string());
  }

  const std::string& url_;
  const FetchOptions& options_;
  HttpClient client_;
  HubName named_;
  HubRepository repository_;
  fs::path cache_;  // the repository's folder in the Hub's cache; empty if options_.output is set
  std::vector<FetchedFile> files_;
  FetchReport report_;
  std::uint64_t total_ = 0;
  std::uint64_t done_ = 0;
  std::atomic<std::uint64_t> received_ = 0;
  std::atomic<std::size_t> next_ = 0;
  std::atomic<bool> has_failed_ = false;
  std::exception_ptr failure_;
  std::mutex mutex_;
};

}  // namespace

FetchReport fetch(const std::string& url, const FetchOptions& options) { return Fetch(url, options).run(); }

}  // namespace poise
