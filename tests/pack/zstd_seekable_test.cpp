#include "pack/zstd.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <random>

#include <oneapi/tbb/parallel_for.h>

#include <poise/error.hpp>

#include "io/sink.hpp"
#include "pack/pump.hpp"
#include "support/memory_output.hpp"

namespace poise {
namespace {

// Counts how often the stored bytes are read: decoding a frame reads once.
class CountingSource final : public Source {
 public:
  explicit CountingSource(std::vector<std::byte> bytes) : Source("counted", bytes.size()), bytes_(std::move(bytes)) {}
  bool mapped() const override { return false; }
  std::span<const std::byte> bytes() const override { return {}; }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    ++reads_;
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
  }
  int reads() const { return reads_; }

 private:
  std::vector<std::byte> bytes_;
  mutable std::atomic<int> reads_ = 0;
};

constexpr std::size_t kFrame = 1 << 20;
constexpr int kReadsOfTable = 3;  // its end, its beginning, its entries

std::vector<std::byte> some_content(std::size_t size) {
  std::mt19937 random(5);
  std::vector<std::byte> content(size);
  for (std::byte& byte : content) byte = static_cast<std::byte>(random() % 4);
  return content;
}

std::shared_ptr<const CountingSource> compressed(const std::vector<std::byte>& content) {
  MemoryOutput output("frames");
  Meter meter;
  write_zstd_seekable(*make_memory_blob(content, "content"), 1, output.main(), meter, "content", nullptr);
  return std::make_shared<const CountingSource>(output.take());
}

BlobPtr blob_of(const SourcePtr& source, std::size_t size) {
  return make_zstd_seekable_blob({source, 0, source->size()}, size);
}

TEST(ZstdSeekable, ReadPieceByPieceEachFrameIsDecodedOnce) {
  const auto content = some_content(4 * kFrame + 1000);
  const auto source = compressed(content);
  const BlobPtr blob = blob_of(source, content.size());
  ASSERT_TRUE(blob->seekable());
  std::vector<std::byte> joined(content.size());
  for (std::size_t at = 0; at < joined.size(); at += 10'000)
    blob->read(at, std::span(joined).subspan(at, std::min<std::size_t>(10'000, joined.size() - at)));
  EXPECT_EQ(joined, content);
  EXPECT_EQ(source->reads(), kReadsOfTable + 5);
}

// In zstd's seekable format, bit 7 of the descriptor gives each entry a third number, the checksum with which its frame
// ends.
TEST(ZstdSeekable, ChecksumsOfTheTableAreThoseOfTheFrames) {
  const auto content = some_content(1000);  // one frame
  constexpr std::size_t kTable = 8 + 8 + 9;
  const auto source = compressed(content);
  std::vector<std::byte> frame(source->size() - kTable);
  source->read(0, frame);
  const auto with_checksum = [&](std::byte change) {
    std::vector<std::byte> file = frame;
    const auto add = [&](std::initializer_list<unsigned> bytes) {
      for (const unsigned byte : bytes) file.push_back(static_cast<std::byte>(byte));
    };
    add({0x5e, 0x2a, 0x4d, 0x18, 12 + 9, 0, 0, 0});
    add({static_cast<unsigned>(frame.size()) & 0xffU, static_cast<unsigned>(frame.size()) >> 8U, 0, 0});
    add({1000 & 0xffU, 1000 >> 8U, 0, 0});
    file.insert(file.end(), frame.end() - 4, frame.end());
    file.back() ^= change;
    add({1, 0, 0, 0, 0x80, 0xb1, 0xea, 0x92, 0x8f});
    return blob_of(Source::from_memory(std::move(file), "frames"), content.size());
  };
  EXPECT_EQ(read_all(*with_checksum(std::byte{0})), content);
  try {
    read_all(*with_checksum(std::byte{1}));
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::invalid_file);
    EXPECT_NE(error.message().find("frame 0: checksum: expected "), std::string::npos) << error.message();
  }
}

// A frame without content is decoded, too: what its bytes are must not go unseen.
TEST(ZstdSeekable, FramesWithoutContentAreChecked) {
  const auto file_of = [](std::vector<std::byte> frames, std::initializer_list<std::array<unsigned, 2>> entries) {
    const auto add = [&](std::uint32_t number) {
      for (unsigned shift = 0; shift < 32; shift += 8) frames.push_back(static_cast<std::byte>(number >> shift));
    };
    add(0x184D2A5E);
    add(static_cast<std::uint32_t>(8 * entries.size() + 9));
    for (const auto& [stored, content] : entries) {
      add(stored);
      add(content);
    }
    add(static_cast<std::uint32_t>(entries.size()));
    frames.push_back(std::byte{0});
    add(0x8F92EAB1);
    return Source::from_memory(std::move(frames), "frames");
  };
  const std::vector<std::byte> garbage(7, std::byte{0x55});
  EXPECT_THROW(blob_of(file_of(garbage, {{7, 0}}), 0), Error);
  const auto content = some_content(6);
  const auto source = compressed(content);
  std::vector<std::byte> frames(source->size() - (8 + 8 + 9));
  source->read(0, frames);
  const auto length = static_cast<unsigned>(frames.size());
  frames.insert(frames.end(), garbage.begin(), garbage.end());
  EXPECT_THROW(read_all(*blob_of(file_of(std::move(frames), {{length, 6}, {7, 0}}), 6)), Error);
}

TEST(ZstdSeekable, ThreadsShareFrames) {
  const auto content = some_content(2 * kFrame);
  const auto source = compressed(content);
  const BlobPtr blob = blob_of(source, content.size());
  std::vector<std::byte> joined(content.size());
  oneapi::tbb::parallel_for(std::size_t{0}, std::size_t{64}, [&](std::size_t i) {
    const std::size_t piece = joined.size() / 64;
    blob->read(i * piece, std::span(joined).subspan(i * piece, piece));
  });
  EXPECT_EQ(joined, content);
  EXPECT_EQ(source->reads(), kReadsOfTable + 2);
}

// A stream decodes whole frames into the reader's memory, and others into its own.
TEST(ZstdSeekable, StreamsGiveTheSameByPiecesOfAnySize) {
  const auto content = some_content(3 * kFrame + 1000);
  const auto source = compressed(content);
  for (const std::size_t piece : {std::size_t{300'001}, kFrame, kFrame + 7, 3 * kFrame, 5 * kFrame}) {
    const int before = source->reads();
    const BlobPtr blob = blob_of(source, content.size());
    const auto stream = blob->stream();
    EXPECT_EQ(stream->best_read(), kFrame);
    std::vector<std::byte> joined(content.size());
    for (std::size_t at = 0; at < joined.size(); at += piece) {
      const auto out = std::span(joined).subspan(at, std::min(piece, joined.size() - at));
      ASSERT_EQ(stream->read(out), out.size());
    }
    std::byte more{};
    EXPECT_EQ(stream->read(std::span(&more, 1)), 0U);
    EXPECT_EQ(joined, content) << piece;
    EXPECT_EQ(source->reads() - before, kReadsOfTable + 4) << piece;
  }
}

// A blob may have the address of an earlier one.
TEST(ZstdSeekable, FramesOfAnotherBlobAreNotTaken) {
  for (int i = 0; i < 20; ++i) {
    std::vector<std::byte> content(2000, static_cast<std::byte>(i));
    const BlobPtr blob = blob_of(compressed(content), content.size());
    std::vector<std::byte> piece(100);
    blob->read(500, piece);
    ASSERT_EQ(piece, std::vector<std::byte>(100, static_cast<std::byte>(i)));
  }
}

}  // namespace
}  // namespace poise
