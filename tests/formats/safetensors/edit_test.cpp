// The expected bytes were laid out by hand from safetensors' README.
#include <poise/edit.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poise/error.hpp>
#include <poise/format.hpp>

#include "support/bytes.hpp"
#include "support/directories.hpp"
#include "support/errors.hpp"

namespace poise {
namespace {

using ::testing::HasSubstr;

const std::string kTensor = R"("a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]})";

class SafetensorsEdit : public testing::Test {
 protected:
  // Writes a file with exactly this JSON.
  void store(const std::string& json) const { support::put(path(), support::u64le(json.size()) + json + "abc"); }
  // Returns the JSON of the file, after a check that its data are unchanged.
  std::string load() const {
    const std::string file = support::contents(path());
    EXPECT_EQ(file.substr(0, 8), support::u64le(file.size() - 11));
    EXPECT_EQ(file.substr(file.size() - 3), "abc");
    return file.substr(8, file.size() - 11);
  }
  std::filesystem::path path() const { return directory_ / "m.safetensors"; }
  EditReport set(const std::string& key, Value value) const {
    return edit(path(), {.set = {{key, std::move(value)}}, .erase = {}});
  }

  support::TemporaryDirectory directory_;
};

TEST_F(SafetensorsEdit, ReplacesTextInThePadding) {
  store(R"({"__metadata__":{"format":"pt","note":"old"},)" + kTensor + "}    ");
  const EditReport report = set("note", "longer");
  EXPECT_EQ(report.way, EditReport::Way::in_place);
  EXPECT_EQ(load(), R"({"__metadata__":{"format":"pt","note":"longer"},)" + kTensor + "} ");
  EXPECT_TRUE(report.added.empty());
  // A shorter text gives the original bytes again.
  EXPECT_EQ(set("note", "old").way, EditReport::Way::in_place);
  EXPECT_EQ(load(), R"({"__metadata__":{"format":"pt","note":"old"},)" + kTensor + "}    ");
  EXPECT_EQ(set("note", "old").bytes, 0U);
}

// The new header has a multiple of 8 bytes, so that the data stay aligned.
TEST_F(SafetensorsEdit, WritesAFileWithALongerHeader) {
  store(R"({"__metadata__":{"note":"old"},)" + kTensor + "}");
  const EditReport report = set("note", "a text that does not fit");
  EXPECT_EQ(report.way, EditReport::Way::rewritten);
  EXPECT_EQ(report.bytes, std::filesystem::file_size(path()));
  std::string expected = R"({"__metadata__":{"note":"a text that does not fit"},)" + kTensor + "}";
  expected.resize((expected.size() + 7) / 8 * 8, ' ');
  EXPECT_EQ(load(), expected);
}

// Other members keep their bytes, at any place of the metadata.
TEST_F(SafetensorsEdit, FindsAndMakesTheMetadata) {
  const std::string spaced = R"( "a" : {"shape":[ 3 ],"dtype":"U8","data_offsets":[0,3]} )";
  const auto check = [&](const std::string& before, const std::string& after) {
    store(before + std::string(80, ' '));
    set("k", "v");
    std::string found = load();
    EXPECT_EQ(found.size(), before.size() + 80);
    found.erase(found.find_last_not_of(' ') + 1);
    EXPECT_EQ(found, after);
  };
  check("{" + kTensor + "}", R"({"__metadata__":{"k":"v"},)" + kTensor + "}");
  check("{" + spaced + R"(, "__metadata__" : { "x" : "y" } })",
        "{" + spaced + R"(, "__metadata__":{"x":"y","k":"v"}})");
  check(R"({ "__metadata__" : {"x":"\u00e9\n"} , )" + spaced.substr(1) + "}",
        R"({ "__metadata__":{"x":"é\n","k":"v"},)" + spaced.substr(1) + "}");
}

TEST_F(SafetensorsEdit, HoldsTextAlone) {
  store(R"({"__metadata__":{"x":"y"},)" + kTensor + "}");
  edit(path(), {.set = {{"list", Value::Array{"a", 1}}, {"number", 0.5}}, .erase = {"x"}});
  EXPECT_THAT(load(), HasSubstr(R"({"__metadata__":{"list":"[\"a\",1]","number":"0.5"},)"));
  EXPECT_EQ(open(path()).attributes, (Attributes{{"list", "[\"a\",1]"}, {"number", "0.5"}}));
}

TEST_F(SafetensorsEdit, RefusesAndKeepsTheFile) {
  store(R"({"__metadata__":{"x":"y"},)" + kTensor + "}");
  const std::string before = support::contents(path());
  const auto refusal = [&](const AttributeChanges& changes) {
    const Error error = support::error_of([&] { edit(path(), changes); });
    EXPECT_EQ(error.kind(), ErrorKind::bad_argument);
    EXPECT_EQ(support::contents(path()), before);
    return error.message();
  };
  EXPECT_EQ(refusal({}), "expected an attribute to set or delete, found none");
  EXPECT_EQ(refusal({.set = {}, .erase = {"z"}}), "there is no attribute \"z\"");
  EXPECT_EQ(refusal({.set = {{"x", "1"}}, .erase = {"x"}}), "the attribute \"x\" is given twice, expected one change");
  EXPECT_THAT(refusal({.set = {{"", "1"}}, .erase = {}}), HasSubstr("UTF-8"));
  EXPECT_THAT(refusal({.set = {{"poise.config", "junk"}}, .erase = {}}), HasSubstr("could not open the edited file"));
}

// The machine stopped while it wrote an edit in place, so half of the header is new. The undo file has the old and the
// new bytes; the next edit first restores the old ones.
TEST_F(SafetensorsEdit, IsNotReadWhileHalfDone) {
  const std::string old_json = R"({"__metadata__":{"note":"aaaa"},)" + kTensor + "}";
  store(old_json);
  const std::size_t offset = 8 + old_json.find("aaaa");
  support::put(directory_ / ".m.safetensors.poise-undo",
               std::string("poise undo 1\n\0\0\0", 16) + support::u64le(offset) + support::u64le(4) + "aaaa" + "bbbb");
  std::string half = support::contents(path());
  half.replace(offset, 2, "bb");
  support::put(path(), half);
  EXPECT_THAT(support::message_of([&] { open(path()); }), HasSubstr("an edit of this file was interrupted"));
  set("k", "v");
  EXPECT_THAT(load(), HasSubstr(R"({"note":"aaaa","k":"v"})"));
}

}  // namespace
}  // namespace poise
