// JsonText: the memory of a JSON text while it is parsed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "bytes/byte_reader.hpp"
#include "bytes/huge_pages.hpp"

namespace poise {

// A text in its own memory, with the padding that the parser needs.
class JsonText {
 public:
  explicit JsonText(std::string_view text);
  // Part of a range. Throws io. Requires: the range has it.
  JsonText(const ByteRange& range, std::uint64_t offset, std::size_t length);

  std::string_view text() const { return {bytes_.get(), size_}; }

  // Frees the memory before a position, in large steps. For walks whose caller keeps nothing of that.
  void release_before(std::size_t place);

 private:
  struct Free {
    std::size_t bytes = 0;
    void operator()(char* memory) const { HugePages<char>().deallocate(memory, bytes); }
  };
  static std::unique_ptr<char[], Free> room_for(std::size_t size);

  std::unique_ptr<char[], Free> bytes_;
  std::size_t size_;
  std::size_t released_ = 0;
};

}  // namespace poise
