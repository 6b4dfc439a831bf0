#include "io/hub_cache.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <poise/error.hpp>
#include <poise/source.hpp>

#include "io/directory.hpp"
#include "io/source_range.hpp"

namespace poise {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 3> kRepositoryKinds = {"models--", "datasets--", "spaces--"};
constexpr std::string_view kModels = "models--";
constexpr std::string_view kDivider = "--";  // stands for the slash of "ORG/NAME"

// Replaces "~", alone or in front of a slash, by the home directory, as Python's expanduser() does.
fs::path expand_home(std::string_view path) {
  if (path != "~" && !path.starts_with("~/")) return path;
  return fs::path(read_environment("HOME")) / path.substr(std::min<std::size_t>(2, path.size()));
}

bool has_repository_name(const fs::path& path) {
  const std::string name = path.filename().string();
  return std::ranges::any_of(kRepositoryKinds, [&](std::string_view kind) { return name.starts_with(kind); });
}

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

bool path_exists(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(path, ignored));
}

// Returns the repository whose folder `part` has an entry at this path, or at the end of this link; else an empty path.
fs::path find_repository(const fs::path& path, std::string_view part) {
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  if (error || real.parent_path().filename() != part) return {};
  fs::path repository = real.parent_path().parent_path();
  return has_repository_name(repository) ? repository : fs::path();
}

// Returns true for a name that the Hub accepts: letters, digits, "-", "_" and ".", without "--" and "..", and with a
// letter, a digit or "_" in front.
bool is_repository_part(std::string_view text) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
  return !text.empty() && text.front() != '.' && text.front() != '-' &&
         text.find_first_not_of(kLetters) == std::string_view::npos && text.find(kDivider) == std::string_view::npos &&
         text.find("..") == std::string_view::npos;
}

struct RepositoryName {
  std::string name;  // "ORG/NAME", or "NAME"
  std::string file;  // the file in the snapshot; empty for all files
};

// Parses "NAME", "ORG/NAME" or "ORG/NAME/FILE". Returns std::nullopt for a text that can only be a path.
std::optional<RepositoryName> parse_repository_name(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos)
    return is_repository_part(text) ? std::optional(RepositoryName{std::string(text), {}}) : std::nullopt;
  const std::size_t end = std::min(text.find('/', slash + 1), text.size());
  if (!is_repository_part(text.substr(0, slash)) || !is_repository_part(text.substr(slash + 1, end - slash - 1)))
    return std::nullopt;
  return RepositoryName{std::string(text.substr(0, end)), std::string(text.substr(std::min(end + 1, text.size())))};
}

fs::path make_folder_path(const fs::path& cache, const std::string& name) {
  const std::size_t slash = name.find('/');
  if (slash == std::string::npos) return cache / fmt::format("{}{}", kModels, name);
  return cache / fmt::format("{}{}{}{}", kModels, name.substr(0, slash), kDivider, name.substr(slash + 1));
}

// Returns the commit in refs/main; empty if there is none.
std::string read_main_commit(const fs::path& repository) {
  constexpr std::uint64_t kMostBytes = 200;
  const fs::path ref = repository / "refs" / "main";
  if (!path_exists(ref)) return {};
  const SourcePtr source = Source::open(ref, IoMode::read);
  std::string commit = read_text(*source, std::min(source->size(), kMostBytes));
  commit.erase(commit.find_last_not_of(" \t\r\n") + 1);
  if (!is_plain_file_name(commit))
    throw Error(ErrorKind::invalid_file, "expected the name of a commit", ref.string(), 0);
  return commit;
}

fs::path find_main_snapshot(const fs::path& repository, const std::string& name) {
  const fs::path snapshots = repository / "snapshots";
  const std::string commit = read_main_commit(repository);
  if (!commit.empty()) {
    if (is_folder(snapshots / commit)) return snapshots / commit;
    throw Error(ErrorKind::not_found,
                fmt::format("refs/main is {}, and the cache has no snapshot of it; `poise fetch hf://{}` fetches it",
                            commit, name),
                repository.string());
  }
  std::vector<std::string> commits;
  if (is_folder(snapshots)) {
    for (DirectoryEntry& entry : list_directory(snapshots)) commits.push_back(std::move(entry.name));
  }
  if (commits.size() == 1) return snapshots / commits[0];
  throw Error(ErrorKind::not_found,
              commits.empty()
                  ? fmt::format("the cache has no snapshot of {}; `poise fetch hf://{}` fetches it", name, name)
                  : fmt::format("there is no refs/main; open one of these by its path: {}", fmt::join(commits, ", ")),
              snapshots.string());
}

}  // namespace

std::string_view read_environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

fs::path find_hub_home() {
  if (const std::string_view home = read_environment("HF_HOME"); !home.empty()) return expand_home(home);
  if (const std::string_view cache = read_environment("XDG_CACHE_HOME"); !cache.empty())
    return fs::path(cache) / "huggingface";
  const std::string_view home = read_environment("HOME");
  return home.empty() ? fs::path() : fs::path(home) / ".cache" / "huggingface";
}

fs::path find_hub_cache() {
  for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"}) {
    if (const std::string_view cache = read_environment(name); !cache.empty()) return expand_home(cache);
  }
  const fs::path home = find_hub_home();
  return home.empty() ? fs::path() : home / "hub";
}

bool is_hub_repository(const fs::path& path) {
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  return !error && has_repository_name(real) && (is_folder(real / "snapshots") || is_folder(real / "blobs"));
}

bool is_hub_cache(const fs::path& path) {
  if (!is_folder(path)) return false;
  const std::vector<DirectoryEntry> entries = list_directory(path);
  return std::ranges::any_of(entries, [&](const DirectoryEntry& entry) {
    return !entry.is_file && has_repository_name(entry.name) && is_hub_repository(path / entry.name);
  });
}

fs::path find_snapshot_repository(const fs::path& path) { return find_repository(path, "snapshots"); }

fs::path find_hub_blob(const fs::path& path) {
  if (find_repository(path, "blobs").empty()) return {};
  std::error_code ignored;
  return fs::canonical(path, ignored);
}

std::string make_repository_name(const fs::path& repository) {
  std::string name = repository.filename().string();
  name.erase(0, name.find(kDivider) + kDivider.size());
  if (const std::size_t divider = name.find(kDivider); divider != std::string::npos)
    name.replace(divider, kDivider.size(), "/");
  return name;
}

HubBlobName classify_hub_blob_name(std::string_view name) {
  constexpr std::size_t kSha256Digits = 64;
  constexpr std::size_t kSha1Digits = 40;
  if (name.find_first_not_of("0123456789abcdef") != std::string_view::npos) return HubBlobName::unknown;
  if (name.size() == kSha256Digits) return HubBlobName::sha256;
  return name.size() == kSha1Digits ? HubBlobName::git_sha1 : HubBlobName::unknown;
}

std::string find_model_path(const std::string& named) {
  if (path_exists(named)) return named;
  const auto repository = parse_repository_name(named);
  if (!repository) return named;
  const fs::path cache = find_hub_cache();
  const fs::path folder = cache.empty() ? fs::path() : make_folder_path(cache, repository->name);
  if (folder.empty() || !is_folder(folder)) {
    const bool is_repository = repository->file.empty() && repository->name.find('/') != std::string::npos;
    if (!is_repository || named.ends_with('/')) return named;
    const std::string where =
        cache.empty() ? "no Hugging Face cache is known: HOME is not set"
                      : fmt::format("the Hugging Face cache {} has no {}", cache.string(), folder.filename().string());
    throw Error(ErrorKind::not_found,
                fmt::format("there is no such file or directory, and {} (HF_HUB_CACHE and HF_HOME choose the cache; "
                            "`poise fetch hf://{}` fetches a model)",
                            where, named),
                named);
  }
  const fs::path snapshot = find_main_snapshot(folder, repository->name);
  if (repository->file.empty()) return snapshot.string();
  if (!path_exists(snapshot / repository->file))
    throw Error(ErrorKind::not_found, fmt::format("the snapshot has no {}", repository->file), snapshot.string());
  return (snapshot / repository->file).string();
}

}  // namespace poise
