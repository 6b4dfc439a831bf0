// Parses the numbers of JSON texts, and holds the memory of a text as simdjson needs it, with padding at its end.
#include <algorithm>
#include <cmath>

#include <simdjson.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bytes/number_text.hpp"
#include "syntax/json.hpp"

namespace poise {
namespace {

std::size_t count_digits(std::string_view text) { return std::min(text.find_first_not_of("0123456789"), text.size()); }

struct NumberForm {
  bool valid = false;
  bool integer = false;
};

// Parses number = [ "-" ] int [ frac ] [ exp ].
NumberForm parse_number_form(std::string_view token) {
  std::string_view rest = token.substr(token.starts_with('-') ? 1 : 0);
  const std::size_t whole = count_digits(rest);
  NumberForm form{.valid = whole > 0 && (whole == 1 || rest.front() != '0')};
  rest.remove_prefix(whole);
  form.integer = rest.empty();
  if (rest.starts_with('.')) {
    const std::size_t fraction = count_digits(rest.substr(1));
    form.valid = form.valid && fraction > 0;
    rest.remove_prefix(1 + fraction);
  }
  if (rest.starts_with('e') || rest.starts_with('E')) {
    rest.remove_prefix(1);
    if (rest.starts_with('+') || rest.starts_with('-')) rest.remove_prefix(1);
    const std::size_t length = count_digits(rest);
    form.valid = form.valid && length > 0;
    rest.remove_prefix(length);
  }
  form.valid = form.valid && rest.empty();
  return form;
}

}  // namespace

std::optional<Value> parse_json_number(std::string_view token, std::string_view& problem) {
  const NumberForm form = parse_number_form(token);
  if (!form.valid) {
    problem = "expected a value";
    return std::nullopt;
  }
  if (form.integer) {
    if (const auto number = parse_number_text<std::uint64_t>(token)) return *number;
    if (const auto number = parse_number_text<std::int64_t>(token)) return *number;
  }
  // Integers of more than 64 bits become real numbers, too.
  if (const auto number = parse_double(token); number && std::isfinite(*number)) return *number;
  problem = "a number that is too large for double precision";
  return std::nullopt;
}

std::unique_ptr<char[], JsonText::Free> JsonText::allocate_padded(std::size_t size) {
  const std::size_t bytes = size + simdjson::SIMDJSON_PADDING;
  return {HugePages<char>().allocate(bytes), Free{bytes}};
}

JsonText::JsonText(std::string_view text) : bytes_(allocate_padded(text.size())), size_(text.size()) {
  std::ranges::copy(text, bytes_.get());
  std::fill_n(bytes_.get() + size_, simdjson::SIMDJSON_PADDING, ' ');
}

JsonText::JsonText(const Source& source, std::uint64_t offset, std::size_t length)
    : bytes_(allocate_padded(length)), size_(length) {
  source.read(offset, std::as_writable_bytes(std::span(bytes_.get(), size_)));
  std::fill_n(bytes_.get() + size_, simdjson::SIMDJSON_PADDING, ' ');
}

void JsonText::release_before(std::size_t place) {
  constexpr std::size_t kPieceBytes = 1 << 20;
  if (place - released_ < kPieceBytes) return;
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto address = [&](std::size_t at) { return reinterpret_cast<std::uintptr_t>(bytes_.get()) + at; };
  const std::uintptr_t begin = (address(released_) + page - 1) / page * page;
  const std::uintptr_t end = address(place) / page * page;
  ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);  // harmless if it fails
  released_ = place;
}

}  // namespace poise
