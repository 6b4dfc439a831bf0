// Ranks in threads write one file together, as processes of one machine and through hidden names.
#include "ops/ranked_output.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poise/error.hpp>

#include "io/directory_output.hpp"
#include "support/directories.hpp"
#include "support/thread_ranks.hpp"

namespace poise {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::size_t kParts = 7;
constexpr std::size_t kPartBytes = 100'000;

class RankedOutputTest : public testing::TestWithParam<bool> {
 protected:
  static void write(Sink& sink, std::string_view text) { sink.write(std::as_bytes(std::span(text))); }

  // Writes "head", the parts "aaa...", "bbb..." with a hole of 5000 bytes after each, and a hole at the end. Returns
  // the parts that this rank has written.
  static std::string write_file(Sink& sink) {
    std::string written;
    write(sink, "head");
    for (std::size_t part = 0; part < kParts; ++part) {
      const char letter = static_cast<char>('a' + part);
      if (sink.begin_part(kPartBytes)) {
        write(sink, std::string(kPartBytes, letter));
        written += letter;
      } else {
        sink.skip(kPartBytes);
      }
      sink.end_part();
      sink.pad(5000);
    }
    return written;
  }
  static std::string expected_file() {
    std::string file = "head";
    for (std::size_t part = 0; part < kParts; ++part)
      file += std::string(kPartBytes, static_cast<char>('a' + part)) + std::string(5000, '\0');
    return file;
  }

  template <typename Work>
  void run(const Work& work) {
    ranks_.run([&](std::size_t rank) {
      auto own = rank == 0 ? std::make_unique<FileOutput>(target_, false) : nullptr;
      RankedOutput output(std::move(own), kParts * kPartBytes, ranks_[rank], GetParam());
      work(output, rank);
    });
  }

  support::TemporaryDirectory directory_;
  fs::path target_ = directory_ / "model.zt";
  support::ThreadRanks ranks_{3};
};

TEST_P(RankedOutputTest, EachRankWritesItsShareOfOneFile) {
  std::vector<std::string> parts(3);
  std::vector<std::vector<fs::path>> paths(3);
  run([&](RankedOutput& output, std::size_t rank) {
    EXPECT_EQ(output.name(), "model.zt");
    parts[rank] = write_file(output.main());
    EXPECT_EQ(output.bytes(), expected_file().size());
    output.commit();
    paths[rank] = output.paths();
  });
  // The middles of the parts are at 0.5/7, 1.5/7, ... of the bytes.
  EXPECT_THAT(parts, ElementsAre("ab", "cde", "fg"));
  for (const auto& of_rank : paths) EXPECT_THAT(of_rank, ElementsAre(target_));
  EXPECT_THAT(support::names_in(directory_.path()), ElementsAre("model.zt"));
  EXPECT_TRUE(support::contents(target_) == expected_file());
}

TEST_P(RankedOutputTest, LeavesNoFileWithoutCommit) {
  run([](RankedOutput& output, std::size_t) { write_file(output.main()); });
  EXPECT_THAT(support::names_in(directory_.path()), IsEmpty());
}

TEST_P(RankedOutputTest, RefusesOtherBytesOutsideOfParts) {
  std::vector<std::string> messages(3);
  run([&](RankedOutput& output, std::size_t rank) {
    write(output.main(), rank == 1 ? "HEAD" : "head");
    try {
      output.commit();
    } catch (const Error& error) {
      messages[rank] = error.what();
    }
  });
  for (const std::string& message : messages)
    EXPECT_THAT(message, testing::HasSubstr("rank 1 would write another file than rank 0"));
  EXPECT_THAT(support::names_in(directory_.path()), IsEmpty());
}

TEST_P(RankedOutputTest, RemovesTheHiddenFileOfAKilledProcess) {
  if (!GetParam()) GTEST_SKIP() << "has no hidden file";
  support::put(directory_ / ".model.zt.poise-new", "left");
  run([&](RankedOutput& output, std::size_t) {
    write_file(output.main());
    output.commit();
  });
  EXPECT_THAT(support::names_in(directory_.path()), ElementsAre("model.zt"));
  EXPECT_TRUE(support::contents(target_) == expected_file());
}

TEST_P(RankedOutputTest, WritesTheFilesOfADirectory) {
  const fs::path made = directory_ / "made";
  ranks_.run([&](std::size_t rank) {
    auto own =
        rank == 0 ? std::make_unique<DirectoryOutput>(made, false, DirectoryOutput::RefusalToReplace()) : nullptr;
    RankedOutput output(std::move(own), kParts * kPartBytes, ranks_[rank], GetParam());
    write(output.open_sibling("config.json"), "{}");
    write_file(output.open_sibling("weights"));
    output.commit();
  });
  EXPECT_THAT(support::names_in(directory_.path()), ElementsAre("made"));
  EXPECT_THAT(support::names_in(made), ElementsAre("config.json", "weights"));
  EXPECT_EQ(support::contents(made / "config.json"), "{}");
  EXPECT_TRUE(support::contents(made / "weights") == expected_file());
}

TEST_P(RankedOutputTest, CompletesTheTextsOfOtherRanks) {
  std::vector<std::vector<std::string>> found(3, std::vector<std::string>(4));
  run([&](RankedOutput& output, std::size_t rank) {
    found[rank][rank + 1] = std::to_string(rank);
    output.complete_texts(found[rank]);
  });
  for (const auto& texts : found) EXPECT_THAT(texts, ElementsAre("", "0", "1", "2"));
}

INSTANTIATE_TEST_SUITE_P(, RankedOutputTest, testing::Bool(),
                         [](const auto& test) { return test.param ? "WithNames" : "WithoutNames"; });

}  // namespace
}  // namespace poise
