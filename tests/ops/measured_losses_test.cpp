// Counts worked out by hand: every element of LossyBytes loses its own value.
#include "ops/conversion.hpp"

#include <gtest/gtest.h>

#include <oneapi/tbb/parallel_for.h>

#include <vector>

namespace poise {
namespace {

// Holds bytes 1, 1, 1, ...; each counts as one value.
class LossyBytes final : public LossyBlob<CastStats> {
 public:
  LossyBytes(std::uint64_t size, std::uint64_t grain) : size_(size), grain_(grain) {}
  std::uint64_t size() const override { return size_; }
  std::uint64_t grain() const override { return grain_; }
  void read_measured(std::uint64_t, std::span<std::byte> out, CastStats* stats) const override {
    std::ranges::fill(out, std::byte{1});
    if (stats != nullptr) stats->values += out.size();
  }

 private:
  std::uint64_t size_;
  std::uint64_t grain_;
};

struct Measured {
  explicit Measured(std::uint64_t size, std::uint64_t grain = 1)
      : blob(make_measured_blob<CastStats>(std::make_shared<LossyBytes>(size, grain), tally)) {}
  std::uint64_t values() const { return tally->total().values; }
  std::vector<std::byte> read(std::uint64_t offset, std::size_t size) const {
    std::vector<std::byte> bytes(size);
    blob->read(offset, bytes);
    EXPECT_EQ(bytes, std::vector<std::byte>(size, std::byte{1}));
    return bytes;
  }

  std::shared_ptr<Tally<CastStats>> tally = std::make_shared<Tally<CastStats>>();
  BlobPtr blob;
};

TEST(MeasuredLosses, EveryByteCountsOnceHoweverItIsRead) {
  for (const std::size_t size : {1U, 65535U, 65536U, 65537U, 300'000U}) {
    for (const std::size_t step : {1000U, 8192U, 65536U, 100'000U, 262'144U, 300'000U}) {
      for (const std::uint64_t grain : {1U, 1000U, 100'000U}) {
        const Measured measured(size, grain);
        for (int round = 0; round < 2; ++round) {
          for (std::size_t offset = 0; offset < size; offset += step)
            measured.read(offset, std::min(step, size - offset));
        }
        EXPECT_EQ(measured.values(), size) << size << " in steps of " << step << " of " << grain;
      }
    }
  }
}

TEST(MeasuredLosses, WhatIsNotReadDoesNotCount) {
  const Measured measured(300'000, 1000);
  EXPECT_EQ(measured.values(), 0U);
  measured.read(131'000, 65'000);
  EXPECT_EQ(measured.values(), 65'000U);
  measured.read(131'007, 65'000);  // the rest of rows that count already, and the beginning of the next one
  EXPECT_EQ(measured.values(), 66'000U);
  measured.read(300'000, 0);
  EXPECT_EQ(measured.values(), 66'000U);
}

// A blob that computes whole rows is read in whole rows.
TEST(MeasuredLosses, StreamsReadWholeGrains) {
  const Measured measured(300'000, 1000);
  const auto stream = measured.blob->stream();
  EXPECT_EQ(stream->best_read() % 1000, 0U);
  std::vector<std::byte> bytes(200'000);
  EXPECT_EQ(stream->read(bytes), 200'000U);
  EXPECT_EQ(stream->read(bytes), 100'000U);
  EXPECT_EQ(stream->read(bytes), 0U);
  EXPECT_EQ(measured.values(), 300'000U);
}

TEST(MeasuredLosses, ManyThreadsCountOnce) {
  const Measured measured(10'000'000);
  oneapi::tbb::parallel_for(0, 80,
                            [&](int i) { measured.read(static_cast<std::uint64_t>(i % 40) * 250'000, 250'000); });
  EXPECT_EQ(measured.values(), 10'000'000U);
}

}  // namespace
}  // namespace poise
