#include "tensor/writer_digests.hpp"

#include <atomic>
#include <chrono>
#include <thread>

#include <gtest/gtest.h>

#include <poise/error.hpp>

#include "tensor/part_digest.hpp"

namespace poise {
namespace {

// printf abc | openssl dgst -sha256; printf '' | openssl dgst -sha256; head -c 1048576 /dev/zero | openssl dgst -sha256
constexpr const char* kAbc = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
constexpr const char* kNothing = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
constexpr const char* kMebibyteOfZeros = "sha256:30e14955ebf1352266dc2ff8067e68104607e750abb9d3b36582b8af909fcb58";

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

// Counts who reads it.
class WatchedBlob final : public Blob {
 public:
  WatchedBlob(std::vector<std::byte> bytes, bool seekable) : bytes_(std::move(bytes)), seekable_(seekable) {}
  std::uint64_t size() const override { return bytes_.size(); }
  bool seekable() const override { return seekable_; }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    ++reads_;
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
  }
  int reads() const { return reads_; }

 private:
  std::vector<std::byte> bytes_;
  bool seekable_;
  mutable std::atomic<int> reads_ = 0;
};

class FailingBlob final : public Blob {
 public:
  std::uint64_t size() const override { return 5; }
  void read(std::uint64_t, std::span<std::byte>) const override { throw Error(ErrorKind::io, "the disk is gone"); }
};

// What a writer does with a blob whose bytes are not changed.
std::string write(WriterDigests& digests, const Blob& blob) {
  if (Hasher* hasher = digests.begin()) hasher->update(read_all(blob));
  return digests.end();
}

TEST(WriterDigests, AreThoseOfTheBlobsInOrder) {
  const std::vector<BlobPtr> blobs = {make_memory_blob(bytes_of("abc"), "abc"), make_memory_blob({}, "empty"),
                                      make_memory_blob(std::vector<std::byte>(1 << 20), "zeros")};
  WriterDigests digests(DigestAlgorithm::sha256, WriterDigests::Of::blobs, blobs);
  EXPECT_EQ(digests.begin(), nullptr);  // computed ahead
  EXPECT_EQ(digests.end(), kAbc);
  EXPECT_EQ(write(digests, *blobs[1]), kNothing);
  EXPECT_EQ(write(digests, *blobs[2]), kMebibyteOfZeros);
}

TEST(WriterDigests, PassOverWhatIsSkipped) {
  const std::vector<BlobPtr> blobs = {make_memory_blob({}, "empty"), make_memory_blob(bytes_of("abc"), "abc")};
  for (const auto of : {WriterDigests::Of::blobs, WriterDigests::Of::written}) {
    WriterDigests digests(DigestAlgorithm::sha256, of, blobs);
    digests.skip();
    EXPECT_EQ(write(digests, *blobs[1]), kAbc);
  }
}

TEST(WriterDigests, BlobsThatCannotSeekAreReadByTheWriterAlone) {
  const auto stream = std::make_shared<WatchedBlob>(bytes_of("abc"), false);
  const auto memory = std::make_shared<WatchedBlob>(bytes_of("abc"), true);
  WriterDigests digests(DigestAlgorithm::sha256, WriterDigests::Of::blobs, {stream, memory, stream});
  EXPECT_EQ(write(digests, *stream), kAbc);
  EXPECT_EQ(write(digests, *memory), kAbc);
  EXPECT_EQ(write(digests, *stream), kAbc);
  EXPECT_EQ(stream->reads(), 2);
  EXPECT_EQ(memory->reads(), 1);
}

TEST(WriterDigests, OfWhatIsWrittenNeedTheWritersBytes) {
  WriterDigests digests(DigestAlgorithm::sha256, WriterDigests::Of::written, {make_memory_blob(bytes_of("abcabcabc"), "plain")});
  Hasher* const hasher = digests.begin();
  ASSERT_NE(hasher, nullptr);
  hasher->update(bytes_of("abc"));
  EXPECT_EQ(digests.end(), kAbc);
}

TEST(WriterDigests, NoneIsNoText) {
  WriterDigests digests(DigestAlgorithm::none, WriterDigests::Of::blobs, {make_memory_blob(bytes_of("abc"), "abc")});
  EXPECT_EQ(digests.begin(), nullptr);
  EXPECT_EQ(digests.end(), "");
}

TEST(WriterDigests, ABlobThatCannotBeReadFailsWhenItsDigestIsAskedFor) {
  WriterDigests digests(DigestAlgorithm::sha256, WriterDigests::Of::blobs, {std::make_shared<FailingBlob>()});
  digests.begin();
  EXPECT_THROW(digests.end(), Error);
}

// Takes a millisecond for each read, of which there are 256.
class SlowBlob final : public Blob {
 public:
  std::uint64_t size() const override { return 64 << 20; }
  void read(std::uint64_t, std::span<std::byte>) const override {
    ++reads;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  mutable std::atomic<int> reads = 0;
};

TEST(WriterDigests, CanBeGivenUp) {
  const auto blob = std::make_shared<SlowBlob>();
  {
    WriterDigests digests(DigestAlgorithm::sha256, WriterDigests::Of::blobs, std::vector<BlobPtr>(8, blob));
    digests.begin();
  }
  const int reads = blob->reads;
  EXPECT_LT(reads, 256) << "of eight times as many";
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(blob->reads, reads) << "read after the writer had gone";
}

}  // namespace
}  // namespace poise
