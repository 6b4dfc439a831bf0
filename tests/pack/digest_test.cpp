#include "pack/digest.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace poise {
namespace {

struct Known {
  std::size_t length;
  std::string xxh3;
  std::string sha256;
};

// Digests of bytes_of(length) by `xxhsum -H3` and `sha256sum`. XXH3 changes its method after 16, 240 and 1024 bytes.
const std::vector<Known> kKnown = {
    {0, "2d06800538d394c2", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
    {1, "13e608bc156defed", "084fed08b978af4d7d196a7446a86b58009e636b611db16211b65a9aadff29c5"},
    {16, "b8c859b0f030b585", "9c94926dfb94433e790f2c209e2633b2dd3e922b2741ac687e164d488d1ff67c"},
    {240, "887af00281f75d38", "ddeb7c2026711112c5c1057d235ff899e5881ba1008dae59ecd57005c87a48f9"},
    {241, "82b1de299f6e411e", "3a19da09d2005a003c5a6405c928838316c62ec70f2fcff60315e7988b2f518a"},
    {1025, "667a5eabe344e5df", "139fe3a02a8c71bfcd860c338a3378d4b1efd7a477f2065bcc52cd9939f52d67"},
    {100000, "d449c3d3e190d6d6", "5889ab642baa09c41570b8888cbf45f3762152cea2490ea6b150208a99c92b10"},
};

std::vector<std::byte> bytes_of(std::size_t length) {
  std::vector<std::byte> bytes(length);
  for (std::size_t i = 0; i < length; ++i) bytes[i] = static_cast<std::byte>((i * 7 + 3) % 251);
  return bytes;
}

std::string in_pieces(Hasher& hasher, std::span<const std::byte> bytes, std::size_t piece) {
  while (!bytes.empty()) {
    const std::size_t count = std::min(piece, bytes.size());
    hasher.update(bytes.first(count));
    bytes = bytes.subspan(count);
  }
  return hasher.finish();
}

TEST(Digest, AgreesWithOtherPrograms) {
  for (const Known& known : kKnown) {
    const auto bytes = bytes_of(known.length);
    EXPECT_EQ(in_pieces(*make_xxh3(), bytes, bytes.size()), known.xxh3) << known.length;
    EXPECT_EQ(compute_xxh3(bytes), std::stoull(known.xxh3, nullptr, 16)) << known.length;
    EXPECT_EQ(in_pieces(*make_sha256(), bytes, bytes.size()), known.sha256) << known.length;
    EXPECT_EQ(compute_sha256(bytes), known.sha256) << known.length;
  }
}

// Expected: printf 'some text\n' | git hash-object --stdin; git hash-object /dev/null
TEST(Digest, FilesHaveTheNamesThatGitGivesThem) {
  const std::string text = "some text\n";
  EXPECT_EQ(in_pieces(*make_git_sha1(text.size()), std::as_bytes(std::span(text)), 3),
            "7b57bd29ea8afbdeb9bac64cf7074f4b531492a8");
  EXPECT_EQ(make_git_sha1(0)->finish(), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
}

TEST(Digest, DoesNotDependOnPieces) {
  for (const Known& known : kKnown) {
    const auto bytes = bytes_of(known.length);
    for (const std::size_t piece : {1U, 63U, 256U, 1000U, 16384U}) {
      EXPECT_EQ(in_pieces(*make_xxh3(), bytes, piece), known.xxh3) << known.length << " by " << piece;
      EXPECT_EQ(in_pieces(*make_sha256(), bytes, piece), known.sha256) << known.length << " by " << piece;
    }
  }
}

}  // namespace
}  // namespace poise
