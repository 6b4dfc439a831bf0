#include "formats/onnx/integer_list.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/little_endian.hpp"

namespace poise::onnx {
namespace {

constexpr std::size_t kBufferBytes = 64 << 10;

// The bytes of runs of a source, one by one.
class Walk {
 public:
  Walk(const Source& source, const Places& places) : source_(&source), places_(&places) {}

  bool at_end() { return position_ == buffer_.size() && !fill(); }
  // Where the next byte is. Requires: !at_end().
  std::uint64_t place() const { return buffer_at_ + position_; }
  std::uint8_t next() { return std::to_integer<std::uint8_t>(buffer_[position_++]); }
  // The next byte begins a run.
  bool at_begin() const { return position_ == 0 && buffer_begins_; }

 private:
  bool fill() {
    while (index_ < places_->size() && (*places_)[index_].begin + offset_ == (*places_)[index_].end) {
      ++index_;
      offset_ = 0;
    }
    if (index_ == places_->size()) return false;
    const auto& place = (*places_)[index_];
    buffer_begins_ = offset_ == 0;
    buffer_at_ = place.begin + offset_;
    buffer_.resize(static_cast<std::size_t>(std::min<std::uint64_t>(kBufferBytes, place.end - buffer_at_)));
    source_->read(buffer_at_, buffer_);
    offset_ += buffer_.size();
    position_ = 0;
    return true;
  }

  const Source* source_;
  const Places* places_;
  std::size_t index_ = 0;
  std::uint64_t offset_ = 0;  // in that place, of what is not in the buffer yet
  std::vector<std::byte> buffer_;
  std::uint64_t buffer_at_ = 0;
  bool buffer_begins_ = false;
  std::size_t position_ = 0;
};

class IntegerStream final : public BlobStream {
 public:
  IntegerStream(const Source& source, const Places& places, Integers integers, const std::string& tensor)
      : source_(source), walk_(source, places), integers_(integers), tensor_(tensor) {}

  // An element cut by the end of a call goes on in the next one.
  std::size_t read(std::span<std::byte> out) override {
    std::size_t done = 0;
    while (done < out.size()) {
      if (left_ == 0) {
        if (walk_.at_end()) break;
        store_le(element_.data(), next());
        left_ = integers_.bytes;
      }
      const std::size_t count = std::min<std::size_t>(left_, out.size() - done);
      std::copy_n(element_.begin() + (integers_.bytes - left_), count, out.begin() + static_cast<std::ptrdiff_t>(done));
      left_ -= static_cast<unsigned>(count);
      done += count;
    }
    return done;
  }

 private:
  std::uint64_t next() {
    const std::uint64_t at = walk_.place();
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      if (shift > 63 || walk_.at_end()) fail("not a whole integer of 64 bits", at);
      const std::uint8_t byte = walk_.next();
      if (shift == 63 && byte > 1) fail("an integer of more than 64 bits", at);
      value |= static_cast<std::uint64_t>(byte & 0x7fU) << shift;
      if (byte < 0x80) break;
    }
    if (!fits(value))
      fail(fmt::format("{} does not fit {} bytes", static_cast<std::int64_t>(value), integers_.bytes), at);
    return value;
  }

  bool fits(std::uint64_t value) const {
    if (integers_.bytes == 8) return true;
    const unsigned bits = 8 * integers_.bytes;
    if (!integers_.is_signed) return value >> bits == 0;
    const std::uint64_t high = value >> (bits - 1);
    return high == 0 || high == UINT64_MAX >> (bits - 1);
  }

  [[noreturn]] void fail(const std::string& problem, std::uint64_t at) const {
    throw Error(ErrorKind::invalid_file, fmt::format("onnx: tensor {}: {}", tensor_, problem), source_.name(), at);
  }

  const Source& source_;
  Walk walk_;
  Integers integers_;
  const std::string& tensor_;
  std::array<std::byte, 8> element_{};
  unsigned left_ = 0;  // bytes of the element that are not read yet
};

class IntegerListBlob final : public Blob {
 public:
  IntegerListBlob(SourcePtr source, Places places, std::uint64_t count, Integers integers, std::string tensor)
      : source_(std::move(source)),
        places_(std::move(places)),
        size_(count * integers.bytes),
        integers_(integers),
        tensor_(std::move(tensor)) {}

  std::uint64_t size() const override { return size_; }
  bool seekable() const override { return false; }
  std::unique_ptr<BlobStream> stream() const override {
    return std::make_unique<IntegerStream>(*source_, places_, integers_, tensor_);
  }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    IntegerStream from(*source_, places_, integers_, tensor_);
    std::vector<std::byte> skipped(static_cast<std::size_t>(std::min<std::uint64_t>(kBufferBytes, offset)));
    while (offset > 0)
      offset -= from.read(
          std::span(skipped).first(static_cast<std::size_t>(std::min<std::uint64_t>(skipped.size(), offset))));
    from.read(out);
  }

 private:
  SourcePtr source_;
  Places places_;
  std::uint64_t size_;
  Integers integers_;
  std::string tensor_;
};

}  // namespace

std::uint64_t count_integers(const Source& source, const Places& places) {
  for (const auto& [begin, end] : places) {
    std::byte last{};
    if (begin == end) continue;
    source.read(end - 1, std::span(&last, 1));
    if ((last & std::byte{0x80}) != std::byte{0})
      throw Error(ErrorKind::invalid_file, "onnx: the last integer of a list is cut off", source.name(), end - 1);
  }
  std::uint64_t count = 0;
  for (Walk walk(source, places); !walk.at_end();) count += walk.next() < 0x80 ? 1 : 0;
  return count;
}

BlobPtr make_integer_list_blob(SourcePtr source, Places places, std::uint64_t count, Integers integers,
                               std::string tensor) {
  return std::make_shared<IntegerListBlob>(std::move(source), std::move(places), count, integers, std::move(tensor));
}

}  // namespace poise::onnx
