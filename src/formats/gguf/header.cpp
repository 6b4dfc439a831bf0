// Reads the header of a GGUF file; header.hpp has the layout. Source: the GGUF specification of
// github.com/ggml-org/ggml, and ggml/src/gguf.cpp of llama.cpp for the rest.
#include "formats/gguf/header.hpp"

#include <algorithm>
#include <array>
#include <deque>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/text_table.hpp"
#include "bytes/utf8.hpp"
#include "model/limits.hpp"
#include "numeric/float_formats.hpp"

namespace poise::gguf {
namespace {

constexpr std::string_view kCut = "the file is cut off or damaged";

// Lists the sizes of values in bytes, in the order of ValueType. 0 means that the size varies.
constexpr std::array<std::uint8_t, 13> kValueBytes = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

bool has_fixed_size(ValueType type) { return type != ValueType::text && type != ValueType::array; }

Value make_text_value(std::string_view text) {
  if (is_utf8(text)) return std::string(text);
  const auto bytes = std::as_bytes(std::span(text));
  return Value::Bytes(bytes.begin(), bytes.end());
}

}  // namespace

bool is_integer(ValueType type) {
  return type != ValueType::f32 && type != ValueType::f64 && type != ValueType::boolean &&
         kValueBytes[static_cast<std::size_t>(type)] != 0;
}

std::string_view to_string(ValueType type) {
  constexpr std::array<std::string_view, kValueBytes.size()> kNames = {
      "u8", "i8", "u16", "i16", "u32", "i32", "f32", "boolean", "text", "array", "u64", "i64", "f64"};
  return kNames[static_cast<std::size_t>(type)];
}

bool is_split_key(std::string_view key) {
  return key == kSplitNumberKey || key == kSplitCountKey || key == kSplitTensorsKey;
}

bool is_placement_key(std::string_view key) { return key == kAlignmentKey || is_split_key(key); }

HeaderReader::HeaderReader(const Source& source)
    : in_(source, "gguf"), budget_(std::min(source.size(), kMostValueText)) {
  in_.set_note_at_end(kCut);
  if (in_.read_text(kMagic.size(), "magic number") != kMagic) in_.fail("magic number", "expected \"GGUF\"", 0);
  const std::uint64_t at = in_.position();
  version_ = in_.read_u32("version");
  // The version is a small number, so its zero bytes show the byte order.
  if (version_ != 0 && (version_ & 0xffffU) == 0) {
    big_endian_ = true;
    in_.set_big_endian(true);
    in_.seek(at);
    version_ = in_.read_u32("version");
  }
  if (version_ == 0 || version_ > kLastVersion) {
    in_.fail(ErrorKind::unsupported, "", fmt::format("version {}, expected 1 to {}", version_, kLastVersion), at);
  }
  constexpr std::uint64_t kLeastTensor = 4 + 4 + 4 + 8;  // name, dimensions, type, offset
  constexpr std::uint64_t kLeastEntry = 4 + 4 + 1;       // key, type, value
  const std::uint64_t tensors_at = in_.position();
  tensor_count_ = read_length("tensor count");
  const std::uint64_t metadata_at = in_.position();
  metadata_count_ = read_length("metadata count");
  const auto require_possible = [&](std::string_view field, std::uint64_t count, std::uint64_t least,
                                    std::uint64_t most, std::uint64_t offset) {
    if (count > in_.remaining() / least)
      in_.fail_at_end(field, fmt::format("{} do not fit the {} bytes that are left", count, in_.remaining()), offset);
    if (count > most)
      in_.fail(ErrorKind::unsupported, field, fmt::format("{}, at most {} are allowed", count, most), offset);
  };
  require_possible("tensor count", tensor_count_, kLeastTensor, kMaxTensors, tensors_at);
  require_possible("metadata count", metadata_count_, kLeastEntry, kMaxKeys, metadata_at);
}

std::uint64_t HeaderReader::read_length(std::string_view field) {
  return version_ == 1 ? in_.read_u32(field) : in_.read_u64(field);
}

std::uint64_t HeaderReader::read_count(std::string_view field, std::uint64_t least) {
  const std::uint64_t at = in_.position();
  const std::uint64_t count = read_length(field);
  if (count > in_.remaining() / least)
    in_.fail_at_end(field,
                    fmt::format("{} items of {} bytes or more do not fit the {} bytes that are left", count, least,
                                in_.remaining()),
                    at);
  return count;
}

std::string_view HeaderReader::read_text(std::string_view field) { return in_.read_text(read_length(field), field); }

ValueType HeaderReader::read_value_type(std::string_view field) {
  const std::uint64_t at = in_.position();
  const std::uint32_t type = in_.read_u32(field);
  if (type >= kValueBytes.size())
    in_.fail(field, fmt::format("expected 0 to {}, found {}", kValueBytes.size() - 1, type), at);
  return static_cast<ValueType>(type);
}

std::uint64_t HeaderReader::count_least_bytes(ValueType type) const {
  const std::uint64_t length_bytes = version_ == 1 ? 4 : 8;
  if (type == ValueType::array) return 4 + length_bytes;
  return type == ValueType::text ? length_bytes : kValueBytes[static_cast<std::size_t>(type)];
}

void HeaderReader::read_metadata(FunctionRef<void(std::string_view key, MetadataValue& value)> use_entry) {
  const auto scope = in_.open_scope("metadata");
  std::deque<std::string> keys;
  KeySet seen;
  for (std::uint64_t i = 0; i < metadata_count_; ++i) {
    const std::uint64_t at = in_.position();
    const std::string_view found = read_text("key");
    if (found.empty() || found.size() > kMaxKeyBytes)
      in_.fail("key", fmt::format("expected 1 to {} bytes, found {}", kMaxKeyBytes, found.size()), at);
    if (!is_utf8(found)) in_.fail("key", "it is not UTF-8", at);
    const std::string& key = keys.emplace_back(found);
    if (!seen.insert(key)) in_.fail("key", fmt::format("\"{}\" appears twice", key), at);
    const auto entry = in_.open_scope(key);
    MetadataValue value(*this, in_.position());
    value.type_ = read_value_type("type");
    if (value.type_ == ValueType::array) {
      value.item_type_ = read_value_type("item type");
      value.count_ = read_count("item count", count_least_bytes(value.item_type_));
    }
    use_entry(key, value);
    skip_unread(value);
  }
}

void HeaderReader::skip_unread(MetadataValue& value) {
  if (value.is_read_) return;
  if (value.type_ == ValueType::array) {
    skip_items(value.item_type_, value.count_, 1);
  } else {
    skip_value(value.type_, 0);
  }
}

void HeaderReader::skip_value(ValueType type, std::size_t depth) {
  if (type == ValueType::text) {
    in_.skip(read_length("length"), "text");
  } else if (type == ValueType::array) {
    if (depth == kMaxNesting)
      in_.fail("array", fmt::format("nested deeper than {} levels", kMaxNesting), in_.position());
    const ValueType item = read_value_type("item type");
    skip_items(item, read_count("item count", count_least_bytes(item)), depth + 1);
  } else {
    in_.skip(kValueBytes[static_cast<std::size_t>(type)], "value");
  }
}

void HeaderReader::skip_items(ValueType type, std::uint64_t count, std::size_t depth) {
  if (has_fixed_size(type)) return in_.skip(count * kValueBytes[static_cast<std::size_t>(type)], "items");
  for (std::uint64_t i = 0; i < count; ++i) skip_value(type, depth);
}

double HeaderReader::read_number(ValueType type) {
  switch (type) {
    case ValueType::u8: return in_.read_u8("value");
    case ValueType::i8: return in_.read_i8("value");
    case ValueType::u16: return in_.read_u16("value");
    case ValueType::i16: return in_.read_i16("value");
    case ValueType::u32: return in_.read_u32("value");
    case ValueType::i32: return in_.read_i32("value");
    case ValueType::f32: return convert_by_spelling(in_.read_f32("value"));
    case ValueType::boolean: return in_.read_u8("value") != 0 ? 1 : 0;
    case ValueType::u64: return static_cast<double>(in_.read_u64("value"));
    case ValueType::i64: return static_cast<double>(in_.read_i64("value"));
    case ValueType::f64: return in_.read_f64("value");
    case ValueType::text:
    case ValueType::array: break;
  }
  throw Error(ErrorKind::internal, "gguf: a text or an array was read as a number");
}

Value HeaderReader::read_tree(ValueType type, std::size_t depth) {
  const std::uint64_t at = in_.position();
  if (!budget_.charge_value())
    in_.fail(ErrorKind::unsupported, "", "the metadata's values take more memory than is allowed", at);
  switch (type) {
    case ValueType::text: {
      const std::string_view found = read_text("text");
      if (!budget_.charge_text(found.size()))
        in_.fail(ErrorKind::unsupported, "", "the metadata's texts take more memory than is allowed", at);
      return make_text_value(found);
    }
    case ValueType::array: {
      if (depth == kMaxNesting) in_.fail("array", fmt::format("nested deeper than {} levels", kMaxNesting), at);
      const ValueType item = read_value_type("item type");
      return read_items(item, read_count("item count", count_least_bytes(item)), depth + 1);
    }
    case ValueType::boolean: return in_.read_u8("value") != 0;
    case ValueType::f32:
    case ValueType::f64: return read_number(type);
    case ValueType::u64: return in_.read_u64("value");
    case ValueType::i64: return in_.read_i64("value");
    default: return static_cast<std::int64_t>(read_number(type));
  }
}

Value HeaderReader::read_items(ValueType type, std::uint64_t count, std::size_t depth) {
  Value::Array array;
  for (std::uint64_t i = 0; i < count; ++i) array.push_back(read_tree(type, depth));
  return array;
}

void HeaderReader::read_tensors(FunctionRef<void(TensorInfo tensor)> add_tensor) {
  for (std::uint64_t i = 0; i < tensor_count_; ++i) {
    const auto scope = in_.open_scope("tensor", static_cast<std::int64_t>(i));
    TensorInfo tensor;
    tensor.position = in_.position();
    const std::string_view name = read_text("name");
    if (name.empty() || name.size() > kMaxNameBytes)
      in_.fail("name", fmt::format("expected 1 to {} bytes, found {}", kMaxNameBytes, name.size()), tensor.position);
    if (!is_utf8(name)) in_.fail("name", "it is not UTF-8", tensor.position);
    tensor.name = name;
    const std::uint64_t dimensions_at = in_.position();
    const std::uint32_t dimensions = in_.read_u32("dimensions");
    if (dimensions > kMaxDimensions)
      in_.fail("dimensions", fmt::format("{}, at most {} are allowed", dimensions, kMaxDimensions), dimensions_at);
    for (std::uint32_t d = 0; d < dimensions; ++d) tensor.shape.push_back(read_length("dimension"));
    std::ranges::reverse(tensor.shape);
    tensor.type = in_.read_u32("type");
    tensor.offset = in_.read_u64("offset");
    add_tensor(std::move(tensor));
  }
}

std::optional<std::string_view> MetadataValue::read_text() {
  if (type_ != ValueType::text) return std::nullopt;
  is_read_ = true;
  return reader_.read_text("text");
}

std::optional<std::uint64_t> MetadataValue::read_unsigned() {
  if (!is_integer(type_)) return std::nullopt;
  const Value value = read_tree();
  const auto* number = value.get_if<std::uint64_t>();
  return number == nullptr ? std::nullopt : std::optional(*number);
}

std::optional<double> MetadataValue::read_number() {
  if (!has_fixed_size(type_)) return std::nullopt;
  is_read_ = true;
  return reader_.read_number(type_);
}

bool MetadataValue::visit_texts(FunctionRef<void(std::string_view text)> add_text) {
  if (type_ != ValueType::array || item_type_ != ValueType::text) return false;
  is_read_ = true;
  for (std::uint64_t i = 0; i < count_; ++i) add_text(reader_.read_text("text"));
  return true;
}

bool MetadataValue::visit_numbers(FunctionRef<void(double number)> add_number) {
  if (type_ != ValueType::array || !has_fixed_size(item_type_)) return false;
  is_read_ = true;
  for (std::uint64_t i = 0; i < count_; ++i) add_number(reader_.read_number(item_type_));
  return true;
}

Value MetadataValue::read_tree() {
  is_read_ = true;
  return type_ == ValueType::array ? reader_.read_items(item_type_, count_, 1) : reader_.read_tree(type_, 0);
}

}  // namespace poise::gguf
