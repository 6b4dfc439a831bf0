// Files of both formats are put together by hand from llama.cpp's tools/imatrix (v0.5.0).
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include <poise/error.hpp>

#include "formats/gguf/gguf_file.hpp"
#include "formats/importance_matrix.hpp"
#include "support/directories.hpp"
#include "support/errors.hpp"

namespace poise {
namespace {

using namespace gguf_test;
using testing::ElementsAre;
using testing::HasSubstr;

class Imatrix : public testing::Test {
 protected:
  std::filesystem::path stored(const std::string& bytes) const {
    std::ofstream(directory_ / "imatrix", std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return directory_ / "imatrix";
  }

 private:
  support::TemporaryDirectory directory_;
};

std::string floats(const std::vector<float>& numbers) {
  std::string bytes;
  for (const float value : numbers) bytes += f32(value);
  return bytes;
}

TEST_F(Imatrix, SumsOverCounts) {
  const auto path = stored(
      file_of({text_entry("general.type", "imatrix")}, {{"blk.0.attn_q.weight.in_sum2", {2, 1}, 0, floats({6, 9})},
                                                        {"blk.0.attn_q.weight.counts", {1, 1}, 0, floats({3})},
                                                        {"output.weight.in_sum2", {2, 1}, 0, floats({6, 9})},
                                                        {"output.weight.counts", {1, 1}, 0, floats({0})}})
          .bytes());
  const ImportanceMatrix matrix(path);
  EXPECT_THAT(*matrix.find_weights("model.layers.0.self_attn.q_proj.weight", "llama", 2), ElementsAre(2, 3));
  EXPECT_THAT(*matrix.find_weights("lm_head.weight", "mistral", 2), ElementsAre(1, 1));  // never seen
  EXPECT_THAT(*matrix.find_weights("blk.0.attn_q.weight", "of no family", 2), ElementsAre(2, 3));
  EXPECT_EQ(matrix.find_weights("model.layers.1.self_attn.q_proj.weight", "llama", 2), nullptr);
  EXPECT_THAT(support::error_of([&] { matrix.find_weights("lm_head.weight", "llama", 3); }).message(),
              HasSubstr("one weight for each of the 3 columns of tensor lm_head.weight, found 2 weights"));
}

TEST_F(Imatrix, EachExpertHasItsOwn) {
  const ImportanceMatrix matrix(stored(file_of({text_entry("general.type", "imatrix")},
                                               {{"blk.0.ffn_up_exps.weight.in_sum2", {2, 2}, 0, floats({6, 9, 4, 8})},
                                                {"blk.0.ffn_up_exps.weight.counts", {1, 2}, 0, floats({3, 4})}})
                                           .bytes()));
  EXPECT_THAT(*matrix.find_weights("model.layers.0.mlp.experts.0.up_proj.weight", "qwen3_moe", 2), ElementsAre(2, 3));
  EXPECT_THAT(*matrix.find_weights("model.layers.0.mlp.experts.1.up_proj.weight", "qwen3_moe", 2), ElementsAre(1, 2));
  // The experts of an architecture without a family stay stacked.
  EXPECT_THAT(*matrix.find_weights("blk.0.ffn_up_exps.weight", "of no family", 2, 2), ElementsAre(2, 3, 1, 2));
  EXPECT_THAT(
      support::error_of([&] { matrix.find_weights("blk.0.ffn_up_exps.weight", "of no family", 2, 3); }).message(),
      HasSubstr("4 weights"));
  const auto refusal = [&](const char* name) {
    return support::error_of([&] { matrix.find_weights(name, "qwen3_moe", 2); }).message();
  };
  EXPECT_THAT(
      refusal("model.layers.0.mlp.experts.2.up_proj.weight"),
      HasSubstr("each of the 2 columns of tensor model.layers.0.mlp.experts.2.up_proj.weight, found 4 weights"));
}

std::string older(std::int32_t values = 2) {
  const std::string name = "blk.0.ffn_down.weight";
  return number(1, 4) + number(name.size(), 4) + name + number(4, 4) + number(static_cast<std::uint32_t>(values), 4) +
         floats({2, 8});
}

TEST_F(Imatrix, TheOlderFormat) {
  EXPECT_THAT(*ImportanceMatrix(stored(older())).find_weights("model.layers.0.mlp.down_proj.weight", "llama", 2),
              ElementsAre(0.5F, 2));
}

// Chunks and data set come last, and may be missing.
TEST_F(Imatrix, HasProvenance) {
  const auto provenance_of = [&](const std::string& bytes) {
    return Value(ImportanceMatrix(stored(bytes)).provenance());
  };
  EXPECT_EQ(provenance_of(older()),
            Value(Attributes{{"quantize.imatrix.file", "imatrix"}, {"quantize.imatrix.entries_count", 1}}));
  const Value whole(Attributes{{"quantize.imatrix.file", "imatrix"},
                               {"quantize.imatrix.dataset", "some text"},
                               {"quantize.imatrix.entries_count", 1},
                               {"quantize.imatrix.chunks_count", 7}});
  EXPECT_EQ(provenance_of(older() + number(7, 4) + number(9, 4) + "some text"), whole);
  EXPECT_EQ(provenance_of(file_of({array_entry("imatrix.datasets", kText, {text("some text"), text("more")}),
                                   u32_entry("imatrix.chunk_count", 7)},
                                  {{"w.in_sum2", {2}, 0, floats({1, 2})}, {"w.counts", {1}, 0, floats({1})}})
                              .bytes()),
            whole);
}

// A few bytes of the header may refer to all numbers of another tensor again.
TEST_F(Imatrix, TensorsThatShareTheirBytesTakeNoMoreThanTheFileJustifies) {
  std::vector<TensorEntry> tensors;
  for (int i = 0; i < 10; ++i) {
    tensors.push_back({fmt::format("{}.in_sum2", i), {1000}, 0, i == 0 ? floats(std::vector<float>(1000, 2)) : ""});
    tensors.push_back({fmt::format("{}.counts", i), {1}, 0, i == 0 ? f32(4) : ""});
  }
  ByteFile file = file_of({}, tensors);
  for (std::size_t i = 1; i < 10; ++i) {
    file.u64(fmt::format("offset {}", 2 * i), 0);
    file.u64(fmt::format("offset {}", 2 * i + 1), 4000);
  }
  EXPECT_THAT(support::error_of([&] { ImportanceMatrix matrix(stored(file.bytes())); }).message(),
              HasSubstr("the weights take more than 4 times the size of the file"));
}

TEST_F(Imatrix, BrokenFilesAreRefused) {
  const auto refusal = [&](const std::string& bytes) {
    return support::error_of([&] { ImportanceMatrix matrix(stored(bytes)); }).message();
  };
  EXPECT_THAT(refusal(older(-1)), HasSubstr("values: -1 do not fit the "));
  EXPECT_THAT(refusal(older(1 << 30)), HasSubstr("do not fit the "));
  EXPECT_THAT(refusal(older() + "abc"), HasSubstr("chunks: 4 bytes wanted"));
  EXPECT_THAT(refusal(older() + number(7, 4) + number(9, 4) + "some"),
              HasSubstr("data set's length: 9 do not fit the 4 bytes that are left"));
  EXPECT_THAT(refusal(""), HasSubstr("entries: 4 bytes wanted"));
  EXPECT_THAT(refusal(number(0, 4)), HasSubstr("the file contains no weights"));
  EXPECT_THAT(refusal(file_of({}, {{"w.in_sum2", {2}, 0, floats({1, 2})}}).bytes()),
              HasSubstr("tensor w.counts is missing"));
  EXPECT_THAT(refusal(file_of({}, {{"w.in_sum2", {0}, 0, ""}, {"w.counts", {0}, 0, ""}}).bytes()),
              HasSubstr("w: expected a multiple of the 0 counts, found 0 sums"));
  EXPECT_THAT(refusal(file_of({}, {{"w.in_sum2", {2}, 0, floats({1, -2})}, {"w.counts", {1}, 0, floats({1})}}).bytes()),
              HasSubstr("expected finite weights of 0 or more, found -2"));
  EXPECT_THAT(refusal(older().substr(0, older().size() - 4) + floats({-8})),
              HasSubstr("expected finite weights of 0 or more, found -8"));
}

}  // namespace
}  // namespace poise
