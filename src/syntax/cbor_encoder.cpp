// Writes CBOR in core deterministic encoding (RFC 8949, section 4.2.1), except that KeyOrder::by_text sorts map keys
// otherwise.
#include "syntax/cbor.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/utf8.hpp"
#include "numeric/float_formats.hpp"

namespace poise::cbor {
namespace {

// Stores a first byte and a big-endian number. Returns how many bytes these are.
template <typename Number>
std::size_t store_head(unsigned first, Number number, std::array<std::byte, 9>& out) {
  out[0] = static_cast<std::byte>(first);
  for (std::size_t i = sizeof number; i > 0; --i, number = static_cast<Number>(number >> 8U))
    out[i] = static_cast<std::byte>(number & 0xffU);
  return 1 + sizeof number;
}

}  // namespace

std::size_t encode_float(double number, std::array<std::byte, 9>& out) {
  constexpr unsigned kHalf = 0xf9;
  constexpr unsigned kSingle = 0xfa;
  constexpr unsigned kDouble = 0xfb;
  if (std::isnan(number)) return store_head(kHalf, std::uint16_t{0x7e00}, out);
  if (const std::uint16_t half = encode_f16(number); decode_f16(half) == number) return store_head(kHalf, half, out);
  const auto single = static_cast<float>(number);
  if (single == number) return store_head(kSingle, std::bit_cast<std::uint32_t>(single), out);
  return store_head(kDouble, std::bit_cast<std::uint64_t>(number), out);
}

bool is_key_before(std::string_view a, std::string_view b, KeyOrder order) {
  // The head of a longer text is larger, so encoded texts compare by length first.
  if (order == KeyOrder::by_encoding && a.size() != b.size()) return a.size() < b.size();
  return a < b;
}

void Encoder::append_head(unsigned major, std::uint64_t argument) {
  const unsigned first = major << 5U;
  std::array<std::byte, 9> out{};
  std::size_t length = 1;
  if (argument < 24) {
    out[0] = static_cast<std::byte>(first | argument);
  } else if (argument <= UINT8_MAX) {
    length = store_head(first | 24, static_cast<std::uint8_t>(argument), out);
  } else if (argument <= UINT16_MAX) {
    length = store_head(first | 25, static_cast<std::uint16_t>(argument), out);
  } else if (argument <= UINT32_MAX) {
    length = store_head(first | 26, static_cast<std::uint32_t>(argument), out);
  } else {
    length = store_head(first | 27, argument, out);
  }
  bytes_.append(reinterpret_cast<const char*>(out.data()), length);
}

void Encoder::append_text(std::string_view text) {
  if (!is_utf8(text))
    throw Error(ErrorKind::unsupported,
                fmt::format("zTensor holds text in UTF-8, but this is not UTF-8: \"{}\"", text.substr(0, 100)));
  append_head(3, text.size());
  bytes_ += text;
}

void Encoder::append_value(const Value& value) {
  struct Visitor {
    Encoder& out;
    void operator()(std::nullptr_t) const { out.bytes_ += '\xf6'; }
    void operator()(bool flag) const { out.bytes_ += flag ? '\xf5' : '\xf4'; }
    void operator()(std::int64_t number) const {
      out.append_head(number < 0 ? 1 : 0, static_cast<std::uint64_t>(number < 0 ? -1 - number : number));
    }
    void operator()(std::uint64_t number) const { out.append_head(0, number); }
    void operator()(double number) const {
      std::array<std::byte, 9> bytes{};
      const std::size_t length = encode_float(number, bytes);
      out.bytes_.append(reinterpret_cast<const char*>(bytes.data()), length);
    }
    void operator()(const std::string& string) const { out.append_text(string); }
    void operator()(const Value::Bytes& bytes) const {
      out.append_head(2, bytes.size());
      out.bytes_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
    void operator()(const Value::Array& items) const {
      out.begin_array(items.size());
      for (const Value& item : items) out.append_value(item);
    }
    void operator()(const Attributes& map) const {
      std::vector<const Attributes::Entry*> entries;
      for (const auto& entry : map) entries.push_back(&entry);
      std::ranges::sort(entries,
                        [&](const auto* a, const auto* b) { return is_key_before(a->first, b->first, out.order_); });
      out.begin_map(entries.size());
      for (const auto* entry : entries) {
        out.append_text(entry->first);
        try {
          out.append_value(entry->second);
        } catch (const Error& error) {
          throw Error(error.kind(), fmt::format("{}: {}", entry->first, error.message()));
        }
      }
    }
    void operator()(const Value::Pairs& pairs) const {
      std::vector<std::pair<std::string, const Value*>> entries;
      for (const auto& [key, item] : pairs) entries.emplace_back(encode(key), &item);
      std::ranges::sort(entries, {}, &std::pair<std::string, const Value*>::first);
      out.begin_map(entries.size());
      for (const auto& [key, item] : entries) {
        out.append_encoded(key);
        out.append_value(*item);
      }
    }
  };
  std::visit(Visitor{*this}, value.storage());
}

std::string encode(const Value& value) {
  Encoder encoder(KeyOrder::by_encoding);
  encoder.append_value(value);
  return encoder.release();
}

}  // namespace poise::cbor
