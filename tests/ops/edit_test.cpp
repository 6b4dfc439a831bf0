#include <poise/edit.hpp>

#include <unistd.h>

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <poise/convert.hpp>
#include <poise/error.hpp>
#include <poise/format.hpp>

#include "support/directories.hpp"

namespace poise {
namespace {

namespace fs = std::filesystem;

// Each edit reads the file and writes what follows from that: none may be lost, in formats that grow and in those that
// are written anew.
TEST(Edit, SeveralAtOnceAreAllKept) {
  constexpr int kThreads = 8;
  constexpr int kEdits = 5;
  const fs::path directory = fs::temp_directory_path() / fmt::format("poise-edit-{}", ::getpid());
  fs::create_directories(directory);
  for (const std::string format : {"zt", "zt1"}) {
    SCOPED_TRACE(format);
    const fs::path file = directory / (format + ".zt");
    ConvertOptions options;
    options.format = format;
    convert(source_directory() / "examples/nano-mistral", file, options);
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < kEdits; ++i) {
          AttributeChanges changes;
          changes.set.push_back({fmt::format("note.{}.{}", t, i), std::string(static_cast<std::size_t>(100 * t), 'x')});
          edit(file, changes);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    const Model model = open(file);
    for (int t = 0; t < kThreads; ++t) {
      for (int i = 0; i < kEdits; ++i)
        EXPECT_NE(model.attributes.find(fmt::format("note.{}.{}", t, i)), nullptr) << t << " " << i;
    }
  }
  fs::remove_all(directory);
}

// What a link leads to is edited, and stays what it was when the file would not open afterwards.
TEST(Edit, GoesThroughLinksAndKeepsFilesReadable) {
  const fs::path directory = fs::temp_directory_path() / fmt::format("poise-edit-link-{}", ::getpid());
  fs::create_directories(directory);
  for (const std::string format : {"zt", "zt1"}) {
    SCOPED_TRACE(format);
    const fs::path file = directory / (format + ".zt");
    const fs::path link = directory / (format + ".link.zt");
    ConvertOptions options;
    options.format = format;
    convert(source_directory() / "examples/nano-mistral", file, options);
    fs::create_symlink(file, link);
    edit(link, {.set = {{"note", "x"}}, .erase = {}});
    EXPECT_TRUE(fs::is_symlink(link));
    EXPECT_NE(open(file).attributes.find("note"), nullptr);
    for (const std::string name : {"poise.card", "poise.config", "poise.vocabulary"}) {
      try {
        edit(file, {.set = {{name, "garbage"}}, .erase = {}});
        FAIL() << name;
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::bad_argument);
        EXPECT_TRUE(error.message().starts_with("the file could not be opened afterwards: ")) << error.message();
      }
    }
    EXPECT_NE(open(file).attributes.find("note"), nullptr);
  }
  fs::remove_all(directory);
}

}  // namespace
}  // namespace poise
