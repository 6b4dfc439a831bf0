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
#include <poise/verify.hpp>

#include "support/directories.hpp"
#include "support/errors.hpp"

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
        EXPECT_TRUE(error.message().starts_with("nothing is changed: the file would not open with it: "))
            << error.message();
      }
    }
    EXPECT_NE(open(file).attributes.find("note"), nullptr);
  }
  fs::remove_all(directory);
}

// What verify finds wrong afterwards, and did not before.
TEST(Edit, RefusesWhatVerifyWouldFind) {
  const support::TemporaryDirectory directory;
  const std::string config = to_json(whole_config(open(source_directory() / "examples/nano-mistral")));
  const auto with = [&](const std::string& key, const std::string& value) {
    Attributes changed = parse_json(config, "config").take<Attributes>();
    changed.set(key, parse_json(value, "value"));
    return to_json(changed);
  };
  for (const std::string format : {"zt", "zt1"}) {
    SCOPED_TRACE(format);
    const fs::path file = directory / (format + ".zt");
    ConvertOptions options;
    options.format = format;
    convert(source_directory() / "examples/nano-mistral", file, options);
    const std::string before = support::contents(file);
    const auto refusal = [&](const AttributeChanges& changes) {
      const Error error = support::error_of([&] { edit(file, changes); });
      EXPECT_EQ(error.kind(), ErrorKind::bad_argument);
      EXPECT_EQ(error.remedies(), std::vector{Remedy{.kind = Remedy::Kind::force}});
      EXPECT_EQ(support::contents(file), before);
      return error.message();
    };
    EXPECT_EQ(refusal({.set = {{"poise.config", with("num_hidden_layers", "5")}}, .erase = {}}).substr(0, 66),
              "nothing is changed: verify would then fail: tensor model.layers.4.");
    EXPECT_EQ(refusal({.set = {{"poise.config", with("rope_scaling", R"({"type": "linear"})")}}, .erase = {}}),
              "nothing is changed: verify would then fail: rope_scaling: factor is missing");
    EXPECT_EQ(refusal({.set = {}, .erase = {"poise.config"}}),
              "nothing is changed: the model would lose its configuration");
    EXPECT_EQ(refusal({.set = {}, .erase = {"poise.vocabulary"}}),
              "nothing is changed: the model would lose its vocabulary");
    EXPECT_EQ(verify(file).errors(), 0U);

    edit(file, {.set = {{"poise.config", with("num_hidden_layers", "5")}}, .erase = {}, .force = true});
    EXPECT_GT(verify(file).errors(), 0U);
    edit(file, {.set = {{"note", "one that fails may be edited"}}, .erase = {}});
    edit(file, {.set = {{"poise.config", config}}, .erase = {}});
    EXPECT_EQ(verify(file).errors(), 0U);
    edit(file, {.set = {}, .erase = {"poise.vocabulary"}, .force = true});
    EXPECT_FALSE(open(file).vocabulary);
  }
}

}  // namespace
}  // namespace poise
