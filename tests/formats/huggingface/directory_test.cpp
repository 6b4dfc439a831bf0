// Tests of directories with files that cannot be read, although none is needed.
#include "formats/huggingface/directory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poise/error.hpp>

#include "support/errors.hpp"

namespace poise::huggingface {
namespace {

// Holds a tokenizer.json that fails to open with an error of that kind.
class BrokenFolder final : public Container {
 public:
  explicit BrokenFolder(ErrorKind kind) : Container(ContainerKind::directory, "folder"), error_(kind) {}

  std::filesystem::path locate_file(std::string_view name) const override { return path(name); }
  MemberNames list_names(std::string_view) const override { return {"tokenizer.json"}; }
  bool has(std::string_view name) const override { return name == "tokenizer.json"; }
  bool has_file(std::string_view name) const override { return has(name); }
  SourcePtr open(std::string_view name) const override { throw Error(error_, "it does not open", path(name).string()); }
  std::unique_ptr<const Container> open_folder(const std::string&) const override { return nullptr; }

 private:
  ErrorKind error_;
};

TEST(HuggingFaceDirectory, AFaultOfTheDiskIsNotAMissingFile) {
  std::vector<Finding> warnings;
  const BrokenFolder folder(ErrorKind::io);
  DirectoryReader reader(folder);
  const Error error = support::error_of([&] { reader.read_other_files(warnings); });
  EXPECT_EQ(error.kind(), ErrorKind::io);
  EXPECT_EQ(error.path(), "folder/tokenizer.json");
}

TEST(HuggingFaceDirectory, WarnsOfAFileThatCannotBeDecoded) {
  std::vector<Finding> warnings;
  const BrokenFolder folder(ErrorKind::invalid_file);
  DirectoryReader reader(folder);
  EXPECT_TRUE(reader.read_other_files(warnings).empty());
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_EQ(warnings[0].path, "folder/tokenizer.json");
  EXPECT_THAT(warnings[0].message, testing::HasSubstr("a conversion does not copy this file: it does not open"));
}

}  // namespace
}  // namespace poise::huggingface
