#include "bytes/byte_reader.hpp"

#include <gtest/gtest.h>

#include <poise/source.hpp>

#include "bytes/byte_writer.hpp"
#include "support/errors.hpp"

namespace poise {
namespace {

SourcePtr memory(std::initializer_list<int> bytes) {
  std::vector<std::byte> data;
  for (const int byte : bytes) data.push_back(static_cast<std::byte>(byte));
  return Source::from_memory(std::move(data), "memory");
}

TEST(ByteReader, ReadsLittleEndianNumbersInOrder) {
  const auto source = memory({0x01, 0x02, 0x03, 0x04, 0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x80, 0x3f});
  ByteReader reader(*source, "test");
  EXPECT_EQ(reader.read_u32("a"), 0x04030201U);
  EXPECT_EQ(reader.read_i32("b"), -1);
  EXPECT_EQ(reader.read_f32("c"), 1.0F);
  EXPECT_EQ(reader.remaining(), 0U);
}

TEST(ByteReader, ErrorsHaveRecordFieldOffsetAndBytesLeft) {
  const auto source = memory({1, 2, 3, 4, 5, 6});
  ByteReader reader(*source, "alt v2");
  const auto section = reader.open_scope("tokenizer");
  const auto token = reader.open_scope("token", 17);
  reader.read_u32("score");
  const Error error = support::error_of([&] { reader.read_text(4294967295U, "length"); });
  EXPECT_EQ(error.kind(), ErrorKind::invalid_file);
  EXPECT_EQ(error.offset(), 4U);
  EXPECT_STREQ(error.what(), "memory: alt v2: tokenizer: token 17: length: 4294967295 bytes wanted, 2 left (at 0x4)");
}

// Is a file that is not in memory, and records what was read from it.
class FetchedSource final : public Source {
 public:
  struct Fetch {
    std::uint64_t offset;
    std::size_t length;
    friend bool operator==(const Fetch&, const Fetch&) = default;
  };

  explicit FetchedSource(std::uint64_t size) : Source("file", size) {}
  bool mapped() const override { return false; }
  std::span<const std::byte> bytes() const override { return {}; }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    ASSERT_LE(offset + out.size(), size());
    if (broken) throw Error(ErrorKind::io, "the disk is gone");
    fetches.push_back({offset, out.size()});
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = byte_at(offset + i);
  }

  static std::byte byte_at(std::uint64_t offset) { return static_cast<std::byte>(offset % 251); }

  mutable std::vector<Fetch> fetches;
  bool broken = false;
};

std::uint8_t expected(std::uint64_t offset) { return static_cast<std::uint8_t>(FetchedSource::byte_at(offset)); }

TEST(ByteReader, SmallReadsShareAWindowThatGrowsWhileTheReaderGoesOn) {
  const FetchedSource source(1 << 20);
  ByteReader reader(source, "test");
  for (std::uint64_t at = 0; at < source.size(); ++at) ASSERT_EQ(reader.read_u8("byte"), expected(at)) << at;
  EXPECT_EQ(reader.remaining(), 0U);
  std::uint64_t next = 0;
  std::size_t last = 0;
  for (const FetchedSource::Fetch& fetch : source.fetches) {
    EXPECT_EQ(fetch.offset, next);  // every byte once
    next += fetch.length;
    if (next < source.size()) {
      EXPECT_GE(fetch.length, last);
    }
    last = fetch.length;
    EXPECT_LE(fetch.length, std::size_t{64} << 10);
  }
  EXPECT_EQ(next, source.size());
  EXPECT_LT(source.fetches.size(), 40U);
}

TEST(ByteReader, AValueAcrossTheEndOfAWindowIsWhole) {
  const FetchedSource source(100'000);
  ByteReader reader(source, "test");
  reader.skip(3, "padding");
  for (std::uint64_t at = 3; at + 4 <= 90'000; at += 4) {
    std::uint32_t wanted = 0;
    for (std::size_t i = 4; i-- > 0;) wanted = wanted << 8U | expected(at + i);
    ASSERT_EQ(reader.read_u32("number"), wanted) << at;
  }
}

TEST(ByteReader, AWindowEndsWhereTheReaderDoes) {
  const FetchedSource source(100'000);
  ByteReader reader(source, "test", 1000, 1100);
  EXPECT_EQ(reader.read_u8("byte"), expected(1000));
  EXPECT_EQ(source.fetches, (std::vector<FetchedSource::Fetch>{{1000, 100}}));
  EXPECT_EQ(reader.read_text(99, "rest").size(), 99U);
  EXPECT_THROW(reader.read_u8("byte"), Error);
  EXPECT_EQ(source.fetches.size(), 1U);
}

TEST(ByteReader, TextLargerThanAnyWindowIsFetchedAtOnce) {
  const FetchedSource source(1 << 20);
  ByteReader reader(source, "test");
  const std::string_view text = reader.read_text(500'000, "text");
  ASSERT_EQ(text.size(), 500'000U);
  for (std::size_t at = 0; at < text.size(); ++at) ASSERT_EQ(static_cast<std::uint8_t>(text[at]), expected(at)) << at;
  EXPECT_EQ(source.fetches.size(), 1U);
}

TEST(ByteReader, SeeksBothWaysAndFetchesLittleAfterAJump) {
  const FetchedSource source(1 << 20);
  ByteReader reader(source, "test");
  EXPECT_EQ(reader.read_u8("first"), expected(0));
  reader.seek(900'000);
  EXPECT_EQ(reader.position(), 900'000U);
  EXPECT_EQ(reader.read_u8("far"), expected(900'000));
  EXPECT_EQ(source.fetches.back(), (FetchedSource::Fetch{900'000, 4096}));
  reader.seek(900'100);  // inside the window
  EXPECT_EQ(reader.read_u8("near"), expected(900'100));
  EXPECT_EQ(source.fetches.size(), 2U);
  reader.seek(7);
  EXPECT_EQ(reader.read_u8("back"), expected(7));
  reader.seek(source.size());
  EXPECT_EQ(reader.remaining(), 0U);
  EXPECT_THROW(reader.read_u8("beyond"), Error);
}

TEST(ByteReader, SeekAndLimitOutsideAreBugs) {
  const FetchedSource source(100);
  ByteReader reader(source, "test", 10, 60);
  const auto kind = [](const auto& act) {
    try {
      act();
    } catch (const Error& error) {
      return error.kind();
    }
    return ErrorKind::cancelled;  // no call here throws this kind
  };
  EXPECT_EQ(kind([&] { reader.seek(61); }), ErrorKind::internal);
  EXPECT_EQ(kind([&] { reader.set_end(61); }), ErrorKind::internal);
  EXPECT_EQ(kind([&] { reader.set_end(9); }), ErrorKind::internal);
  EXPECT_EQ(kind([&] { ByteReader(source, "test", 10, 101); }), ErrorKind::internal);
  EXPECT_EQ(kind([&] { ByteReader(source, "test", 11, 10); }), ErrorKind::internal);
  reader.set_end(20);
  EXPECT_EQ(reader.remaining(), 10U);
  EXPECT_EQ(kind([&] { reader.skip(11, "padding"); }), ErrorKind::invalid_file);
  EXPECT_EQ(reader.position(), 10U);
}

TEST(ByteReader, AFetchThatFailsLeavesNoOldBytes) {
  FetchedSource source(100'000);
  ByteReader reader(source, "test");
  EXPECT_EQ(reader.read_u8("first"), expected(0));
  reader.seek(50'000);
  source.broken = true;
  EXPECT_THROW(reader.read_u8("far"), Error);
  source.broken = false;
  reader.seek(1);
  EXPECT_EQ(reader.read_u8("second"), expected(1));
  EXPECT_EQ(source.fetches.back().offset, 1U);
}

TEST(ByteReader, ThrowsTheKindThatTheCallerNames) {
  FetchedSource source(10);
  ByteReader reader(source, "test");
  const auto scope = reader.open_scope("record", 3);
  try {
    reader.fail(ErrorKind::unsupported, "version", "expected 1, found 2", 4);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
    EXPECT_EQ(error.message(), "test: record 3: version: expected 1, found 2");
    EXPECT_EQ(error.offset(), 4U);
    return;
  }
  FAIL();
}

TEST(ByteReader, ReportsWhereAFileShouldEnd) {
  FetchedSource source(100);
  const ByteReader reader(source, "test");
  const auto message = [&](std::uint64_t size) -> std::string {
    try {
      reader.require_end(size, "tensor");
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::invalid_file);
      EXPECT_EQ(error.offset(), std::min<std::uint64_t>(size, 100));
      return error.message();
    }
    return {};
  };
  EXPECT_EQ(message(100), "");
  EXPECT_EQ(message(101), "test: the file is cut off: it needs 101 bytes, has 100");
  EXPECT_EQ(message(98), "test: 2 bytes after the last tensor: expected a file of 98 bytes, found 100");
}

}  // namespace
}  // namespace poise
