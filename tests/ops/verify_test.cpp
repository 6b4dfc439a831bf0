// verify() of whole files: what it counts, what it lists, and what it throws. Each format's rules are in tests/hostile.
#include <poise/verify.hpp>

#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <poise/convert.hpp>
#include <poise/error.hpp>

#include "support/directories.hpp"
#include "views/dense.hpp"
#include "views/groups.hpp"

namespace poise {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class Verify : public testing::Test {
 protected:
  // Writes two tensors of numbers, and one of truth values.
  fs::path write(const std::string& format) const {
    Model model;
    model.add(make_dense("first", {2, 2}, DType::f32, make_memory_blob(std::vector<std::byte>(16), "first")));
    model.add(
        make_dense("second", {3}, DType::u8, make_memory_blob(std::vector<std::byte>(3, std::byte{7}), "second")));
    model.add(
        make_dense("truth", {4}, DType::boolean, make_memory_blob(std::vector<std::byte>(4, std::byte{1}), "truth")));
    fs::path path = directory_ / ("model." + format);
    save(model, path, format);
    return path;
  }

  // Replaces a byte of a tensor; returns its place.
  static std::uint64_t damage(const fs::path& path, std::string_view tensor, std::uint64_t index, char byte) {
    const auto at = open(path).find(tensor)->require("data").blob->stored();
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(at->offset + index));
    file.put(byte);
    return at->offset;
  }

  static std::string name_of(const Finding& fault) { return fault.message.substr(0, fault.message.find(':')); }

  support::TemporaryDirectory directory_;
};

TEST_F(Verify, CountsWhatItLookedAt) {
  const fs::path path = write("zt");
  std::uint64_t done = 0;
  std::uint64_t total = 0;
  const VerifyReport report = verify(path, {}, [&](const ProgressEvent& event) {
    done = event.done;
    total = event.total;
    return true;
  });
  EXPECT_EQ(report.format, "zt-v2");
  EXPECT_EQ(report.tensors, 3U);
  EXPECT_EQ(report.bytes, 16U + 3U + 4U);
  EXPECT_EQ(report.digests, 3U);
  EXPECT_TRUE(report.faults.empty());
  EXPECT_EQ(done, report.bytes);
  EXPECT_EQ(total, report.bytes);
}

// A GGUF file's rows of queries are in another order than the model's: a finding has the number's own place.
TEST_F(Verify, ReportsWhereANumberIsInTheFile) {
  const fs::path path = directory_ / "model.gguf";
  convert(source_directory() / "examples/nano-mistral", path, {});
  const std::string name = "model.layers.0.self_attn.q_proj.weight";
  const Model model = open(path);
  const Blob& blob = *model.find(name)->require("data").blob;
  ASSERT_FALSE(blob.raw_range());
  constexpr std::uint64_t kElement = 128 + 3;  // of the second row
  const auto place = blob.stored_byte(kElement * 2);
  ASSERT_TRUE(place);
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(static_cast<std::streamoff>(place->offset));
  file.write("\x80\xff", 2);  // a NaN in bf16 and in f16
  file.close();
  const VerifyReport report = verify(path);
  ASSERT_EQ(report.faults.size(), 1U);
  EXPECT_THAT(report.faults[0].message, HasSubstr("element 131 is not finite"));
  EXPECT_EQ(report.faults[0].offset, place->offset);
  EXPECT_NE(place->offset, blob.stored()->offset + kElement * 2);
}

TEST_F(Verify, ListsEveryFaultWithItsPlace) {
  const fs::path path = write("zt");
  const std::uint64_t first = damage(path, "first", 3, 1);
  const std::uint64_t second = damage(path, "second", 0, 8);
  for (const IoMode mode : {IoMode::map, IoMode::read}) {
    const VerifyReport report = verify(path, {.io = mode});
    ASSERT_EQ(report.faults.size(), 2U);
    EXPECT_EQ(report.errors(), 2U);
    EXPECT_EQ(report.warnings(), 0U);
    EXPECT_EQ(report.digests, 3U);
    EXPECT_EQ(name_of(report.faults[0]), "tensor first");
    EXPECT_EQ(report.faults[0].tensor, "first");
    EXPECT_EQ(name_of(report.faults[1]), "tensor second");
    EXPECT_THAT(report.faults[0].message, HasSubstr("the digest is xxh3:"));
    EXPECT_EQ(report.faults[0].offset, first);
    EXPECT_EQ(report.faults[1].offset, second);
    EXPECT_EQ(report.faults[0].path, path.string());
  }
}

// The tensor has three codes, so the last half byte has none.
TEST_F(Verify, ChecksPoisesLayoutsInEveryVersionOfZtensor) {
  for (const std::string format : {"zt", "zt1"}) {
    for (const int last : {0x02, 0x12}) {
      SCOPED_TRACE(testing::Message() << format << ", last byte " << last);
      Tensor tensor = make_dense("w", {3}, DType::u8, make_memory_blob({std::byte{0x31}, std::byte{2}}, "data"));
      for (const auto& [role, count] : {std::pair("codebook", 16), std::pair("scales", 2)}) {
        std::vector<std::byte> zeros(static_cast<std::size_t>(count) * sizeof(float));
        tensor.parts.push_back({.role = role, .dtype = DType::f32, .blob = make_memory_blob(std::move(zeros), role)});
      }
      tensor.layout = make_codebook_layout(2);
      tensor.attributes = make_codebook_attributes(2);
      Model model;
      model.add(std::move(tensor));
      const fs::path path = directory_ / fmt::format("{}-{}.zt", format, last);
      WriteOptions options;
      options.digest = DigestAlgorithm::none;
      save(model, path, format, options);
      damage(path, "w", 1, static_cast<char>(last));
      const VerifyReport report = verify(path);
      ASSERT_EQ(report.faults.size(), last == 0x02 ? 0U : 1U);
      if (last != 0x02) {
        EXPECT_THAT(report.faults[0].message, HasSubstr("the unused half of the last byte is not zero"));
      }
    }
  }
}

// A group that does not exist is found before the numbers are asked for.
TEST_F(Verify, ReadsTheIndexOfGroups) {
  const auto part = [](std::string role, DType dtype, std::vector<std::byte> bytes) {
    return Part{.role = role, .dtype = dtype, .blob = make_memory_blob(std::move(bytes), role)};
  };
  Tensor tensor;
  tensor.name = "w";
  tensor.shape = {2, 4};
  tensor.parts.push_back(part("data", DType::u8, std::vector<std::byte>(4)));
  tensor.parts.push_back(part("scales", DType::f32, std::vector<std::byte>(16)));
  tensor.parts.push_back(part("group_index", DType::u32, std::vector<std::byte>(16)));
  tensor.attributes = {{"bits", 4},
                       {"group_size", 2},
                       {"axis", 1},
                       {"packing", Attributes{{"word", "u8"}, {"order", "lsb_first"}, {"per_word", 2}}},
                       {"scale_form", "f32_factors"},
                       {"zero_point", Attributes{{"form", "implied"}, {"value", 8}}}};
  tensor.layout = make_indexed_groups_layout(tensor);
  Model model;
  model.add(std::move(tensor));
  for (const std::string format : {"zt", "zt1"}) {
    const fs::path path = directory_ / fmt::format("{}-index.zt", format);
    WriteOptions options;
    options.digest = DigestAlgorithm::none;
    save(model, path, format, options);
    EXPECT_TRUE(verify(path).faults.empty());
    const std::uint64_t index = open(path).find("w")->require("group_index").blob->stored()->offset;
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(index + 8));
    file.put(2);
    file.close();
    const VerifyReport report = verify(path);
    ASSERT_EQ(report.faults.size(), 1U);
    EXPECT_EQ(report.faults[0].message, "tensor w: group_index: 2 at 2, expected less than 2");
    EXPECT_EQ(report.faults[0].offset, index + 8);
    EXPECT_EQ(report.faults[0].tensor, "w");
  }
}

TEST_F(Verify, FindsBadValuesWithoutDigests) {
  const fs::path path = write("safetensors");
  EXPECT_TRUE(verify(path).faults.empty());
  EXPECT_EQ(verify(path).digests, 0U);
  EXPECT_FALSE(verify(path).has_digests);
  EXPECT_TRUE(verify(write("zt")).has_digests);
  const std::uint64_t truth = damage(path, "truth", 2, 2);
  const VerifyReport report = verify(path);
  ASSERT_EQ(report.errors(), 1U);
  EXPECT_EQ(name_of(report.faults[0]), "tensor truth");
  EXPECT_EQ(report.faults[0].offset, truth + 2);
}

// A Mistral of one layer whose only tensor has a wrong shape: every fault is a finding that names its tensor, and a
// reader lists them in one message.
TEST_F(Verify, ListsEveryFaultOfADirectoryWithItsTensor) {
  support::put(directory_ / "config.json",
               R"({"model_type": "mistral", "hidden_size": 2, "intermediate_size": 2, "num_attention_heads": 1,
                   "num_hidden_layers": 1, "num_key_value_heads": 1, "vocab_size": 4, "max_position_embeddings": 8})");
  std::string header = R"({"model.norm.weight":{"dtype":"F32","shape":[3],"data_offsets":[0,12]}})";
  header.resize(72, ' ');
  support::put(directory_ / "model.safetensors", std::string("\x48\0\0\0\0\0\0\0", 8) + header + std::string(12, '\0'));
  const VerifyReport report = verify(directory_.path());
  EXPECT_EQ(report.format, "huggingface");
  EXPECT_EQ(report.errors(), 12U);  // 9 tensors of the layer, the embedding, the norm, the output
  std::string message;
  try {
    open(directory_.path());
    ADD_FAILURE();
  } catch (const Error& error) {
    message = error.message();
  }
  EXPECT_THAT(message, testing::StartsWith("12 faults:\n  "));
  for (const Finding& fault : report.faults) {
    if (fault.severity != Severity::error) continue;
    EXPECT_EQ(fault.message.find('\n'), std::string::npos);
    EXPECT_THAT(fault.message, HasSubstr(fault.tensor));
    EXPECT_THAT(message, HasSubstr(fault.tensor));
    EXPECT_FALSE(fault.tensor.empty()) << fault.message;
    if (fault.tensor != "model.norm.weight") continue;
    EXPECT_EQ(fault.message, "tensor model.norm.weight has shape [3], the configuration needs [2]");
    EXPECT_EQ(fault.path, (directory_ / "model.safetensors").string());
    EXPECT_EQ(fault.offset, 80U);
  }
}

TEST_F(Verify, AFileThatDoesNotOpenIsAFaultAndOneThatIsNotThereIsThrown) {
  const fs::path path = write("zt");
  fs::resize_file(path, fs::file_size(path) - 1);
  const VerifyReport report = verify(path);
  EXPECT_EQ(report.format, "");
  EXPECT_EQ(report.errors(), 1U);
  const auto kind = [](const fs::path& bad, const Progress& progress) {
    try {
      verify(bad, {}, progress);
    } catch (const Error& error) {
      return error.kind();
    }
    return ErrorKind::internal;
  };
  EXPECT_EQ(kind(directory_ / "absent.zt", {}), ErrorKind::not_found);
  EXPECT_EQ(kind("/dev/null", {}), ErrorKind::bad_argument);
  EXPECT_EQ(kind(write("safetensors"), [](const ProgressEvent&) { return false; }), ErrorKind::cancelled);
}

}  // namespace
}  // namespace poise
