#include "pack/digest.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace poise {
namespace {

std::uint32_t crc(const std::string& text) { return compute_crc32c(std::as_bytes(std::span(text))); }

// "123456789" is the check value of the CRC catalogue, the zeros are RFC 3720's example, the last sum is from a bitwise
// Python loop.
TEST(Crc32c, KnownChecksums) {
  EXPECT_EQ(crc(""), 0U);
  EXPECT_EQ(crc("123456789"), 0xe3069283U);
  EXPECT_EQ(crc(std::string(32, '\0')), 0x8a9136aaU);
  std::string text;
  for (int i = 0; i < 5 * 256; ++i) text += static_cast<char>(i);
  EXPECT_EQ(crc(text + "abc"), 0xcd3edfdfU);
}

TEST(Crc32c, PiecesAddUpAtEveryCut) {
  const std::string text = "the quick brown fox jumps over the lazy dog";
  const auto bytes = std::as_bytes(std::span(text));
  for (std::size_t cut = 0; cut <= text.size(); ++cut)
    EXPECT_EQ(compute_crc32c(bytes.subspan(cut), compute_crc32c(bytes.first(cut))), crc(text)) << cut;
}

TEST(Crc32c, TheHasherPrintsEightDigits) {
  const auto hasher = make_crc32c();
  const std::string text = "123456789";
  hasher->update(std::as_bytes(std::span(text)).first(4));
  hasher->update(std::as_bytes(std::span(text)).subspan(4));
  EXPECT_EQ(hasher->finish(), "e3069283");
}

}  // namespace
}  // namespace poise
