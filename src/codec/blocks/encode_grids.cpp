// Encodes IQ2_XXS, IQ2_XS, IQ2_S, IQ3_XXS, IQ3_S: the magnitudes of eight or four neighbours become a point of a grid,
// and their signs become bits.
//
// The rules are those of ggml/src/ggml-quants.c of llama.cpp v0.5.0: which scales are tried, how errors are weighted,
// and the order of sums.
#include "codec/blocks/codecs.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codec/blocks/encode_grids.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "codec/blocks/grid_points-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {

constexpr std::size_t kElements = 256;
constexpr std::size_t kEight = kElements / 8;  // groups of eight numbers, which share a byte of signs

// States which points to choose again when the scale is known.
enum class Again : std::uint8_t { all, off_grid, all_if_off_grid };

// Describes a type. Level l stands for the number 2 * l + 1, so the greatest number is 2 * levels - 1.
struct GridKind {
  std::size_t coordinates;  // in a point
  int levels;
  std::size_t group;      // numbers that share a scale
  bool even_signs;        // of eight signs, an even number is minus, so that seven bits hold them
  bool fits_scale_first;  // with codes up to levels + 1; if false, the largest number gets the greatest level
  int tries;              // how many scales above the first one, and below it
  float step;             // how much the greatest number changes between two tries
  Again again;
  float mean_factor;        // multiplies the mean square, in weights of errors
  float plain_mean_factor;  // multiplies that product, in weights without an importance
  bool plain_is_one;        // weights without an importance are those of an importance of 1
  float least;              // groups with only smaller numbers have the scale 0
  float correction;         // multiplies the block's factor
  bool clears_codes;        // if all scales of a block are 0
};

constexpr GridKind kIq2Xxs = {8, 3, 32, true, true, 6, 0.1F, Again::all, 1, 0, true, 1e-15F, 1, true};
constexpr GridKind kIq2Xs = {8, 3, 16, true, false, 9, 0.1F, Again::off_grid, 1, 0, true, 1e-15F, 1, true};
constexpr GridKind kIq2S = {8, 3, 16, false, false, 9, 0.1F, Again::off_grid, 2, 0.25F, false, 1e-8F, 0.9875F, false};
constexpr GridKind kIq3Xxs = {4, 8, 32, true, false, 15, 0.2F, Again::off_grid, 2, 0, false, 1e-8F, 1.0125F, true};
constexpr GridKind kIq3S = {4,      8,    32,    false,
                            false,  9,    0.2F,  Again::all_if_off_grid,
                            2,      0,    false, std::numeric_limits<float>::denorm_min(),
                            1.033F, false};

// Holds the codes that all types store, for a block in each lane.
template <const GridKind& kKind>
struct EncodedGridBlock {
  static constexpr std::size_t kPoints = kElements / kKind.coordinates;
  static constexpr std::size_t kGroups = kElements / kKind.group;

  HWY_ALIGN std::int32_t indices[kPoints * kMaxLanes];
  HWY_ALIGN std::int32_t signs[kEight * kMaxLanes];
  HWY_ALIGN float scales[kGroups * kMaxLanes];
  HWY_ALIGN std::int32_t scale_codes[kGroups * kMaxLanes];

  HWY_INLINE Codes get_index(std::size_t i) const { return load(indices, i); }
  HWY_INLINE Codes get_sign(std::size_t i) const { return load(signs, i); }
  HWY_INLINE Codes get_scale_code(std::size_t i) const { return load(scale_codes, i); }

  static HWY_INLINE Codes load(const std::int32_t* lanes, std::size_t i) {
    return hn::Load(Integers(), lanes + i * hn::Lanes(Floats()));
  }
  static HWY_INLINE void store(Codes codes, std::int32_t* lanes, std::size_t i) {
    hn::Store(codes, Integers(), lanes + i * hn::Lanes(Floats()));
  }
};

// Finds the scale, points and signs of a group.
template <const GridKind& kKind>
class GridGroup {
 public:
  static constexpr std::size_t kPoints = kKind.group / kKind.coordinates;
  static constexpr std::size_t kBytes = kKind.group / 8;

  // `mean` is kKind.mean_factor times the mean square of the block.
  HWY_INLINE GridGroup(const GridNeighbours& grid, const LaneBlocks& block, std::size_t first, Numbers mean)
      : grid_(grid) {
    weigh(block, first, mean);
    for (std::size_t byte = 0; byte < kBytes; ++byte) split_signs(block, first, byte);
    auto max = LoadAt(x_, 0);
    for (std::size_t i = 1; i < kKind.group; ++i) max = hn::IfThenElse(hn::Gt(max, LoadAt(x_, i)), max, LoadAt(x_, i));
    nothing_ = hn::VecFromMask(Floats(), hn::Lt(max, Set(kKind.least)));
    if (!hn::AllTrue(Floats(), is_nothing())) find_scale(max);
  }

  HWY_INLINE Choice is_nothing() const { return hn::MaskFromVec(nothing_); }

  HWY_INLINE void store(std::size_t group, EncodedGridBlock<kKind>& out) const {
    const auto nothing = is_nothing();
    if (hn::AllTrue(Floats(), nothing)) {
      for (std::size_t p = 0; p < kPoints; ++p) out.store(SetCode(0), out.indices, group * kPoints + p);
      for (std::size_t byte = 0; byte < kBytes; ++byte) out.store(SetCode(0), out.signs, group * kBytes + byte);
      return StoreAt(Zero(), out.scales, group);
    }
    const auto something = hn::RebindMask(Integers(), hn::Not(nothing));
    const auto negative = hn::RebindMask(Integers(), hn::Lt(scale_, Zero()));
    for (std::size_t p = 0; p < kPoints; ++p)
      out.store(hn::IfThenElseZero(something, GetIndex(load(best_, p))), out.indices, group * kPoints + p);
    const auto all_signs = SetCode(kKind.even_signs ? 127 : 255);
    for (std::size_t byte = 0; byte < kBytes; ++byte) {
      const auto stored = EncodedGridBlock<kKind>::load(signs_, byte);
      const auto right = hn::IfThenElse(negative, hn::Xor(stored, all_signs), stored);
      out.store(hn::IfThenElseZero(something, right), out.signs, group * kBytes + byte);
    }
    StoreAt(hn::IfThenZeroElse(nothing, hn::Abs(scale_)), out.scales, group);
  }

 private:
  struct Sums {
    Numbers products, squares;
  };

  HWY_INLINE hn::Vec<Words> load(const std::uint32_t* points, std::size_t p) const {
    return hn::Load(Words(), points + p * hn::Lanes(Floats()));
  }

  HWY_INLINE void weigh(const LaneBlocks& block, std::size_t first, Numbers mean) {
    for (std::size_t i = 0; i < kKind.group; ++i) {
      const auto x = LoadAt(block.x, first + i);
      const auto square = hn::Mul(x, x);
      auto weight = square;
      if (block.importance != nullptr) {
        weight = hn::Mul(LoadAt(block.importance, first + i), hn::Sqrt(hn::Add(mean, square)));
      } else if (kKind.plain_is_one) {
        weight = hn::Sqrt(hn::Add(mean, square));
      } else if (kKind.plain_mean_factor > 0) {
        weight = hn::Add(hn::Mul(Set(kKind.plain_mean_factor), mean), square);
      }
      StoreAt(weight, weights_, i);
      StoreAt(hn::Sqrt(weight), roots_, i);
    }
  }

  // Splits eight numbers into magnitudes and signs. With kKind.even_signs, if an odd number of them is negative, the
  // number whose error counts least gets the other sign and a negative magnitude.
  HWY_INLINE void split_signs(const LaneBlocks& block, std::size_t first, std::size_t byte) {
    auto signs = SetCode(0);
    auto least = SetCode(0);
    auto least_loss = Zero();
    for (std::size_t i = 0; i < 8; ++i) {
      const auto x = LoadAt(block.x, first + 8 * byte + i);
      const auto negative = hn::Lt(x, Zero());
      StoreAt(hn::IfThenElse(negative, hn::Neg(x), x), x_, 8 * byte + i);
      const auto bit = SetCode(1 << i);
      signs = hn::Or(signs, hn::IfThenElseZero(hn::RebindMask(Integers(), negative), bit));
      const auto loss = hn::Mul(hn::Mul(LoadAt(weights_, 8 * byte + i), x), x);
      const auto less = hn::Lt(loss, least_loss);
      least_loss = i == 0 ? loss : hn::IfThenElse(less, loss, least_loss);
      least = i == 0 ? bit : hn::IfThenElse(hn::RebindMask(Integers(), less), bit, least);
    }
    if constexpr (kKind.even_signs) {
      auto parity = hn::Xor(signs, hn::ShiftRight<4>(signs));
      parity = hn::Xor(parity, hn::ShiftRight<2>(parity));
      parity = hn::And(hn::Xor(parity, hn::ShiftRight<1>(parity)), SetCode(1));
      const auto flipped = hn::IfThenElseZero(hn::Eq(parity, SetCode(1)), least);
      signs = hn::And(hn::Xor(signs, flipped), SetCode(127));
      for (std::size_t i = 0; i < 8; ++i) {
        const auto flips = hn::RebindMask(Floats(), hn::Eq(flipped, SetCode(1 << i)));
        const auto x = LoadAt(x_, 8 * byte + i);
        StoreAt(hn::IfThenElse(flips, hn::Neg(x), x), x_, 8 * byte + i);
      }
    }
    EncodedGridBlock<kKind>::store(signs, signs_, byte);
  }

  // Rounds x / scale to places, and chooses a point for each. `inverse` is 1 / scale.
  HWY_INLINE void choose_points(Numbers inverse, Numbers scale, Choice wanted, std::uint32_t* points) const {
    static constexpr LevelNumbers kNumbers =
        kKind.levels == 3 ? LevelNumbers{1, 3, 5, 0, 1, 3, 5, 0} : LevelNumbers{1, 3, 5, 7, 9, 11, 13, 15};
    const std::size_t lanes = hn::Lanes(Floats());
    for (std::size_t p = 0; p < kPoints; ++p) {
      const std::size_t at = p * kKind.coordinates;
      const auto level = [&](std::size_t i) HWY_ATTR {
        const auto number = hn::Sub(hn::Mul(inverse, LoadAt(x_, at + i)), Set(1));
        return RoundAndClamp(hn::Mul(Set(0.5F), number), 0, kKind.levels - 1);
      };
      const auto places = ComputePlace<kKind.coordinates, kKind.levels>(level);
      const auto chosen = ChoosePoints<kKind.coordinates, kKind.levels>(
          grid_, places, x_ + at * lanes, roots_ + at * lanes, scale, wanted,
          [](std::size_t) -> const LevelNumbers& { return kNumbers; });
      hn::Store(chosen, Words(), points + p * lanes);
    }
  }

  // Sums weighted products of numbers and codes, and weighted squares of codes.
  HWY_INLINE Sums sum(const std::uint32_t* points) const {
    Sums sums{Zero(), Zero()};
    for (std::size_t p = 0; p < kPoints; ++p) {
      const auto point = load(points, p);
      for (std::size_t i = 0; i < kKind.coordinates; ++i) {
        const auto level = GetLevel<kKind.levels>(point, i);
        const auto code = ConvertToNumbers(hn::Add(hn::Add(level, level), SetCode(1)));
        const auto weight = LoadAt(weights_, p * kKind.coordinates + i);
        const auto x = LoadAt(x_, p * kKind.coordinates + i);
        sums.products = hn::Add(sums.products, hn::Mul(hn::Mul(weight, x), code));
        sums.squares = hn::Add(sums.squares, hn::Mul(hn::Mul(weight, code), code));
      }
    }
    return sums;
  }

  HWY_INLINE void find_scale(Numbers max) {
    constexpr auto kGreatest = static_cast<float>(2 * kKind.levels - 1);
    const std::size_t lanes = hn::Lanes(Floats());
    auto range = max;  // the magnitude that gets the greatest level in the middle try
    scale_ = hn::Div(max, Set(kGreatest));
    if constexpr (kKind.fits_scale_first) {
      Codes codes[kKind.group];
      scale_ = FindPositiveCodes<kKind.group, kKind.levels + 1>(x_, weights_, codes);
      range = hn::Mul(scale_, Set(static_cast<float>(kKind.levels)));
      nothing_ = hn::VecFromMask(Floats(), hn::Or(is_nothing(), hn::Le(range, Zero())));
    }
    const auto something = hn::Not(is_nothing());
    // Place 0 is a point of each grid.
    const auto start = hn::Set(Words(), grid_.points.front() | (kKind.again == Again::all_if_off_grid ? kOffGrid : 0));
    for (std::size_t p = 0; p < kPoints; ++p) hn::Store(start, Words(), best_ + p * lanes);
    HWY_ALIGN std::uint32_t tried[kPoints * kMaxLanes];
    auto best = Zero();
    for (int i = -kKind.tries; i <= kKind.tries; ++i) {
      const auto inverse = hn::Div(Set(kGreatest + static_cast<float>(i) * kKind.step), range);
      choose_points(inverse, hn::Div(Set(1), inverse), something, tried);
      const auto sums = sum(tried);
      const auto better = Both(hn::Gt(sums.squares, Zero()),
                               hn::Gt(hn::Mul(sums.products, sums.products), hn::Mul(best, sums.squares)));
      scale_ = hn::IfThenElse(better, hn::Div(sums.products, sums.squares), scale_);
      best = hn::IfThenElse(better, hn::Mul(scale_, sums.products), best);
      replace_points(hn::RebindMask(Words(), better), tried);
    }
    choose_again(tried);
  }

  HWY_INLINE void replace_points(hn::Mask<Words> better, const std::uint32_t* points) {
    for (std::size_t p = 0; p < kPoints; ++p)
      hn::Store(hn::IfThenElse(better, load(points, p), load(best_, p)), Words(), best_ + p * hn::Lanes(Floats()));
  }

  // Chooses points again for the best scale, then computes the scale for these points.
  HWY_INLINE void choose_again(std::uint32_t* points) {
    const auto off_grid = [](hn::Vec<Words> point) HWY_ATTR {
      return hn::Ne(hn::And(point, hn::Set(Words(), kOffGrid)), hn::Zero(Words()));
    };
    auto any_off = load(best_, 0);
    for (std::size_t p = 1; p < kPoints; ++p) any_off = hn::Or(any_off, load(best_, p));
    auto wanted = Both(hn::Not(is_nothing()), hn::Gt(scale_, Zero()));
    if constexpr (kKind.again != Again::all) wanted = Both(wanted, hn::RebindMask(Floats(), off_grid(any_off)));
    if (hn::AllFalse(Floats(), wanted)) return;
    choose_points(hn::Div(Set(1), scale_), scale_, wanted, points);
    const auto these = hn::RebindMask(Words(), wanted);
    for (std::size_t p = 0; p < kPoints; ++p) {
      auto replaces = these;
      if constexpr (kKind.again == Again::off_grid) replaces = hn::And(these, off_grid(load(best_, p)));
      hn::Store(hn::IfThenElse(replaces, load(points, p), load(best_, p)), Words(), best_ + p * hn::Lanes(Floats()));
    }
    const auto sums = sum(best_);
    scale_ = hn::IfThenElse(Both(wanted, hn::Gt(sums.squares, Zero())), hn::Div(sums.products, sums.squares), scale_);
  }

  const GridNeighbours& grid_;
  Numbers scale_ = Zero();
  Numbers nothing_;  // a mask: the scale is 0
  HWY_ALIGN float x_[kKind.group * kMaxLanes];
  HWY_ALIGN float weights_[kKind.group * kMaxLanes];
  HWY_ALIGN float roots_[kKind.group * kMaxLanes];
  HWY_ALIGN std::int32_t signs_[kBytes * kMaxLanes];
  HWY_ALIGN std::uint32_t best_[kPoints * kMaxLanes];
};

// Encodes rows. Stores the factor at the start of each block; pack(codes, out) stores the rest.
template <const GridKind& kKind, std::size_t kBytes, typename Pack>
HWY_INLINE void EncodeGrid(const BlockRows& rows, std::byte* out, const GridNeighbours& grid, Pack pack) {
  constexpr std::size_t kGroups = EncodedGridBlock<kKind>::kGroups;
  const ScaledRows scaled(rows);
  EncodeLanes<kElements, kBytes, false>(scaled.get(), out, [&](const LaneBlocks& block, const LaneOutput& to) HWY_ATTR {
    EncodedGridBlock<kKind> codes;
    auto squares = Zero();
    for (std::size_t i = 0; i < kElements; ++i)
      squares = hn::Add(squares, hn::Mul(LoadAt(block.x, i), LoadAt(block.x, i)));
    const auto mean = hn::Mul(squares, Set(kKind.mean_factor / kElements));
    auto largest = Zero();
    for (std::size_t group = 0; group < kGroups; ++group) {
      GridGroup<kKind>(grid, block, group * kKind.group, mean).store(group, codes);
      const auto scale = LoadAt(codes.scales, group);
      largest = hn::IfThenElse(hn::Gt(largest, scale), largest, scale);
    }
    const auto unit = hn::Div(largest, Set(31));
    to.store_halves(hn::Mul(unit, Set(kKind.correction)), 0);
    const auto inverse = hn::Div(Set(1), unit);
    const auto nothing = hn::RebindMask(Integers(), hn::Eq(largest, Zero()));
    for (std::size_t group = 0; group < kGroups; ++group) {
      const auto steps = hn::Mul(Set(0.5F), hn::Sub(hn::Mul(inverse, LoadAt(codes.scales, group)), Set(1)));
      codes.store(hn::IfThenZeroElse(nothing, RoundAndClamp(steps, 0, 15)), codes.scale_codes, group);
    }
    if (kKind.clears_codes && !hn::AllFalse(Integers(), nothing)) {
      for (std::size_t i = 0; i < codes.kPoints; ++i)
        codes.store(hn::IfThenZeroElse(nothing, codes.get_index(i)), codes.indices, i);
      for (std::size_t i = 0; i < kEight; ++i)
        codes.store(hn::IfThenZeroElse(nothing, codes.get_sign(i)), codes.signs, i);
    }
    pack(codes, to);
  });
}

// Returns 32 bits of a group: four times seven signs, then the scale.
template <typename Block>
HWY_INLINE Codes JoinSignsAndScale(const Block& block, std::size_t group) {
  auto word = hn::ShiftLeft<28>(block.get_scale_code(group));
  word = hn::Or(word, hn::ShiftLeft<21>(block.get_sign(4 * group + 3)));
  word = hn::Or(word, hn::ShiftLeft<14>(block.get_sign(4 * group + 2)));
  return hn::Or(word, hn::Or(hn::ShiftLeft<7>(block.get_sign(4 * group + 1)), block.get_sign(4 * group)));
}

// Returns a byte with the scales of groups 2 * i and 2 * i + 1.
template <typename Block>
HWY_INLINE Codes JoinScales(const Block& block, std::size_t i) {
  return hn::Or(block.get_scale_code(2 * i), hn::ShiftLeft<4>(block.get_scale_code(2 * i + 1)));
}

// Returns byte i of the high bits of indices: kBits bits from each of 8 / kBits indices, above their lowest eight bits.
template <int kBits, typename Block>
HWY_INLINE Codes JoinHighBits(const Block& block, std::size_t i) {
  constexpr std::size_t kCount = 8 / kBits;
  auto byte = SetCode(0);
  for (std::size_t j = 0; j < kCount; ++j)
    byte = hn::Or(byte,
                  hn::ShiftLeftSame(hn::ShiftRight<8>(block.get_index(kCount * i + j)), static_cast<int>(kBits * j)));
  return byte;
}

void EncodeIq2_Xxs(const BlockRows& rows, std::byte* out) {
  EncodeGrid<kIq2Xxs, 66>(rows, out, get_iq2_xxs_neighbours(), [](const auto& block, const LaneOutput& to) HWY_ATTR {
    for (std::size_t group = 0; group < block.kGroups; ++group) {
      StoreBytes(to, 2 + 8 * group, 4, [&](std::size_t i) HWY_ATTR { return block.get_index(4 * group + i); });
      to.store_words(JoinSignsAndScale(block, group), 6 + 8 * group);
    }
  });
}

void EncodeIq2_Xs(const BlockRows& rows, std::byte* out) {
  EncodeGrid<kIq2Xs, 74>(rows, out, get_iq2_xs_neighbours(), [](const auto& block, const LaneOutput& to) HWY_ATTR {
    const auto half = [&](std::size_t i)
                          HWY_ATTR { return hn::Or(block.get_index(i), hn::ShiftLeft<9>(block.get_sign(i))); };
    for (std::size_t i = 0; i < 32; i += 2) to.store_words(hn::Or(half(i), hn::ShiftLeft<16>(half(i + 1))), 2 + 2 * i);
    StoreBytes(to, 66, 8, [&](std::size_t i) HWY_ATTR { return JoinScales(block, i); });
  });
}

void EncodeIq2_S(const BlockRows& rows, std::byte* out) {
  EncodeGrid<kIq2S, 82>(rows, out, get_iq2_s_neighbours(), [](const auto& block, const LaneOutput& to) HWY_ATTR {
    StoreBytes(to, 2, 32, [&](std::size_t i) HWY_ATTR { return block.get_index(i); });
    StoreBytes(to, 34, 32, [&](std::size_t i) HWY_ATTR { return block.get_sign(i); });
    StoreBytes(to, 66, 8, [&](std::size_t i) HWY_ATTR { return JoinHighBits<2>(block, i); });
    StoreBytes(to, 74, 8, [&](std::size_t i) HWY_ATTR { return JoinScales(block, i); });
  });
}

void EncodeIq3_Xxs(const BlockRows& rows, std::byte* out) {
  EncodeGrid<kIq3Xxs, 98>(rows, out, get_iq3_xxs_neighbours(), [](const auto& block, const LaneOutput& to) HWY_ATTR {
    StoreBytes(to, 2, 64, [&](std::size_t i) HWY_ATTR { return block.get_index(i); });
    for (std::size_t group = 0; group < block.kGroups; ++group)
      to.store_words(JoinSignsAndScale(block, group), 66 + 4 * group);
  });
}

void EncodeIq3_S(const BlockRows& rows, std::byte* out) {
  EncodeGrid<kIq3S, 110>(rows, out, get_iq3_s_neighbours(), [](const auto& block, const LaneOutput& to) HWY_ATTR {
    StoreBytes(to, 2, 64, [&](std::size_t i) HWY_ATTR { return block.get_index(i); });
    StoreBytes(to, 66, 8, [&](std::size_t i) HWY_ATTR { return JoinHighBits<1>(block, i); });
    StoreBytes(to, 74, 32, [&](std::size_t i) HWY_ATTR { return block.get_sign(i); });
    StoreBytes(to, 106, 4, [&](std::size_t i) HWY_ATTR { return JoinScales(block, i); });
  });
}

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace poise {

POISE_EXPORT_ENCODER(encode_iq2_xxs, EncodeIq2_Xxs)
POISE_EXPORT_ENCODER(encode_iq2_xs, EncodeIq2_Xs)
POISE_EXPORT_ENCODER(encode_iq2_s, EncodeIq2_S)
POISE_EXPORT_ENCODER(encode_iq3_xxs, EncodeIq3_Xxs)
POISE_EXPORT_ENCODER(encode_iq3_s, EncodeIq3_S)

}  // namespace poise
#endif
