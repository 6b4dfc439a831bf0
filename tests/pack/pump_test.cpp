#include "pack/pump.hpp"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <thread>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poise/error.hpp>

namespace poise {
namespace {

constexpr std::size_t kLarge = (3 << 20) + 5;  // several chunks, and one that is not full

std::byte byte_at(std::uint64_t offset) { return static_cast<std::byte>((offset * 2654435761U) >> 13); }

std::vector<std::byte> pattern(std::uint64_t offset, std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = byte_at(offset + i);
  return bytes;
}

// Computes its bytes. Reading fails from the byte `broken` on.
class ComputedBlob final : public Blob {
 public:
  explicit ComputedBlob(std::uint64_t size, bool seekable = true, std::uint64_t broken = UINT64_MAX)
      : size_(size), seekable_(seekable), broken_(broken) {}
  std::uint64_t size() const override { return size_; }
  bool seekable() const override { return seekable_; }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (offset + out.size() > broken_) throw Error(ErrorKind::io, "the disk is gone");
    std::ranges::copy(pattern(offset, out.size()), out.begin());
    if (seekable_) return;
    EXPECT_EQ(std::exchange(next_, offset + out.size()), offset) << "not from front to back";
  }

 private:
  std::uint64_t size_;
  bool seekable_;
  std::uint64_t broken_;
  mutable std::uint64_t next_ = 0;
};

// Records which bytes were copied from a source and which were written.
class WatchedSink final : public Sink {
 public:
  std::vector<std::byte> bytes;
  std::size_t copies = 0;

 protected:
  void do_write(std::span<const std::byte> piece) override { bytes.insert(bytes.end(), piece.begin(), piece.end()); }
  void do_copy(const Source& source, std::uint64_t offset, std::uint64_t length) override {
    ++copies;
    Sink::do_copy(source, offset, length);
  }
};

class FileOfBytes {
 public:
  FileOfBytes() : path_(std::filesystem::temp_directory_path() / ("poise-pump-" + std::to_string(::getpid()))) {
    const std::vector<std::byte> bytes = pattern(0, kLarge);
    std::ofstream(path_, std::ios::binary).write(reinterpret_cast<const char*>(bytes.data()), kLarge);
  }
  ~FileOfBytes() { std::filesystem::remove(path_); }
  SourcePtr open(IoMode mode) const { return Source::open(path_, mode); }

 private:
  std::filesystem::path path_;
};

std::vector<std::byte> pumped(const Blob& blob, Hasher* hasher = nullptr) {
  WatchedSink sink;
  Meter meter;
  write_blob(blob, sink, meter, "item", hasher);
  return sink.bytes;
}

TEST(Pump, BytesArriveInOrderWhereverTheyComeFrom) {
  const FileOfBytes file;
  EXPECT_EQ(pumped(*make_memory_blob(pattern(0, kLarge), "memory")), pattern(0, kLarge));
  EXPECT_EQ(pumped(ComputedBlob(kLarge)), pattern(0, kLarge));
  EXPECT_EQ(pumped(ComputedBlob(kLarge, false)), pattern(0, kLarge));
  for (const IoMode mode : {IoMode::map, IoMode::read}) {
    EXPECT_EQ(pumped(*make_source_blob(file.open(mode), 3, kLarge - 7)), pattern(3, kLarge - 7));
  }
  EXPECT_TRUE(pumped(ComputedBlob(0)).empty());
  EXPECT_TRUE(pumped(*make_memory_blob({}, "empty")).empty());
}

TEST(Pump, BytesOfAFileAreCopiedByTheSinkUnlessTheyAreHashed) {
  const FileOfBytes file;
  const BlobPtr blob = make_source_blob(file.open(IoMode::map), 0, kLarge);
  Meter meter;
  WatchedSink copied;
  write_blob(*blob, copied, meter, "item");
  EXPECT_GT(copied.copies, 0U);
  WatchedSink hashed;
  const auto hasher = make_xxh3();
  write_blob(*blob, hashed, meter, "item", hasher.get());
  EXPECT_EQ(hashed.copies, 0U);
}

TEST(Pump, TheHasherSeesEveryByteInOrder) {
  const FileOfBytes file;
  const auto whole = make_sha256();
  whole->update(pattern(0, kLarge));
  const auto expected = whole->finish();
  const auto digest = [](const Blob& blob) {
    const auto hasher = make_sha256();
    pumped(blob, hasher.get());
    return hasher->finish();
  };
  EXPECT_EQ(digest(ComputedBlob(kLarge)), expected);
  EXPECT_EQ(digest(ComputedBlob(kLarge, false)), expected);
  EXPECT_EQ(digest(*make_memory_blob(pattern(0, kLarge), "memory")), expected);
  EXPECT_EQ(digest(*make_source_blob(file.open(IoMode::map), 0, kLarge)), expected);
  EXPECT_EQ(digest(*make_source_blob(file.open(IoMode::read), 0, kLarge)), expected);
}

TEST(Pump, TheMeterCountsEveryByteOnceAndCanStopIt) {
  std::uint64_t last = 0;
  std::set<std::string> items;
  Meter meter(
      [&](const ProgressEvent& event) {
        EXPECT_GT(event.done, last);
        last = event.done;
        items.emplace(event.item);
        return event.done < 2 << 20;
      },
      kLarge);
  WatchedSink sink;
  EXPECT_THROW(write_blob(ComputedBlob(kLarge), sink, meter, "a tensor"), Error);
  EXPECT_THAT(items, testing::ElementsAre("a tensor"));
  EXPECT_LT(sink.bytes.size(), kLarge);
}

TEST(Pump, WritesTheBytesBeforeAFailureInOrder) {
  for (const bool seekable : {true, false}) {
    WatchedSink sink;
    Meter meter;
    EXPECT_THROW(write_blob(ComputedBlob(kLarge, seekable, 1 << 20), sink, meter, "item"), Error);
    EXPECT_LE(sink.bytes.size(), std::size_t{1} << 20);
    EXPECT_EQ(sink.bytes, pattern(0, sink.bytes.size()));
  }
}

TEST(StreamChunks, PassesEveryByteOnTheCallingThread) {
  const FileOfBytes file;
  const auto self = std::this_thread::get_id();
  const auto streamed = [&](const Blob& blob) {
    std::vector<std::byte> bytes;
    stream_chunks(blob, [&](std::span<const std::byte> chunk) {
      EXPECT_EQ(std::this_thread::get_id(), self);
      EXPECT_FALSE(chunk.empty());
      bytes.insert(bytes.end(), chunk.begin(), chunk.end());
    });
    return bytes;
  };
  EXPECT_EQ(streamed(ComputedBlob(kLarge)), pattern(0, kLarge));
  EXPECT_EQ(streamed(ComputedBlob(kLarge, false)), pattern(0, kLarge));
  EXPECT_EQ(streamed(*make_source_blob(file.open(IoMode::map), 1, kLarge - 1)), pattern(1, kLarge - 1));
  EXPECT_EQ(streamed(*make_source_blob(file.open(IoMode::read), 1, kLarge - 1)), pattern(1, kLarge - 1));
}

}  // namespace
}  // namespace poise
