#include <poise/digest.hpp>

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "pack/part_digest.hpp"

namespace poise {
namespace {

Digest digest(std::string text, bool over_stored = false) {
  return {digest_algorithm(text), std::move(text), over_stored};
}

void expect_same(const HeldDigest& held, const Digest& expected) {
  ASSERT_TRUE(held);
  EXPECT_EQ(held.text(), expected.text);
  EXPECT_EQ(held.algorithm(), expected.algorithm);
  EXPECT_EQ(held.algorithm(), expected.algorithm);
  EXPECT_EQ(held.over_stored(), expected.over_stored);
  EXPECT_EQ((*held).over_stored, expected.over_stored);
}

const std::string kSha256 = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";

// The second half: unusual spellings, and digests that Poise does not know, stay texts.
TEST(HeldDigest, TellsWhatTheFileSays) {
  for (const std::string& text :
       {kSha256, std::string("xxh3:0123456789abcdef"), std::string("crc32c:0x0A1B2C3D"),
        std::string("crc32c:0x0a1b2c3d"), std::string("crc32c:0a1b2c3d"), std::string("xxh3:0123456789ABCDEF"),
        std::string("xxh3:0123456789abcde"), std::string("xxh3:0123456789abcdefg"),
        std::string("xxh3:+123456789abcdef"), std::string("sha256:"), std::string("md5:00"), std::string(),
        std::string("frob:") + std::string(200'000, 'x')}) {
    for (const bool over_stored : {false, true}) expect_same(digest(text, over_stored), digest(text, over_stored));
  }
  expect_same(Digest{DigestAlgorithm::none, "none", false}, {DigestAlgorithm::none, "none", false});
}

TEST(HeldDigest, IsSmall) {
  EXPECT_EQ(sizeof(HeldDigest), sizeof(void*));
  EXPECT_EQ(HeldDigest(digest("xxh3:0123456789abcdef")).packed().size(), 9U);
  EXPECT_EQ(HeldDigest(digest(kSha256)).packed().size(), 33U);
}

TEST(HeldDigest, IsPackedAlikeForTheSameClaim) {
  const auto packed = [](const HeldDigest& held) {
    return std::vector<std::byte>(held.packed().begin(), held.packed().end());
  };
  const auto first = packed(digest("xxh3:0123456789abcdef"));
  EXPECT_EQ(packed(digest("xxh3:0123456789abcdef")), first);
  EXPECT_NE(packed(digest("xxh3:0123456789abcdee")), first);
  EXPECT_NE(packed(digest("xxh3:0123456789abcdef", true)), first);
  EXPECT_NE(packed(digest("xxh3:0123456789ABCDEF")), first);
}

TEST(HeldDigest, IsCopiedMovedAndReset) {
  HeldDigest none;
  EXPECT_FALSE(none);
  HeldDigest first = digest(kSha256);
  const HeldDigest second = first;
  first = digest("md5:00");
  expect_same(second, digest(kSha256));
  HeldDigest third = std::move(first);
  expect_same(third, digest("md5:00"));
  third = none;
  EXPECT_FALSE(third.has_value());
  third = second;
  HeldDigest& same = third;
  third = same;
  expect_same(third, digest(kSha256));
  third.reset();
  EXPECT_FALSE(third);
  expect_same(second, digest(kSha256));
}

// Thousands of them fill several slabs, which go one after the other. The address sanitizer sees what is used too long
// or kept.
TEST(HeldDigest, IsSharedByThreads) {
  std::vector<std::thread> threads;
  const HeldDigest shared = digest(kSha256);
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::vector<HeldDigest> held;
      for (unsigned i = 0; i < 5000; ++i) {
        held.push_back(digest("xxh3:00000000000" + std::to_string(10000 + i)));
        held.push_back(shared);
        if (i % 3 == t % 3) held.erase(held.begin(), held.begin() + static_cast<std::ptrdiff_t>(held.size() / 8));
      }
      expect_same(held[held.size() - 2], digest("xxh3:0000000000014999"));
      expect_same(held.back(), digest(kSha256));
    });
  }
  for (std::thread& thread : threads) thread.join();
  expect_same(shared, digest(kSha256));
}

}  // namespace
}  // namespace poise
