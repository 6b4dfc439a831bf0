// Reads and writes the header of an .npy array. array.hpp has the layout. Source: numpy/lib/format.py of NumPy, "Format
// Version 1.0" to "3.0".
#include "formats/numpy/array.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <poise/error.hpp>

#include "bytes/checked.hpp"
#include "bytes/little_endian.hpp"
#include "bytes/utf8.hpp"
#include "formats/losses.hpp"
#include "model/limits.hpp"
#include "views/integer_blobs.hpp"
#include "views/strided.hpp"

namespace poise::numpy {
namespace {

constexpr std::uint64_t kMaxHeaderBytes = 1 << 20;

// Moves through a Python literal.
class LiteralCursor {
 protected:
  explicit LiteralCursor(std::string_view text) : text_(text) {}

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
  // Returns text in quotes, and moves past it; std::nullopt if there is none, or if it has no end.
  std::optional<std::string_view> skip_quoted() {
    const char quote = peek();
    const bool is_quote = quote == '\'' || quote == '"';
    const std::size_t end = is_quote ? text_.find(quote, position_ + 1) : std::string_view::npos;
    if (end == std::string_view::npos) return std::nullopt;
    const std::size_t begin = std::exchange(position_, end + 1) + 1;
    return text_.substr(begin, end - begin);
  }

  std::string_view text_;
  std::size_t position_ = 0;
};

// Parses the dict of a header, which is a Python literal.
class Literal : private LiteralCursor {
 public:
  Literal(const ByteReader& reader, std::string_view text, std::uint64_t at)
      : LiteralCursor(text), reader_(reader), at_(at) {}

  ArrayHeader parse() {
    ArrayHeader header;
    bool has_descr = false;
    bool has_order = false;
    bool has_shape = false;
    expect('{');
    while (!skip_if('}')) {
      const std::size_t begin = position_;
      const std::string_view key = read_quoted("key");
      expect(':');
      const auto require_new = [&](bool& has_key) {
        if (has_key) fail("header", fmt::format("the key '{}' appears twice", key), begin);
        has_key = true;
      };
      if (key == "descr") {
        require_new(has_descr);
        read_descr(header);
      } else if (key == "fortran_order") {
        require_new(has_order);
        header.fortran_order = read_boolean();
      } else if (key == "shape") {
        require_new(has_shape);
        header.shape = read_shape();
      } else {
        fail("header", fmt::format("unknown key '{}', expected 'descr', 'fortran_order' or 'shape'", key), begin);
      }
      if (!skip_if(',') && peek() != '}') fail("header", "expected , or }", position_);
    }
    skip_space();
    if (position_ < text_.size()) fail("header", "expected the end of the header after the dict", position_);
    if (!has_descr || !has_order || !has_shape)
      fail("header", "expected the keys 'descr', 'fortran_order' and 'shape'", 0);
    return header;
  }

 private:
  void expect(char wanted) {
    if (!skip_if(wanted)) fail("header", fmt::format("expected {}", wanted), position_);
  }

  std::string_view read_quoted(std::string_view field) {
    const bool is_quote = peek() == '\'' || peek() == '"';
    const std::size_t begin = position_;
    const auto text = skip_quoted();
    if (!text) fail(field, is_quote ? "the text has no end" : "expected text in quotes", begin);
    if (text->find('\\') != std::string_view::npos) fail(field, "expected text without escapes (\\)", begin);
    return *text;
  }

  void read_descr(ArrayHeader& header) {
    skip_space();
    header.descr_at = at_ + position_;
    header.is_record = peek() == '[' || peek() == '(';
    if (!header.is_record) {
      header.descr = read_quoted("descr");
      return;
    }
    const std::size_t begin = position_;
    std::size_t depth = 0;
    do {
      const char next = peek();
      if (position_ == text_.size()) fail("descr", "the list has no end", begin);
      if (next == '\'' || next == '"') {
        read_quoted("descr");
        continue;
      }
      if (next == '[' || next == '(') ++depth;
      if (next == ']' || next == ')') --depth;
      ++position_;
    } while (depth > 0);
    header.descr = text_.substr(begin, position_ - begin);
  }

  bool read_boolean() {
    skip_space();
    for (const bool value : {false, true}) {
      const std::string_view word = value ? "True" : "False";
      if (!text_.substr(position_).starts_with(word)) continue;
      position_ += word.size();
      return value;
    }
    fail("fortran_order", "expected True or False", position_);
  }

  Shape read_shape() {
    Shape shape;
    expect('(');
    while (!skip_if(')')) {
      const std::size_t begin = (skip_space(), position_);
      std::uint64_t length = 0;
      const char* const first = text_.data() + position_;
      const auto [end, code] = std::from_chars(first, text_.data() + text_.size(), length);
      if (code != std::errc()) fail("shape", "expected non-negative integers of 64 bits", begin);
      position_ += static_cast<std::size_t>(end - first);
      if (position_ < text_.size() && text_[position_] == 'L') ++position_;  // the end of a long integer in Python 2
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
  std::uint64_t at_;
};

// Removes the first letter if it is a byte order. NumPy treats all but ">" as the order of the machine, which is
// little-endian wherever Poise runs. Poise writes "<", and "|" for single bytes.
std::string_view remove_byte_order(std::string_view descr) {
  return !descr.empty() && std::string_view("<>|=").find(descr[0]) != std::string_view::npos ? descr.substr(1) : descr;
}

std::string format_shape(const Shape& shape) {
  return fmt::format("({}{})", fmt::join(shape.begin(), shape.end(), ", "), shape.size() == 1 ? "," : "");
}

}  // namespace

ArrayHeader read_header(ByteReader& reader) {
  const std::uint64_t begin = reader.position();
  if (reader.read_text(kMagic.size(), "magic") != kMagic) reader.fail("magic", "expected \\x93NUMPY", begin);
  const std::uint64_t version_at = reader.position();
  const std::uint8_t major = reader.read_u8("version");
  const std::uint8_t minor = reader.read_u8("version");
  if (major < 1 || major > 3 || minor != 0)
    reader.fail("version", fmt::format("expected 1.0, 2.0 or 3.0, found {}.{}", major, minor), version_at);
  const std::uint64_t length_at = reader.position();
  const std::uint64_t length =
      major == 1 ? reader.read_u16("length of the header") : reader.read_u32("length of the header");
  if (length > kMaxHeaderBytes)
    reader.fail("length of the header", fmt::format("{} bytes, at most {} are allowed", length, kMaxHeaderBytes),
                length_at);
  const std::uint64_t at = reader.position();
  const std::string text(reader.read_text(length, "header"));
  ArrayHeader header = Literal(reader, text, at).parse();
  if (const auto dtype = find_dtype(header)) {
    const auto elements = element_count(header.shape);
    if (!elements || !packed_bytes(*dtype, *elements))
      reader.fail("shape", fmt::format("{} has more than 2^64 bytes", to_string(header.shape)), at);
  }
  return header;
}

std::optional<DType> find_dtype(const ArrayHeader& header) {
  if (header.is_record) return std::nullopt;
  return find_spelled_dtype(kSpellings, remove_byte_order(header.descr));
}

std::string explain_unsupported_type(const ArrayHeader& header) {
  if (header.is_record) return "its elements are records of several fields";
  const std::string_view type = remove_byte_order(header.descr);
  switch (type.empty() ? '\0' : type[0]) {
    case 'O': return "its elements are Python objects, which NumPy stores as a pickle";
    case 'U':
    case 'S':
    case 'a': return "its elements are texts";
    case 'V':
      return fmt::format("its elements are raw bytes ('{}'): the file does not state their meaning", header.descr);
    case 'M':
    case 'm': return "its elements are times";
    default: return fmt::format("its element type '{}' is not known", header.descr);
  }
}

Tensor make_tensor(std::string name, const ArrayHeader& header, BlobPtr data) {
  const DType dtype = *find_dtype(header);
  const std::uint64_t bytes = *packed_bytes(dtype, *element_count(header.shape));
  if (data->size() != bytes)
    throw Error(ErrorKind::invalid_file, fmt::format("{}: {} of {} needs {} bytes, {} are there", name,
                                                     to_string(header.shape), header.descr, bytes, data->size()));
  const unsigned swapped = header.descr[0] == '>' ? get_number_bytes(dtype) : 0;
  const unsigned item = info(dtype).bits / 8;
  if (header.fortran_order && header.shape.size() > 1 && bytes > 0) {
    data = make_strided_blob(data, {.shape = header.shape,
                                    .strides = compute_column_major_strides(header.shape, item),
                                    .item_bytes = item,
                                    .swapped = swapped > 1 ? swapped : 0});
  } else if (swapped > 1) {
    data = make_byte_swapped_blob(data, swapped);
  }
  return make_dense(std::move(name), header.shape, dtype, std::move(data));
}

ByteWriter make_header(std::string_view format, const Tensor& tensor) {
  if (tensor.layout != Layout::dense) refuse_tensor(format, tensor);
  const DType dtype = tensor.require("data").dtype;
  const auto name = find_spelling(kSpellings, dtype);
  if (!name) refuse_tensor(format, tensor);
  if (tensor.shape.size() > kMaxRank)
    throw Error(ErrorKind::unsupported, fmt::format("{} cannot hold {}: it has {} dimensions, NumPy allows {}", format,
                                                    tensor.name, tensor.shape.size(), kMaxRank));
  std::string text = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': {}, }}",
                                 get_number_bytes(dtype) > 1 ? '<' : '|', *name, format_shape(tensor.shape));
  const std::size_t start = kMagic.size() + 2 + 2;
  text.resize(*checked_align(start + text.size() + 1, kAlignment) - start - 1, ' ');
  text += '\n';
  ByteWriter header;
  header.append_text(kMagic);
  header.append_u8(1);
  header.append_u8(0);
  header.append_u16(static_cast<std::uint16_t>(text.size()));
  header.append_text(text);
  return header;
}

namespace {

constexpr std::uint64_t kMostBytes = 1 << 20;

// Converts an element to UTF-8, without the zeros at its end, which are padding.
std::optional<std::string> convert_text(std::span<const std::byte> element, bool is_unicode, bool big_endian) {
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

std::optional<Value> read_texts(const ArrayHeader& header, const Blob& data) {
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
    auto text = convert_text(std::span(all).subspan(i * *item, *item), is_unicode, header.descr[0] == '>');
    if (!text) return std::nullopt;
    texts.emplace_back(*std::move(text));
  }
  if (header.shape.empty()) return std::move(texts.front());
  return Value(std::move(texts));
}

namespace {

enum class Elements : std::uint8_t { plain, objects, unknown };

// Classifies a type without fields: "<f4", "|O8". NumPy also accepts words that it never writes ("object", "f4,O").
Elements classify_word(std::string_view word) {
  word = remove_byte_order(word);
  if (word.empty()) return Elements::unknown;
  const std::size_t digits = std::min(word.find_first_not_of("0123456789", 1), word.size());
  const bool is_time = word[0] == 'M' || word[0] == 'm';
  const bool has_unit = is_time && digits < word.size() && word[digits] == '[' && word.find(']') == word.size() - 1;
  if (digits < word.size() && !has_unit) return Elements::unknown;
  if (word[0] == 'O') return Elements::objects;
  return std::string_view("?biufcSUaVMm").find(word[0]) != std::string_view::npos ? Elements::plain : Elements::unknown;
}

// Reads the literal of a type with fields: a list of (name, type) or (name, type, shape). A name may also be a pair
// (title, name). A type is a word, such a list, or (type, shape).
class RecordFields : private LiteralCursor {
 public:
  explicit RecordFields(std::string_view text) : LiteralCursor(text) {}

  Elements classify() {
    const Elements found = classify_type(0);
    skip_space();
    return is_wrong_ || position_ < text_.size() ? Elements::unknown : found;
  }

 private:
  void expect(char wanted) { is_wrong_ = !skip_if(wanted) || is_wrong_; }

  std::string_view read_word() {
    const auto word = skip_quoted();
    is_wrong_ = is_wrong_ || !word;
    return word.value_or(std::string_view());
  }

  // Skips a number, or numbers in brackets.
  void skip_shape() {
    const bool has_brackets = skip_if('(');
    position_ = std::min(text_.find_first_not_of("0123456789L, \t\n", position_), text_.size());
    if (has_brackets) expect(')');
  }

  Elements classify_type(std::size_t depth) {
    constexpr std::size_t kMostLevels = 16;
    if (is_wrong_ || depth > kMostLevels) return Elements::unknown;
    if (skip_if('[')) {
      Elements found = Elements::plain;
      while (!is_wrong_ && !skip_if(']')) {
        found = std::max(found, classify_field(depth));
        if (!skip_if(',')) {
          expect(']');
          break;
        }
      }
      return found;
    }
    if (!skip_if('(')) return classify_word(read_word());
    const Elements found = classify_type(depth + 1);
    expect(',');
    skip_shape();
    expect(')');
    return found;
  }

  Elements classify_field(std::size_t depth) {
    expect('(');
    if (skip_if('(')) {
      (void)read_word();
      expect(',');
      (void)read_word();
      expect(')');
    } else {
      (void)read_word();
    }
    expect(',');
    const Elements found = classify_type(depth + 1);
    if (skip_if(',')) skip_shape();
    expect(')');
    return found;
  }

  bool is_wrong_ = false;
};

}  // namespace

std::vector<Finding> check_objects(const ArrayHeader& header, const pytorch::PickleFile& data) {
  const Elements elements = header.is_record ? RecordFields(header.descr).classify() : classify_word(header.descr);
  if (elements == Elements::plain) return {};
  if (elements == Elements::objects) return pytorch::check_certain_pickles(data);
  std::vector<Finding> findings = pytorch::check_pickles(data);
  findings.insert(findings.begin(),
                  {Severity::error,
                   fmt::format("{}the element type {} is not known: NumPy may read the elements as a pickle, which "
                               "runs code",
                               data.prefix, header.is_record ? header.descr : "'" + header.descr + "'"),
                   data.path, data.begin ? *data.begin : data.header});
  return findings;
}

}  // namespace poise::numpy
