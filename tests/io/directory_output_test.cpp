// A directory appears whole, as a new one or in place of one that may be replaced, or not at all.
#include "io/directory_output.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poise/error.hpp>

#include "support/bytes.hpp"
#include "support/directories.hpp"
#include "support/errors.hpp"

namespace poise {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class DirectoryOutputTest : public testing::Test {
 protected:
  fs::path path(const std::string& name) const { return directory_ / name; }

  std::vector<std::string> names() const { return support::names_in(directory_.path()); }

  // Allows replacing directories of files whose names begin with "a".
  static std::string refusal_to_replace(const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      if (!name.starts_with('a')) return "there is " + name;
    }
    return {};
  }

  static void write(DirectoryOutput& output, const std::string& name, std::string_view text) {
    output.open_sibling(name).write(std::as_bytes(std::span(text.data(), text.size())));
  }
  void save(const fs::path& target, bool overwrite, const std::vector<fs::path>& inputs = {}) {
    DirectoryOutput output(target, overwrite, refusal_to_replace, inputs);
    write(output, "a1", "new");
    write(output, "a2", "more");
    output.commit();
  }
  std::string refusal(const fs::path& target, bool overwrite, const std::vector<fs::path>& inputs = {}) {
    const Error planned =
        support::error_of([&] { DirectoryOutput::check_replaceable(target, overwrite, refusal_to_replace, inputs); });
    const Error error = support::error_of([&] { save(target, overwrite, inputs); });
    EXPECT_EQ(error.kind(), ErrorKind::bad_argument);
    EXPECT_STREQ(planned.what(), error.what());
    return error.what();
  }

  support::TemporaryDirectory directory_;
};

TEST_F(DirectoryOutputTest, AppearsOnCommit) {
  {
    DirectoryOutput output(path("out/"), false, refusal_to_replace);
    EXPECT_EQ(output.name(), "out");
    EXPECT_EQ(output.describe_replacements(), "");
    write(output, "a1", "one");
    write(output, "a2", "two!");
    EXPECT_THAT(names(), IsEmpty());
    EXPECT_EQ(output.bytes(), 7U);
    output.commit();
  }
  EXPECT_THAT(names(), ElementsAre("out"));
  EXPECT_THAT(support::names_in(path("out")), ElementsAre("a1", "a2"));
  EXPECT_EQ(support::contents(path("out/a1")), "one");
  EXPECT_EQ(support::contents(path("out/a2")), "two!");
}

TEST_F(DirectoryOutputTest, LeavesNoFileWithoutCommit) {
  support::put(path("out/a0"), "old");
  {
    DirectoryOutput output(path("out"), true, refusal_to_replace);
    write(output, "a1", "one");
  }
  EXPECT_THAT(names(), ElementsAre("out"));
  EXPECT_THAT(support::names_in(path("out")), ElementsAre("a0"));
}

TEST_F(DirectoryOutputTest, ReplacesWithItsMode) {
  support::put(path("out/a0"), "old");
  ASSERT_EQ(::chmod(path("out").c_str(), 0750), 0);
  EXPECT_THAT(DirectoryOutput::check_replaceable(path("out"), true, refusal_to_replace, {}),
              HasSubstr("is replaced, and its 1 file deleted: a0"));
  save(path("out"), true);
  EXPECT_THAT(names(), ElementsAre("out"));
  EXPECT_THAT(support::names_in(path("out")), ElementsAre("a1", "a2"));
  EXPECT_EQ(fs::status(path("out")).permissions(), fs::perms(0750));
}

TEST_F(DirectoryOutputTest, ReplacesAnEmptyDirectory) {
  fs::create_directory(path("out"));
  EXPECT_THAT(refusal(path("out"), false), HasSubstr("exists already"));
  save(path("out"), true);
  EXPECT_THAT(support::names_in(path("out")), ElementsAre("a1", "a2"));
}

TEST_F(DirectoryOutputTest, RefusesWhatIsNotToBeReplaced) {
  support::put(path("file"), "precious");
  EXPECT_THAT(refusal(path("file"), true), HasSubstr("the output is a file"));
  support::put(path("real/a0"), "precious");
  fs::create_directory_symlink(path("real"), path("link"));
  EXPECT_THAT(refusal(path("link"), true), HasSubstr("symbolic link"));
  fs::create_directory_symlink(path("nowhere"), path("dangling"));
  EXPECT_THAT(refusal(path("dangling"), true), HasSubstr("symbolic link"));
  EXPECT_THAT(refusal(path("real"), false), HasSubstr("exists already"));
  EXPECT_THAT(refusal(path("real"), true, {path("real/a0")}), HasSubstr("the input is in this directory"));
  EXPECT_THAT(refusal(path("real"), true, {path("link/a0")}), HasSubstr("the input is in this directory"));
  support::put(path("real/b"), "precious");
  for (const bool overwrite : {false, true})  // without overwrite, the message must not advise to overwrite
    EXPECT_THAT(refusal(path("real"), overwrite), HasSubstr("there is b: it is not replaced"));
  fs::remove(path("real/b"));
  fs::create_directory(path("real/a9"));
  EXPECT_THAT(refusal(path("real"), true), HasSubstr("holds a9, which is not a file"));
  fs::remove(path("real/a9"));
  fs::create_symlink("/etc/passwd", path("real/a9"));
  EXPECT_THAT(refusal(path("real"), true), HasSubstr("holds a9, which is not a file"));
  EXPECT_THAT(refusal("/", true), HasSubstr("a name of its own"));
  EXPECT_THAT(refusal(path("real") / "..", true), HasSubstr("a name of its own"));
  EXPECT_EQ(support::contents(path("file")), "precious");
  EXPECT_EQ(support::contents(path("real/a0")), "precious");
}

TEST_F(DirectoryOutputTest, HasFolders) {
  const auto any = [](const std::vector<std::string>& held) {
    return std::ranges::find(held, "a3/z") == held.end() ? std::string() : std::string("there is a3/z");
  };
  for (const char* text : {"one", "two"}) {
    DirectoryOutput output(path("out"), true, any);
    write(output, "a1", text);
    write(output, "a2/x", text);
    write(output, "a2/y", text);
    output.commit();
    EXPECT_THAT(names(), ElementsAre("out"));
    EXPECT_THAT(support::names_in(path("out")), ElementsAre("a1", "a2"));
    EXPECT_THAT(support::names_in(path("out/a2")), ElementsAre("x", "y"));
    EXPECT_EQ(support::contents(path("out/a2/y")), text);
  }
  support::put(path("out/a3/z"), "precious");
  EXPECT_THAT(support::error_of([&] { DirectoryOutput(path("out"), true, any); }).message(),
              HasSubstr("there is a3/z: it is not replaced"));
  fs::remove(path("out/a3/z"));
  support::put(path("out/a3/b/z"), "precious");
  EXPECT_THAT(support::error_of([&] { DirectoryOutput(path("out"), true, any); }).message(),
              HasSubstr("holds a3, which is not a file"));
}

TEST_F(DirectoryOutputTest, KeepsWhatAppearedMeanwhile) {
  DirectoryOutput output(path("out"), false, refusal_to_replace);
  write(output, "a1", "one");
  support::put(path("out/a0"), "somebody else's");
  EXPECT_EQ(support::error_of([&] { output.commit(); }).kind(), ErrorKind::bad_argument);
  EXPECT_EQ(support::contents(path("out/a0")), "somebody else's");
}

TEST_F(DirectoryOutputTest, RemovesWhatAKilledSaveLeft) {
  support::put(path(".out.poise-new/a1"), "half");
  save(path("out"), false);
  EXPECT_THAT(names(), ElementsAre("out"));
  EXPECT_EQ(support::contents(path("out/a1")), "new");
}

TEST_F(DirectoryOutputTest, NeedsADirectoryToBeIn) {
  const Error error = support::error_of([&] { save(path("nowhere/out"), false); });
  EXPECT_EQ(error.kind(), ErrorKind::not_found);
}

}  // namespace
}  // namespace poise
