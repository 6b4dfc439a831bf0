// The frames in this file are made by the command zstd 1.5.4.
#include "pack/zstd.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <random>

#include <poise/error.hpp>

#include "pack/pump.hpp"
#include "support/bytes.hpp"
#include "support/errors.hpp"
#include "support/memory_output.hpp"

namespace poise {
namespace {

using support::hex;
using support::to_bytes;
using testing::HasSubstr;

// 64 float32 numbers, (i % 5) * 0.5, compressed by `zstd -3 --no-check`.
const std::string kFrame = hex(R"(
  28 b5 2f fd 00 58 dd 00 00 80 00 00 3f 00 00 80
  3f 00 00 c0 3f 00 00 00 40 00 03 00 e2 9b 14 00
  a3 2e 80 05)");
// The same numbers, compressed with `--check`.
const std::string kCheckedFrame = hex(R"(
  28 b5 2f fd 04 58 dd 00 00 80 00 00 3f 00 00 80
  3f 00 00 c0 3f 00 00 00 40 00 03 00 e2 9b 14 00
  a3 2e 80 05 4c 1d 0c 04)");
const std::string kEmptyFrame = hex("28 b5 2f fd 20 00 01 00 00");
constexpr std::uint64_t kSize = 256;

std::vector<std::byte> expected_content() {
  std::string content;
  for (int i = 0; i < 64; ++i) content += support::elements<float>({static_cast<float>(i % 5) * 0.5F});
  return to_bytes(content);
}

StoredRange place(const std::string& stored) {
  auto source = support::source("before" + stored + "behind");
  return {source, 6, stored.size()};
}

std::string refusal(const std::string& stored, std::uint64_t size) {
  try {
    read_all(*make_zstd_blob(place(stored), size));
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::invalid_file);
    EXPECT_EQ(error.offset(), 6U);
    return error.message();
  }
  return "";
}

TEST(Zstd, FramesOfTheToolDecode) {
  EXPECT_EQ(read_all(*make_zstd_blob(place(kFrame), kSize)), expected_content());
  EXPECT_EQ(read_all(*make_zstd_blob(place(kCheckedFrame), kSize)), expected_content());
  EXPECT_TRUE(read_all(*make_zstd_blob(place(kEmptyFrame), 0)).empty());
}

TEST(Zstd, AnyPieceCanBeRead) {
  const auto blob = make_zstd_blob(place(kFrame), kSize);
  const auto content = expected_content();
  for (std::size_t begin = 0; begin < kSize; begin += 37) {
    std::vector<std::byte> piece(std::min<std::size_t>(50, kSize - begin));
    blob->read(begin, piece);
    EXPECT_TRUE(std::equal(piece.begin(), piece.end(), content.begin() + static_cast<std::ptrdiff_t>(begin))) << begin;
  }
  const auto stream = blob->stream();
  std::vector<std::byte> joined;
  std::array<std::byte, 7> few{};
  while (const std::size_t got = stream->read(few))
    joined.insert(joined.end(), few.begin(), few.begin() + static_cast<std::ptrdiff_t>(got));
  EXPECT_EQ(joined, content);
  EXPECT_FALSE(blob->seekable());
  EXPECT_FALSE(blob->map());
}

TEST(Zstd, SeveralFramesAreOneStream) {
  auto twice = expected_content();
  const auto reread = expected_content();
  twice.insert(twice.end(), reread.begin(), reread.end());
  EXPECT_EQ(read_all(*make_zstd_blob(place(kFrame + kEmptyFrame + kCheckedFrame), 2 * kSize)), twice);
}

TEST(Zstd, TheSizeMustBeExact) {
  EXPECT_THAT(refusal(kFrame, kSize + 1), HasSubstr("it decodes to 256 bytes, 257 expected"));
  EXPECT_THAT(refusal(kFrame, kSize - 1), HasSubstr("it decodes to more than 255 bytes"));
  EXPECT_THAT(refusal(kFrame + kFrame, kSize), HasSubstr("it decodes to more than 256 bytes"));
  EXPECT_THAT(refusal(kFrame, 1), HasSubstr("it decodes to more than 1 bytes"));
  EXPECT_THAT(refusal(kFrame, 0), HasSubstr("it decodes to more than 0 bytes"));
  EXPECT_THAT(refusal("", 4), HasSubstr("it decodes to 0 bytes, 4 expected"));
}

TEST(Zstd, CutAndTrailingBytesAreRefused) {
  for (std::size_t length = 1; length < kCheckedFrame.size(); ++length)
    EXPECT_NE(refusal(kCheckedFrame.substr(0, length), kSize), "") << length;
  EXPECT_NE(refusal(kFrame + "x", kSize), "");
  EXPECT_NE(refusal(kFrame + "garbage!", kSize), "");
  EXPECT_NE(refusal("x" + kFrame, kSize), "");
}

TEST(Zstd, AFlippedBitOfACheckedFrameIsSeen) {
  for (std::size_t bit = 0; bit < kCheckedFrame.size() * 8; ++bit) {
    std::string flipped = kCheckedFrame;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ 1 << bit % 8);
    bool refused = false;
    try {
      refused = read_all(*make_zstd_blob(place(flipped), kSize)) == expected_content();  // the reserved and unused bits
    } catch (const Error& error) {
      refused = error.kind() == ErrorKind::invalid_file || error.kind() == ErrorKind::unsupported;
    }
    EXPECT_TRUE(refused) << bit;
  }
}

// The frame declares a window of 2 GiB: windowLog 31 is exponent 21, mantissa 0.
TEST(Zstd, AWindowBeyondTheBoundIsRefused) {
  EXPECT_EQ(support::error_of([] { read_all(*make_zstd_blob(place(hex("28 b5 2f fd 00 a8 0b 00 00 61")), 1)); }).kind(),
            ErrorKind::unsupported);
}

TEST(Zstd, AnUnknownSizeIsCountedUpToTheLimit) {
  const auto counted = [](const std::string& stored, std::uint64_t limit) {
    return make_zstd_blob_of_unknown_size(place(stored), limit, make_zstd_size(place(stored)));
  };
  EXPECT_EQ(counted(kFrame, kSize)->size(), kSize);
  EXPECT_EQ(read_all(*counted(kFrame, 1 << 20)), expected_content());
  EXPECT_EQ(counted(kEmptyFrame, 0)->size(), 0U);
  EXPECT_THROW(static_cast<void>(counted(kFrame, kSize - 1)->size()), Error);
  EXPECT_THROW(static_cast<void>(counted(kFrame.substr(0, 20), kSize)->size()), Error);
  // Blobs of one place share the count, even with different limits.
  const auto size = make_zstd_size(place(kFrame));
  for (const std::uint64_t limit : {std::uint64_t{0}, std::uint64_t{10}, kSize - 1, kSize, kSize + 1, std::uint64_t{5},
                                    std::uint64_t{UINT64_MAX}}) {
    const auto blob = make_zstd_blob_of_unknown_size(place(kFrame), limit, size);
    if (limit < kSize) {
      EXPECT_THROW(static_cast<void>(blob->size()), Error) << limit;
    } else {
      EXPECT_EQ(blob->size(), kSize) << limit;
    }
  }
}

std::vector<std::byte> compressed(const std::vector<std::byte>& content, int level) {
  MemorySink sink;
  ZstdCompressor compressor(level);
  ZstdCompressor::Frame frame(compressor, sink, content.size());
  for (std::size_t done = 0; done < content.size(); done += 100'000) {
    frame.write(std::span(content).subspan(done, std::min<std::size_t>(100'000, content.size() - done)));
  }
  frame.finish();
  return sink.take();
}

TEST(Zstd, WhatIsCompressedDecodesAgain) {
  std::mt19937 random(7);
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, std::size_t{1000}, std::size_t{300'000}, std::size_t{9} << 20}) {
    std::vector<std::byte> content(size);
    for (std::byte& byte : content) byte = static_cast<std::byte>(random() % 4);
    for (const int level : {1, 3}) {
      const auto stored = compressed(content, level);
      EXPECT_EQ(read_all(*make_zstd_blob({Source::from_memory(stored, "memory"), 0, stored.size()}, size)), content)
          << size;
      // Frame_Header_Descriptor: no content size, no single segment, no checksum.
      EXPECT_EQ(static_cast<int>(stored[4]), 0) << size;
    }
  }
}

// At level 22, a frame of unknown size has a window of 128 MiB, and the compressor needs hundreds of MB.
// Window_Descriptor: the upper five bits are the window's logarithm - 10.
TEST(Zstd, HighLevelsHaveSmallWindowsForSmallContent) {
  const auto stored = compressed(std::vector<std::byte>(1000), 22);
  EXPECT_EQ(static_cast<int>(stored[4]), 0);
  EXPECT_LE(static_cast<int>(stored[5]) >> 3, 7);
}

TEST(Zstd, LevelsOutsideTheRangeAreRefused) {
  EXPECT_THROW(ZstdCompressor(0), Error);
  EXPECT_THROW(ZstdCompressor(23), Error);
  require_zstd_level(22);
}

}  // namespace
}  // namespace poise
