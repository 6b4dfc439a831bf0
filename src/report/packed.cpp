#include "report/packed.hpp"

#include <cstddef>
#include <memory>
#include <new>

#include <libdeflate.h>

namespace poise {

std::string deflate_bytes(std::string_view bytes) {
  constexpr int kLevel = 9;
  const std::unique_ptr<libdeflate_compressor, decltype(&libdeflate_free_compressor)> compressor(
      libdeflate_alloc_compressor(kLevel), libdeflate_free_compressor);
  if (!compressor) throw std::bad_alloc();
  std::string out(libdeflate_deflate_compress_bound(compressor.get(), bytes.size()), '\0');
  out.resize(libdeflate_deflate_compress(compressor.get(), bytes.data(), bytes.size(), out.data(), out.size()));
  return out;
}

std::string escape_json_for_html(std::string_view json) {
  std::string out;
  out.reserve(json.size() + json.size() / 16);
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    // U+2028 and U+2029, which end lines in older scripts, are E2 80 A8 and E2 80 A9.
    const std::string_view three = json.substr(i, 3);
    if (c == '<') {
      out += "\\u003c";
    } else if (c == '>') {
      out += "\\u003e";
    } else if (c == '&') {
      out += "\\u0026";
    } else if (three == "\xE2\x80\xA8" || three == "\xE2\x80\xA9") {
      out += three.back() == '\xA8' ? "\\u2028" : "\\u2029";
      i += 2;
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace poise
