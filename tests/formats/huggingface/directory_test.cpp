// Files of a directory that cannot be read, although none of them is needed.
#include "formats/huggingface/directory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include <poise/error.hpp>
#include <poise/format.hpp>
#include <poise/session.hpp>
#include <poise/tokenizer.hpp>

#include "formats/huggingface/huggingface.hpp"
#include "support/directories.hpp"
#include "support/errors.hpp"
#include "support/model_files.hpp"
#include "views/dense.hpp"

namespace poise::huggingface {
namespace {

// A folder with a tokenizer.json, which opens with an error of that kind.
class BrokenFolder final : public Container {
 public:
  explicit BrokenFolder(ErrorKind kind) : Container(ContainerKind::directory, "folder"), error_(kind) {}

  std::filesystem::path file_of(std::string_view name) const override { return path(name); }
  MemberNames names(std::string_view) const override { return {"tokenizer.json"}; }
  bool has(std::string_view name) const override { return name == "tokenizer.json"; }
  bool has_file(std::string_view name) const override { return has(name); }
  SourcePtr open(std::string_view name) const override { throw Error(error_, "it does not open", path(name).string()); }
  std::unique_ptr<const Container> folder(const std::string&) const override { return nullptr; }

 private:
  ErrorKind error_;
};

TEST(HuggingFaceDirectory, AFaultOfTheDiskIsNotAMissingFile) {
  std::vector<Finding> warnings;
  const BrokenFolder folder(ErrorKind::io);
  DirectoryReader reader(folder);
  const Error error = support::error_of([&] { reader.other_files(warnings); });
  EXPECT_EQ(error.kind(), ErrorKind::io);
  EXPECT_EQ(error.path(), "folder/tokenizer.json");
}

TEST(HuggingFaceDirectory, WarnsOfAFileThatCannotBeDecoded) {
  std::vector<Finding> warnings;
  const BrokenFolder folder(ErrorKind::invalid_file);
  DirectoryReader reader(folder);
  EXPECT_TRUE(reader.other_files(warnings).empty());
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_EQ(warnings[0].path, "folder/tokenizer.json");
  EXPECT_THAT(warnings[0].message, testing::HasSubstr("it is not copied into another directory: it does not open"));
}

// The first rows of each matrix of the vocabulary.
Model with_rows(const Model& model, std::uint64_t rows) {
  Model result(model.header());
  result.config->vocab_size = static_cast<std::int64_t>(rows);
  result.config_json.set("vocab_size", rows);
  result.vocabulary.reset();
  for (const Tensor& tensor : model.tensors()) {
    if (tensor.shape[0] != model.vocabulary->size()) {
      result.add(tensor);
      continue;
    }
    std::vector<std::byte> bytes = read_all(*tensor.require("data").blob);
    bytes.resize(bytes.size() / model.vocabulary->size() * rows);
    Shape shape = tensor.shape;
    shape[0] = rows;
    result.add(make_dense(tensor.name, shape, tensor.require("data").dtype, make_memory_blob(std::move(bytes), "x")));
  }
  return result;
}

// What is tokenized can be run: no text becomes an id without a row.
TEST(HuggingFaceDirectory, TokensWithoutARowAreLeftOut) {
  const std::filesystem::path example = source_directory() / "examples" / "nano-mistral";
  const Model whole = open(example);
  const std::size_t rows = whole.vocabulary->size() - 10;
  const std::string last(whole.vocabulary->text(whole.vocabulary->size() - 1));
  support::Files files = support::written_files(with_rows(whole, rows), kHuggingFace);
  files["tokenizer.model"] = support::to_bytes(support::contents(example / "tokenizer.model"));
  const support::TemporaryDirectory directory;
  const Model model = support::read(files, directory.path());
  EXPECT_THAT(model.warnings,
              testing::Contains(testing::Field(&Finding::message, testing::HasSubstr("the last 10 tokens, from"))));
  ASSERT_TRUE(model.vocabulary);
  EXPECT_EQ(model.vocabulary->size(), rows);
  EXPECT_EQ(read_vocabulary(directory.path())->size(), rows) << "of the tokenizer's files alone";
  const auto largest = [&](const Vocabulary& vocabulary) {
    return std::ranges::max(Tokenizer(vocabulary).encode(last + last));
  };
  EXPECT_GE(static_cast<std::size_t>(largest(*whole.vocabulary)), rows);
  EXPECT_LT(static_cast<std::size_t>(largest(*model.vocabulary)), rows);
  const Session session(model);
  EXPECT_EQ(session.vocabulary_size(), rows);
}

}  // namespace
}  // namespace poise::huggingface
