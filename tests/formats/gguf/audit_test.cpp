// Findings about files that llama.cpp refuses (gguf_init_from_file of ggml: each tensor begins where the one before it
// ends), and about bytes that no reader looks at.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poise/format.hpp>
#include <poise/verify.hpp>

#include "formats/gguf/gguf_file.hpp"
#include "support/directories.hpp"

namespace poise {
namespace {

using namespace gguf_test;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class GgufAudit : public testing::Test {
 protected:
  static std::vector<TensorEntry> tensors() {
    return {
        {"a", {3}, 0, std::string(12, 'a')}, {"b", {8}, 0, std::string(32, 'b')}, {"c", {2}, 26, std::string(8, 'c')}};
  }
  static ByteFile whole() { return file_of({u32_entry("a.number", 7)}, tensors()); }

  // All findings are warnings, because Poise reads the file.
  std::vector<std::string> warnings(const std::string& bytes) const {
    const auto path = directory_ / "m.gguf";
    support::put(path, bytes);
    std::vector<std::string> messages;
    for (const Finding& finding : verify(path).faults) {
      EXPECT_EQ(finding.severity, Severity::warning) << finding.message;
      EXPECT_EQ(finding.path, path.string());
      messages.push_back(finding.message);
    }
    return messages;
  }

  support::TemporaryDirectory directory_;
};

TEST_F(GgufAudit, ASoundFileHasNoFindings) {
  EXPECT_THAT(warnings(whole().bytes()), IsEmpty());
  EXPECT_THAT(warnings(file_of({u32_entry("a.number", 7)}, {}).bytes()), IsEmpty());
  const std::string padded = whole().bytes();
  EXPECT_THAT(warnings(padded.substr(0, padded.size() - 24)), IsEmpty()) << "the last tensor need not be padded";
  EXPECT_THAT(warnings(file_of({}, {{"none", {0}, 0, ""}, {"a", {1}, 0, std::string(4, 'a')}}).bytes()), IsEmpty());
}

TEST_F(GgufAudit, ReportsBytesThatBelongToNoTensor) {
  EXPECT_THAT(warnings(whole().bytes() + std::string(64, '\0')),
              ElementsAre("no entry of the file refers to these 88 bytes"));
  EXPECT_THAT(warnings(whole().bytes() + "x"), ElementsAre("no entry of the file refers to these 25 bytes"));
  // The file has a hole of 32 bytes before the last tensor.
  EXPECT_THAT(warnings(whole().u64("offset 2", 96).raw("padding 1", std::string(32, '\0')).bytes()),
              ElementsAre("no entry of the file refers to these 32 bytes"));
}

// Source: GGML_ASSERT(id_to_token.size() == token_to_id.size()) of llama-vocab.cpp, which gives names to empty tokens.
TEST_F(GgufAudit, ReportsTokensWithTheSameText) {
  const auto file = [](const std::vector<std::string>& tokens) {
    std::vector<std::string> texts;
    for (const std::string& token : tokens) texts.push_back(text(token));
    return file_of({array_entry("tokenizer.ggml.tokens", kText, texts)}, tensors()).bytes();
  };
  EXPECT_THAT(warnings(file({"a", "b", "", ""})), IsEmpty());
  EXPECT_THAT(
      warnings(file({"a", "b", "a"})),
      ElementsAre(
          "tokenizer.ggml.tokens: tokens 0 and 2 have the same text, \"a\": llama.cpp exits when it loads the file"));
  EXPECT_THAT(warnings(file({"a", "b", "a", "b", "a"})),
              ElementsAre(HasSubstr("\"a\", and 2 more repeat a text: llama.cpp exits")));
}

TEST_F(GgufAudit, ReportsPaddingThatIsNotZero) {
  for (const std::string field : {"padding", "padding 0", "padding 2"}) {
    SCOPED_TRACE(field);
    std::string bytes = whole().bytes();
    const auto at = static_cast<std::size_t>(whole().offset(field));
    bytes[at] = 'x';
    EXPECT_THAT(warnings(bytes), ElementsAre("the padding is not zero"));
  }
}

TEST_F(GgufAudit, ReportsTensorsThatShareAnOffset) {
  auto all = tensors();
  all[2] = {"c", {8}, 0, std::string(32, 'c')};
  // The bytes of the last tensor then belong to no tensor.
  EXPECT_THAT(warnings(file_of({}, all).u64("offset 2", 32).bytes()),
              ElementsAre("tensor c: it is at the offset of tensor b, 32: llama.cpp refuses the file",
                          "no entry of the file refers to these 32 bytes"));
}

TEST_F(GgufAudit, ReportsTensorsOutOfOrder) {
  const auto in_order = [](std::uint64_t a, std::uint64_t b, std::uint64_t c) {
    return file_of({}, {{"a", {8}, 0, std::string(32, 'a')},
                        {"b", {8}, 0, std::string(32, 'b')},
                        {"c", {8}, 0, std::string(32, 'c')}})
        .u64("offset 0", a)
        .u64("offset 1", b)
        .u64("offset 2", c)
        .bytes();
  };
  EXPECT_THAT(
      warnings(in_order(0, 64, 32)),
      ElementsAre(
          "tensor c: its data precede those of a tensor that the header lists before it: llama.cpp refuses the file"));
  EXPECT_THAT(warnings(in_order(64, 32, 0)), ElementsAre(HasSubstr("tensor b: its data precede")));
  EXPECT_THAT(warnings(in_order(64, 32, 0)), ElementsAre(HasSubstr(", and so do those of another one: llama.cpp")));
}

TEST_F(GgufAudit, ReportsNamesThatOtherProgramsReadDifferently) {
  const auto named = [](const std::string& name) {
    return file_of({}, {{name, {1}, 0, std::string(4, '\0')}}).bytes();
  };
  EXPECT_THAT(warnings(named(std::string("a\0b", 3))),
              ElementsAre(HasSubstr(": its name holds a NUL, where other programs cut it off")));
  EXPECT_THAT(warnings(named("a\x1b[2J")), ElementsAre(HasSubstr(": its name holds the control character 0x1b")));
  EXPECT_THAT(warnings(named("a b\xc3\xa9")), IsEmpty());
}

TEST_F(GgufAudit, ReportsNamesAndArraysThatLlamaCppRefuses) {
  const auto named = [](std::size_t bytes) {
    return file_of({}, {{std::string(bytes, 'n'), {1}, 0, std::string(4, '\0')}}).bytes();
  };
  EXPECT_THAT(warnings(named(63)), IsEmpty());
  EXPECT_THAT(warnings(named(64)), ElementsAre(HasSubstr("its name has 64 bytes, llama.cpp allows 63")));
  const std::string inner = number(kI32, 4) + number(1, 8) + number(7, 4);
  EXPECT_THAT(warnings(file_of({array_entry("a.lists", kArray, {inner})}, {}).bytes()),
              ElementsAre("a.lists: it holds arrays in an array: llama.cpp refuses the file"));
}

TEST_F(GgufAudit, ChecksEveryPartOfASplitModel) {
  const auto part = [](std::uint32_t part_number, const std::string& name) {
    return file_of({{"split.no", kU16, number(part_number, 2)}, {"split.count", kU16, number(2, 2)}},
                   {{name, {1}, 0, std::string(4, '\0')}})
        .bytes();
  };
  support::put(directory_ / "m-00001-of-00002.gguf", part(0, "a"));
  support::put(directory_ / "m-00002-of-00002.gguf", part(1, "b") + "junk");
  const VerifyReport report = verify(directory_ / "m-00001-of-00002.gguf");
  ASSERT_EQ(report.faults.size(), 1U);
  EXPECT_EQ(report.faults.front().message, "no entry of the file refers to these 32 bytes");
  EXPECT_EQ(report.faults.front().path, (directory_ / "m-00002-of-00002.gguf").string());
}

}  // namespace
}  // namespace poise
