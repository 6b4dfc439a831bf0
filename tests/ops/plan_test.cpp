// plan() states what write() then does, for every format, and reads no bytes of tensors.
#include <poise/convert.hpp>

#include <algorithm>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poise/error.hpp>

#include "support/directories.hpp"
#include "views/sparse.hpp"

namespace poise {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class PlanTest : public testing::Test {
 protected:
  fs::path file(const std::string& name) const { return directory_ / name; }

  // Plans, writes, and compares the plan with the written file.
  void expect_kept(const Model& model, std::string_view format, const ConvertOptions& changes) {
    SCOPED_TRACE(std::string(format));
    const Plan planned = plan(model, format, changes);
    const fs::path path = file("out");
    const ConvertReport report = write(planned, path);
    const Model written = open(path);
    ASSERT_EQ(planned.tensors.size(), written.size());
    for (const PlannedTensor& tensor : planned.tensors) {
      const Tensor* found = written.find(tensor.name);
      ASSERT_NE(found, nullptr) << tensor.name;
      EXPECT_EQ(tensor.shape, found->shape) << tensor.name;
      EXPECT_EQ(tensor.bytes_in, model.find(tensor.name)->size_bytes()) << tensor.name;
      if (tensor.bytes_out) {
        EXPECT_EQ(*tensor.bytes_out, found->size_bytes()) << tensor.name;
      }
    }
    EXPECT_EQ(planned.losses, report.losses);
    EXPECT_EQ(planned.format, report.format);
    EXPECT_EQ(planned.skipped.size(), report.skipped);
    if (planned.bytes_out && planned.exact) {
      EXPECT_EQ(*planned.bytes_out, size_of(path));
    }
    if (planned.bytes_out) {
      EXPECT_GE(*planned.bytes_out, size_of(path));
    }
    fs::remove_all(path);
  }

  // Returns the size of a file, or of all files of a directory.
  static std::uint64_t size_of(const fs::path& path) {
    if (!fs::is_directory(path)) return fs::file_size(path);
    std::uint64_t sum = 0;
    for (const auto& entry : fs::directory_iterator(path)) sum += entry.file_size();
    return sum;
  }

  support::TemporaryDirectory directory_;
};

Model example(const char* name) { return open(source_directory() / "examples" / name); }

ConvertOptions quantized(std::string_view type) {
  ConvertOptions options;
  options.quantize = stored_type_from_name(type);
  return options;
}

ConvertOptions cast_to(DType dtype) {
  ConvertOptions options;
  options.dtype = dtype;
  return options;
}

// Fails the test if its bytes are read.
class Untouchable final : public Blob {
 public:
  explicit Untouchable(std::uint64_t size) : size_(size) {}
  std::uint64_t size() const override { return size_; }
  void read(std::uint64_t, std::span<std::byte>) const override {
    throw Error(ErrorKind::internal, "the bytes of a tensor were read");
  }

 private:
  std::uint64_t size_;
};

Model untouchable_model() {
  Model model;
  const auto add = [&](const std::string& name, Shape shape, DType dtype) {
    const auto blob = std::make_shared<Untouchable>(*packed_bytes(dtype, *element_count(shape)));
    model.add(make_dense(name, std::move(shape), dtype, blob));
  };
  add("a.weight", {4, 64}, DType::bf16);
  add("b.weight", {2, 128}, DType::f32);
  add("norm", {64}, DType::bf16);
  return model;
}

Tensor sparse_tensor() {
  const auto part = [](const char* role, DType dtype, std::uint64_t bytes) {
    return Part{.role = role, .dtype = dtype, .blob = std::make_shared<Untouchable>(bytes), .digest = {}};
  };
  Tensor tensor;
  tensor.name = "s";
  tensor.shape = {3, 4};
  tensor.layout = Layout::sparse_csr;
  tensor.parts = {part("values", DType::f32, 8), part("indices", DType::i32, 8), part("indptr", DType::i32, 16)};
  return tensor;
}

bool is_refused(const Model& model, std::string_view format) {
  try {
    plan(model, format);
    return false;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unsupported) << error.message();
    return true;
  }
}

TEST_F(PlanTest, IsKeptByEveryFormat) {
  const Model mistral = example("nano-mistral");
  std::size_t kept = 0;
  for (const FormatInfo& format : formats()) {
    if (!format.writable || is_refused(mistral, format.name)) continue;  // a format of other models, or of one tensor
    ++kept;
    const bool alt1 = format.name == "alt1";
    expect_kept(mistral, format.name, {});
    expect_kept(mistral, format.name, cast_to(DType::f32));
    if (format.name == "alt" || format.name == "zt" || format.name == "zt1")
      expect_kept(mistral, format.name, quantized("qint4"));
    if (format.name == "alt" || format.name == "zt" || format.name == "zt1")
      expect_kept(mistral, format.name, quantized("qint8:range"));
    if (format.name.starts_with("zt")) expect_kept(mistral, format.name, quantized("group4:32"));
    if (format.name == "huggingface") {
      ConvertOptions sharded;
      sharded.write.shard_size = 500'000;
      expect_kept(mistral, format.name, sharded);
      continue;  // it holds whole models
    }
    ConvertOptions options;
    options.skip = {"*norm*"};
    options.keep = {{"lm_head.weight", {alt1 ? DType::f16 : DType::f32}}};
    expect_kept(mistral, format.name, options);
  }
  EXPECT_GE(kept, 8U);
}

TEST_F(PlanTest, IsKeptForTinyLlamas) {
  const Model model = open(source_directory() / "examples" / "nano-tiny-llama" / "weights.tllm");
  for (const char* format : {"tllm", "alt", "zt", "zt1", "safetensors"}) expect_kept(model, format, {});
}

TEST_F(PlanTest, IsKeptForHowPartsAreStored) {
  const Model model = untouchable_model();
  Model readable;
  for (const Tensor& tensor : model.tensors()) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.size_bytes()));
    readable.add(make_dense(tensor.name, tensor.shape, tensor.require("data").dtype,
                            make_memory_blob(std::move(bytes), tensor.name)));
  }
  for (const DigestAlgorithm digest : {DigestAlgorithm::none, DigestAlgorithm::sha256}) {
    ConvertOptions options;
    options.write.digest = digest;
    expect_kept(readable, "zt1", options);
    options.write.align = 4096;
    expect_kept(readable, "zt", options);
  }
  ConvertOptions alt_c;
  alt_c.write.dialect = "alt.c";
  expect_kept(example("nano-mistral"), "alt", alt_c);
}

TEST_F(PlanTest, IsExactWherePartsCannotShareBytes) {
  Model model;
  for (const std::uint64_t size : {1U, 2U, 70'000U}) {
    const std::string name = std::to_string(size);
    model.add(make_dense(name, {size}, DType::u8, make_memory_blob(std::vector<std::byte>(size), name)));
  }
  for (const char* format : {"zt", "zt1", "safetensors"}) {
    const Plan planned = plan(model, format);
    EXPECT_TRUE(planned.exact && planned.bytes_out) << format;
    expect_kept(model, format, {});
  }
  model.add(make_dense("again", {2}, DType::u8, make_memory_blob(std::vector<std::byte>(2), "again")));
  EXPECT_FALSE(plan(model, "zt").exact);
  EXPECT_TRUE(plan(model, "zt1").exact);
  expect_kept(model, "zt", {});
}

TEST_F(PlanTest, ReadsNoBytesOfTensors) {
  Model model = untouchable_model();
  for (const char* format : {"alt", "alt1", "zt", "zt1", "safetensors"})
    EXPECT_EQ(plan(model, format).tensors.size(), 3U) << format;
  for (const char* type : {"qint8", "qint4:mse", "group4:32"})
    EXPECT_EQ(plan(model, "zt", quantized(type)).tensors.size(), 3U) << type;
  EXPECT_EQ(plan(model, "alt", quantized("qint4:range")).tensors.size(), 3U);
  model.add(sparse_tensor());
  EXPECT_EQ(plan(model, "zt").tensors.back().bytes_out, 8U + 16U + 32U);  // indices become u64
  EXPECT_EQ(plan(model, "zt1").tensors.back().bytes_out, 8U + 8U + 16U);
  EXPECT_EQ(plan(model, "safetensors").tensors.back().bytes_out, 3U * 4 * 4);
  EXPECT_THAT(fs::is_empty(directory_.path()), testing::IsTrue());
}

TEST_F(PlanTest, ReportsTypesBytesAndLeftOutTensors) {
  const Model model = untouchable_model();
  ConvertOptions changes = quantized("group4");
  changes.keep = {{"b.*", {DType::f16}}};
  changes.skip = {"norm"};
  const Plan planned = plan(model, "zt", changes);
  EXPECT_EQ(planned.format, "zt");
  EXPECT_THAT(planned.skipped, ElementsAre("norm"));
  ASSERT_EQ(planned.tensors.size(), 2U);
  EXPECT_EQ(planned.tensors[0].from, "bf16");
  EXPECT_EQ(planned.tensors[0].to, "group4:64");  // rows of 64
  EXPECT_EQ(planned.tensors[0].bytes_in, 512U);
  EXPECT_EQ(planned.tensors[0].bytes_out, 4U * 64 / 2 + 4 * 2 * 2);
  EXPECT_EQ(planned.tensors[1].from, "f32");
  EXPECT_EQ(planned.tensors[1].to, "f16");
  EXPECT_EQ(planned.tensors[1].bytes_out, 512U);
  EXPECT_THAT(planned.losses, IsEmpty());
  EXPECT_EQ(plan(model, "alt").tensors[0].to, "f32");
}

// A directory has no codes of the embedding, so this is not quantized. Codes that it has already become numbers.
TEST_F(PlanTest, StatesNumbersInPlaceOfCodes) {
  const std::string name = "model.embed_tokens.weight";
  const Model model = example("nano-mistral");
  const auto find = [&](const Plan& of) { return *std::ranges::find(of.tensors, name, &PlannedTensor::name); };
  const Plan direct = plan(model, "huggingface", quantized("group4"));
  EXPECT_EQ(find(direct).to, "bf16");
  EXPECT_EQ(find(direct).bytes_out, find(direct).bytes_in);
  EXPECT_THAT(direct.losses, IsEmpty());
  EXPECT_EQ(direct.decoded.tensors, 0U);
  const ConvertReport report = write(direct, file("direct"));
  EXPECT_EQ(std::ranges::count(report.quantized, name, &ConvertReport::Quantized::tensor), 0);
  EXPECT_EQ(open(file("direct")).find(name)->require("data").dtype, DType::bf16);

  write(plan(model, "zt", quantized("group4")), file("codes.zt"));
  const Plan again = plan(file("codes.zt"), file("again"), {.format = "huggingface"});
  EXPECT_EQ(find(again).from, "group4:128");
  EXPECT_EQ(find(again).to, "f32");
  EXPECT_EQ(find(again).bytes_out, 960U * 128 * 4);
  EXPECT_EQ(again.decoded.tensors, 1U);
  EXPECT_EQ(again.decoded.bytes_out, 960U * 128 * 4);
  EXPECT_THAT(again.losses, testing::Contains(HasSubstr(name + " becomes float32")));
}

TEST_F(PlanTest, ReportsLossesBeforeTheFirstByte) {
  Model model = untouchable_model();
  model.attributes.set("note", "lost");
  EXPECT_THAT(plan(model, "alt").losses, ElementsAre(HasSubstr("note"), HasSubstr("the model has no configuration")));
}

// Only the elements show whether a tensor has enough zeros.
TEST_F(PlanTest, LeavesOpenWhatOnlyElementsShow) {
  const Model model = untouchable_model();
  ConvertOptions changes;
  changes.sparse = Layout::sparse_csr;
  const Plan planned = plan(model, "zt", changes);
  EXPECT_FALSE(planned.bytes_out);
  EXPECT_FALSE(planned.tensors[0].bytes_out);
  EXPECT_EQ(planned.tensors[0].to, "bf16");
  EXPECT_EQ(planned.tensors[2].bytes_out, 128U);  // no matrix: never csr
  ConvertOptions compressed;
  compressed.write.zstd_level = 3;
  EXPECT_FALSE(plan(model, "zt", compressed).bytes_out);
  EXPECT_FALSE(plan(model, "zt1", compressed).bytes_out);
  EXPECT_EQ(plan(model, "zt", compressed).tensors[0].bytes_out, 512U);
}

TEST_F(PlanTest, SparseTensorsAreMadeWhenThePlanIsCarriedOut) {
  Model model;
  std::vector<std::byte> bytes(64);
  bytes[3] = std::byte{0x3f};
  model.add(make_dense("w", {4, 4}, DType::f32, make_memory_blob(bytes, "w")));
  ConvertOptions changes;
  changes.sparse = Layout::sparse_csr;
  write(plan(model, "zt", changes), file("sparse.zt"));
  EXPECT_EQ(open(file("sparse.zt")).find("w")->layout, Layout::sparse_csr);
}

std::string refusal(const std::function<void()>& action, ErrorKind kind) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    return error.message();
  }
  return "nothing was thrown";
}

TEST_F(PlanTest, RefusesWhatConvertRefuses) {
  const fs::path input = source_directory() / "examples" / "nano-mistral";
  const auto planned = [&](const std::string& output, const ConvertOptions& options) {
    return [&, output, options] { plan(input, file(output), options); };
  };
  EXPECT_THAT(refusal(planned("x.dat", {}), ErrorKind::bad_argument), HasSubstr("no format has the extension"));
  EXPECT_THAT(refusal(planned("x.tllm", {}), ErrorKind::unsupported), HasSubstr("Tiny Llama"));
  EXPECT_THAT(refusal(planned("x.alt", quantized("group4")), ErrorKind::bad_argument), HasSubstr("group4"));
  ConvertOptions pattern;
  pattern.skip = {"no.such"};
  EXPECT_THAT(refusal(planned("x.zt", pattern), ErrorKind::bad_argument), HasSubstr("skip: the pattern"));
  ConvertOptions align;
  align.write.align = 5000;
  EXPECT_THAT(refusal(planned("x.zt", align), ErrorKind::bad_argument), HasSubstr("expected a power of two"));
  align.write.align = 4096;
  EXPECT_THAT(refusal(planned("x.safetensors", align), ErrorKind::bad_argument), HasSubstr("alignment"));
  ConvertOptions dialect;
  dialect.write.dialect = "alt.d";
  EXPECT_THAT(refusal(planned("x.alt", dialect), ErrorKind::bad_argument), HasSubstr("alt.d"));
  support::put(file("there.zt"), "precious");
  EXPECT_THAT(refusal(planned("there.zt", {}), ErrorKind::bad_argument), HasSubstr("exists already"));
  ConvertOptions other;
  other.format = "zt1";
  const Model model = untouchable_model();
  EXPECT_THAT(refusal([&] { plan(model, "zt", other); }, ErrorKind::bad_argument),
              HasSubstr("the plan's format is zt, but the options ask for zt1"));
}

TEST_F(PlanTest, IsCarriedOutOnce) {
  const Model model = example("nano-mistral");
  const Plan planned = plan(model, "zt");
  write(planned, file("a.zt"));
  EXPECT_THAT(refusal([&] { write(planned, file("b.zt")); }, ErrorKind::bad_argument), HasSubstr("already"));
  EXPECT_THAT(refusal([&] { write(Plan{}, file("b.zt")); }, ErrorKind::bad_argument), HasSubstr("is empty"));
}

TEST_F(PlanTest, SaveReportsLosses) {
  Model model;
  model.attributes.set("note", "lost");
  const SaveReport report = save(model, file("saved.alt"));
  EXPECT_EQ(report.format, "alt");
  EXPECT_EQ(report.bytes, fs::file_size(file("saved.alt")));
  EXPECT_THAT(report.losses, ElementsAre(HasSubstr("note")));
  EXPECT_THAT(save(model, file("saved.zt")).losses, IsEmpty());
}

}  // namespace
}  // namespace poise
