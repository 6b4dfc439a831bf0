// convert() from file to file: its report, and the files that it leaves. transform_test.cpp tests what tensors become.
#include <poise/convert.hpp>

#include <filesystem>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poise/error.hpp>
#include <poise/verify.hpp>

#include "io/file_descriptor.hpp"
#include "support/directories.hpp"
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
    Model model;
    const auto add = [&](const std::string& tensor, Shape shape, DType dtype, const std::vector<float>& values) {
      const auto bytes = std::as_bytes(std::span(values));
      const BlobPtr blob = make_memory_blob({bytes.begin(), bytes.end()}, tensor);
      const Tensor dense = make_dense(tensor, shape, DType::f32, blob);
      model.add(dtype == DType::f32 ? dense : make_dense(tensor, shape, dtype, make_dense_blob(dense, dtype)));
    };
    add("a.weight", {2, 3}, DType::f32, {1, 2, 3, 4, 5, 6});
    add("b.weight", {4}, DType::bf16, {0.5F, -1, 0, 8});
    model.attributes.set("note", "kept");
    save(model, input(), "zt");
  }

  fs::path input() const { return directory_ / "in.zt"; }
  fs::path output(const std::string& name) const { return directory_ / name; }

  std::set<std::string> files() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(directory_.path())) names.insert(entry.path().filename().string());
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

  support::TemporaryDirectory directory_;
};

TEST_F(Convert, ReportsWhatItDid) {
  const ConvertReport report = convert(input(), output("out.safetensors"),
                                       options_with([](ConvertOptions& o) { o.dtype = DType::f16, o.skip = {"a.*"}; }));
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
  EXPECT_EQ(failure("other.dat", {}, "no format has the extension \".dat\""), ErrorKind::bad_argument);
  EXPECT_EQ(failure("other.zt", options_with([](ConvertOptions& o) { o.format = "frob"; }), "frob"),
            ErrorKind::bad_argument);
}

TEST_F(Convert, CardFieldsReplaceThoseOfTheInput) {
  ConvertOptions options;
  options.card.author = "Ada";
  options.card.created_at = "2024-07-05T23:59:59+02:00";
  convert(input(), output("out.zt"), options);
  const Model model = open(output("out.zt"));
  EXPECT_EQ(model.card.author, "Ada");
  EXPECT_EQ(model.card.created_at, "2024-07-05");
  EXPECT_EQ(model.attributes.get_if<std::string>("note")->c_str(), std::string("kept"));
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
  EXPECT_EQ(failure("out.zt", options_with([](ConvertOptions& o) { o.only = {"no such"}; }),
                    "only: the pattern \"no such\" matches no tensor"),
            ErrorKind::bad_argument);
  EXPECT_EQ(failure("out.alt", options_with([](ConvertOptions& o) { o.quantize = stored_type_from_name("group4"); }),
                    "group4"),
            ErrorKind::bad_argument);
  ConvertOptions cancelled;
  cancelled.write.progress = [](const ProgressEvent&) { return false; };
  EXPECT_EQ(failure("out.zt", cancelled, "cancelled"), ErrorKind::cancelled);
  EXPECT_EQ(files(), (std::set<std::string>{"in.zt"}));
}

TEST_F(Convert, AnExistingOutputStaysUnlessItIsToBeReplaced) {
  support::put(output("out.zt"), "precious");
  EXPECT_EQ(failure("out.zt", {}, "exists already"), ErrorKind::bad_argument);
  EXPECT_EQ(fs::file_size(output("out.zt")), 8U);
  ConvertOptions options;
  options.write.overwrite = true;
  convert(input(), output("out.zt"), options);
  EXPECT_EQ(open(output("out.zt")).size(), 2U);
  EXPECT_EQ(failure("in.zt", options, "this file is the input"), ErrorKind::bad_argument);
  EXPECT_EQ(open(input()).size(), 2U);
}

// ALT files may have such ids: verify() finds them. Files written from them open.
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

// A GGUF file's vocabulary may be attributes.
TEST_F(Convert, AnotherVocabularyReplacesTheOneOfAttributes) {
  Model model;
  model.attributes = {{"tokenizer.ggml.model", "gpt2"},
                      {"tokenizer.ggml.tokens", Value::Array{"a", "b"}},
                      {"tokenizer.ggml.eos_token_id", 1},
                      {"note", "kept"}};
  save(model, output("described.gguf"));
  support::put(output("vocab.txt"), "<unk>\n<pad>\n<bos>\n<eos>\na\n");
  support::put(output("merges.txt"), "#version: 0.2\n");
  const ConvertReport report =
      convert(output("described.gguf"), output("out.zt"), options_with([&](ConvertOptions& options) {
                options.vocab = output("vocab.txt");
                options.merges = output("merges.txt");
              }));
  EXPECT_THAT(report.warnings, testing::Contains(testing::Field(
                                   &Finding::message, HasSubstr("vocab.txt replaces the model's vocabulary"))));
  const Model made = open(output("out.zt"));
  EXPECT_EQ(made.vocabulary->size(), 5U);
  EXPECT_EQ(made.attributes, (Attributes{{"note", "kept"}}));
}

// The tensor has 2^41 elements, one of them not zero. A compressing file system could hold them.
TEST_F(Convert, OutputsThatDoNotFitOnTheDiskAreRefusedBeforeTheFirstByte) {
  const auto room = measure_free_space(output("out.safetensors"));
  if (!room) GTEST_SKIP() << "it is not known how much this file system can take";
  const auto part = [](const char* role, DType dtype, const std::vector<std::uint64_t>& numbers, std::size_t bytes) {
    const auto all = std::as_bytes(std::span(numbers)).first(bytes);
    return Part{.role = role, .dtype = dtype, .blob = make_memory_blob({all.begin(), all.end()}, role), .digest = {}};
  };
  Tensor tensor;
  tensor.name = "w";
  tensor.shape = {std::uint64_t{1} << 41};
  tensor.layout = Layout::sparse_coo;
  tensor.parts = {part("values", DType::f32, {1}, 4), part("coords", DType::u64, {5}, 8)};
  Model model;
  model.add(std::move(tensor));
  save(model, output("sparse.zt"), "zt");
  bool begun = false;
  ConvertOptions options;
  options.write.progress = [&](const ProgressEvent&) { return !(begun = true); };
  try {
    convert(output("sparse.zt"), output("out.safetensors"), options);
    ADD_FAILURE() << "8 TiB of zeros were written";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::io);
    EXPECT_EQ(error.path(), output("out.safetensors"));
    EXPECT_THAT(error.message(), testing::StartsWith("the tensors need 8796093022208 bytes, but the file system has "));
  }
  EXPECT_FALSE(begun);
  EXPECT_EQ(files(), (std::set<std::string>{"in.zt", "sparse.zt"}));
  EXPECT_TRUE(plan(output("sparse.zt"), output("out.safetensors")).bytes_out);  // which reports it, too
}

// Errors of casts and codes about an element include the place of its tensor.
TEST_F(Convert, ErrorsOfElementsNameTheFileAndThePlace) {
  const std::vector<float> large = {1, 1e9F};
  const auto bytes = std::as_bytes(std::span(large));
  Model model;
  model.add(make_dense("a", {1024}, DType::f32, make_memory_blob(std::vector<std::byte>(4096), "a")));
  model.add(make_dense("b: c", {2}, DType::f32, make_memory_blob({bytes.begin(), bytes.end()}, "b")));
  model.add(make_dense("b", {1}, DType::f32, make_memory_blob(std::vector<std::byte>(4), "b")));
  save(model, output("large.zt"), "zt");
  const Model opened = open(output("large.zt"));
  try {
    convert(output("large.zt"), output("out.zt"), options_with([](ConvertOptions& o) { o.dtype = DType::f16; }));
    ADD_FAILURE() << "1e9 became a float16";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
    EXPECT_EQ(error.message(), "tensor b: c: element 1 (1e+09) is too large for f16");
    EXPECT_EQ(error.path(), output("large.zt"));
    EXPECT_EQ(error.offset(), opened.find("b: c")->require("data").blob->raw_range()->offset);
    EXPECT_EQ(error.remedies(), (std::vector<Remedy>{{Remedy::Kind::dtype, "f32"}}));
  }
}

}  // namespace
}  // namespace poise
