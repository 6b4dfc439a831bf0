// Every file of the conformance corpus behaves as its case describes. zt2_corpus.py builds the corpus from the format's
// rules.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <unistd.h>

#include <poise/convert.hpp>
#include <poise/error.hpp>
#include <poise/format.hpp>
#include <poise/hash.hpp>
#include <poise/verify.hpp>

#include "support/directories.hpp"

namespace poise {
namespace {

using testing::HasSubstr;

struct Case {
  std::string expectation;
  std::filesystem::path file;
  std::string word;
  std::string offset;  // where a refusal points
};

class Zt2Corpus : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_ = std::filesystem::temp_directory_path() / fmt::format("poise-zt2-corpus-{}", getpid());
    const std::string command = "python3 '" + (source_directory() / "tests/formats/ztensor/zt2_corpus.py").string() +
                                "' '" + directory_.string() + "'";
    made_ = std::system(command.c_str()) == 0;
    std::ifstream list(directory_ / "cases.txt");
    for (std::string line; std::getline(list, line);) {
      std::istringstream fields(line);
      Case& found = cases_.emplace_back();
      std::string name;
      std::getline(fields, found.expectation, '\t');
      std::getline(fields, name, '\t');
      std::getline(fields, found.word, '\t');
      std::getline(fields, found.offset);
      found.file = directory_ / name;
    }
  }

  // This is not in SetUpTestSuite(), because a failure there would skip the tests.
  void SetUp() override { ASSERT_TRUE(made_) << "zt2_corpus.py failed"; }

  static void TearDownTestSuite() { std::filesystem::remove_all(directory_); }

  // Returns the cases with one expectation.
  template <typename Check>
  static void each(std::string_view expectation, Check&& check) {
    std::size_t count = 0;
    for (const Case& found : cases_) {
      if (found.expectation != expectation) continue;
      SCOPED_TRACE(found.file.filename().string());
      check(found);
      ++count;
    }
    EXPECT_GT(count, 0U);
  }

  static bool made_;
  static std::filesystem::path directory_;
  static std::vector<Case> cases_;
};

bool Zt2Corpus::made_ = false;
std::filesystem::path Zt2Corpus::directory_;
std::vector<Case> Zt2Corpus::cases_;

std::string text_of(const VerifyReport& report, Severity severity) {
  std::string text;
  for (const Finding& fault : report.faults) {
    if (fault.severity == severity) text += fault.message + "\n";
  }
  return text;
}

std::string errors_of(const VerifyReport& report) { return text_of(report, Severity::error); }

TEST_F(Zt2Corpus, ValidFilesOpenAndVerify) {
  each("valid", [](const Case& valid) {
    try {
      hash(open(valid.file));
      const VerifyReport report = verify(valid.file);
      EXPECT_EQ(errors_of(report) + text_of(report, Severity::warning), "");
    } catch (const Error& error) {
      ADD_FAILURE() << error.what();
    }
  });
}

TEST_F(Zt2Corpus, OddFilesVerifyWithAWarning) {
  each("warns", [](const Case& odd) {
    EXPECT_NO_THROW(open(odd.file));
    const VerifyReport report = verify(odd.file);
    EXPECT_EQ(errors_of(report), "");
    EXPECT_GT(report.warnings(), 0U);
    EXPECT_THAT(text_of(report, Severity::warning), HasSubstr(odd.word));
  });
}

TEST_F(Zt2Corpus, UnknownPartsAreListedAndNotDecoded) {
  each("listed", [](const Case& unknown) {
    EXPECT_EQ(open(unknown.file).size(), 1U);
    const auto target = unknown.file.parent_path() / "decoded.safetensors";
    try {
      convert(unknown.file, target, {});
      ADD_FAILURE() << "it was decoded";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::unsupported) << error.what();
    }
    EXPECT_FALSE(std::filesystem::exists(target));
    const VerifyReport report = verify(unknown.file);
    EXPECT_THAT(text_of(report, Severity::warning), HasSubstr(unknown.word));
    if (!unknown.word.empty()) {
      EXPECT_EQ(errors_of(report), "");
    }
  });
}

// Parts that cannot be decoded can be hashed, and written unchanged.
TEST_F(Zt2Corpus, UnknownPartsAreHashedAndCarried) {
  each("listed", [](const Case& unknown) {
    if (unknown.file.string().find("unknown-encoding") != std::string::npos) return;
    const ModelHash before = hash(open(unknown.file));
    const auto target = unknown.file.parent_path() / "carried.zt";
    ConvertOptions options;
    options.write.overwrite = true;
    convert(unknown.file, target, options);
    const Model carried = open(target);
    const ModelHash after = hash(carried);
    EXPECT_EQ(after.content, before.content);
    EXPECT_EQ(after.model, before.model);
    const Model original = open(unknown.file);
    EXPECT_EQ(carried.tensors()[0].layout.name(), original.tensors()[0].layout.name());
    EXPECT_EQ(carried.tensors()[0].parts[0].type_name(), original.tensors()[0].parts[0].type_name());
    EXPECT_EQ(carried.tensors()[0].shape, original.tensors()[0].shape);
  });
}

TEST_F(Zt2Corpus, BrokenFilesOpenAndDoNotVerify) {
  each("broken", [](const Case& broken) {
    EXPECT_NO_THROW(open(broken.file));
    EXPECT_THAT(errors_of(verify(broken.file)), testing::AllOf(testing::Ne(""), HasSubstr(broken.word)));
  });
}

TEST_F(Zt2Corpus, RefusedFilesHaveTheExpectedError) {
  each("refused", [](const Case& refused) {
    try {
      open(refused.file);
      ADD_FAILURE() << "it was opened";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), refused.word == "version" ? ErrorKind::unsupported : ErrorKind::invalid_file)
          << error.what();
      EXPECT_THAT(std::string(error.what()), HasSubstr(refused.word));
      EXPECT_EQ(fmt::format("{}", error.offset().value_or(UINT64_MAX)), refused.offset) << error.what();
    }
  });
}

}  // namespace
}  // namespace poise
