#include "pack/read_ahead.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include <poise/error.hpp>

#include "support/errors.hpp"

namespace poise {
namespace {

// Has bytes that only a stream reads, each computed from its offset. The stream may fail at one of them.
class Streamed final : public Blob {
 public:
  Streamed(std::uint64_t size, unsigned seed, std::uint64_t fails_at = UINT64_MAX)
      : size_(size), seed_(seed), fails_at_(fails_at) {}

  std::uint64_t size() const override { return size_; }
  bool seekable() const override { return false; }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    for (std::byte& byte : out) {
      if (offset == fails_at_) throw Error(ErrorKind::invalid_file, "broken");
      byte = static_cast<std::byte>((offset++ >> 3U) * 31 + seed_);
    }
  }
  std::unique_ptr<BlobStream> stream() const override {
    ++streams_;
    return std::make_unique<Stream>(*this);
  }
  std::size_t streams() const { return streams_; }
  std::uint64_t made() const { return made_; }

 private:
  class Stream final : public BlobStream {
   public:
    explicit Stream(const Streamed& blob) : blob_(blob) {}
    std::size_t read(std::span<std::byte> out) override {
      // Returns fewer bytes than requested, as decoders may.
      const auto count = static_cast<std::size_t>(std::min<std::uint64_t>({out.size(), 70'001, blob_.size_ - at_}));
      blob_.read(at_, out.first(count));
      blob_.made_ += count;
      at_ += count;
      return count;
    }

   private:
    const Streamed& blob_;
    std::uint64_t at_ = 0;
  };

  std::uint64_t size_;
  unsigned seed_;
  std::uint64_t fails_at_;
  mutable std::atomic<std::size_t> streams_ = 0;
  mutable std::atomic<std::uint64_t> made_ = 0;
};

std::vector<std::byte> streamed(const Blob& blob, std::size_t piece = 100'000) {
  std::vector<std::byte> all(static_cast<std::size_t>(blob.size()));
  const auto stream = blob.stream();
  std::size_t done = 0;
  while (done < all.size()) {
    const std::size_t got = stream->read(std::span(all).subspan(done, std::min(piece, all.size() - done)));
    if (got == 0) break;
    done += got;
  }
  EXPECT_EQ(done, all.size());
  return all;
}

std::vector<std::unique_ptr<Streamed>> many(std::initializer_list<std::uint64_t> sizes) {
  std::vector<std::unique_ptr<Streamed>> blobs;
  for (const std::uint64_t size : sizes)
    blobs.push_back(std::make_unique<Streamed>(size, static_cast<unsigned>(blobs.size())));
  return blobs;
}
ReadAhead ahead_of(const std::vector<std::unique_ptr<Streamed>>& blobs) {
  return ReadAhead(ReadAhead::list_blobs(blobs, [](const auto& blob) -> const Blob& { return *blob; }));
}

TEST(ReadAhead, GivesTheBytesOfEachInOrder) {
  const auto blobs = many({1'000'000, 0, 1, 262'144, 262'145, 2'000'000, 5, 500'000, 1'500'000, 600'000});
  const ReadAhead ahead = ahead_of(blobs);
  for (std::size_t i = 0; i < blobs.size(); ++i) {
    EXPECT_EQ(ahead[i].size(), blobs[i]->size());
    const std::vector<std::byte> bytes = streamed(ahead[i]);
    EXPECT_EQ(blobs[i]->streams(), 1U) << i;
    EXPECT_EQ(bytes, read_all(*blobs[i])) << i;
  }
}

TEST(ReadAhead, SkippedBlobsAndSecondStreamsAreRead) {
  const auto blobs = many({1'000'000, 1'000'000, 1'000'000, 1'000'000});
  const ReadAhead ahead = ahead_of(blobs);
  EXPECT_EQ(streamed(ahead[0]), read_all(*blobs[0]));
  EXPECT_EQ(streamed(ahead[3]), read_all(*blobs[3]));
  EXPECT_EQ(streamed(ahead[1]), read_all(*blobs[1]));
  EXPECT_EQ(streamed(ahead[3]), read_all(*blobs[3]));
}

// The reader must get bytes although a blob is larger than the window.
TEST(ReadAhead, LongBlobsDoNotFillMemory) {
  std::vector<std::unique_ptr<Streamed>> blobs;
  for (unsigned i = 0; i < 3; ++i) blobs.push_back(std::make_unique<Streamed>(std::uint64_t{8} << 20, i));
  const ReadAhead ahead(ReadAhead::list_blobs(blobs, [](const auto& blob) -> const Blob& { return *blob; }),
                        {.window_bytes = 512 << 10});
  for (const std::size_t i : {0U, 1U, 2U}) {
    const auto stream = ahead[i].stream();
    std::vector<std::byte> chunk(1 << 20);
    std::vector<std::byte> expected(chunk.size());
    for (std::uint64_t at = 0; at < blobs[i]->size(); at += chunk.size()) {
      ASSERT_EQ(stream->read(chunk), chunk.size());
      blobs[i]->read(at, expected);
      ASSERT_TRUE(chunk == expected) << i << " at " << at;
    }
  }
}

// The limit does not depend on the number of processors.
TEST(ReadAhead, AllThreadsTogetherHaveALimit) {
  std::vector<std::unique_ptr<Streamed>> blobs;
  for (unsigned i = 0; i < 65; ++i) blobs.push_back(std::make_unique<Streamed>(std::uint64_t{1} << 20, i));
  const auto made = [&] {
    std::uint64_t bytes = 0;
    for (const auto& blob : blobs) bytes += blob->made();
    return bytes;
  };
  {
    const ReadAhead ahead(ReadAhead::list_blobs(blobs, [](const auto& blob) -> const Blob& { return *blob; }),
                          {.window_bytes = 1 << 20, .all_bytes = 4 << 20, .threads = 64});
    const auto stream = ahead[0].stream();
    std::vector<std::byte> some(1000);
    EXPECT_EQ(stream->read(some), some.size());
    for (std::uint64_t before = 0; before != made(); std::this_thread::sleep_for(std::chrono::milliseconds(50)))
      before = made();
  }
  EXPECT_LE(made(), 4U << 20U);
  EXPECT_EQ(ReadAhead::Limits().all_bytes, 256U << 20U);
}

TEST(ReadAhead, AFailureComesWhereItsBytesAreRead) {
  std::vector<std::unique_ptr<Streamed>> blobs;
  blobs.push_back(std::make_unique<Streamed>(2'000'000, 1));
  blobs.push_back(std::make_unique<Streamed>(2'000'000, 2, 1'000'000));
  blobs.push_back(std::make_unique<Streamed>(2'000'000, 3));
  const ReadAhead ahead = ahead_of(blobs);
  EXPECT_EQ(streamed(ahead[0]), read_all(*blobs[0]));
  EXPECT_EQ(support::error_of([&] { streamed(ahead[1]); }).message(), "broken");
  EXPECT_EQ(streamed(ahead[2]), read_all(*blobs[2]));
}

TEST(ReadAhead, EndsWhileOthersAreDecoded) {
  const auto blobs = many({1'000'000, 20'000'000, 20'000'000, 20'000'000});
  const ReadAhead ahead = ahead_of(blobs);
  const auto stream = ahead[0].stream();
  std::vector<std::byte> some(1000);
  EXPECT_EQ(stream->read(some), some.size());
}

TEST(ReadAhead, SeekableBlobsStayAsTheyAre) {
  const BlobPtr plain = make_memory_blob(std::vector<std::byte>(10), "plain");
  const Streamed other(1000, 7);
  const ReadAhead ahead({plain.get(), &other, plain.get()});
  EXPECT_EQ(&ahead[0], plain.get());
  EXPECT_EQ(&ahead[2], plain.get());
  EXPECT_EQ(streamed(ahead[1]), read_all(other));
}

}  // namespace
}  // namespace poise
