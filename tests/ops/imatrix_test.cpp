// Expected sums and counts follow by hand from llama.cpp's tools/imatrix (v0.5.0).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include <poise/error.hpp>
#include <poise/format.hpp>
#include <poise/imatrix.hpp>

#include "support/directories.hpp"
#include "support/errors.hpp"

namespace poise {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Imatrix make_experts() {
  Imatrix imatrix;
  imatrix.entries["blk.0.attn_q.weight"] = {.sums = {1, 2, 3}, .counts = {1024}};
  imatrix.entries["blk.0.ffn_up_exps.weight"] = {.sums = {512, 1024, 0, 0}, .counts = {256, 0}};
  imatrix.datasets = {"text.txt"};
  return imatrix;
}

class ImatrixFiles : public testing::Test {
 protected:
  std::string read_bytes(const std::string& name) const {
    std::ifstream file(directory_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  support::TemporaryDirectory directory_;
};

TEST_F(ImatrixFiles, GgufHasTheKeysAndShapesOfLlamaImatrix) {
  save_imatrix(make_experts(), directory_ / "i.gguf");
  const Model model = open(directory_ / "i.gguf");
  EXPECT_EQ(*model.attributes.get_if<std::string>("general.type"), "imatrix");
  EXPECT_EQ(*model.attributes.get_if<std::uint64_t>("imatrix.chunk_count"), 2);
  EXPECT_EQ(*model.attributes.get_if<std::uint64_t>("imatrix.chunk_size"), 512);
  EXPECT_EQ(*model.attributes.find("imatrix.datasets"), Value(Value::Array{Value("text.txt")}));
  EXPECT_THAT(model.find("blk.0.ffn_up_exps.weight.in_sum2")->shape, ElementsAre(2, 2));
  EXPECT_THAT(model.find("blk.0.ffn_up_exps.weight.counts")->shape, ElementsAre(2, 1));
  EXPECT_THAT(model.find("blk.0.attn_q.weight.in_sum2")->shape, ElementsAre(1, 3));
  const Imatrix again = read_imatrix(directory_ / "i.gguf");
  EXPECT_THAT(again.entries.at("blk.0.ffn_up_exps.weight").sums, ElementsAre(512, 1024, 0, 0));
  EXPECT_THAT(again.entries.at("blk.0.ffn_up_exps.weight").counts, ElementsAre(256, 0));
  EXPECT_THAT(again.datasets, ElementsAre("text.txt"));
}

// 256 tokens are a part of a chunk, which counts as one call. 512 / 256 is the mean; an expert without tokens gets 1.
TEST_F(ImatrixFiles, TheOlderFormatHasMeansTimesCalls) {
  Imatrix imatrix = make_experts();
  imatrix.entries["blk.1.attn_q.weight"] = {.sums = {0}, .counts = {0}};
  imatrix.entries.erase("blk.0.attn_q.weight");
  save_imatrix(imatrix, directory_ / "i.dat");
  const auto f32 = [](float number) { return std::string(reinterpret_cast<const char*>(&number), sizeof number); };
  const auto i32 = [](std::int32_t number) {
    return std::string(reinterpret_cast<const char*>(&number), sizeof number);
  };
  EXPECT_EQ(read_bytes("i.dat"), i32(1) + i32(24) + "blk.0.ffn_up_exps.weight" + i32(1) + i32(4) + f32(2) + f32(4) +
                                     f32(1) + f32(1) + i32(0) + i32(8) + "text.txt");
  const Imatrix again = read_imatrix(directory_ / "i.dat");
  EXPECT_THAT(again.entries.at("blk.0.ffn_up_exps.weight").sums, ElementsAre(1024, 2048, 512, 512));
  EXPECT_THAT(again.entries.at("blk.0.ffn_up_exps.weight").counts, ElementsAre(512));
}

TEST(AddImatrix, AddsSumsAndCounts) {
  Imatrix sum = make_experts();
  Imatrix other;
  other.entries["blk.0.ffn_up_exps.weight"] = {.sums = {1, 2, 3, 4}, .counts = {5}};
  other.entries["blk.1.attn_q.weight"] = {.sums = {7}, .counts = {8}};
  other.datasets = {"more.txt"};
  add_imatrix(sum, other);
  EXPECT_THAT(sum.entries.at("blk.0.ffn_up_exps.weight").sums, ElementsAre(513, 1026, 3, 4));
  EXPECT_THAT(sum.entries.at("blk.0.ffn_up_exps.weight").counts, ElementsAre(261, 5));
  EXPECT_THAT(sum.entries.at("blk.1.attn_q.weight").sums, ElementsAre(7));
  EXPECT_THAT(sum.datasets, ElementsAre("text.txt", "more.txt"));
}

TEST(AddImatrix, RefusesAnotherModelAndChangesNoSum) {
  Imatrix sum = make_experts();
  Imatrix other;
  other.entries["blk.0.attn_q.weight"] = {.sums = {1, 1, 1}, .counts = {1}};
  other.entries["blk.0.ffn_up_exps.weight"] = {.sums = {1, 1, 1}, .counts = {1}};
  EXPECT_THAT(support::error_of([&] { add_imatrix(sum, other); }).message(), HasSubstr("belong to different models"));
  EXPECT_THAT(sum.entries.at("blk.0.attn_q.weight").sums, ElementsAre(1, 2, 3));
}

TEST(FindImatrixGaps, NamesExpertsWithoutTokens) {
  const std::vector<ImatrixGap> gaps = find_imatrix_gaps(make_experts());
  ASSERT_EQ(gaps.size(), 1);
  EXPECT_EQ(gaps.front().entry, "blk.0.ffn_up_exps.weight");
  EXPECT_THAT(gaps.front().experts, ElementsAre(1));
  EXPECT_EQ(gaps.front().count, 2);
}

TEST_F(ImatrixFiles, SumsBeyondFloat32AreRefused) {
  Imatrix imatrix = make_experts();
  imatrix.entries["blk.0.attn_q.weight"].sums[1] = 1e39;
  EXPECT_THAT(support::error_of([&] { save_imatrix(imatrix, directory_ / "i.gguf"); }).message(),
              HasSubstr("does not fit float32"));
  EXPECT_FALSE(std::filesystem::exists(directory_ / "i.gguf"));
}

}  // namespace
}  // namespace poise
