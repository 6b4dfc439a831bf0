#include "syntax/json_text.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <span>

#include <simdjson.h>

namespace poise {

std::unique_ptr<char[], JsonText::Free> JsonText::room_for(std::size_t size) {
  const std::size_t bytes = size + simdjson::SIMDJSON_PADDING;
  return {HugePages<char>().allocate(bytes), Free{bytes}};
}

JsonText::JsonText(std::string_view text) : bytes_(room_for(text.size())), size_(text.size()) {
  std::ranges::copy(text, bytes_.get());
  std::fill_n(bytes_.get() + size_, simdjson::SIMDJSON_PADDING, ' ');
}

JsonText::JsonText(const ByteRange& range, std::uint64_t offset, std::size_t length)
    : bytes_(room_for(length)), size_(length) {
  range.fetch(offset, std::as_writable_bytes(std::span(bytes_.get(), size_)));
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
