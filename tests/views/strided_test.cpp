// Expected bytes are those of numpy.ndarray(shape, dtype, bytes(range(48)), offset, strides).tobytes(), or of the
// definition of strides.
#include "views/strided.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include <poise/error.hpp>

#include "support/errors.hpp"

namespace poise {
namespace {

using Bytes = std::vector<int>;

std::vector<std::byte> counted(std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 256);
  for (std::size_t i = 0; i < std::min<std::size_t>(size, 48); ++i) bytes[i] = static_cast<std::byte>(i);
  return bytes;
}

// Holds the same bytes, but cannot be borrowed; perhaps it can only be read from front to back.
class Unmapped final : public Blob {
 public:
  Unmapped(BlobPtr blob, bool seekable) : blob_(std::move(blob)), seekable_(seekable) {}
  std::uint64_t size() const override { return blob_->size(); }
  bool seekable() const override { return seekable_; }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    blob_->read(offset, out);
    read_bytes += out.size();
    ++reads;
  }

  mutable std::uint64_t read_bytes = 0;
  mutable std::uint64_t reads = 0;

 private:
  BlobPtr blob_;
  bool seekable_;
};

BlobPtr bytes_to(std::size_t size) { return make_memory_blob(counted(size), "memory"); }

Bytes gathered(const Strided& layout) {
  Bytes result;
  for (const std::byte byte : read_all(*make_strided_blob(bytes_to(48), layout)))
    result.push_back(std::to_integer<int>(byte));
  return result;
}

TEST(Strided, HasElementsInRowMajorOrder) {
  EXPECT_EQ(gathered({{2, 3}, {2, 4}, 0, 2}), (Bytes{0, 1, 4, 5, 8, 9, 2, 3, 6, 7, 10, 11}));
  EXPECT_EQ(gathered({{2, 2, 2}, {2, 8, 4}, 4, 2}), (Bytes{4, 5, 8, 9, 12, 13, 16, 17, 6, 7, 10, 11, 14, 15, 18, 19}));
  EXPECT_EQ(gathered({{}, {}, 5, 3}), (Bytes{5, 6, 7}));
  EXPECT_EQ(gathered({{2, 2}, {8, 6}, 0, 3}), (Bytes{0, 1, 2, 6, 7, 8, 8, 9, 10, 14, 15, 16}));
}

TEST(Strided, StridesMayBeNegativeOrZero) {
  EXPECT_EQ(gathered({{3}, {-6}, 20, 2}), (Bytes{20, 21, 14, 15, 8, 9}));
  EXPECT_EQ(gathered({{2, 3}, {0, 1}, 7, 1}), (Bytes{7, 8, 9, 7, 8, 9}));
  EXPECT_EQ(gathered({{2, 2}, {-8, 12}, 12, 4}), (Bytes{12, 13, 14, 15, 24, 25, 26, 27, 4, 5, 6, 7, 16, 17, 18, 19}));
}

TEST(Strided, NumbersMayBeBigEndian) {
  EXPECT_EQ(gathered({{2, 3}, {2, 4}, 0, 2, 2}), (Bytes{1, 0, 5, 4, 9, 8, 3, 2, 7, 6, 11, 10}));
  EXPECT_EQ(gathered({{2, 2}, {8, 16}, 8, 8, 4}),
            (Bytes{11, 10, 9,  8,  15, 14, 13, 12, 27, 26, 25, 24, 31, 30, 29, 28,
                   19, 18, 17, 16, 23, 22, 21, 20, 35, 34, 33, 32, 39, 38, 37, 36}));
}

TEST(Strided, OrdersOfLanguages) {
  EXPECT_EQ(compute_row_major_strides({2, 3, 5}, 4), (std::vector<std::int64_t>{60, 20, 4}));
  EXPECT_EQ(compute_column_major_strides({2, 3, 5}, 4), (std::vector<std::int64_t>{4, 8, 24}));
}

// Returns the bytes by the definition: the byte at offset + sum of index times stride.
std::vector<std::byte> defined(const std::vector<std::byte>& bytes, const Strided& layout) {
  std::vector<std::byte> result;
  const auto elements = static_cast<std::int64_t>(*element_count(layout.shape));
  for (std::int64_t element = 0; element < elements; ++element) {
    auto at = static_cast<std::int64_t>(layout.offset);
    std::int64_t rest = element;
    for (std::size_t d = layout.shape.size(); d-- > 0;) {
      const auto count = static_cast<std::int64_t>(layout.shape[d]);
      at += rest % count * layout.strides[d];
      rest /= count;
    }
    const auto begin = bytes.begin() + at;
    result.insert(result.end(), begin, begin + layout.item_bytes);
  }
  return result;
}

TEST(Strided, EveryRangeOfBytesIsThatOfTheDefinition) {
  const std::vector<std::byte> bytes = counted(20'000);
  const std::vector<Strided> layouts = {{{37, 41}, compute_column_major_strides({37, 41}, 2), 6, 2},
                                        {{5, 7, 11}, compute_column_major_strides({5, 7, 11}, 4), 0, 4},
                                        {{5, 1, 70}, {280, 0, 4}, 3, 4},
                                        {{6, 5, 4, 3}, {2, 48, 12, -240}, 2000, 2},
                                        {{70, 60}, {8, 16 * 17}, 0, 8},
                                        {{3, 50}, {5000, 48}, 1, 16},
                                        {{4, 3, 9}, {-500, 0, 13}, 2000, 5},
                                        {{200}, {-4}, 800, 4},
                                        {{65, 33}, compute_column_major_strides({65, 33}, 1), 11, 1},
                                        {{2, 3, 4}, {4000, 2000, 8}, 0, 4}};
  for (std::size_t l = 0; l < layouts.size(); ++l) {
    const std::vector<std::byte> expected = defined(bytes, layouts[l]);
    const BlobPtr memory = make_memory_blob(bytes, "memory");
    for (const BlobPtr& blob : {memory, BlobPtr(std::make_shared<Unmapped>(memory, true)),
                                BlobPtr(std::make_shared<Unmapped>(memory, false))}) {
      const BlobPtr view = make_strided_blob(blob, layouts[l]);
      ASSERT_EQ(read_all(*view), expected) << l;
      for (std::size_t begin = 0; begin < expected.size(); begin += 1 + begin / 3) {
        for (std::size_t size = 0; size <= expected.size() - begin; size += 1 + size) {
          std::vector<std::byte> part(size);
          view->read(begin, part);
          ASSERT_TRUE(std::equal(part.begin(), part.end(), expected.begin() + static_cast<std::ptrdiff_t>(begin)))
              << l << " " << begin << " " << size;
        }
      }
    }
  }
}

// The reported place of an element has its bytes.
TEST(Strided, ReportsWhereAnElementIs) {
  const std::vector<std::byte> bytes = counted(20'000);
  const SourcePtr source = Source::from_memory(bytes, "memory");
  constexpr std::uint64_t kBegin = 100;
  for (const Strided& layout :
       {Strided{{37, 41}, compute_column_major_strides({37, 41}, 2), 6, 2},
        Strided{{6, 5, 4, 3}, {2, 48, 12, -240}, 2000, 2}, Strided{{2, 2}, {-8, 12}, 12, 4, 4},
        Strided{{5, 4}, {8, 40}, 3, 8, 4}, Strided{{3}, compute_row_major_strides({3}, 8), 16, 8}}) {
    const BlobPtr view = make_strided_blob(make_source_blob(source, kBegin, bytes.size() - kBegin), layout);
    const std::vector<std::byte> all = read_all(*view);
    const unsigned number = layout.swapped == 0 ? layout.item_bytes : layout.swapped;
    for (std::size_t at = 0; at < all.size(); at += number) {
      const auto place = view->stored_byte(at);
      ASSERT_TRUE(place);
      EXPECT_EQ(place->source, source);
      std::vector<std::byte> there(number);
      source->read(place->offset, there);
      if (layout.swapped != 0) std::ranges::reverse(there);
      ASSERT_TRUE(std::ranges::equal(there, std::span(all).subspan(at, number))) << at;
    }
  }
  EXPECT_FALSE(make_strided_blob(std::make_shared<Unmapped>(bytes_to(48), true), {{2}, {4}, 0, 2})->stored_byte(0));
}

TEST(Strided, ContiguousElementsAreNotComputed) {
  const BlobPtr blob = bytes_to(48);
  EXPECT_EQ(make_strided_blob(blob, {{2, 3, 4}, compute_row_major_strides({2, 3, 4}, 2), 0, 2}), blob);
  EXPECT_EQ(make_strided_blob(blob, {{1, 24}, {-1000, 2}, 0, 2}), blob);  // along a dimension of one nothing is next
  const auto part = make_strided_blob(blob, {{4, 2}, {4, 2}, 8, 2})->raw_range();
  ASSERT_TRUE(part);
  EXPECT_EQ(part->offset, 8U);
  EXPECT_EQ(part->length, 16U);
  EXPECT_EQ(make_strided_blob(blob, {{5, 0}, {-9, 99}, 777, 4})->size(), 0U);
}

TEST(Strided, ReportsTheRangeThatItIsMadeFrom) {
  const BlobPtr blob = bytes_to(48);
  const auto stored = [&](const Strided& layout) { return make_strided_blob(blob, layout)->stored().value(); };
  EXPECT_EQ(stored({{2, 3}, {2, 4}, 0, 2}).encoding, "raw, 2-byte items from 0, 2 every 2, 3 every 4");
  EXPECT_EQ(stored({{2, 3}, {2, 4}, 0, 2}), stored({{2, 1, 3}, {2, 8, 4}, 0, 2}));
  EXPECT_FALSE(stored({{2, 3}, {2, 4}, 0, 2}) == stored({{2, 3}, {2, 4}, 2, 2}));
  EXPECT_FALSE(stored({{2, 3}, {2, 4}, 0, 2}) == stored({{2, 3}, {2, 4}, 0, 2, 2}));
}

std::string refusal(const Strided& layout) {
  const Error error = support::error_of([&] { make_strided_blob(bytes_to(48), layout); });
  EXPECT_EQ(error.kind(), ErrorKind::invalid_file);
  return error.message();
}

TEST(Strided, RefusesElementsOutsideOfTheBlob) {
  constexpr std::int64_t kMost = INT64_MAX;
  constexpr std::int64_t kLeast = INT64_MIN;
  constexpr std::uint64_t kHuge = std::uint64_t{1} << 63;
  EXPECT_EQ(make_strided_blob(bytes_to(48), {{2, 3}, {2, 21}, 0, 4})->size(),
            24U);  // the last one ends at 2 + 2 * 21 + 4
  EXPECT_EQ(refusal({{2, 3}, {3, 21}, 0, 4}),
            "elements of shape [2, 3] with strides (3, 21) from byte 0 on are not in 48 bytes");
  EXPECT_EQ(refusal({{2, 3}, {2, 21}, 1, 4}),
            "elements of shape [2, 3] with strides (2, 21) from byte 1 on are not in 48 bytes");
  EXPECT_EQ(refusal({{}, {}, 48, 1}), "elements of shape [] with strides () from byte 48 on are not in 48 bytes");
  EXPECT_EQ(make_strided_blob(bytes_to(48), {{3}, {-5}, 10, 4})->size(), 12U);
  EXPECT_EQ(refusal({{3}, {-5}, 9, 4}), "elements of shape [3] with strides (-5) from byte 9 on are not in 48 bytes");
  for (const Strided& layout :
       {Strided{{2}, {kMost}, 0, 4}, Strided{{2}, {kLeast}, 0, 4}, Strided{{2}, {kLeast}, UINT64_MAX, 4},
        Strided{{4, 4}, {kMost, kMost}, 0, 4}, Strided{{}, {}, UINT64_MAX, 4}, Strided{{3, 3}, {kLeast, kMost}, 24, 4},
        Strided{{kHuge}, {2}, 0, 1}, Strided{{2, 2}, {kLeast, kLeast}, 0, 4}}) {
    EXPECT_THAT(refusal(layout), testing::HasSubstr("are not in 48 bytes"));
  }
  // A stride of 0 needs no bytes, however many elements there are.
  EXPECT_EQ(make_strided_blob(bytes_to(48), {{kHuge - 1, 2}, {0, 0}, 4, 1})->size(), UINT64_MAX - 1);
  EXPECT_EQ(refusal({{kHuge, 2}, {0, 0}, 0, 1}),
            "elements of shape [9223372036854775808, 2] take more than 2^64 bytes");
  EXPECT_EQ(refusal({{kHuge}, {0}, 0, 4}), "elements of shape [9223372036854775808] take more than 2^64 bytes");
}

// Reads include bytes between elements where that is faster, within bounds.
TEST(Strided, ReadsUnmappedBlobsInFewPieces) {
  const auto close = std::make_shared<Unmapped>(bytes_to(4 * 100 * 100), true);
  read_all(*make_strided_blob(close, {{100, 100}, compute_column_major_strides({100, 100}, 4), 0, 4}));
  EXPECT_EQ(close->reads, 1U);
  const auto apart = std::make_shared<Unmapped>(make_memory_blob(std::vector<std::byte>(4'000'000), "zeros"), true);
  std::vector<std::byte> rows(4 * 1000);
  make_strided_blob(apart, {{1000, 1000}, compute_column_major_strides({1000, 1000}, 4), 0, 4})
      ->read(0, rows);  // one row of far elements
  EXPECT_LE(apart->read_bytes, 4'000'000U);
  const auto rare = std::make_shared<Unmapped>(make_memory_blob(std::vector<std::byte>(8 << 20), "zeros"), true);
  const BlobPtr columns = make_strided_blob(rare, {{1024, 2048}, compute_column_major_strides({1024, 2048}, 4), 0, 4});
  std::vector<std::byte> column(4 * 2048);
  for (std::uint64_t i = 0; i < 1024; ++i)
    columns->read(i * column.size(), column);  // each by itself: its neighbours are in memory already
  EXPECT_EQ(rare->read_bytes, 8U << 20U);
  const auto backwards = std::make_shared<Unmapped>(bytes_to(10'000), false);
  const BlobPtr view = make_strided_blob(backwards, {{2500}, {-4}, 9996, 4});
  std::vector<std::byte> part(100);
  for (std::uint64_t i = 0; i < 100; ++i) view->read((99 - i) * part.size(), part);
  EXPECT_EQ(backwards->read_bytes, 10'000U);  // decoded once
}

// Holds numbers that a few stored bytes decode to, from front to back only.
class CompressedNumbers final : public Blob {
 public:
  explicit CompressedNumbers(std::uint64_t size) : size_(size) {}
  std::uint64_t size() const override { return size_; }
  bool seekable() const override { return false; }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    read_bytes += out.size();
    for (; !out.empty(); out = out.subspan(std::min(out.size(), kPeriod - offset % kPeriod)), offset = 0)
      std::copy_n(period_.begin() + static_cast<std::ptrdiff_t>(offset % kPeriod),
                  std::min<std::size_t>(out.size(), kPeriod - offset % kPeriod), out.begin());
  }
  std::optional<Stored> stored() const override {
    return Stored{{Source::from_memory({}, "file.npz"), 64, 1000}, "deflate"};
  }
  std::byte at(std::uint64_t offset) const { return period_[offset % kPeriod]; }

  mutable std::uint64_t read_bytes = 0;

 private:
  static constexpr std::size_t kPeriod = 99'991;  // a prime, so that neighbouring rows differ

  std::uint64_t size_;
  std::vector<std::byte> period_ = counted(kPeriod);
};

// The view is larger than the memory that the stored bytes justify: it keeps some rows at a time, with a pass for each.
TEST(Strided, ReadsStreamsInSeveralPasses) {
  constexpr std::uint64_t kRows = 15013;
  constexpr std::uint64_t kColumns = 3001;
  constexpr std::uint64_t kBytes = kRows * kColumns * 3;  // 135 MB; 64 MB are kept
  const auto blob = std::make_shared<CompressedNumbers>(kBytes);
  const BlobPtr view =
      make_strided_blob(blob, {{kRows, kColumns}, compute_column_major_strides({kRows, kColumns}, 3), 0, 3});
  EXPECT_FALSE(view->seekable());
  const std::vector<std::byte> all = read_all(*view);
  std::uint64_t wrong = 0;
  for (std::uint64_t byte = 0; byte < kBytes; byte += 1 + byte % 61) {
    const std::uint64_t element = byte / 3;
    wrong += all[byte] != blob->at((element % kColumns * kRows + element / kColumns) * 3 + byte % 3);
  }
  EXPECT_EQ(wrong, 0U);
  EXPECT_LE(blob->read_bytes, 3 * kBytes);
  EXPECT_TRUE(make_strided_blob(blob, {{100}, {-6}, 600, 3})->seekable());
}

// A large view keeps a third at a time, as long as there is memory for that.
TEST(Strided, ReadsLargeViewsInFewPasses) {
  constexpr std::uint64_t kSide = 20'000;
  constexpr std::uint64_t kBytes = kSide * kSide;
  const auto blob = std::make_shared<CompressedNumbers>(kBytes);
  const BlobPtr view = make_strided_blob(blob, {{kSide, kSide}, compute_column_major_strides({kSide, kSide}, 1), 0, 1});
  std::vector<std::byte> part(1);
  for (const std::uint64_t byte : {std::uint64_t{0}, std::uint64_t{5}, kBytes / 3}) {
    view->read(byte, part);
    EXPECT_EQ(part[0], blob->at(byte % kSide * kSide + byte / kSide));
    EXPECT_LE(blob->read_bytes, kBytes);
  }
}

}  // namespace
}  // namespace poise
