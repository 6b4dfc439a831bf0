// Digests, packed: a byte for the kind, then
//
//   sha256, crc32c, xxh3    the digest's bytes, if the file spells them in the usual way
//   all others              the length of the text (u32 of the machine), the text
//
// They share slabs of 64 KiB. A slab counts its digests and is freed with the last one.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <mutex>
#include <new>

#include "pack/part_digest.hpp"

namespace poise {
namespace {

constexpr std::size_t kSlabBytes = 64 << 10;  // and their alignment: an address gives its slab
constexpr std::byte kOverStored{0x80};
constexpr std::byte kAsText{0x40};
constexpr std::byte kAlgorithm{0x0f};

struct Slab {
  std::atomic<std::size_t> holders = 1;
  std::size_t bytes = kSlabBytes;
  std::size_t used = sizeof(Slab);

  std::byte* memory() { return reinterpret_cast<std::byte*>(this); }

  // A slab with one owner. Requires: bytes >= kSlabBytes.
  static Slab* make(std::size_t bytes) {
    auto* slab = new (::operator new(bytes, std::align_val_t(kSlabBytes))) Slab;
    slab->bytes = bytes;
    return slab;
  }
  // The slab of a digest, which begins in its first kSlabBytes.
  static Slab* of(const std::byte* digest) {
    return reinterpret_cast<Slab*>(reinterpret_cast<std::uintptr_t>(digest) &
                                   ~std::uintptr_t{kSlabBytes - 1});  // NOLINT(performance-no-int-to-ptr)
  }
  void release() {
    if (holders.fetch_sub(1, std::memory_order_acq_rel) == 1)
      ::operator delete(static_cast<void*>(this), std::align_val_t(kSlabBytes));
  }
};

// Space for a digest, which owns a share of its slab.
std::byte* new_place(std::size_t size) {
  static std::mutex mutex;
  static Slab* current = nullptr;
  const std::size_t largest = kSlabBytes - sizeof(Slab);
  if (size > largest) return Slab::make(sizeof(Slab) + size)->memory() + sizeof(Slab);
  const std::lock_guard lock(mutex);
  if (current == nullptr || current->bytes - current->used < size) {
    Slab* const next = Slab::make(kSlabBytes);
    if (current != nullptr) current->release();
    current = next;
  }
  std::byte* const place = current->memory() + current->used;
  current->used += size;
  current->holders.fetch_add(1, std::memory_order_relaxed);
  return place;
}

std::size_t bytes_of(DigestAlgorithm algorithm) {
  switch (algorithm) {
    case DigestAlgorithm::sha256: return 32;
    case DigestAlgorithm::crc32c: return 4;
    case DigestAlgorithm::xxh3: return 8;
    case DigestAlgorithm::none:
    case DigestAlgorithm::unknown: break;
  }
  return 0;
}

std::string spelled(DigestAlgorithm algorithm, std::span<const std::byte> bytes) {
  const auto [begin, digits] = digest_spelling(algorithm);
  std::string text(begin);
  text.reserve(begin.size() + 2 * bytes.size());
  for (const std::byte byte : bytes) {
    text += digits[std::to_integer<std::size_t>(byte >> 4)];
    text += digits[std::to_integer<std::size_t>(byte & std::byte{15})];
  }
  return text;
}

// By character: the values of an algorithm's digits; kNoDigit for others.
using DigitValues = std::array<std::uint16_t, 256>;
constexpr std::uint16_t kNoDigit = 0x100;
constexpr DigitValues digit_values(DigestAlgorithm algorithm) {
  DigitValues values{};
  values.fill(kNoDigit);
  const std::string_view digits = digest_spelling(algorithm).digits;
  for (std::size_t i = 0; i < digits.size(); ++i)
    values[static_cast<unsigned char>(digits[i])] = static_cast<std::uint16_t>(i);
  return values;
}
constexpr DigitValues kLowerDigits = digit_values(DigestAlgorithm::sha256);
constexpr DigitValues kUpperDigits = digit_values(DigestAlgorithm::crc32c);

// The bytes that a text spells in the usual way; empty if it does not.
struct Digits {
  std::array<std::byte, 32> bytes{};
  std::size_t count = 0;
};
Digits digits_of(DigestAlgorithm algorithm, std::string_view text) {
  Digits digits;
  const std::size_t count = bytes_of(algorithm);
  const std::string_view begin = digest_spelling(algorithm).begin;
  if (count == 0 || text.size() != begin.size() + 2 * count || !text.starts_with(begin)) return digits;
  const DigitValues& values = algorithm == DigestAlgorithm::crc32c ? kUpperDigits : kLowerDigits;
  const auto* at = reinterpret_cast<const unsigned char*>(text.data() + begin.size());
  for (std::size_t i = 0; i < count; ++i, at += 2) {
    const unsigned byte = unsigned{values[at[0]]} << 4 | values[at[1]];
    if (byte >= kNoDigit) return digits;
    digits.bytes[i] = static_cast<std::byte>(byte);
  }
  digits.count = count;
  return digits;
}

}  // namespace

HeldDigest::HeldDigest(DigestAlgorithm algorithm, std::string_view text, bool over_stored) {
  const Digits digits = digits_of(algorithm, text);
  const auto length = static_cast<std::uint32_t>(text.size());
  const bool is_text = digits.count == 0;
  std::byte* const place = new_place(1 + (is_text ? sizeof(length) + length : digits.count));
  place[0] =
      static_cast<std::byte>(algorithm) | (over_stored ? kOverStored : std::byte{}) | (is_text ? kAsText : std::byte{});
  if (is_text) {
    std::memcpy(place + 1, &length, sizeof(length));
    std::memcpy(place + 1 + sizeof(length), text.data(), length);
  } else {
    std::copy_n(digits.bytes.begin(), digits.count, place + 1);
  }
  at_ = place;
}

HeldDigest::HeldDigest(const HeldDigest& other) noexcept : at_(other.at_) {
  if (at_ != nullptr) Slab::of(at_)->holders.fetch_add(1, std::memory_order_relaxed);
}

void HeldDigest::reset() noexcept {
  if (const std::byte* const at = std::exchange(at_, nullptr)) Slab::of(at)->release();
}

DigestAlgorithm HeldDigest::algorithm() const { return static_cast<DigestAlgorithm>(*at_ & kAlgorithm); }
bool HeldDigest::over_stored() const { return (*at_ & kOverStored) != std::byte{}; }

std::span<const std::byte> HeldDigest::packed() const {
  if ((*at_ & kAsText) == std::byte{}) return {at_, 1 + bytes_of(algorithm())};
  std::uint32_t length = 0;
  std::memcpy(&length, at_ + 1, sizeof(length));
  return {at_, 1 + sizeof(length) + length};
}

Digest HeldDigest::operator*() const {
  const std::span<const std::byte> rest = packed().subspan(1);
  if ((*at_ & kAsText) == std::byte{}) return {algorithm(), spelled(algorithm(), rest), over_stored()};
  const std::span<const std::byte> text = rest.subspan(sizeof(std::uint32_t));
  return {algorithm(), std::string(reinterpret_cast<const char*>(text.data()), text.size()), over_stored()};
}

}  // namespace poise
