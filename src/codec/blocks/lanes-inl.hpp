// Defines functions that encoders of blocks share. Highway compiles them for each kind of processor. Each lane of a
// vector encodes one block, with the same operations as ggml, so that results are equal bit by bit.
#if defined(POISE_BLOCK_LANES) == defined(HWY_TARGET_TOGGLE)
#ifdef POISE_BLOCK_LANES
#undef POISE_BLOCK_LANES
#else
#define POISE_BLOCK_LANES
#endif

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <hwy/highway.h>

#include "codec/block_type.hpp"
#include "numeric/half.hpp"

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Integers = hn::RebindToSigned<Floats>;
using Numbers = hn::Vec<Floats>;
using Codes = hn::Vec<Integers>;
using Choice = hn::Mask<Floats>;
constexpr std::size_t kMaxLanes = hn::MaxLanes(Floats());

HWY_INLINE Numbers Set(float x) { return hn::Set(Floats(), x); }
HWY_INLINE Codes SetCode(int code) { return hn::Set(Integers(), code); }
HWY_INLINE Numbers Zero() { return hn::Zero(Floats()); }

// Returns element i of each lane's block.
HWY_INLINE Numbers LoadAt(const float* lanes, std::size_t i) {
  return hn::Load(Floats(), lanes + i * hn::Lanes(Floats()));
}
HWY_INLINE void StoreAt(Numbers x, float* lanes, std::size_t i) {
  hn::Store(x, Floats(), lanes + i * hn::Lanes(Floats()));
}

// The low bits of x + kShift have the integer nearest to x, ties to even. ggml rounds in this way.
constexpr float kShift = 0x1.8p23F;

// Rounds x to an integer and clamps it. RoundAndClamp() returns the same integer if |x| <= 2^22 - 1.
HWY_INLINE Numbers RoundBetween(Numbers x, int lowest, int highest) {
  const auto shifted = hn::Add(x, Set(kShift));
  const auto clamped =
      hn::Min(Set(kShift + static_cast<float>(highest)), hn::Max(Set(kShift + static_cast<float>(lowest)), shifted));
  return hn::Sub(clamped, Set(kShift));
}

// Rounds any x to an integer, as ggml does: numbers beyond 2^22 become some integer.
HWY_INLINE Codes RoundToNearest(Numbers x) {
  const auto bits = hn::BitCast(Integers(), hn::Add(x, Set(kShift)));
  return hn::Sub(hn::And(bits, SetCode(0x007fffff)), SetCode(0x00400000));
}
HWY_INLINE Codes RoundAndClamp(Numbers x, int lowest, int highest) {
  return hn::Min(SetCode(highest), hn::Max(SetCode(lowest), RoundToNearest(x)));
}

HWY_INLINE Numbers ConvertToNumbers(Codes codes) { return hn::ConvertTo(Floats(), codes); }

// Rounds towards zero. Numbers outside int become 0; ggml's casts on x86-64 make INT_MIN of them, which has the same
// low bits.
HWY_INLINE Codes Truncate(Numbers x) {
  return hn::ConvertTo(Integers(), hn::IfThenElseZero(hn::Lt(hn::Abs(x), Set(0x1p31F)), x));
}

// Rounds as C's round() does, halves away from zero, to an int.
HWY_INLINE Codes RoundHalvesAway(Numbers x) {
  // Adds the largest float32 number below a half. With a half, 0.49999997 would become 1.
  return Truncate(hn::Add(x, hn::CopySign(Set(0x1.fffffep-2F), x)));
}

HWY_INLINE Numbers InvertOrZero(Numbers x) { return hn::IfThenZeroElse(hn::Eq(x, Zero()), hn::Div(Set(1), x)); }

// Refers to output blocks, one for each of the first `live` lanes. Only the last vector has lanes without a block.
struct LaneOutput {
  std::byte* blocks;
  std::size_t stride;
  std::size_t live;

  // Stores four bytes of each block, the lowest first.
  HWY_INLINE void store_words(Codes words, std::size_t offset) const {
    HWY_ALIGN std::int32_t all[kMaxLanes];
    hn::Store(words, Integers(), all);
    for (std::size_t lane = 0; lane < live; ++lane) std::memcpy(blocks + lane * stride + offset, &all[lane], 4);
  }
  // Stores numbers as float16, and returns the stored values.
  HWY_INLINE Numbers store_halves(Numbers x, std::size_t offset) const {
    HWY_ALIGN float all[kMaxLanes];
    hn::Store(x, Floats(), all);
    for (std::size_t lane = 0; lane < hn::Lanes(Floats()); ++lane) {
      const std::uint16_t half = round_to_half(all[lane]);
      if (lane < live) store_le(blocks + lane * stride + offset, half);
      all[lane] = convert_half(half);
    }
    return hn::Load(Floats(), all);
  }
  HWY_INLINE void store_bytes(Codes bytes, std::size_t offset) const {
    HWY_ALIGN std::int32_t all[kMaxLanes];
    hn::Store(bytes, Integers(), all);
    for (std::size_t lane = 0; lane < live; ++lane)
      blocks[lane * stride + offset] = static_cast<std::byte>(all[lane] & 255);
  }
};

// Stores bytes of each block, four at a time: the low eight bits of byte(i) are byte i.
template <typename Byte>
HWY_INLINE void StoreBytes(const LaneOutput& out, std::size_t offset, std::size_t count, Byte byte) {
  const auto mask = SetCode(255);
  for (std::size_t i = 0; i < count; i += 4) {
    auto word = hn::And(byte(i), mask);
    word = hn::Or(word, hn::ShiftLeft<8>(hn::And(byte(i + 1), mask)));
    word = hn::Or(word, hn::ShiftLeft<16>(hn::And(byte(i + 2), mask)));
    word = hn::Or(word, hn::ShiftLeft<24>(byte(i + 3)));
    out.store_words(word, offset + i);
  }
}

// Transposes blocks: element i of block b goes to lanes[i * (number of lanes) + b]. Requires: count is a multiple of 4.
HWY_INLINE void TransposeToLanes(const std::array<const float*, kMaxLanes>& blocks, std::size_t count, float* lanes) {
#if HWY_TARGET == HWY_SCALAR
  std::memcpy(lanes, blocks[0], count * sizeof(float));
#else
  const hn::FixedTag<float, 4> four;
  const hn::Repartition<double, decltype(four)> pairs;
  const std::size_t width = hn::Lanes(Floats());
  for (std::size_t b = 0; b < width; b += 4) {
    float* to = lanes + b;
    for (std::size_t i = 0; i < count; i += 4, to += 4 * width) {
      const auto row0 = hn::LoadU(four, blocks[b] + i);
      const auto row1 = hn::LoadU(four, blocks[b + 1] + i);
      const auto row2 = hn::LoadU(four, blocks[b + 2] + i);
      const auto row3 = hn::LoadU(four, blocks[b + 3] + i);
      const auto low01 = hn::BitCast(pairs, hn::InterleaveLower(four, row0, row1));
      const auto low23 = hn::BitCast(pairs, hn::InterleaveLower(four, row2, row3));
      const auto high01 = hn::BitCast(pairs, hn::InterleaveUpper(four, row0, row1));
      const auto high23 = hn::BitCast(pairs, hn::InterleaveUpper(four, row2, row3));
      hn::Store(hn::BitCast(four, hn::InterleaveLower(pairs, low01, low23)), four, to);
      hn::Store(hn::BitCast(four, hn::InterleaveUpper(pairs, low01, low23)), four, to + width);
      hn::Store(hn::BitCast(four, hn::InterleaveLower(pairs, high01, high23)), four, to + 2 * width);
      hn::Store(hn::BitCast(four, hn::InterleaveUpper(pairs, high01, high23)), four, to + 3 * width);
    }
  }
#endif
}

// Computes the mean squares of rows. Adds the squares of a row in order, as ggml does.
class RowMeans {
 public:
  explicit RowMeans(const BlockRows& rows) : rows_(rows) {}

  // Returns the mean square of a row. Requires: rows come in order; a call may repeat one of the last kMaxLanes rows.
  HWY_INLINE float operator()(std::size_t row) {
    if (row >= end_) advance(row);
    return means_[row % kAtOnce];
  }

 private:
  // Has room for the last kMaxLanes rows, and for the rows that advance() computes ahead, at most kMaxLanes.
  static constexpr std::size_t kAtOnce = 2 * kMaxLanes;

  // Computes the mean squares of kSums rows at once, if enough rows are left. The additions of one sum wait for each
  // other, but the additions of several sums overlap.
  HWY_INLINE void advance(std::size_t row) {
    constexpr std::size_t kSums = 8;
    const std::size_t length = rows_.row_length;
    const float* x = rows_.values + row * length;
    float sums[kSums] = {};
    if (kSums <= kMaxLanes && row % kSums == 0 && row + kSums <= rows_.row_count) {
      for (std::size_t i = 0; i < length; ++i) {
        for (std::size_t r = 0; r < kSums; ++r) sums[r] += x[r * length + i] * x[r * length + i];
      }
      end_ = row + kSums;
    } else {
      for (std::size_t i = 0; i < length; ++i) sums[0] += x[i] * x[i];
      end_ = row + 1;
    }
    for (std::size_t r = row; r < end_; ++r) means_[r % kAtOnce] = sums[r - row] / static_cast<float>(length);
  }

  const BlockRows& rows_;
  std::size_t end_ = 0;
  std::array<float, kAtOnce> means_;
};

// Refers to the input: a block in each lane.
struct LaneBlocks {
  const float* x;           // LoadAt(x, i) returns element i of each block
  const float* importance;  // the importance of each element, in the same order; or null
  Numbers row_means;        // mean squares of the blocks' rows; only set with an importance, for types with kRowMeans
};

// Calls encode(LaneBlocks, LaneOutput) for all blocks of the rows.
template <std::size_t kElements, std::size_t kBytes, bool kRowMeans, typename Encode>
HWY_INLINE void EncodeLanes(const BlockRows& rows, std::byte* out, Encode encode) {
  HWY_ALIGN float x[kElements * kMaxLanes];
  HWY_ALIGN float importance[kElements * kMaxLanes];
  HWY_ALIGN float means[kMaxLanes] = {};
  const std::size_t lanes = hn::Lanes(Floats());
  const std::size_t per_row = rows.row_length / kElements;
  const std::size_t total = rows.row_count * per_row;
  const bool weighs = rows.importance != nullptr;
  RowMeans row_means(rows);
  for (std::size_t first = 0; first < total; first += lanes) {
    const std::size_t live = std::min(lanes, total - first);
    std::array<const float*, kMaxLanes> from;
    for (std::size_t lane = 0; lane < lanes; ++lane)
      from[lane] = rows.values + (first + std::min(lane, live - 1)) * kElements;
    TransposeToLanes(from, kElements, x);
    if (weighs) {
      for (std::size_t lane = 0; lane < lanes; ++lane) {
        const std::size_t block = first + std::min(lane, live - 1);
        from[lane] = rows.importance + block % per_row * kElements;
        if (kRowMeans) means[lane] = row_means(block / per_row);
      }
      TransposeToLanes(from, kElements, importance);
    }
    encode(LaneBlocks{x, weighs ? importance : nullptr, hn::Load(Floats(), means)},
           LaneOutput{out + first * kBytes, kBytes, live});
  }
}

// Finds the first element of largest magnitude.
struct Peak {
  Numbers magnitude, value;

  template <typename Element>
  HWY_INLINE Peak(std::size_t count, Element element) : magnitude(Zero()), value(Zero()) {
    for (std::size_t i = 0; i < count; ++i) {
      const auto x = element(i);
      const auto larger = hn::Gt(hn::Abs(x), magnitude);
      magnitude = hn::IfThenElse(larger, hn::Abs(x), magnitude);
      value = hn::IfThenElse(larger, x, value);
    }
  }
};

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#ifndef POISE_EXPORT_ENCODER
// Defines encode_*(), which calls the function for the running processor.
#define POISE_EXPORT_ENCODER(name, Function) \
  HWY_EXPORT(Function);                      \
  void name(const BlockRows& rows, std::byte* out) { HWY_DYNAMIC_DISPATCH(Function)(rows, out); }
#endif
