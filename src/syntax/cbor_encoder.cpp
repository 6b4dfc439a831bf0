// Writes CBOR in core deterministic encoding (RFC 8949, section 4.2.1).
#include "syntax/cbor.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/utf8.hpp"

namespace poise::cbor {
namespace {

template <typename Number>
void store_big_endian(Number number, std::byte* to) {
  for (std::size_t i = sizeof number; i-- > 0; number = static_cast<Number>(number >> 8U))
    to[i] = static_cast<std::byte>(number & 0xffU);
}

// Returns the bits of the half that equals `number` exactly, if there is one. Not called with NaN.
std::optional<std::uint16_t> exact_half(float number) {
  const auto bits = std::bit_cast<std::uint32_t>(number);
  const auto sign = static_cast<std::uint16_t>(bits >> 16U & 0x8000U);
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  if (magnitude == 0) return sign;
  if (magnitude == 0x7f800000U) return static_cast<std::uint16_t>(sign | 0x7c00U);
  const int exponent = static_cast<int>(magnitude >> 23U) - 127;
  const std::uint32_t significand = (magnitude & 0x7fffffU) | 0x800000U;
  if (exponent > 15 || exponent < -24) return std::nullopt;
  const auto dropped =
      static_cast<std::uint32_t>(exponent >= -14 ? 13 : -1 - exponent);  // bits a (subnormal) half lacks
  if ((significand & ((1U << dropped) - 1)) != 0) return std::nullopt;
  const std::uint32_t kept = significand >> dropped;
  const std::uint32_t biased = exponent >= -14 ? static_cast<std::uint32_t>(exponent + 15) << 10U : 0;
  return static_cast<std::uint16_t>(sign | biased | (kept & (exponent >= -14 ? 0x3ffU : 0x7ffU)));
}

}  // namespace

std::size_t encode_float(double number, std::array<std::byte, 9>& out) {
  constexpr std::byte kHalf{0xf9};
  constexpr std::byte kSingle{0xfa};
  constexpr std::byte kDouble{0xfb};
  const auto single = std::isnan(number) ? 0.0F : static_cast<float>(number);
  const bool fits_single = std::isnan(number) || static_cast<double>(single) == number;
  const auto half = std::isnan(number) ? std::optional<std::uint16_t>(std::uint16_t{0x7e00})
                    : fits_single      ? exact_half(single)
                                       : std::nullopt;
  if (half) {
    out[0] = kHalf;
    store_big_endian(*half, &out[1]);
    return 3;
  }
  if (fits_single) {
    out[0] = kSingle;
    store_big_endian(std::bit_cast<std::uint32_t>(single), &out[1]);
    return 5;
  }
  out[0] = kDouble;
  store_big_endian(std::bit_cast<std::uint64_t>(number), &out[1]);
  return 9;
}

bool key_before(std::string_view a, std::string_view b, KeyOrder order) {
  // A head grows with its length, so encoded texts compare by length first.
  if (order == KeyOrder::by_encoding && a.size() != b.size()) return a.size() < b.size();
  return a < b;
}

void Encoder::head(unsigned major, std::uint64_t argument) {
  std::array<std::byte, 9> out{};
  std::size_t length = 1;
  unsigned low = 0;
  if (argument < 24) {
    low = static_cast<unsigned>(argument);
  } else if (argument <= UINT8_MAX) {
    low = 24;
    length = 2;
    store_big_endian(static_cast<std::uint8_t>(argument), &out[1]);
  } else if (argument <= UINT16_MAX) {
    low = 25;
    length = 3;
    store_big_endian(static_cast<std::uint16_t>(argument), &out[1]);
  } else if (argument <= UINT32_MAX) {
    low = 26;
    length = 5;
    store_big_endian(static_cast<std::uint32_t>(argument), &out[1]);
  } else {
    low = 27;
    length = 9;
    store_big_endian(argument, &out[1]);
  }
  out[0] = static_cast<std::byte>(major << 5U | low);
  bytes_.append(reinterpret_cast<const char*>(out.data()), length);
}

void Encoder::text(std::string_view text) {
  if (!is_utf8(text))
    throw Error(ErrorKind::unsupported,
                fmt::format("zTensor holds text in UTF-8, but this is not UTF-8: \"{}\"", text.substr(0, 100)));
  head(3, text.size());
  bytes_ += text;
}

void Encoder::value(const Value& value) {
  struct Visitor {
    Encoder& out;
    void operator()(std::nullptr_t) const { out.bytes_ += '\xf6'; }
    void operator()(bool flag) const { out.bytes_ += flag ? '\xf5' : '\xf4'; }
    void operator()(std::int64_t number) const {
      out.head(number < 0 ? 1 : 0, static_cast<std::uint64_t>(number < 0 ? -1 - number : number));
    }
    void operator()(std::uint64_t number) const { out.head(0, number); }
    void operator()(double number) const {
      std::array<std::byte, 9> bytes{};
      const std::size_t length = encode_float(number, bytes);
      out.bytes_.append(reinterpret_cast<const char*>(bytes.data()), length);
    }
    void operator()(const std::string& string) const { out.text(string); }
    void operator()(const Value::Bytes& bytes) const {
      out.head(2, bytes.size());
      out.bytes_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
    void operator()(const Value::Array& items) const {
      out.array(items.size());
      for (const Value& item : items) out.value(item);
    }
    void operator()(const Attributes& map) const {
      std::vector<const Attributes::Entry*> entries;
      for (const auto& entry : map) entries.push_back(&entry);
      std::ranges::sort(entries,
                        [&](const auto* a, const auto* b) { return key_before(a->first, b->first, out.order_); });
      out.map(entries.size());
      for (const auto* entry : entries) {
        out.text(entry->first);
        try {
          out.value(entry->second);
        } catch (const Error& error) {
          throw Error(error.kind(), fmt::format("{}: {}", entry->first, error.message()));
        }
      }
    }
    void operator()(const Value::Pairs& pairs) const {
      std::vector<std::pair<std::string, const Value*>> entries;
      for (const auto& [key, item] : pairs) entries.emplace_back(encode(key), &item);
      std::ranges::sort(entries, {}, &std::pair<std::string, const Value*>::first);
      out.map(entries.size());
      for (const auto& [key, item] : entries) {
        out.encoded(key);
        out.value(*item);
      }
    }
  };
  std::visit(Visitor{*this}, value.storage());
}

std::string encode(const Value& value) {
  Encoder encoder(KeyOrder::by_encoding);
  encoder.value(value);
  return encoder.take();
}

}  // namespace poise::cbor
