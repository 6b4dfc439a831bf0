#include "pack/sha256_lanes.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

#include <oneapi/tbb/info.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/partitioner.h>
#include <oneapi/tbb/task_group.h>

#include <fmt/format.h>

#include "bytes/cpuid.hpp"
#include "pack/digest.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "pack/sha256_lanes.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#ifndef POISE_IO_SHA256_LANES
#define POISE_IO_SHA256_LANES
namespace poise {

constexpr std::size_t kBlockBytes = 64;
[[maybe_unused]] constexpr std::size_t kBlockWords = 16;
constexpr std::size_t kStateWords = 8;
constexpr std::size_t kMaxLanes = 16;

// Word i of lane l at [i * lanes + l].
using Sha256States = std::array<std::uint32_t, kStateWords * kMaxLanes>;

[[maybe_unused]] constexpr std::array<std::uint32_t, 64> kRoundConstants = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

constexpr std::array<std::uint32_t, kStateWords> kFirstState = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                                                0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

}  // namespace poise
#endif

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR
std::size_t Lanes() { return 1; }
void HashBlocks(Sha256States&, const std::byte* const*, std::size_t) {}
#else

using Words = hn::CappedTag<std::uint32_t, kMaxLanes>;
using Word = hn::Vec<Words>;

std::size_t Lanes() { return hn::Lanes(Words()); }

template <int kFirst, int kSecond, int kThird>
HWY_INLINE Word Rotated(Word x) {
  return hn::Xor3(hn::RotateRight<kFirst>(x), hn::RotateRight<kSecond>(x), hn::RotateRight<kThird>(x));
}

template <int kFirst, int kSecond, int kShift>
HWY_INLINE Word Shifted(Word x) {
  return hn::Xor3(hn::RotateRight<kFirst>(x), hn::RotateRight<kSecond>(x), hn::ShiftRight<kShift>(x));
}

// Word i of every lane's block in w[i].
HWY_INLINE void LoadBlocks(const std::byte* const* data, std::size_t at, Word* w) {
  const Words words;
  const hn::Repartition<std::uint64_t, Words> pairs;
  const hn::Repartition<std::uint8_t, Words> bytes;
  constexpr std::size_t kQuarter = 4;  // words that move together
  const std::size_t lanes = hn::Lanes(words);
  // Moves quarter j of lane 4 * b + k to block b of row 4 * j + k, so that the remaining steps work within blocks.
  HWY_ALIGN std::uint32_t rows[kBlockWords * kMaxLanes];
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    const std::byte* const from = data[lane] + at;
    std::uint32_t* const to = rows + lane % kQuarter * lanes + lane / kQuarter * kQuarter;
    for (std::size_t j = 0; j < kQuarter; ++j)
      std::memcpy(to + j * kQuarter * lanes, from + j * kBlockBytes / kQuarter, kBlockBytes / kQuarter);
  }
  alignas(16) static constexpr std::uint8_t kBigEndian[16] = {3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12};
  const auto order = hn::LoadDup128(bytes, kBigEndian);
  for (std::size_t j = 0; j < kBlockWords; j += kQuarter) {
    const auto row = [&](std::size_t k) HWY_ATTR {
      return hn::BitCast(words,
                         hn::TableLookupBytes(hn::BitCast(bytes, hn::Load(words, rows + (j + k) * lanes)), order));
    };
    const auto row0 = row(0), row1 = row(1), row2 = row(2), row3 = row(3);
    const auto low01 = hn::BitCast(pairs, hn::InterleaveLower(words, row0, row1));
    const auto low23 = hn::BitCast(pairs, hn::InterleaveLower(words, row2, row3));
    const auto high01 = hn::BitCast(pairs, hn::InterleaveUpper(words, row0, row1));
    const auto high23 = hn::BitCast(pairs, hn::InterleaveUpper(words, row2, row3));
    w[j] = hn::BitCast(words, hn::InterleaveLower(pairs, low01, low23));
    w[j + 1] = hn::BitCast(words, hn::InterleaveUpper(pairs, low01, low23));
    w[j + 2] = hn::BitCast(words, hn::InterleaveLower(pairs, high01, high23));
    w[j + 3] = hn::BitCast(words, hn::InterleaveUpper(pairs, high01, high23));
  }
}

// Sixteen rounds (FIPS 180-4, 6.2.2, step 3); s[(i - round) % 8] are a to h. Words for later rounds replace the used
// ones (step 1).
template <bool kLast>
HWY_INLINE void SixteenRounds(Word* s, Word* w, const std::uint32_t* constants) {
  HWY_UNROLL(16)
  for (std::size_t i = 0; i < kBlockWords; ++i) {
    const auto at = [&](std::size_t letter)
                        HWY_ATTR -> Word& { return s[(letter + 2 * kStateWords - i) % kStateWords]; };
    const Word a = at(0), b = at(1), c = at(2), e = at(4), f = at(5), g = at(6);
    const Word choice = hn::Xor(g, hn::And(e, hn::Xor(f, g)));
    const Word majority = hn::Xor(b, hn::And(hn::Xor(a, b), hn::Xor(b, c)));
    const Word added =
        hn::Add(hn::Add(at(7), hn::Add(w[i], hn::Set(Words(), constants[i]))), hn::Add(choice, Rotated<6, 11, 25>(e)));
    at(3) = hn::Add(at(3), added);
    at(7) = hn::Add(added, hn::Add(majority, Rotated<2, 13, 22>(a)));
    if constexpr (!kLast) {
      const Word next = w[(i + 1) % kBlockWords];
      const Word before = w[(i + 14) % kBlockWords];
      w[i] = hn::Add(hn::Add(w[i], w[(i + 9) % kBlockWords]),
                     hn::Add(Shifted<7, 18, 3>(next), Shifted<17, 19, 10>(before)));
    }
  }
}

// `blocks` blocks of every lane.
void HashBlocks(Sha256States& states, const std::byte* const* data, std::size_t blocks) {
  const Words words;
  const std::size_t lanes = hn::Lanes(words);
  Word state[kStateWords];
  for (std::size_t i = 0; i < kStateWords; ++i) state[i] = hn::LoadU(words, states.data() + i * lanes);
  for (std::size_t block = 0; block < blocks; ++block) {
    Word w[kBlockWords];
    Word s[kStateWords];
    LoadBlocks(data, block * kBlockBytes, w);
    for (std::size_t i = 0; i < kStateWords; ++i) s[i] = state[i];
    SixteenRounds<false>(s, w, kRoundConstants.data());
    SixteenRounds<false>(s, w, kRoundConstants.data() + kBlockWords);
    SixteenRounds<false>(s, w, kRoundConstants.data() + 2 * kBlockWords);
    SixteenRounds<true>(s, w, kRoundConstants.data() + 3 * kBlockWords);
    for (std::size_t i = 0; i < kStateWords; ++i) state[i] = hn::Add(state[i], s[i]);
  }
  for (std::size_t i = 0; i < kStateWords; ++i) hn::StoreU(state[i], words, states.data() + i * lanes);
}
#endif

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace poise {
namespace {

namespace tbb = oneapi::tbb;

HWY_EXPORT(Lanes);
HWY_EXPORT(HashBlocks);

// One lane's message: its whole blocks in place, then the rest with the padding (FIPS 180-4, 5.1.1).
class Lane {
 public:
  bool busy() const { return phase_ != Phase::idle; }
  const std::byte* data() const { return rest_.data(); }
  std::size_t blocks() const { return rest_.size() / kBlockBytes; }

  void begin(Sha256Message message) {
    message_ = std::move(message);
    const std::size_t whole = message_.bytes.size() / kBlockBytes * kBlockBytes;
    rest_ = message_.bytes.first(whole);
    phase_ = Phase::body;
    if (whole == 0) begin_end();
  }

  // True when the message is hashed.
  bool advance(std::size_t blocks) {
    const auto passed = rest_.first(blocks * kBlockBytes);
    rest_ = rest_.subspan(passed.size());
    if (phase_ == Phase::body) message_.look(passed);
    if (!rest_.empty()) return false;
    if (phase_ == Phase::end) return true;
    begin_end();
    return false;
  }

  void finish(std::string digest) {
    phase_ = Phase::idle;
    message_.done(std::move(digest));
  }

 private:
  enum class Phase { idle, body, end };

  void begin_end() {
    const std::size_t whole = message_.bytes.size() / kBlockBytes * kBlockBytes;
    const auto left = message_.bytes.subspan(whole);
    if (!left.empty()) message_.look(left);
    std::uint64_t bits = std::uint64_t{message_.bytes.size()} * 8;
    end_.fill(std::byte{0});
    std::ranges::copy(left, end_.begin());
    end_[left.size()] = std::byte{0x80};
    const std::size_t length = left.size() + 1 + sizeof bits <= kBlockBytes ? kBlockBytes : 2 * kBlockBytes;
    for (std::size_t i = 1; i <= sizeof bits; ++i, bits >>= 8) end_[length - i] = static_cast<std::byte>(bits);
    rest_ = std::span(end_).first(length);
    phase_ = Phase::end;
  }

  Sha256Message message_;
  Phase phase_ = Phase::idle;
  std::span<const std::byte> rest_;  // of the blocks of this phase
  std::array<std::byte, 2 * kBlockBytes> end_;
};

// For processors without vectors. (HashOrder does not use it.)
void hash_in_turn(const std::function<std::optional<Sha256Message>()>& next) {
  while (const auto message = next()) {
    message->look(message->bytes);
    message->done(sha256_hex(message->bytes));
  }
}

}  // namespace

void sha256_side_by_side(std::size_t most, const std::function<std::optional<Sha256Message>()>& next) {
  if (HWY_DYNAMIC_DISPATCH(Lanes)() == 1) return hash_in_turn(next);
  constexpr std::size_t kPieceBlocks = 256;  // 16 KiB a lane: all lanes' fit the second cache
  const std::size_t count = HWY_DYNAMIC_DISPATCH(Lanes)();
  std::vector<Lane> lanes(count);
  Sha256States states{};
  bool more = true;
  const auto refill = [&](std::size_t l) {
    if (auto message = more ? next() : std::nullopt) {
      lanes[l].begin(std::move(*message));
      for (std::size_t i = 0; i < kStateWords; ++i) states[i * count + l] = kFirstState[i];
    } else {
      more = false;
    }
  };
  const auto digest = [&](std::size_t l) {
    std::string text;
    for (std::size_t i = 0; i < kStateWords; ++i) text += fmt::format("{:08x}", states[i * count + l]);
    return text;
  };
  for (std::size_t l = 0; l < std::min(most, count); ++l) refill(l);
  for (;;) {
    const auto busy = std::ranges::find_if(lanes, &Lane::busy);
    if (busy == lanes.end() || tbb::is_current_task_group_canceling()) return;
    std::size_t blocks = kPieceBlocks;
    for (const Lane& lane : lanes) {
      if (lane.busy()) blocks = std::min(blocks, lane.blocks());
    }
    // Lanes without a message hash another lane's again.
    std::array<const std::byte*, kMaxLanes> data;
    for (std::size_t l = 0; l < count; ++l) data[l] = lanes[l].busy() ? lanes[l].data() : busy->data();
    HWY_DYNAMIC_DISPATCH(HashBlocks)(states, data.data(), blocks);
    for (std::size_t l = 0; l < count; ++l) {
      if (!lanes[l].busy() || !lanes[l].advance(blocks)) continue;
      lanes[l].finish(digest(l));
      refill(l);
    }
  }
}

std::size_t HashOrder::processors() { return static_cast<std::size_t>(tbb::info::default_concurrency()); }

bool HashOrder::has_lanes() {
  constexpr unsigned kShaInstructions = 1U << 29U;  // leaf 7, ebx
  return HWY_DYNAMIC_DISPATCH(Lanes)() == kMaxLanes && (Cpuid(7, 0).ebx & kShaInstructions) == 0;
}

HashOrder::HashOrder(std::span<const std::uint64_t> lengths, std::size_t threads)
    : threads_(threads), items_(lengths.size()) {
  // OpenSSL hashes 2.5 messages in the time of one pass, however many lanes are in use.
  constexpr std::size_t kWorthIt = 3;
  for (std::size_t i = 0; i < items_.size(); ++i) items_[i].index = i;
  std::ranges::stable_sort(items_, std::ranges::greater(), [&](const Item& item) { return lengths[item.index]; });
  if (!has_lanes() || lanes() < kWorthIt) return;
  // A message that is most of a thread's share would occupy its lane after all others have ended.
  std::uint64_t left = std::accumulate(lengths.begin(), lengths.end(), std::uint64_t{0});
  std::size_t long_ones = 0;
  for (; long_ones < items_.size(); ++long_ones) {
    const std::uint64_t length = lengths[items_[long_ones].index];
    left -= length;
    if (length <= left / threads_ / 2) break;
  }
  for (std::size_t i = long_ones; i < items_.size(); ++i) items_[i].alone = false;
}

std::optional<HashOrder::Item> HashOrder::next() {
  const std::size_t i = next_++;
  return i < items_.size() ? std::optional(items_[i]) : std::nullopt;
}

void sha256_share(HashOrder& order,
                  const std::function<std::optional<Sha256Message>(const HashOrder::Item&)>& message) {
  sha256_side_by_side(order.lanes(), [&]() -> std::optional<Sha256Message> {
    while (const auto item = tbb::is_current_task_group_canceling() ? std::nullopt : order.next()) {
      if (auto found = message(*item)) return found;
    }
    return std::nullopt;
  });
}

void sha256_on_all_threads(HashOrder& order,
                           const std::function<std::optional<Sha256Message>(const HashOrder::Item&)>& message) {
  tbb::parallel_for(
      std::size_t{0}, order.threads(), [&](std::size_t) { sha256_share(order, message); }, tbb::simple_partitioner());
}

}  // namespace poise
#endif
