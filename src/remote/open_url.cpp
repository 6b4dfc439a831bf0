#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>
#include <poise/remote.hpp>

#include "pack/directory_source.hpp"
#include "remote/hub.hpp"
#include "remote/url.hpp"

namespace poise {
namespace {

using namespace remote;

class RepositorySource final : public DirectorySource {
 public:
  RepositorySource(HttpSessionPtr session, HubRepository repository, const std::string& name)
      : DirectorySource(name), files_(make_hub_files(std::move(session), std::move(repository), name)) {}

  std::unique_ptr<const Container> open_directory() const override { return make_hub_directory(files_, name()); }

 private:
  HubFilesPtr files_;
};

SourcePtr open_hub_name(const std::string& text) {
  const HubName named = parse_hub_name(text);
  auto session = std::make_shared<const HttpSession>(make_http_options());
  HubRepository repository = list_hub_repository(session->client(), named);
  if (named.file.empty()) return std::make_shared<RepositorySource>(std::move(session), std::move(repository), text);
  const HubFile* file = repository.find(named.file);
  if (file == nullptr)
    throw Error(ErrorKind::not_found,
                fmt::format("the repository has no file {} at commit {}", named.file, repository.commit), text);
  return open_http_source(std::move(session), repository.make_url(file->name), text);
}

}  // namespace

bool is_url(std::string_view text) { return has_scheme(text); }

SourcePtr open_url(const std::string& url) {
  if (url.starts_with("hf://")) return open_hub_name(url);
  (void)find_origin(url);  // throws for URLs that are not http or https, before the token is read
  return open_http_source(std::make_shared<const HttpSession>(make_http_options()), url, hide_query(url));
}

}  // namespace poise
