#include <poise/edit.hpp>

#include <unistd.h>

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poise/convert.hpp>
#include <poise/error.hpp>
#include <poise/format.hpp>
#include <poise/verify.hpp>

#include "formats/format.hpp"
#include "support/directories.hpp"
#include "support/errors.hpp"

namespace poise {
namespace {

namespace fs = std::filesystem;

// Returns an attribute as the file has it.
Value attribute_of(const fs::path& file, std::string_view name) {
  for (MetadataKey& key : list_metadata_keys(open_with_format(open_input(file, {}), {}))) {
    if (key.key == name) return std::move(key.value);
  }
  return {};
}

// Each edit reads the file and writes a result that depends on it: none may be lost, in formats that grow and in those
// that are rewritten.
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

// Poise keeps card and configuration in attributes of its own.
TEST(Edit, KeysOfCardAndConfigurationAreNoAttributes) {
  const support::TemporaryDirectory directory;
  for (const std::string format : {"zt", "zt1", "safetensors", "gguf"}) {
    SCOPED_TRACE(format);
    const fs::path file = directory.path() / (format + ".file");
    ConvertOptions options;
    options.format = format;
    convert(source_directory() / "examples/nano-mistral", file, options);
    const auto refusal = [&](const std::string& key) {
      return support::error_of([&] { edit(file, {.set = {{key, "500"}}}); }).message();
    };
    EXPECT_EQ(
        refusal("card.author"),
        "nothing is changed: card.author would be a new attribute, and not change the card: `poise convert --set` "
        "does");
    EXPECT_EQ(
        refusal("config.rope_theta"),
        "nothing is changed: config.rope_theta would be a new attribute, and not change the configuration: `poise "
        "convert --set` does");
    edit(file, {.set = {{"config.mine", "500"}}, .force = true});
    EXPECT_EQ(attribute_of(file, "config.mine"), Value("500"));
    edit(file, {.set = {{"config.mine", "600"}}});
    EXPECT_EQ(attribute_of(file, "config.mine"), Value("600"));
  }
}

// An edit changes the target of a link, and leaves it unchanged if the file would not open afterwards.
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
        EXPECT_TRUE(error.message().starts_with("nothing is changed: Poise could not open the edited file: "))
            << error.message();
      }
    }
    EXPECT_NE(open(file).attributes.find("note"), nullptr);
  }
  fs::remove_all(directory);
}

// Each edit of a zTensor 2 file leaves the manifest and the footer that were its end.
TEST(Edit, LeavesNothingThatVerifyWarnsOf) {
  const support::TemporaryDirectory directory;
  for (const std::uint64_t alignment : {4096U, 65536U}) {
    const fs::path file = directory / fmt::format("{}.zt", alignment);
    ConvertOptions options;
    options.write.align = alignment;
    convert(source_directory() / "examples/nano-mistral", file, options);
    ASSERT_EQ(verify(file).warnings(), 0U);
    std::vector<std::uint64_t> ends = {fs::file_size(file)};
    for (const std::size_t length : {1U, 5000U, 70000U, 3U}) {
      edit(file, {.set = {{"note", std::string(length, 'n')}}, .erase = {}});
      EXPECT_EQ(verify(file).warnings(), 0U) << length;
      ends.push_back(fs::file_size(file));
    }
    // verify() accepts only the old manifests themselves: it reports a changed byte in them.
    const std::string whole = support::contents(file);
    for (std::size_t i = 0; i + 1 < ends.size(); ++i) {
      for (const std::uint64_t back : {1U, 24U, 60U, 500U}) {
        std::string changed = whole;
        changed[ends[i] - back] ^= 0x10;
        support::put(file, changed);
        EXPECT_GT(verify(file).warnings(), 0U) << i << " " << back;
      }
    }
  }
}

// edit() refuses a change after which verify() would find a fault that the file did not have before.
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
    EXPECT_EQ(refusal({.set = {{"poise.config", with("num_hidden_layers", "5")}}, .erase = {}}).substr(0, 77),
              "nothing is changed: the edited file would fail verify: tensor model.layers.4.");
    EXPECT_EQ(refusal({.set = {{"poise.config", with("rope_scaling", R"({"type": "linear"})")}}, .erase = {}}),
              "nothing is changed: the edited file would fail verify: rope_scaling: factor is missing");
    EXPECT_EQ(refusal({.set = {}, .erase = {"poise.config"}}),
              "nothing is changed: the model would lose its configuration");
    EXPECT_EQ(refusal({.set = {}, .erase = {"poise.vocabulary"}}),
              "nothing is changed: the model would lose its vocabulary");
    Attributes vocabulary =
        parse_json(*attribute_of(file, "poise.vocabulary").get_if<std::string>(), "v").take<Attributes>();
    vocabulary.set("eos_id", -1);
    EXPECT_EQ(refusal({.set = {{"poise.vocabulary", to_json(vocabulary)}}, .erase = {}}),
              "nothing is changed: the vocabulary would lose its EOS token (id 2)");
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

// A list stays a list, even if the command gives it as JSON.
TEST(Edit, ListsOfZtensorStayLists) {
  const support::TemporaryDirectory directory;
  const fs::path file = directory / "m.zt";
  convert(source_directory() / "examples/nano-mistral", file);
  edit(file, {.set = {{"tags", Value::Array{"a"}}, {"text", "[1]"}}, .erase = {}});
  edit(file, {.set = {{"tags", R"(["b", "c"])"}, {"text", "[2]"}}, .erase = {}});
  EXPECT_EQ(attribute_of(file, "tags"), Value(Value::Array{"b", "c"}));
  EXPECT_EQ(attribute_of(file, "text"), Value("[2]"));
  const std::string before = support::contents(file);
  EXPECT_EQ(support::error_of([&] {
              edit(file, {.set = {{"tags", "b"}}, .erase = {}});
            }).message(),
            "tags: expected a list as JSON, such as [\"a\", \"b\"], found \"b\"");
  EXPECT_EQ(support::contents(file), before);
}

// The public library for version 1.1 reads text alone, and the attributes are between version and objects.
TEST(Edit, Version1Point1GetsTextAfterTheVersion) {
  const support::TemporaryDirectory directory;
  const fs::path file = directory / "m.zt";
  ConvertOptions options;
  options.format = "zt1";
  convert(source_directory() / "examples/nano-mistral", file, options);
  edit(file, {.set = {{"count", 3}, {"tags", Value::Array{"a", 1}}, {"text", "[1]"}}, .erase = {}});
  EXPECT_EQ(attribute_of(file, "count"), Value("3"));
  EXPECT_EQ(attribute_of(file, "tags"), Value(R"(["a",1])"));
  EXPECT_EQ(attribute_of(file, "text"), Value("[1]"));
  const std::string bytes = support::contents(file);
  const std::size_t version = bytes.rfind("gversione1.1.0jattributes");
  EXPECT_NE(version, std::string::npos);
  EXPECT_LT(version, bytes.rfind("gobjects"));
}

// The names of shards follow from that of the file, so a copy of another name would be without its tensors.
TEST(Edit, ACopyThatWouldNotFindItsShardsIsRefused) {
  const support::TemporaryDirectory directory;
  const fs::path file = directory / "m.zt";
  ConvertOptions options;
  options.write.shard_size = 500'000;
  convert(source_directory() / "examples/nano-mistral", file, options);
  EXPECT_THAT(support::message_of([&] {
                edit_copy(file, directory / "other.zt", {.set = {{"note", "x"}}, .erase = {}}, false);
              }),
              testing::HasSubstr("which the copy would not find"));
  EXPECT_FALSE(fs::exists(directory / "other.zt"));
  edit_copy(file, {}, {.set = {{"note", "x"}}, .erase = {}}, false);
  EXPECT_EQ(attribute_of(file, "note"), Value("x"));
}

// A dry run reports what the edit then does, or the error that it makes, and leaves every byte and every other file.
TEST(Edit, DryRunChangesNothing) {
  const support::TemporaryDirectory directory;
  for (const std::string name : {"m.zt", "m.gguf", "m.safetensors", "old.zt"}) {
    SCOPED_TRACE(name);
    const fs::path file = directory / name;
    ConvertOptions options;
    if (name == "old.zt") options.format = "zt1";
    convert(source_directory() / "examples/nano-mistral", file, options);
    const std::string before = support::contents(file);
    const std::vector<std::string> names = support::names_in(directory.path());
    for (const std::string value :
         {"x", "a text that takes more place than the padding has, for each of the formats"}) {
      AttributeChanges changes = {.set = {{"note", value}}, .erase = {}, .dry_run = true};
      const EditReport planned = edit(file, changes);
      EXPECT_EQ(support::contents(file), before);
      EXPECT_EQ(support::names_in(directory.path()), names);
      changes.dry_run = false;
      const EditReport report = edit(file, changes);
      EXPECT_EQ(planned.way, report.way);
      EXPECT_EQ(planned.bytes, report.bytes);
      EXPECT_EQ(planned.added, report.added);
      EXPECT_EQ(*open(file).attributes.find("note"), Value(value));
      support::put(file, before);
    }
    const AttributeChanges wrong = {.set = {{"poise.config", "junk"}}, .erase = {}, .dry_run = true};
    EXPECT_EQ(support::error_of([&] { edit(file, wrong); }).kind(), ErrorKind::bad_argument);
  }
}

// Snapshots of the Hugging Face cache share blobs, whose names are digests.
TEST(Edit, BlobsOfTheHubStayAsTheyAre) {
  const support::TemporaryDirectory directory;
  const std::string name(64, 'a');
  const fs::path repository = directory / "models--org--name";
  const fs::path blob = repository / "blobs" / name;
  const fs::path link = repository / "snapshots" / "abc" / "nano.zt";
  for (const fs::path& file : {blob, link}) fs::create_directories(file.parent_path());
  ConvertOptions options;
  options.format = "zt";
  convert(source_directory() / "examples/nano-mistral", blob, options);
  fs::create_symlink(fmt::format("../../blobs/{}", name), link);
  const std::string before = support::contents(blob);
  const AttributeChanges changes{.set = {{"note", "x"}}, .erase = {}};
  for (const fs::path& path : {link, blob}) {
    const Error error = support::error_of([&] { edit(path, changes); });
    EXPECT_EQ(error.kind(), ErrorKind::bad_argument);
    EXPECT_NE(error.message().find("a blob of the Hugging Face cache"), std::string::npos) << error.message();
  }
  EXPECT_EQ(support::error_of([&] { edit_copy(blob, {}, changes); }).kind(), ErrorKind::bad_argument);

  const EditReport report = edit_copy(link, directory / "copy.zt", changes);
  EXPECT_EQ(report.way, EditReport::Way::copied);
  EXPECT_EQ(report.bytes, fs::file_size(directory / "copy.zt"));
  EXPECT_EQ(report.added, std::vector<std::string>{"note"});
  EXPECT_NE(open(directory / "copy.zt").attributes.find("note"), nullptr);
  EXPECT_TRUE(fs::is_symlink(link));
  edit_copy(link, {}, changes);
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(link)));
  EXPECT_NE(open(link).attributes.find("note"), nullptr);
  EXPECT_EQ(support::contents(blob), before);
}

TEST(Edit, CopiesAreOutputs) {
  const support::TemporaryDirectory directory;
  const fs::path file = directory / "nano.zt";
  convert(source_directory() / "examples/nano-mistral", file, {});
  const std::string before = support::contents(file);
  const AttributeChanges changes{.set = {{"note", "x"}}, .erase = {}};
  support::put(directory / "other", "not replaced");
  EXPECT_EQ(support::error_of([&] { edit_copy(file, directory / "other", changes); }).kind(), ErrorKind::bad_argument);
  EXPECT_EQ(support::contents(directory / "other"), "not replaced");
  EXPECT_EQ(support::error_of([&] { edit_copy(file, file, changes, true); }).kind(), ErrorKind::bad_argument);
  EXPECT_EQ(
      support::error_of([&] { edit_copy(file, directory / "new", {.set = {}, .erase = {"poise.config"}}); }).kind(),
      ErrorKind::bad_argument);
  EXPECT_FALSE(fs::exists(directory / "new"));
  edit_copy(file, directory / "other", changes, true);
  EXPECT_EQ(support::contents(file), before);
  EXPECT_NE(open(directory / "other").attributes.find("note"), nullptr);

  // The shards of a model are next to the file that names them.
  ConvertOptions sharded;
  sharded.write.shard_size = 500'000;
  convert(file, directory / "sharded.zt", sharded);
  fs::create_directory(directory / "folder");
  EXPECT_EQ(
      support::error_of([&] { edit_copy(directory / "sharded.zt", directory / "folder" / "copy.zt", changes); }).kind(),
      ErrorKind::bad_argument);
}

}  // namespace
}  // namespace poise
