// Bugs that fuzzing found in the library, one test each. Hostile files that it found are also in
// fuzz/findings.
#include <sys/resource.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/safetensors/safetensors.hpp"
#include "formats/ztensor/zt1.hpp"
#include "support/bytes.hpp"
#include "support/cbor_notation.hpp"
#include "support/errors.hpp"
#include "support/model_files.hpp"
#include "views/sparse.hpp"

namespace poise {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Tensor floats(const std::string& name, Shape shape) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(*packed_bytes(DType::f32, *element_count(shape))));
  return make_dense(name, std::move(shape), DType::f32, make_memory_blob(std::move(bytes), name));
}

Error refusal(const Model& model, std::string_view format) {
  return support::error_of([&] { support::written(model, find_format_by_name(format)); });
}

std::vector<std::string> losses(const Model& model, const Format& format) { return losses_of(model, format, {}); }

// Writers must check the layout before they ask for the part "data", which sparse tensors lack.
TEST(Findings, WritersRefuseSparseTensorsAsUnsupported) {
  Model model;
  model.add(*sparsify(floats("x", {2, 2}), Layout::sparse_csr, 0));
  for (const std::string_view format : {"alt", "alt1", "safetensors"}) {
    const Error error = refusal(model, format);
    EXPECT_EQ(error.kind(), ErrorKind::unsupported) << format << ": " << error.what();
    EXPECT_THAT(error.message(), HasSubstr("x")) << format;
    EXPECT_THAT(error.message(), HasSubstr("sparse_csr")) << format;
  }
}

// The format's own reader refuses such tensors.
TEST(Findings, SafetensorsRefusesElementsThatEndInsideAByte) {
  Model model;
  model.add(make_dense("x", {3}, DType::f4_e2m1, make_memory_blob(std::vector<std::byte>(2), "x")));
  const Error error = refusal(model, "safetensors");
  EXPECT_EQ(error.kind(), ErrorKind::unsupported) << error.what();
  EXPECT_THAT(error.message(), HasSubstr("x: shape [3] of F4 does not fill whole bytes"));
  EXPECT_THAT(error.remedies(), ElementsAre(Remedy{Remedy::Kind::dtype, "f32"}));
}

TEST(Findings, SafetensorsReportsLostAttributesOfTensors) {
  Model model;
  Tensor tensor = floats("x", {1});
  tensor.attributes.set("origin", "here");
  model.add(std::move(tensor));
  EXPECT_THAT(losses(model, kSafetensors), ElementsAre(HasSubstr("those of x are lost")));
}

TEST(Findings, TextFormatsReportAttributesThatBecomeText) {
  Model model;
  model.attributes = {{"text", "yes"}, {"number", 7}};
  EXPECT_THAT(losses(model, kSafetensors), ElementsAre(HasSubstr("number becomes JSON text")));
  EXPECT_THAT(losses(model, kZtensor1), ElementsAre(HasSubstr("number becomes JSON text")));
}

// JSON lacks NaN and infinities, so a writer of JSON may turn them into null.
TEST(Findings, TextFormatsKeepNumbersThatJsonDoesNotHave) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Model model;
  model.attributes = {{"nan", std::numeric_limits<double>::quiet_NaN()},
                      {"map", Attributes{{"list", Value::Array{1.5, -kInfinity, kInfinity}}}}};
  for (const Format* format : {&kSafetensors, &kZtensor1}) {
    EXPECT_THAT(losses(model, *format),
                ElementsAre(HasSubstr("nan, map become JSON text, in which nan, map have NaN or "
                                      "Infinity, as Python spells them")));
    const Model reread = support::read(support::written(model, *format), "test.zt");
    EXPECT_EQ(*reread.attributes.find("nan"), Value("NaN"));
    EXPECT_EQ(*reread.attributes.find("map"), Value(R"({"list":[1.5,-Infinity,Infinity]})"));
  }
  EXPECT_THAT(losses(model, find_format_by_name("gguf")),
              testing::Contains(HasSubstr("map becomes JSON text, in which map has NaN or Infinity")));
  model.attributes = {};
  model.config_json = {{"model_type", "unheard-of"}, {"scaling", Attributes{{"factor", kInfinity}}}};
  for (const char* format : {"safetensors", "zt", "gguf"})
    EXPECT_THAT(refusal(model, format).message(), HasSubstr("config: scaling is inf, which JSON cannot hold"));
}

// A tensor without bytes must come before the tensor that begins at the same offset: otherwise writing again moves it.
TEST(Findings, Zt1KeepsTheOrderOfTensorsWithoutBytes) {
  Model model;
  model.add(floats("z", {0}));
  model.add(floats("a", {3}));
  const auto file = support::written(model, kZtensor1);
  const Model reread = open(Source::from_memory(file, "test.zt"));
  EXPECT_EQ(reread.tensors()[0].name, "z");
  EXPECT_EQ(support::written(reread, kZtensor1), file);
}

// Comparing each unknown field with all fields before it would take minutes.
TEST(Findings, AFileOf100000UnknownFieldsIsReadAtOnce) {
  using namespace support;
  std::vector<std::pair<std::string, std::string>> entry = {
      {text("name"), text("t")},        {text("offset"), number(64)},        {text("size"), number(0)},
      {text("dtype"), text("float32")}, {text("shape"), array({number(0)})}, {text("encoding"), text("raw")}};
  for (std::uint64_t i = 0; i < 100000; ++i) entry.emplace_back(text("k" + std::to_string(i)), number(i));
  const std::string index = array({map(entry)});
  const Model model = open(source(padded("ZTEN0001", 64) + index + u64le(index.size())));
  EXPECT_EQ(model.tensors()[0].attributes.size(), 100000U);
}

// GGUF's writer asked how a configuration computes that no model can have: a plan has a row for each of its layers,
// here 6.4 GB.
TEST(Findings, AConfigurationOf80MillionLayersIsWrittenInLittleMemory) {
  Model model;
  model.card.model_type = "mistral";
  model.config = Config{.hidden_size = 8,
                        .intermediate_size = 8,
                        .max_position_embeddings = 8,
                        .num_attention_heads = 1,
                        .num_hidden_layers = 80'000'000,
                        .num_key_value_heads = 1,
                        .head_dim = 8};
  const auto kilobytes = [] {
    rusage usage = {};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
  };
  const auto before = kilobytes();
  support::written(model, find_format_by_name("gguf"));
  EXPECT_LT(kilobytes() - before, 100'000);
}

}  // namespace
}  // namespace poise
