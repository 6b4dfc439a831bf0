#include "formats/numpy/texts.hpp"

#include <charconv>

#include "bytes/checked.hpp"
#include "bytes/little_endian.hpp"
#include "bytes/utf8.hpp"

namespace poise::numpy {
namespace {

constexpr std::uint64_t kMostBytes = 1 << 20;

// Zeros at the end are padding.
std::optional<std::string> text_of(std::span<const std::byte> element, bool is_unicode, bool big_endian) {
  std::string text;
  if (is_unicode) {
    for (std::size_t at = 0; at < element.size(); at += 4) {
      const std::byte* const code = element.data() + at;
      const auto point = big_endian ? load_be<std::uint32_t>(code) : load_le<std::uint32_t>(code);
      if (point > 0x10ffff) return std::nullopt;
      append_utf8(text, point);
    }
  } else {
    text.assign(reinterpret_cast<const char*>(element.data()), element.size());
  }
  text.resize(text.find_last_not_of('\0') + 1);
  if (!is_utf8(text)) return std::nullopt;
  return text;
}

}  // namespace

std::optional<Value> texts_of(const Header& header, const Blob& data) {
  if (header.is_record || header.descr.size() < 3 || header.shape.size() > 1) return std::nullopt;
  const bool is_unicode = header.descr[1] == 'U';
  if (!is_unicode && header.descr[1] != 'S') return std::nullopt;
  std::uint64_t width = 0;
  const char* const end = header.descr.data() + header.descr.size();
  if (std::from_chars(header.descr.data() + 2, end, width).ptr != end) return std::nullopt;
  const auto item = checked_mul(width, is_unicode ? 4 : 1);
  const std::uint64_t count = header.shape.empty() ? 1 : header.shape[0];
  const auto bytes = item ? checked_mul(*item, count) : std::nullopt;
  if (!bytes || *bytes != data.size() || *bytes > kMostBytes || count > kMostBytes) return std::nullopt;
  const std::vector<std::byte> all = read_all(data);
  Value::Array texts;
  for (std::uint64_t i = 0; i < count; ++i) {
    auto text = text_of(std::span(all).subspan(static_cast<std::size_t>(i * *item), static_cast<std::size_t>(*item)),
                        is_unicode, header.descr[0] == '>');
    if (!text) return std::nullopt;
    texts.emplace_back(*std::move(text));
  }
  if (header.shape.empty()) return std::move(texts.front());
  return Value(std::move(texts));
}

}  // namespace poise::numpy
