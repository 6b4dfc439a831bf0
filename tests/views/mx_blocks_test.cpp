// Blocks worked out by hand from ggml's layout (docs/formats/gguf.md): byte i has neighbour i in its low half, 16 + i
// in its high half.
#include "views/mx.hpp"

#include <gtest/gtest.h>

#include <random>
#include <span>

#include <poise/values.hpp>

#include "tensor/block_layout.hpp"
#include "tensor/mx_scheme.hpp"
#include "views/dense.hpp"

namespace poise {
namespace {

using Bytes = std::vector<std::byte>;

BlobPtr blob(Bytes bytes) { return make_memory_blob(std::move(bytes), "memory"); }

Bytes random_bytes(std::size_t count, std::mt19937& random) {
  Bytes bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

TEST(MxBlocks, HaveNeighboursInHalvesOfABlock) {
  Bytes codes;  // neighbour n has code n modulo 16
  for (unsigned i = 0; i < 16; ++i) codes.push_back(static_cast<std::byte>(2 * i % 16 | (2 * i + 1) % 16 << 4U));
  codes[0] = std::byte{0x90};  // but neighbour 1 has 9
  Bytes expected = {std::byte{77}};
  for (unsigned i = 0; i < 16; ++i) expected.push_back(static_cast<std::byte>(i | i << 4U));
  expected[2] = std::byte{0x19};  // neighbours 1 and 17
  EXPECT_EQ(read_all(*make_mxfp4_blocks(blob(codes), blob({std::byte{77}}))), expected);
}

TEST(MxBlocks, ComeBackAndAreReadFromAnywhere) {
  std::mt19937 random(1);
  const Bytes codes = random_bytes(16 * 1500, random);
  const Bytes scales = random_bytes(1500, random);
  const BlobPtr blocks = make_mxfp4_blocks(blob(codes), blob(scales));
  EXPECT_EQ(read_all(*extract_mxfp4_codes(blocks)), codes);
  EXPECT_EQ(read_all(*extract_mxfp4_scales(blocks)), scales);
  const Bytes all = read_all(*blocks);
  for (int i = 0; i < 50; ++i) {
    const std::size_t begin = random() % all.size();
    Bytes part(random() % (all.size() - begin) + 1);
    blocks->read(begin, part);
    ASSERT_TRUE(std::equal(part.begin(), part.end(), all.begin() + static_cast<std::ptrdiff_t>(begin))) << begin;
    const std::size_t at = begin * 16 / 17;
    part.resize(std::min(part.size(), codes.size() - at));
    extract_mxfp4_codes(blocks)->read(at, part);
    ASSERT_TRUE(std::equal(part.begin(), part.end(), codes.begin() + static_cast<std::ptrdiff_t>(at))) << at;
  }
}

// Two decoders that share no code give the same numbers.
TEST(MxBlocks, HaveTheNumbersOfTheCodes) {
  std::mt19937 random(2);
  Tensor mx;
  mx.name = "w";
  mx.shape = {40, 64};
  mx.layout = make_mx_layout({.axis = 1, .block_size = 32});
  Bytes scales(80);
  for (std::byte& scale : scales) scale = static_cast<std::byte>(random() % 250);
  mx.parts = {Part{.role = "data", .dtype = DType::f4_e2m1, .blob = blob(random_bytes(40 * 32, random))},
              Part{.role = "scales", .dtype = DType::f8_e8m0, .blob = blob(scales)}};
  const Tensor blocks = make_blocks("w", mx.shape, *find_named_block_type("mxfp4"),
                                    make_mxfp4_blocks(mx.parts[0].blob, mx.parts[1].blob));
  EXPECT_EQ(values(mx), values(blocks));  // ggml has no -0
}

}  // namespace
}  // namespace poise
