#include "pack/scan.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pack/digest.hpp"

namespace poise {
namespace {

// Expected: printf abc | openssl dgst -sha256
constexpr const char* kAbc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

std::vector<std::byte> counting(std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 256);
  return bytes;
}

// Has bytes that are read, not borrowed. Reading may fail.
class SlowBlob final : public Blob {
 public:
  SlowBlob(std::vector<std::byte> bytes, std::chrono::microseconds time = {}, std::optional<Error> error = {})
      : bytes_(std::move(bytes)), time_(time), error_(std::move(error)) {}
  std::uint64_t size() const override { return bytes_.size(); }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    ++reads_;
    std::this_thread::sleep_for(time_);
    if (error_) throw Error(*error_);
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
  }
  int reads() const { return reads_; }

 private:
  std::vector<std::byte> bytes_;
  std::chrono::microseconds time_;
  std::optional<Error> error_;
  mutable std::atomic<int> reads_ = 0;
};

// Records the bytes that visitors get.
struct Seen {
  std::vector<std::byte> bytes;
  bool whole_pieces = true;  // all but the last are a multiple of 16 bytes
  bool after_odd_piece = false;
  int ends = 0;
  std::string sha256;
  std::vector<std::string> failures;
};

class Recorder final : public Visitor {
 public:
  // Throws `thrown` at the end of the blob. Ignores errors of reading.
  explicit Recorder(Seen& seen, std::optional<Error> thrown = {}) : seen_(seen), thrown_(std::move(thrown)) {}
  void update(std::span<const std::byte> bytes) override {
    seen_.whole_pieces = seen_.whole_pieces && !seen_.after_odd_piece;
    seen_.after_odd_piece = bytes.size() % 16 != 0;
    seen_.bytes.insert(seen_.bytes.end(), bytes.begin(), bytes.end());
  }
  void end(std::string sha256) override {
    ++seen_.ends;
    seen_.sha256 = std::move(sha256);
    if (thrown_) throw Error(*thrown_);
  }
  void fail(const Error& error) override { seen_.failures.push_back(error.message()); }

 private:
  Seen& seen_;
  std::optional<Error> thrown_;
};

// Throws an error that ends the scan.
class Strict final : public Visitor {
 public:
  void update(std::span<const std::byte>) override {}
  void end(std::string) override {}
};

std::vector<std::uint64_t> sizes_of(const std::vector<BlobPtr>& blobs) {
  std::vector<std::uint64_t> sizes;
  for (const BlobPtr& blob : blobs) sizes.push_back(blob->size());
  return sizes;
}

TEST(Scan, ShowsEveryBlobOnceAndInOrder) {
  std::vector<BlobPtr> blobs;
  for (std::size_t i = 0; i < 60; ++i) {
    const std::size_t size = i * i * 331;  // up to a megabyte: several pieces
    if (i % 3 == 0) {
      blobs.push_back(std::make_shared<SlowBlob>(counting(size)));
    } else {
      blobs.push_back(make_memory_blob(counting(size), "blob"));
    }
  }
  for (const bool sha256 : {false, true}) {
    std::vector<Seen> seen(blobs.size());
    Scan scan(sizes_of(blobs), [&](std::size_t i) {
      return Visit{blobs[i], sha256, std::make_unique<Recorder>(seen[i])};
    });
    scan.start();
    scan.finish();
    EXPECT_FALSE(scan.is_busy());
    for (std::size_t i = 0; i < blobs.size(); ++i) {
      EXPECT_EQ(seen[i].bytes, read_all(*blobs[i])) << i;
      EXPECT_TRUE(seen[i].whole_pieces) << i;
      EXPECT_EQ(seen[i].ends, 1) << i;
      EXPECT_EQ(seen[i].sha256, sha256 ? compute_sha256(seen[i].bytes) : "") << i;
      EXPECT_THAT(seen[i].failures, testing::IsEmpty());
    }
  }
}

TEST(Scan, ComputesSha256IfThatIsAskedFor) {
  const auto bytes = std::as_bytes(std::span("abc", 3));
  const BlobPtr abc = make_memory_blob({bytes.begin(), bytes.end()}, "abc");
  Seen seen;
  const std::uint64_t size = 3;
  Scan scan({&size, 1}, [&](std::size_t) { return Visit{abc, true, std::make_unique<Recorder>(seen)}; });
  scan.start();
  scan.finish();
  EXPECT_EQ(seen.sha256, kAbc);
}

TEST(Scan, IsDoneIfThereAreNoBlobs) {
  Scan scan({}, [](std::size_t) -> Visit { throw Error(ErrorKind::internal, "there is no blob"); });
  scan.start();
  scan.finish();
  EXPECT_FALSE(scan.is_busy());
}

TEST(Scan, AVisitorGetsItsErrorAndTheOthersGoOn) {
  const Error broken(ErrorKind::invalid_file, "broken");
  std::vector<BlobPtr> blobs = {std::make_shared<SlowBlob>(counting(100), std::chrono::microseconds(0), broken),
                                make_memory_blob(counting(100), "good"),
                                make_memory_blob(counting(100), "thrown at the end")};
  std::vector<Seen> seen(3);
  Scan scan(sizes_of(blobs), [&](std::size_t i) {
    return Visit{blobs[i], true, std::make_unique<Recorder>(seen[i], i == 2 ? std::optional(broken) : std::nullopt)};
  });
  scan.start();
  scan.finish();
  EXPECT_THAT(seen[0].failures, testing::ElementsAre("broken"));
  EXPECT_EQ(seen[0].ends, 0);
  EXPECT_THAT(seen[1].failures, testing::IsEmpty());
  EXPECT_EQ(seen[1].ends, 1);
  EXPECT_THAT(seen[2].failures, testing::ElementsAre("broken"));
}

TEST(Scan, EndsWithTheErrorOfAVisitor) {
  const BlobPtr broken =
      std::make_shared<SlowBlob>(counting(100), std::chrono::microseconds(0), Error(ErrorKind::io, "broken"));
  const std::vector<std::uint64_t> sizes(1000, 100);
  Scan scan(sizes, [&](std::size_t) { return Visit{broken, false, std::make_unique<Strict>()}; });
  scan.start();
  EXPECT_THROW(scan.finish(), Error);
  EXPECT_FALSE(scan.is_busy());
}

// TBB never runs cancelled tasks. A caller that waits for the scan must not wait forever.
TEST(Scan, IsNotBusyAfterItHasFailed) {
  const BlobPtr blob = make_memory_blob(counting(100), "blob");
  const std::vector<std::uint64_t> sizes(1000, 100);
  Scan scan(sizes, [&](std::size_t i) -> Visit {
    if (i == 500) throw std::runtime_error("no memory for a visitor");
    return {blob, false, std::make_unique<Strict>()};
  });
  scan.start();
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (scan.is_busy() && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_FALSE(scan.is_busy());
  EXPECT_TRUE(scan.has_failed());
  EXPECT_THROW(scan.finish(), std::runtime_error);
}

// The error `cancelled` is not passed to visitors.
TEST(Scan, VisitorsCannotPreventCancelling) {
  std::vector<BlobPtr> blobs = {make_memory_blob(counting(100), "blob")};
  Seen seen;
  Scan scan(sizes_of(blobs), [&](std::size_t) {
    return Visit{blobs[0], true, std::make_unique<Recorder>(seen, Error(ErrorKind::cancelled, "cancelled"))};
  });
  scan.start();
  EXPECT_THROW(scan.finish(), Error);
  EXPECT_THAT(seen.failures, testing::IsEmpty());
}

TEST(Scan, IsGivenUpWithItsObject) {
  const auto slow = std::make_shared<SlowBlob>(std::vector<std::byte>(64 << 20),
                                               std::chrono::milliseconds(4));  // 256 reads, a second
  {
    const std::uint64_t size = slow->size();
    Scan scan({&size, 1}, [&](std::size_t) { return Visit{slow, false, std::make_unique<Strict>()}; });
    scan.start();
    EXPECT_TRUE(scan.is_busy());
  }
  const int reads = slow->reads();
  EXPECT_LT(reads, 128);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(slow->reads(), reads);
}

}  // namespace
}  // namespace poise
