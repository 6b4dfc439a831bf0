// convert() from file to file: what its report says, and what it leaves on the disk. What becomes of tensors is transform_test.cpp's.
#include <poise/convert.hpp>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poise/error.hpp>
#include <poise/verify.hpp>

#include "views/dense.hpp"

namespace poise {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

template <typename Change>
ConvertOptions options_with(Change change) {
  ConvertOptions options;
  change(options);
  return options;
}

class Convert : public testing::Test {
 protected:
  Convert() {
    std::string name = (fs::temp_directory_path() / "poise-convert-XXXXXX").string();
    directory_ = ::mkdtemp(name.data());
    Model model;
    const auto add = [&](const std::string& tensor, Shape shape, DType dtype, const std::vector<float>& values) {
      const auto bytes = std::as_bytes(std::span(values));
      const BlobPtr blob = make_memory_blob({bytes.begin(), bytes.end()}, tensor);
      const Tensor dense = make_dense(tensor, shape, DType::f32, blob);
      model.add(dtype == DType::f32 ? dense : make_dense(tensor, shape, dtype, dense_blob(dense, dtype)));
    };
    add("a.weight", {2, 3}, DType::f32, {1, 2, 3, 4, 5, 6});
    add("b.weight", {4}, DType::bf16, {0.5F, -1, 0, 8});
    model.attributes.set("note", "kept");
    save(model, input(), "zt");
  }
  ~Convert() override { fs::remove_all(directory_); }

  fs::path input() const { return directory_ / "in.zt"; }
  fs::path output(const std::string& name) const { return directory_ / name; }

  std::set<std::string> files() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(directory_)) names.insert(entry.path().filename().string());
    return names;
  }

  ErrorKind failure(const std::string& name, const ConvertOptions& options, std::string_view message) const {
    try {
      convert(input(), output(name), options);
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(std::string(message)));
      return error.kind();
    }
    ADD_FAILURE() << "no error: " << message;
    return ErrorKind::internal;
  }

  fs::path directory_;
};

TEST_F(Convert, TellsWhatItDid) {
  const ConvertReport report = convert(input(), output("out.safetensors"), options_with([](ConvertOptions& o) { o.dtype = DType::f16, o.skip = {"a.*"}; }));
  EXPECT_EQ(report.format, "safetensors");
  EXPECT_EQ(report.tensors, 1U);
  EXPECT_EQ(report.skipped, 1U);
  EXPECT_EQ(report.bytes_in, fs::file_size(input()));
  EXPECT_EQ(report.bytes_out, fs::file_size(output("out.safetensors")));
  ASSERT_EQ(report.casts.size(), 1U);
  EXPECT_EQ(report.casts[0].from, DType::bf16);
  EXPECT_EQ(report.casts[0].to, DType::f16);
  EXPECT_EQ(report.casts[0].values, 4U);
  EXPECT_EQ(report.casts[0].worst_error, 0);
  const Model model = open(output("out.safetensors"));
  const auto bytes = read_all(*model.find("b.weight")->require("data").blob);
  const std::vector<std::uint16_t> halves = {0x3800, 0xbc00, 0, 0x4800};  // 0.5, -1, 0, 8 in IEEE 754's binary16
  EXPECT_TRUE(std::ranges::equal(bytes, std::as_bytes(std::span(halves))));
}

TEST_F(Convert, TheOptionsFormatGoesBeforeTheExtensions) {
  convert(input(), output("out.bin"), options_with([](ConvertOptions& o) { o.format = "zt1"; }));
  EXPECT_EQ(open(output("out.bin")).origin.format, "zt-1.1");
  EXPECT_EQ(failure("other.bin", {}, "\".bin\" stands for no format"), ErrorKind::bad_argument);
  EXPECT_EQ(failure("other.zt", options_with([](ConvertOptions& o) { o.format = "frob"; }), "frob"), ErrorKind::bad_argument);
}

TEST_F(Convert, CardFieldsReplaceThoseOfTheInput) {
  ConvertOptions options;
  options.card.author = "Ada";
  options.card.created_at = "2024-07-05T23:59:59+02:00";
  convert(input(), output("out.zt"), options);
  const Model model = open(output("out.zt"));
  EXPECT_EQ(model.card.author, "Ada");
  EXPECT_EQ(model.card.created_at, "2024-07-05");
  EXPECT_EQ(model.attributes.find("note")->get_if<std::string>()->c_str(), std::string("kept"));
}

TEST_F(Convert, CardFieldsThatNoFormatCanHoldAreRefused) {
  ConvertOptions text;
  text.card.license = "\xff";
  EXPECT_EQ(failure("out.zt", text, "license"), ErrorKind::bad_argument);
  ConvertOptions date;
  date.card.last_modified = "2023-02-29";
  EXPECT_EQ(failure("out.zt", date, "last_modified: \"2023-02-29\""), ErrorKind::bad_argument);
  EXPECT_EQ(files(), (std::set<std::string>{"in.zt"}));
}

TEST_F(Convert, FailuresLeaveNothing) {
  EXPECT_EQ(failure("out.zt", options_with([](ConvertOptions& o) { o.only = {"no such"}; }), "only: the pattern \"no such\" matches no tensor"),
            ErrorKind::bad_argument);
  EXPECT_EQ(failure("out.alt", options_with([](ConvertOptions& o) { o.quantize = stored_type_from_name("group4"); }), "group4"), ErrorKind::bad_argument);
  ConvertOptions cancelled;
  cancelled.write.progress = [](const ProgressEvent&) { return false; };
  EXPECT_EQ(failure("out.zt", cancelled, "cancelled"), ErrorKind::cancelled);
  EXPECT_EQ(files(), (std::set<std::string>{"in.zt"}));
}

TEST_F(Convert, AnExistingOutputStaysUnlessItIsToBeReplaced) {
  std::ofstream(output("out.zt")) << "precious";
  EXPECT_EQ(failure("out.zt", {}, "exists already"), ErrorKind::bad_argument);
  EXPECT_EQ(fs::file_size(output("out.zt")), 8U);
  ConvertOptions options;
  options.write.overwrite = true;
  convert(input(), output("out.zt"), options);
  EXPECT_EQ(open(output("out.zt")).size(), 2U);
  EXPECT_EQ(failure("in.zt", options, "this file is the input"), ErrorKind::bad_argument);
  EXPECT_EQ(open(input()).size(), 2U);
}

// ALT files may say such ids: verify() finds them. What is written of them opens.
TEST_F(Convert, IdsOfNoTokenAreCarried) {
  Model model = open(input());
  Vocabulary vocabulary;
  vocabulary.bos_id = -5;
  vocabulary.eos_id = 7;
  vocabulary.pad_id = INT32_MIN;
  vocabulary.unk_id = 0;
  vocabulary.add("<unk>", 0, TokenType::unknown);
  model.vocabulary = vocabulary;
  for (const char* format : {"zt", "zt1", "safetensors"}) {
    save(model, output(format), format);
    EXPECT_EQ(open(output(format)).vocabulary, vocabulary) << format;
    EXPECT_EQ(verify(output(format)).faults.size(), 3U) << format;
  }
}

}  // namespace
}  // namespace poise
