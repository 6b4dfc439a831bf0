#include "remote/hub.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <map>
#include <mutex>
#include <set>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>
#include <poise/value.hpp>

#include "bytes/short_text.hpp"
#include "bytes/utf8.hpp"
#include "io/directory.hpp"
#include "io/hub_cache.hpp"
#include "io/source_range.hpp"

namespace poise::remote {
namespace {

constexpr std::string_view kDefaultEndpoint = "https://huggingface.co";
constexpr std::uint64_t kMostListing = std::uint64_t{64} << 20;
constexpr std::uint64_t kMostToken = 4096;
constexpr std::size_t kMostNameShown = 100;  // bytes of a name in a message

// Returns the token in the environment, or else in the user's file; empty if there is none.
std::string read_token() {
  std::string token(read_environment("HF_TOKEN"));
  if (token.empty()) token = read_environment("HUGGING_FACE_HUB_TOKEN");
  if (token.empty()) {
    std::filesystem::path file = read_environment("HF_TOKEN_PATH");
    if (file.empty() && !find_hub_home().empty()) file = find_hub_home() / "token";
    std::error_code ignored;
    if (!file.empty() && std::filesystem::is_regular_file(file, ignored)) {
      const SourcePtr source = Source::open(file, IoMode::read);
      token = read_text(*source, std::min(source->size(), kMostToken));
    }
  }
  token.erase(token.find_last_not_of(" \t\r\n") + 1);
  token.erase(0, std::min(token.find_first_not_of(" \t\r\n"), token.size()));
  // A line break would add a header to the request.
  const auto is_refused = [](char byte) { return static_cast<unsigned char>(byte) <= 0x20 || byte == 0x7F; };
  if (std::ranges::any_of(token, is_refused))
    throw Error(ErrorKind::bad_argument, "the Hugging Face token has a space or a control character");
  return token;
}

// Returns true for a relative path whose parts are plain file names, without control characters.
bool is_safe_name(std::string_view name) {
  return is_plain_path(name) &&
         std::ranges::none_of(name, [](char byte) { return static_cast<unsigned char>(byte) < 0x20; });
}

// Returns the text of a key if it is a digest of that kind; otherwise an empty text.
std::string read_digest(const Attributes& from, std::string_view key, HubBlobName kind) {
  const auto* text = from.get_if<std::string>(key);
  return text != nullptr && classify_hub_blob_name(*text) == kind ? *text : std::string();
}

HubFile parse_file(const Attributes& entry, const std::string& url) {
  const auto* name = entry.get_if<std::string>("rfilename");
  if (name == nullptr)
    throw Error(ErrorKind::invalid_file, "siblings: expected an object with the text rfilename", url);
  if (!is_safe_name(*name))
    throw Error(ErrorKind::invalid_file,
                fmt::format("the repository has a file whose name leads out of a directory: {}",
                            shorten(*name, kMostNameShown)),
                url);
  HubFile file{.name = *name, .size = {}, .digest = {}};
  if (const auto* size = entry.get_if<std::uint64_t>("size")) file.size = *size;
  if (const auto* large = entry.get_if<Attributes>("lfs")) {
    file.digest = read_digest(*large, "sha256", HubBlobName::sha256);
    if (const auto* size = large->get_if<std::uint64_t>("size")) file.size = *size;
  } else {
    file.digest = read_digest(entry, "blobId", HubBlobName::git_sha1);
  }
  return file;
}

}  // namespace

// Opens each file once, so that all readers share its cached blocks.
class HubFiles {
 public:
  HubFiles(HttpSessionPtr session, HubRepository repository, std::string name)
      : session_(std::move(session)), repository_(std::move(repository)), name_(std::move(name)) {}

  const HubRepository& repository() const { return repository_; }

  SourcePtr open(const std::string& file) const {
    const HubFile* found = repository_.find(file);
    const std::string name = fmt::format("{}/{}", name_, file);
    if (found == nullptr) throw Error(ErrorKind::not_found, "the repository has no such file", name);
    const std::scoped_lock lock(mutex_);
    SourcePtr& source = opened_[file];
    if (source == nullptr) {
      const std::string url = repository_.make_url(file);
      source =
          found->size ? make_http_source(session_, url, name, *found->size) : open_http_source(session_, url, name);
    }
    return source;
  }

 private:
  HttpSessionPtr session_;
  HubRepository repository_;
  std::string name_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, SourcePtr> opened_;
};

namespace {

class HubDirectory final : public Container {
 public:
  HubDirectory(std::shared_ptr<const HubFiles> files, const std::filesystem::path& path, std::string folder)
      : Container(ContainerKind::directory, path), files_(std::move(files)), folder_(std::move(folder)) {}

  std::filesystem::path locate_file(std::string_view name) const override { return path(name); }
  MemberNames list_names(std::string_view folder) const override {
    const std::string prefix = folder.empty() ? folder_ : fmt::format("{}{}/", folder_, folder);
    std::set<std::string> names;  // a set, because files share folders
    for (const HubFile& file : files_->repository().files) {
      if (!file.name.starts_with(prefix)) continue;
      const std::string rest = file.name.substr(prefix.size());
      names.insert(rest.substr(0, rest.find('/')));
    }
    return {names.begin(), names.end()};
  }
  bool has(std::string_view name) const override {
    const std::string folder = fmt::format("{}{}/", folder_, name);
    return has_file(name) || std::ranges::any_of(files_->repository().files,
                                                 [&](const HubFile& file) { return file.name.starts_with(folder); });
  }
  bool has_file(std::string_view name) const override {
    return files_->repository().find(fmt::format("{}{}", folder_, name)) != nullptr;
  }
  void prefetch(const MemberNames& names) const override {
    constexpr std::size_t kAtOnce = 8;
    constexpr std::size_t kMost = HttpSession::kMostCached / HttpSession::kBlock / 2;  // a block of each stays cached
    const std::size_t count = std::min(names.size(), kMost);
    std::atomic<std::size_t> next = 0;
    run_on_threads(std::min(kAtOnce, count), [&] {
      for (std::size_t i = next++; i < count; i = next++) {
        try {
          const SourcePtr source = open(names[i]);
          std::byte first{};
          if (source->size() > 0) source->read(0, {&first, 1});
        } catch (const std::exception&) {
          next = count;  // whoever reads the member gets the same error, and reports it
        }
      }
    });
  }
  SourcePtr open(std::string_view name) const override { return files_->open(fmt::format("{}{}", folder_, name)); }
  std::unique_ptr<const Container> open_folder(const std::string& name) const override {
    return std::make_unique<HubDirectory>(files_, path(name), fmt::format("{}{}/", folder_, name));
  }

 private:
  std::shared_ptr<const HubFiles> files_;
  std::string folder_;  // ends in a slash, or is empty
};

}  // namespace

std::string find_endpoint() {
  std::string endpoint(read_environment("HF_ENDPOINT"));
  if (endpoint.empty()) return std::string(kDefaultEndpoint);
  while (endpoint.ends_with('/')) endpoint.pop_back();
  return endpoint;
}

HttpOptions make_http_options() {
  HttpOptions options;
  options.token = read_token();
  if (!options.token.empty()) options.token_origin = find_origin(find_endpoint());
  return options;
}

std::string HubRepository::make_url(std::string_view file) const {
  return fmt::format("{}/{}/resolve/{}/{}", endpoint, named.repository, commit, escape_path(file));
}

const HubFile* HubRepository::find(std::string_view file) const {
  const auto found = std::ranges::lower_bound(files, file, {}, &HubFile::name);
  return found == files.end() || found->name != file ? nullptr : &*found;
}

HubRepository list_hub_repository(const HttpClient& client, const HubName& name) {
  HubRepository repository{.endpoint = find_endpoint(), .named = name, .commit = {}, .files = {}};
  std::string revision;
  for (const char byte : escape_path(name.revision)) revision += byte == '/' ? "%2F" : std::string(1, byte);
  const std::string url = fmt::format("{}/api/models/{}/revision/{}", repository.endpoint, name.repository, revision);
  const Value answer = parse_json(client.get_text(url + "?blobs=true", kMostListing), url);
  const auto* object = answer.get_if<Attributes>();
  const auto* siblings = object == nullptr ? nullptr : object->get_if<Value::Array>("siblings");
  if (siblings == nullptr) throw Error(ErrorKind::invalid_file, "siblings: expected a list of files", url);
  repository.commit = read_digest(*object, "sha", HubBlobName::git_sha1);
  if (repository.commit.empty())
    throw Error(ErrorKind::invalid_file, "sha: expected the 40 hexadecimal digits of a commit", url);
  for (const Value& sibling : *siblings) {
    const auto* entry = sibling.get_if<Attributes>();
    if (entry == nullptr) throw Error(ErrorKind::invalid_file, "siblings: expected objects", url);
    repository.files.push_back(parse_file(*entry, url));
  }
  std::ranges::sort(repository.files, {}, &HubFile::name);
  const auto twice = std::ranges::adjacent_find(repository.files, {}, &HubFile::name);
  if (twice != repository.files.end())
    throw Error(ErrorKind::invalid_file,
                fmt::format("the repository lists a file twice: {}", shorten(twice->name, kMostNameShown)), url);
  return repository;
}

HubFilesPtr make_hub_files(HttpSessionPtr session, HubRepository repository, std::string name) {
  return std::make_shared<const HubFiles>(std::move(session), std::move(repository), std::move(name));
}

std::unique_ptr<const Container> make_hub_directory(HubFilesPtr files, const std::string& name) {
  return std::make_unique<HubDirectory>(std::move(files), name, "");
}

}  // namespace poise::remote
