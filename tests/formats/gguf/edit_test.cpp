#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include <poise/edit.hpp>
#include <poise/error.hpp>
#include <poise/format.hpp>

#include "formats/gguf/gguf_file.hpp"
#include "support/directories.hpp"
#include "support/errors.hpp"

namespace poise {
namespace {

using namespace gguf_test;
using testing::HasSubstr;

class GgufEdit : public testing::Test {
 protected:
  GgufEdit() { store(file_of(entries(), tensors()).bytes()); }

  static std::vector<Entry> entries() {
    return {text_entry("general.name", "old"),
            u32_entry("a.number", 7),
            {"a.flag", kBool, "\x01"},
            f32_entry("a.float", 0.5F),
            array_entry("a.list", kI32, {number(1, 4)})};
  }
  static std::vector<TensorEntry> tensors() { return {{"w", {4}, 0, std::string(16, 'w')}, {"x", {2}, 26, std::string(8, 'x')}}; }

  void store(const std::string& bytes) const { std::ofstream(path(), std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size())); }
  std::string load() const {
    std::ifstream file(path(), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::filesystem::path path() const { return directory_ / "m.gguf"; }

  std::string refusal(const AttributeChanges& changes) const {
    const std::string before = load();
    const Error error = support::error_of([&] { edit(path(), changes); });
    EXPECT_EQ(error.kind(), ErrorKind::bad_argument);
    EXPECT_EQ(load(), before);
    return error.message();
  }

 private:
  support::TemporaryDirectory directory_;
};

// What is not changed stays to the byte, and keys keep their types.
TEST_F(GgufEdit, GivesTheFileThatSaysSo) {
  edit(path(), {.set = {{"general.name", "a new, longer name of the model"}, {"a.number", "4000000000"}, {"a.float", "-2.25"}, {"z.new", "text"}},
                .erase = {"a.flag"}});
  const std::vector<Entry> expected = {text_entry("general.name", "a new, longer name of the model"), u32_entry("a.number", 4000000000U),
                                       f32_entry("a.float", -2.25F), array_entry("a.list", kI32, {number(1, 4)}), text_entry("z.new", "text")};
  EXPECT_EQ(load(), file_of(expected, tensors()).bytes());
}

TEST_F(GgufEdit, RefusesWhatIsNoValueOfTheType) {
  EXPECT_THAT(refusal({.set = {{"a.number", "-1"}}, .erase = {}}), HasSubstr("a.number is u32, and \"-1\" is no such number"));
  EXPECT_THAT(refusal({.set = {{"a.flag", "yes"}}, .erase = {}}), HasSubstr("neither true nor false"));
  EXPECT_THAT(refusal({.set = {{"a.list", "1"}}, .erase = {}}), HasSubstr("is an array"));
  EXPECT_THAT(refusal({.set = {{"general.alignment", "64"}}, .erase = {}}), HasSubstr("says where the tensors are"));
  EXPECT_THAT(refusal({.set = {}, .erase = {"no.such"}}), HasSubstr("there is no attribute \"no.such\""));
  EXPECT_THAT(refusal({}), HasSubstr("nothing to change"));
}

}  // namespace
}  // namespace poise
