#include "ops/check_hub.hpp"

#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poise/error.hpp>
#include <poise/verify.hpp>

#include "pack/digest.hpp"
#include "support/directories.hpp"
#include "support/errors.hpp"

namespace poise {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;

// printf 'some weights\n' | sha256sum
constexpr const char* kWeights = "16d1d0a623ba365a45c51c7c8b7bfa7edf8ae8f3f7abc1de188938a0d01035df";
// printf '{"a": 1}\n' | git hash-object --stdin
constexpr const char* kConfig = "cb5b2f69babc53f9145b45ad20b9a075d48717ef";

// Makes a repository with two snapshots that share a blob.
class HubTest : public testing::Test {
 protected:
  HubTest() {
    support::put(blob(kWeights), "some weights\n");
    support::put(blob(kConfig), "{\"a\": 1}\n");
    for (const char* const commit : {"one", "two"}) {
      fs::create_directories(snapshot(commit) / "folder");
      fs::create_symlink(fmt::format("../../blobs/{}", kConfig), snapshot(commit) / "config.json");
    }
    fs::create_symlink(fmt::format("../../../blobs/{}", kWeights), snapshot("one") / "folder" / "weights.bin");
    support::put(repository() / "refs" / "main", "one");
    support::put(repository() / "refs" / "pr" / "1", "two");
  }

  fs::path repository() const { return hub_ / "models--org--name"; }
  fs::path snapshot(const std::string& commit) const { return repository() / "snapshots" / commit; }
  fs::path blob(const std::string& name) const { return repository() / "blobs" / name; }

  std::vector<Finding> findings() const { return check_hub_cache(hub_.path(), IoMode::map, {}).findings; }
  static auto finding(Severity severity, const std::string& path, const std::string& message) {
    return AllOf(Field(&Finding::severity, severity), Field(&Finding::path, EndsWith(path)),
                 Field(&Finding::message, HasSubstr(message)));
  }

  support::TemporaryDirectory hub_;
};

TEST_F(HubTest, WholeRepositoriesAreOk) {
  const HubCheck all = check_hub_cache(hub_.path(), IoMode::map, {});
  EXPECT_THAT(all.findings, IsEmpty());
  EXPECT_EQ(all.files, 2U);  // each blob once
  EXPECT_EQ(all.bytes, 13U + 9U);
  EXPECT_EQ(check_hub_cache(repository(), IoMode::read, {}).files, 2U);
  EXPECT_EQ(check_hub_files(snapshot("one"), IoMode::map, {}).files, 2U);
  EXPECT_EQ(check_hub_files(snapshot("two"), IoMode::map, {}).files, 1U);
  EXPECT_EQ(check_hub_files(snapshot("two") / "config.json", IoMode::map, {}).files, 1U);
  EXPECT_EQ(check_hub_files(blob(kWeights), IoMode::map, {}).files, 1U);
  EXPECT_EQ(check_hub_files(hub_.path(), IoMode::map, {}).files, 0U);
  const VerifyReport report = verify(hub_.path());
  EXPECT_EQ(report.format, kHubCache);
  EXPECT_TRUE(report.has_digests);
  EXPECT_EQ(report.file_digests, 2U);
  EXPECT_EQ(report.errors() + report.warnings(), 0U);
}

TEST_F(HubTest, OneChangedByteIsFound) {
  support::put(blob(kWeights), "some weightz\n");
  EXPECT_THAT(findings(), ElementsAre(finding(Severity::error, "one/folder/weights.bin",
                                              "its SHA-256 is "  // printf 'some weightz\\n' | sha256sum
                                              "0c13a8678369b1499264d6b519561539a3264571e0abfde36e9f41cec1744fdc")));
  support::put(blob(kWeights), "some weights\n");
  support::put(blob(kConfig), "{\"a\": 2}\n");
  for (const fs::path& path : {snapshot("two"), snapshot("two") / "config.json", blob(kConfig)}) {
    const HubCheck check = check_hub_files(path, IoMode::map, {});
    ASSERT_EQ(check.findings.size(), 1U) << path;
    // printf '{"a": 2}\n' | git hash-object --stdin
    EXPECT_THAT(check.findings[0].message, HasSubstr("its SHA-1 of git is 3c27e19a80d4780c181bc216b4456841d86d74f3"));
  }
}

TEST_F(HubTest, WhatIsMissingIsFound) {
  fs::remove(blob(kWeights));
  support::put(blob(fmt::format("{}.incomplete", kWeights)), "some");
  support::put(snapshot("two") / "model.safetensors.index.json",
               "{\"weight_map\": {\"a\": \"1.safetensors\", \"b\": \"config.json\", \"c\": \"2.safetensors\"}}");
  support::put(repository() / "refs" / "main", "three\n");
  EXPECT_THAT(
      findings(),
      ElementsAre(finding(Severity::error, "one/folder/weights.bin", "is not there: download it again"),
                  finding(Severity::warning, "two/model.safetensors.index.json", "this is not a link to a blob"),
                  finding(Severity::error, "two/model.safetensors.index.json",
                          "it names files that are not there: 1.safetensors, 2.safetensors"),
                  finding(Severity::error, ".incomplete", "a partial download of 4 bytes"),
                  finding(Severity::error, "refs/main", "it names the snapshot three, which is not there")));
}

TEST_F(HubTest, WhatCannotBeCheckedIsAWarning) {
  support::put(blob("W-abc"), "an etag of a mirror");
  support::put(hub_ / "elsewhere", "other bytes");
  fs::create_symlink(hub_ / "elsewhere", snapshot("two") / "outside");
  EXPECT_THAT(findings(), ElementsAre(finding(Severity::warning, "two/outside", "is not a blob of its repository"),
                                      finding(Severity::warning, "blobs/W-abc", "W-abc, is not a digest")));
}

TEST_F(HubTest, AFileIsComparedWithAKnownDigest) {
  EXPECT_THAT(check_sha256(Source::open(blob(kWeights)), kWeights, {}).findings, IsEmpty());
  EXPECT_THAT(check_sha256(Source::open(blob(kConfig)), kWeights, {}).findings,
              ElementsAre(finding(Severity::error, kConfig, fmt::format("expected {}", kWeights))));
}

TEST_F(HubTest, MayBeCancelled) {
  const auto stop = [](const ProgressEvent&) { return false; };
  EXPECT_EQ(support::error_of([&] { check_hub_cache(hub_.path(), IoMode::map, stop); }).kind(), ErrorKind::cancelled);
}

}  // namespace
}  // namespace poise
