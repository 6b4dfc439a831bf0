#include "io/hub_cache.hpp"

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poise/error.hpp>

#include "support/directories.hpp"
#include "support/errors.hpp"

namespace poise {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// Sets a variable of the environment until the end of a test.
class Variable {
 public:
  explicit Variable(std::string name, const std::optional<std::string>& value = {}) : name_(std::move(name)) {
    if (const char* const before = std::getenv(name_.c_str())) before_ = before;
    set(value);
  }
  ~Variable() { set(before_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

  void set(const std::optional<std::string>& value) const {
    value ? ::setenv(name_.c_str(), value->c_str(), 1) : ::unsetenv(name_.c_str());
  }

 private:
  std::string name_;
  std::optional<std::string> before_;
};

class HubCache : public testing::Test {
 protected:
  fs::path repository(const std::string& name) const { return directory_ / "hub" / name; }
  void add_snapshot(const std::string& repository_name, const std::string& commit) const {
    support::put(repository(repository_name) / "snapshots" / commit / "config.json", "{}");
  }
  std::string message(const std::string& named) const {
    return support::error_of([&] { find_model_path(named); }).message();
  }

  support::TemporaryDirectory directory_;
  Variable hub_{"HF_HUB_CACHE"};
  Variable old_hub_{"HUGGINGFACE_HUB_CACHE"};
  Variable hf_home_{"HF_HOME"};
  Variable xdg_{"XDG_CACHE_HOME"};
  Variable home_{"HOME", "/home/someone"};
};

// Source: huggingface_hub/constants.py, version 0.36.
TEST_F(HubCache, IsWhereTheEnvironmentSays) {
  EXPECT_EQ(find_hub_cache(), "/home/someone/.cache/huggingface/hub");
  xdg_.set("/caches");
  EXPECT_EQ(find_hub_cache(), "/caches/huggingface/hub");
  hf_home_.set("~/hf");
  EXPECT_EQ(find_hub_cache(), "/home/someone/hf/hub");
  old_hub_.set("/old");
  EXPECT_EQ(find_hub_cache(), "/old");
  hub_.set("/data/hub");
  EXPECT_EQ(find_hub_cache(), "/data/hub");
  hub_.set("");
  old_hub_.set("");
  hf_home_.set("");
  xdg_.set("");
  home_.set({});
  EXPECT_EQ(find_hub_cache(), "");
  EXPECT_THAT(message("org/name"), HasSubstr("no Hugging Face cache is known: HOME is not set"));
}

TEST_F(HubCache, HasModelsByTheirNames) {
  hub_.set((directory_ / "hub").string());
  add_snapshot("models--org--na.me-1", "abc");
  add_snapshot("models--org--na.me-1", "def");
  support::put(repository("models--org--na.me-1") / "refs" / "main", "abc\n");
  add_snapshot("models--gpt2", "123");  // its only snapshot
  const fs::path snapshot = repository("models--org--na.me-1") / "snapshots" / "abc";
  EXPECT_EQ(find_model_path("org/na.me-1"), snapshot);
  EXPECT_EQ(find_model_path("org/na.me-1/config.json"), snapshot / "config.json");
  EXPECT_EQ(find_model_path("gpt2"), repository("models--gpt2") / "snapshots" / "123");
}

TEST_F(HubCache, PathsStayAsTheyAre) {
  hub_.set((directory_ / "hub").string());
  add_snapshot("models--org--name", "abc");
  for (const std::string path :
       {"-", "", ".", "..", "/absent", "./org/name", "../org/name", "absent.gguf", "a/b/c.gguf", "absent", "-org/name",
        "org/name--x", "org/na me", "org//name", "org/.", "org/..", "other/name/", "model.zt:0.5"})
    EXPECT_EQ(find_model_path(path), path);
  support::put(directory_ / "org" / "name", "a file");
  const fs::path before = fs::current_path();
  fs::current_path(directory_.path());
  const std::string found = find_model_path("org/name");
  fs::current_path(before);
  EXPECT_EQ(found, "org/name");
}

TEST_F(HubCache, ErrorsSayWhereItLooked) {
  hub_.set((directory_ / "hub").string());
  EXPECT_EQ(support::error_of([&] { find_model_path("org/name"); }).kind(), ErrorKind::not_found);
  EXPECT_THAT(message("org/name"), HasSubstr("there is no such file or directory, and the Hugging Face cache " +
                                             (directory_ / "hub").string() + " has no models--org--name"));
  support::put(repository("models--org--name") / "refs" / "main", "abc");
  EXPECT_THAT(message("org/name"), HasSubstr("refs/main is abc, and the cache has no snapshot of it"));
  add_snapshot("models--org--name", "abc");
  EXPECT_THAT(message("org/name/absent"), HasSubstr("the snapshot has no absent"));
  support::put(repository("models--org--name") / "refs" / "main", "../../..");
  EXPECT_THAT(message("org/name"), HasSubstr("expected the name of a commit"));
  fs::remove(repository("models--org--name") / "refs" / "main");
  add_snapshot("models--org--name", "def");
  EXPECT_THAT(message("org/name"), HasSubstr("there is no refs/main; open one of these by its path: abc, def"));
}

TEST_F(HubCache, FoldersAreKnownWhereverLinksLeadToThem) {
  add_snapshot("models--org--name", "abc");
  const fs::path repository_path = repository("models--org--name");
  const fs::path snapshot = repository_path / "snapshots" / "abc";
  support::put(repository_path / "blobs" / "0123", "bytes");
  fs::create_symlink("../../blobs/0123", snapshot / "file");
  fs::create_directory_symlink(snapshot, directory_ / "link");
  support::put(directory_ / "datasets--a--b" / "blobs" / "45", "bytes");
  EXPECT_TRUE(is_hub_cache(directory_ / "hub"));
  EXPECT_TRUE(is_hub_cache(directory_.path()));
  EXPECT_TRUE(is_hub_repository(repository_path));
  EXPECT_FALSE(is_hub_cache(repository_path) || is_hub_repository(directory_ / "hub") || is_hub_repository(snapshot));
  EXPECT_EQ(find_snapshot_repository(directory_ / "link"), fs::canonical(repository_path));
  EXPECT_EQ(find_snapshot_repository(repository_path), "");
  EXPECT_EQ(find_hub_blob(directory_ / "link" / "file"), fs::canonical(repository_path / "blobs" / "0123"));
  EXPECT_EQ(find_hub_blob(repository_path / "blobs" / "0123"), fs::canonical(repository_path / "blobs" / "0123"));
  EXPECT_EQ(find_hub_blob(snapshot / "config.json"), "");
  EXPECT_EQ(make_repository_name("hub/models--org--name"), "org/name");
  EXPECT_EQ(make_repository_name("hub/models--gpt2"), "gpt2");
}

TEST(HubBlob, NamesAreDigests) {
  EXPECT_EQ(classify_hub_blob_name(std::string(64, 'a')), HubBlobName::sha256);
  EXPECT_EQ(classify_hub_blob_name(std::string(40, '0')), HubBlobName::git_sha1);
  for (const std::string& name : {std::string(), std::string(32, 'a'), std::string(64, 'A'), std::string(40, 'g')})
    EXPECT_EQ(classify_hub_blob_name(name), HubBlobName::unknown);
}

}  // namespace
}  // namespace poise
