// A ByteReader reads the binary fields of a file.
//
// It is a cursor over [begin, end) of a Source, and reads nothing outside. Every read names its field, so that an error
// has the field, its record, the offset and how many bytes were left.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <poise/error.hpp>
#include <poise/source.hpp>

#include "bytes/little_endian.hpp"

namespace poise {

class ByteReader {
 public:
  // Begins every error message with `context`: "alt v2". Requires: the source outlives the reader.
  ByteReader(const Source& source, std::string context);
  ByteReader(const Source& source, std::string context, std::uint64_t begin, std::uint64_t end);

  std::uint64_t position() const { return position_; }
  std::uint64_t end() const { return end_; }
  std::uint64_t remaining() const { return end_ - position_; }
  const std::string& path() const { return source_->name(); }

  std::uint8_t read_u8(std::string_view field) { return read_number<std::uint8_t>(field); }
  std::int8_t read_i8(std::string_view field) { return read_number<std::int8_t>(field); }
  std::uint16_t read_u16(std::string_view field) { return read_number<std::uint16_t>(field); }
  std::int16_t read_i16(std::string_view field) { return read_number<std::int16_t>(field); }
  std::uint32_t read_u32(std::string_view field) { return read_number<std::uint32_t>(field); }
  std::int32_t read_i32(std::string_view field) { return read_number<std::int32_t>(field); }
  std::uint64_t read_u64(std::string_view field) { return read_number<std::uint64_t>(field); }
  std::int64_t read_i64(std::string_view field) { return read_number<std::int64_t>(field); }
  float read_f32(std::string_view field) { return read_number<float>(field); }
  double read_f64(std::string_view field) { return read_number<double>(field); }

  // Appends ": note" to errors about bytes that are missing at the end of the range. Requires: the text outlives this.
  void set_note_at_end(std::string_view note) { note_at_end_ = note; }

  // Reads the numbers that follow as big-endian or little-endian.
  void set_big_endian(bool big_endian) { big_endian_ = big_endian; }

  // Returns the next `length` bytes. The view is valid until the next call on this reader.
  std::string_view read_text(std::uint64_t length, std::string_view field);

  void skip(std::uint64_t length, std::string_view field);
  // Requires: position <= end().
  void seek(std::uint64_t position);
  // Narrows the range to end at `end`. Requires: position() <= end <= end().
  void set_end(std::uint64_t end);

  // Names the record of the following fields while the Scope lives: `auto s = r.open_scope("token", 17)`.
  class Scope {
   public:
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope() { --reader_.depth_; }

   private:
    friend class ByteReader;
    explicit Scope(ByteReader& reader) : reader_(reader) {}
    ByteReader& reader_;
  };
  [[nodiscard]] Scope open_scope(std::string_view noun, std::int64_t index = -1);

  // Throws invalid_file "context: record: field: problem" at `offset`.
  [[noreturn]] void fail(std::string_view field, std::string_view problem, std::uint64_t offset) const;
  // Throws an error of another kind, with the same message as fail().
  [[noreturn]] void fail(ErrorKind kind, std::string_view field, std::string_view problem, std::uint64_t offset) const;
  // Throws invalid_file unless end() is `size`, the offset after the last `what`. Ignores position().
  void require_end(std::uint64_t size, std::string_view what) const;
  // Throws as fail() does, with the note of set_note_at_end(). Requires: the range ends too early.
  [[noreturn]] void fail_at_end(std::string_view field, std::string problem, std::uint64_t offset) const;
  // Returns the message of fail() as a string, for warnings.
  std::string describe(std::string_view field, std::string_view problem) const;

 private:
  static constexpr std::size_t kMaxDepth = 4;
  static constexpr std::size_t kLeastWindowBytes = std::size_t{4} << 10;
  static constexpr std::size_t kMostWindowBytes = std::size_t{64} << 10;

  struct Frame {
    std::string_view noun;
    std::int64_t index = -1;
  };

  template <typename T>
  T read_number(std::string_view field) {
    const std::byte* at = advance(sizeof(T), field);
    return big_endian_ ? load_be<T>(at) : load_le<T>(at);
  }

  // Returns the next `length` bytes, and moves the cursor past them.
  const std::byte* advance(std::uint64_t length, std::string_view field);
  void check_remaining(std::uint64_t length, std::string_view field) const;

  const Source* source_;
  std::string context_;
  std::uint64_t position_;
  std::uint64_t end_;
  std::span<const std::byte> window_;  // bytes of the source from window_begin_ on
  std::uint64_t window_begin_ = 0;
  std::size_t window_bytes_ = kLeastWindowBytes;
  std::vector<std::byte> buffer_;  // holds window_ when the source is not mapped
  std::array<Frame, kMaxDepth> frames_;
  std::size_t depth_ = 0;
  std::string_view note_at_end_;
  bool big_endian_ = false;
};

}  // namespace poise
