#include "formats/numpy/array.hpp"

#include <charconv>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <poise/error.hpp>

#include "bytes/checked.hpp"
#include "formats/refusal.hpp"
#include "model/limits.hpp"
#include "views/byte_swap.hpp"
#include "views/strided.hpp"

namespace poise::numpy {
namespace {

constexpr std::uint64_t kMaxHeaderBytes = 1 << 20;

// Parses the dict of a header, which is a Python literal.
class Literal {
 public:
  Literal(const ByteReader& reader, std::string_view text, std::uint64_t at) : reader_(reader), text_(text), at_(at) {}

  Header parse() {
    Header header;
    bool has_descr = false;
    bool has_order = false;
    bool has_shape = false;
    expect('{');
    while (!skip_if('}')) {
      const std::size_t begin = position_;
      const std::string_view key = quoted("key");
      expect(':');
      const auto once = [&](bool& there) {
        if (there) fail("header", fmt::format("the key '{}' comes twice", key), begin);
        there = true;
      };
      if (key == "descr") {
        once(has_descr);
        read_descr(header);
      } else if (key == "fortran_order") {
        once(has_order);
        header.fortran_order = boolean();
      } else if (key == "shape") {
        once(has_shape);
        header.shape = shape();
      } else {
        fail("header", fmt::format("unknown key '{}'", key), begin);
      }
      if (!skip_if(',') && peek() != '}') fail("header", "expected , or }", position_);
    }
    skip_space();
    if (position_ < text_.size()) fail("header", "there is something after the dict", position_);
    if (!has_descr || !has_order || !has_shape)
      fail("header", "expected the keys 'descr', 'fortran_order' and 'shape'", 0);
    return header;
  }

 private:
  void skip_space() { position_ = std::min(text_.find_first_not_of(" \t\r\n\f", position_), text_.size()); }
  char peek() {
    skip_space();
    return position_ < text_.size() ? text_[position_] : '\0';
  }
  bool skip_if(char wanted) {
    if (peek() != wanted || position_ == text_.size()) return false;
    ++position_;
    return true;
  }
  void expect(char wanted) {
    if (!skip_if(wanted)) fail("header", fmt::format("expected {}", wanted), position_);
  }

  std::string_view quoted(std::string_view field) {
    const char quote = peek();
    if (quote != '\'' && quote != '"') fail(field, "expected text in quotes", position_);
    const std::size_t end = text_.find(quote, position_ + 1);
    if (end == std::string_view::npos) fail(field, "the text has no end", position_);
    const std::string_view text = text_.substr(position_ + 1, end - position_ - 1);
    if (text.find('\\') != std::string_view::npos) fail(field, "the text has an escape", position_);
    position_ = end + 1;
    return text;
  }

  void read_descr(Header& header) {
    skip_space();
    header.descr_at = at_ + position_;
    header.is_record = peek() == '[' || peek() == '(';
    if (!header.is_record) {
      header.descr = quoted("descr");
      return;
    }
    const std::size_t begin = position_;
    std::size_t depth = 0;
    do {
      const char next = peek();
      if (position_ == text_.size()) fail("descr", "the list has no end", begin);
      if (next == '\'' || next == '"') {
        quoted("descr");
        continue;
      }
      if (next == '[' || next == '(') ++depth;
      if (next == ']' || next == ')') --depth;
      ++position_;
    } while (depth > 0);
    header.descr = text_.substr(begin, position_ - begin);
  }

  bool boolean() {
    skip_space();
    for (const bool value : {false, true}) {
      const std::string_view word = value ? "True" : "False";
      if (!text_.substr(position_).starts_with(word)) continue;
      position_ += word.size();
      return value;
    }
    fail("fortran_order", "expected True or False", position_);
  }

  Shape shape() {
    Shape shape;
    expect('(');
    while (!skip_if(')')) {
      const std::size_t begin = (skip_space(), position_);
      std::uint64_t length = 0;
      const char* const first = text_.data() + position_;
      const auto [end, code] = std::from_chars(first, text_.data() + text_.size(), length);
      if (code != std::errc()) fail("shape", "expected non-negative integers of 64 bits", begin);
      position_ += static_cast<std::size_t>(end - first);
      if (position_ < text_.size() && text_[position_] == 'L') ++position_;  // a long of Python 2
      if (shape.size() == poise::kMaxRank)
        fail("shape", fmt::format("more than {} dimensions", poise::kMaxRank), begin);
      shape.push_back(length);
      const bool more = skip_if(',');
      if (!more && (shape.size() == 1 || peek() != ')')) fail("shape", "expected , or )", position_);
    }
    return shape;
  }

  [[noreturn]] void fail(std::string_view field, std::string_view problem, std::size_t position) const {
    reader_.fail(field, problem, at_ + position);
  }

  const ByteReader& reader_;
  std::string_view text_;
  std::uint64_t at_;
  std::size_t position_ = 0;
};

// Without its first letter, if that is a byte order. NumPy takes all but ">" for that of the machine, which is
// little-endian wherever Poise runs; it writes "<", and "|" for single bytes.
std::string_view without_order(std::string_view descr) {
  return !descr.empty() && std::string_view("<>|=").find(descr[0]) != std::string_view::npos ? descr.substr(1) : descr;
}

std::string python_shape(const Shape& shape) {
  return fmt::format("({}{})", fmt::join(shape.begin(), shape.end(), ", "), shape.size() == 1 ? "," : "");
}

}  // namespace

Header read_header(ByteReader& reader) {
  const std::uint64_t begin = reader.position();
  if (reader.text(kMagic.size(), "magic") != kMagic) reader.fail("magic", "expected \\x93NUMPY", begin);
  const std::uint64_t version_at = reader.position();
  const std::uint8_t major = reader.u8("version");
  const std::uint8_t minor = reader.u8("version");
  if (major < 1 || major > 3 || minor != 0)
    reader.fail("version", fmt::format("{}.{}; known are 1.0, 2.0 and 3.0", major, minor), version_at);
  const std::uint64_t length_at = reader.position();
  const std::uint64_t length = major == 1 ? reader.u16("length of the header") : reader.u32("length of the header");
  if (length > kMaxHeaderBytes)
    reader.fail("length of the header", fmt::format("{} bytes, at most {} are allowed", length, kMaxHeaderBytes),
                length_at);
  const std::uint64_t at = reader.position();
  const std::string text(reader.text(length, "header"));
  Header header = Literal(reader, text, at).parse();
  if (const auto dtype = dtype_of(header)) {
    const auto elements = element_count(header.shape);
    if (!elements || !packed_bytes(*dtype, *elements))
      reader.fail("shape", fmt::format("{} has more than 2^64 bytes", to_string(header.shape)), at);
  }
  return header;
}

std::optional<DType> dtype_of(const Header& header) {
  if (header.is_record) return std::nullopt;
  return dtype_spelled(kSpellings, without_order(header.descr));
}

std::string why_no_number(const Header& header) {
  if (header.is_record) return "its elements are records of several fields";
  const std::string_view type = without_order(header.descr);
  switch (type.empty() ? '\0' : type[0]) {
    case 'O': return "its elements are Python objects, which NumPy stores as a pickle";
    case 'U':
    case 'S':
    case 'a': return "its elements are texts";
    case 'V':
      return fmt::format("its elements are raw bytes ('{}'): the file does not say what they mean", header.descr);
    case 'M':
    case 'm': return "its elements are times";
    default: return fmt::format("its element type '{}' is not known", header.descr);
  }
}

Tensor make_tensor(std::string name, const Header& header, BlobPtr data) {
  const DType dtype = *dtype_of(header);
  const std::uint64_t bytes = *packed_bytes(dtype, *element_count(header.shape));
  if (data->size() != bytes)
    throw Error(ErrorKind::invalid_file, fmt::format("{}: {} of {} needs {} bytes, {} are there", name,
                                                     to_string(header.shape), header.descr, bytes, data->size()));
  const unsigned swapped = header.descr[0] == '>' ? number_bytes(dtype) : 0;
  const unsigned item = info(dtype).bits / 8;
  if (header.fortran_order && header.shape.size() > 1 && bytes > 0) {
    data = make_strided_blob(data, {.shape = header.shape,
                                    .strides = column_major_strides(header.shape, item),
                                    .item_bytes = item,
                                    .swapped = swapped > 1 ? swapped : 0});
  } else if (swapped > 1) {
    data = make_byte_swapped_blob(data, swapped);
  }
  return make_dense(std::move(name), header.shape, dtype, std::move(data));
}

ByteWriter write_header(std::string_view format, const Tensor& tensor) {
  if (tensor.layout != Layout::dense) refuse_tensor(format, tensor);
  const DType dtype = tensor.require("data").dtype;
  const auto name = spelling_in(kSpellings, dtype);
  if (!name) refuse_tensor(format, tensor);
  if (tensor.shape.size() > kMaxRank)
    throw Error(ErrorKind::unsupported, fmt::format("{} cannot hold {}: it has {} dimensions, NumPy takes {}", format,
                                                    tensor.name, tensor.shape.size(), kMaxRank));
  std::string text = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': {}, }}",
                                 number_bytes(dtype) > 1 ? '<' : '|', *name, python_shape(tensor.shape));
  const std::size_t start = kMagic.size() + 2 + 2;
  text.resize(*checked_align(start + text.size() + 1, kAlignment) - start - 1, ' ');
  text += '\n';
  ByteWriter header;
  header.text(kMagic);
  header.u8(1);
  header.u8(0);
  header.u16(static_cast<std::uint16_t>(text.size()));
  header.text(text);
  return header;
}

}  // namespace poise::numpy
