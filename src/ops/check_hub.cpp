#include "ops/check_hub.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include <poise/blob.hpp>
#include <poise/error.hpp>
#include <poise/value.hpp>

#include "bytes/checked.hpp"
#include "bytes/short_text.hpp"
#include "io/directory.hpp"
#include "io/hub_cache.hpp"
#include "io/meter.hpp"
#include "io/source_range.hpp"
#include "pack/digest.hpp"
#include "pack/scan.hpp"
#include "syntax/fields.hpp"

namespace poise {
namespace {

namespace fs = std::filesystem;

constexpr int kMostLevels = 32;  // levels of folders in a snapshot
constexpr std::uint64_t kMostIndexBytes = std::uint64_t{256} << 20;
constexpr std::uint64_t kMostRefBytes = 200;
constexpr std::string_view kIndex = ".index.json";

// Names a file and the digest that it should have.
struct NamedFile {
  fs::path path;  // the path in messages
  fs::path blob;  // where its bytes are
  std::string digest;
  HubBlobName kind = HubBlobName::sha256;
  bool is_blob = true;    // true if the digest is the name of the blob
  SourcePtr source = {};  // null: `blob` is opened
  std::uint64_t size = 0;
  std::optional<Finding> finding = {};
};

// Compares the bytes of a file with its digest.
class FileVisitor final : public Visitor {
 public:
  FileVisitor(NamedFile& file, std::uint64_t size, Meter& meter)
      : file_(file), meter_(meter), sha1_(file.kind == HubBlobName::git_sha1 ? make_git_sha1(size) : nullptr) {}

  void update(std::span<const std::byte> bytes) override {
    if (sha1_) sha1_->update(bytes);
    meter_.advance(bytes.size(), file_.path.filename().string());
  }
  void end(std::string sha256) override {
    const std::string digits = sha1_ ? sha1_->finish() : std::move(sha256);
    if (digits == file_.digest) return;
    const std::string problem =
        fmt::format("its {} is {}, expected {}", sha1_ ? "SHA-1 of git" : "SHA-256", digits, file_.digest);
    file_.finding = {
        Severity::error,
        file_.is_blob ? fmt::format("{}, which is its blob's name: the file is damaged, or was changed; delete {} and "
                                    "download it again",
                                    problem, file_.blob.string())
                      : problem,
        file_.path.string(),
        {}};
  }
  void fail(const Error& error) override {
    file_.finding = {Severity::error, error.message(), error.path().empty() ? file_.path.string() : error.path(), {}};
  }

 private:
  NamedFile& file_;
  Meter& meter_;
  std::unique_ptr<Hasher> sha1_;
};

// Takes the place of a FileVisitor for a file that cannot be opened.
class Unreadable final : public Visitor {
 public:
  void update(std::span<const std::byte>) override {}
  void end(std::string) override {}
};

class HubChecker {
 public:
  HubChecker(IoMode io, const Progress& progress) : io_(io), progress_(progress) {}

  void add_repository(const fs::path& repository) {
    if (is_directory(repository / "snapshots")) {
      for (const DirectoryEntry& snapshot : list_directory(repository / "snapshots")) {
        if (!snapshot.is_file) add_snapshot(repository / "snapshots" / snapshot.name, repository);
      }
    }
    const fs::path blobs = repository / "blobs";
    if (is_directory(blobs)) {
      const fs::path real = fs::canonical(blobs);  // links are compared by their canonical paths
      for (const DirectoryEntry& blob : list_directory(blobs)) {
        if (blob.name.ends_with(kIncompleteEnding)) {
          report_partial(blobs / blob.name);
        } else {
          add_file(blobs / blob.name, real / blob.name);
        }
      }
    }
    if (is_directory(repository / "refs")) check_refs(repository / "refs", repository, 0);
  }

  void add_snapshot(const fs::path& snapshot, const fs::path& repository) { add_folder(snapshot, repository, 0); }

  // Adds a blob unless it was added before. Warns if its name is not a digest. `path` is the blob, or a link of a
  // snapshot to it.
  void add_file(const fs::path& path, const fs::path& blob) {
    const std::string name = blob.filename().string();
    const HubBlobName kind = classify_hub_blob_name(name);
    if (kind == HubBlobName::unknown) {
      report(Severity::warning,
             fmt::format("the name of its blob, {}, is not a digest: its bytes are not checked", name), path);
    } else if (seen_.insert(blob).second) {
      files_.push_back({path, blob, name, kind});
    }
  }

  void add_file_with_digest(const SourcePtr& file, std::string_view digits) {
    files_.push_back({file->name(), file->name(), std::string(digits), HubBlobName::sha256, false, file});
  }

  // Reads all files and compares them with their digests.
  HubCheck compare_files() {
    std::vector<std::uint64_t> sizes;
    std::uint64_t total = 0;
    for (NamedFile& file : files_) {
      std::error_code ignored;
      const std::uintmax_t size = file.source ? file.source->size() : fs::file_size(file.blob, ignored);
      file.size = ignored ? 0 : size;
      sizes.push_back(file.size);
      total = saturating_add(total, file.size);
    }
    Meter meter(progress_, total);
    Scan scan(sizes, [&](std::size_t i) { return make_visit(files_[i], meter); });
    scan.start();
    scan.finish();
    HubCheck result{std::move(findings_), files_.size(), total};
    for (NamedFile& file : files_) {
      if (file.finding) result.findings.push_back(*std::move(file.finding));
    }
    return result;
  }

 private:
  static bool is_directory(const fs::path& path) {
    std::error_code ignored;
    return fs::is_directory(path, ignored);
  }

  void report(Severity severity, std::string message, const fs::path& path) {
    findings_.push_back({severity, std::move(message), path.string(), std::nullopt});
  }

  Visit make_visit(NamedFile& file, Meter& meter) const {
    try {
      const SourcePtr source = file.source ? file.source : Source::open(file.blob, io_);
      const bool is_sha256 = file.kind == HubBlobName::sha256;
      return {make_source_blob(source, 0, source->size()), is_sha256,
              std::make_unique<FileVisitor>(file, source->size(), meter)};
    } catch (const Error& error) {
      file.finding = {Severity::error, error.message(), file.path.string(), {}};
      return {make_memory_blob({}, file.path.string()), false, std::make_unique<Unreadable>()};
    }
  }

  void add_folder(const fs::path& folder, const fs::path& repository, int level) {
    if (level == kMostLevels)
      return report(Severity::error, fmt::format("folders are nested deeper than {} levels", kMostLevels), folder);
    const std::vector<DirectoryEntry> entries = list_directory(folder);
    for (const DirectoryEntry& entry : entries) {
      const fs::path path = folder / entry.name;
      std::error_code ignored;
      const fs::file_status status = fs::symlink_status(path, ignored);
      if (fs::is_symlink(status)) {
        add_link(path, repository);
      } else if (fs::is_directory(status)) {
        add_folder(path, repository, level + 1);
      } else {
        report(Severity::warning,
               "this is not a link to a blob: no digest shows whether it is the file that was downloaded", path);
      }
      if (entry.name.ends_with(kIndex)) check_index(path, entries);
    }
  }

  void add_link(const fs::path& link, const fs::path& repository) {
    std::error_code error;
    const fs::path blob = fs::canonical(link, error);
    if (error) {
      std::error_code ignored;
      return report(Severity::error,
                    fmt::format("it is a link to {}, which is not there: download it again",
                                fs::read_symlink(link, ignored).string()),
                    link);
    }
    std::error_code ignored;
    const fs::path blobs = fs::canonical(repository / "blobs", ignored);
    if (blob.parent_path() != blobs || !fs::is_regular_file(blob, ignored))
      return report(Severity::warning,
                    fmt::format("it is a link to {}, which is not a blob of its repository: its bytes are not checked",
                                blob.string()),
                    link);
    add_file(link, blob);
  }

  // Checks that the shards that an index names are in its directory.
  void check_index(const fs::path& index, const std::vector<DirectoryEntry>& entries) {
    std::set<std::string> absent;
    try {
      const SourcePtr source = Source::open(index, io_);
      if (source->size() > kMostIndexBytes) return;  // reading the model refuses it
      const Value root = parse_json(read_text(*source, source->size()), source->name());
      const auto* shards = get_member<Attributes>(root, "weight_map");
      if (shards == nullptr) return;
      for (const auto& [tensor, shard] : *shards) {
        const auto* name = shard.get_if<std::string>();
        const bool is_there = name == nullptr || std::ranges::binary_search(entries, *name, {}, &DirectoryEntry::name);
        if (!is_there && is_plain_file_name(*name)) absent.insert(*name);
      }
    } catch (const Error& error) {
      const bool is_lost_link = error.kind() == ErrorKind::not_found;  // add_link() reports such a link
      if (!is_lost_link) report(Severity::error, error.message(), index);
      return;
    }
    if (!absent.empty())
      report(Severity::error, fmt::format("it names files that are not there: {}; download them", list_names(absent)),
             index);
  }

  void report_partial(const fs::path& path) {
    std::error_code ignored;
    report(Severity::error,
           fmt::format("a partial download of {} bytes: download again to complete it, or delete it",
                       fs::file_size(path, ignored)),
           path);
  }

  void check_refs(const fs::path& folder, const fs::path& repository, int level) {
    if (level == kMostLevels) return;
    for (const DirectoryEntry& entry : list_directory(folder)) {
      const fs::path path = folder / entry.name;
      if (!entry.is_file) {
        if (is_directory(path)) check_refs(path, repository, level + 1);
        continue;
      }
      const SourcePtr source = Source::open(path, io_);
      std::string commit = read_text(*source, std::min(source->size(), kMostRefBytes));
      commit.erase(commit.find_last_not_of(" \t\r\n") + 1);
      if (!is_plain_file_name(commit) || !is_directory(repository / "snapshots" / commit))
        report(Severity::error,
               fmt::format("it names the snapshot {}, which is not there: download it again", shorten(commit, 100)),
               path);
    }
  }

  IoMode io_;
  const Progress& progress_;
  std::vector<NamedFile> files_;
  std::set<fs::path> seen_;  // blobs that have been added
  std::vector<Finding> findings_;
};

}  // namespace

HubCheck check_hub_cache(const fs::path& path, IoMode io, const Progress& progress) {
  HubChecker checker(io, progress);
  if (is_hub_repository(path)) {
    checker.add_repository(path);
  } else {
    for (const DirectoryEntry& entry : list_directory(path)) {
      if (!entry.is_file && is_hub_repository(path / entry.name)) checker.add_repository(path / entry.name);
    }
  }
  return checker.compare_files();
}

HubCheck check_hub_files(const fs::path& path, IoMode io, const Progress& progress) {
  HubChecker checker(io, progress);
  if (const fs::path repository = find_snapshot_repository(path); !repository.empty()) {
    checker.add_snapshot(path, repository);
  } else if (const fs::path blob = find_hub_blob(path); !blob.empty()) {
    checker.add_file(path, blob);
  } else {
    return {};
  }
  return checker.compare_files();
}

HubCheck check_sha256(const SourcePtr& file, std::string_view digits, const Progress& progress) {
  HubChecker checker(IoMode::map, progress);
  checker.add_file_with_digest(file, digits);
  return checker.compare_files();
}

}  // namespace poise
