// Reads a TensorProto:
//
//   1 dims   2 data_type   4 float_data   5 int32_data   6 string_data   7 int64_data   8 name   9 raw_data
//   10 double_data   11 uint64_data   13 external_data ({"location", "offset", "length"})   14 data_location
//
// The elements are in one of the data fields, packed or raw, or
// in a file next to the model. Source: onnx/onnx.proto of github.com/onnx/onnx.
#include "formats/onnx/onnx.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include "bytes/little_endian.hpp"
#include "bytes/number_text.hpp"
#include "bytes/short_text.hpp"
#include "bytes/utf8.hpp"
#include "io/directory.hpp"
#include "io/file_descriptor.hpp"
#include "io/read_fully.hpp"
#include "model/limits.hpp"
#include "views/row_order.hpp"

namespace poise::onnx {
namespace {

constexpr std::size_t kBufferBytes = 64 << 10;

// Reads the bytes in several ranges of a source, one by one.
class Walk {
 public:
  Walk(const Source& source, const Places& places) : source_(&source), places_(&places) {}

  bool is_at_end() { return position_ == buffer_.size() && !fill(); }
  // Returns the offset of the next byte in the source. Requires: !is_at_end().
  std::uint64_t place() const { return buffer_at_ + position_; }
  std::uint8_t next() { return std::to_integer<std::uint8_t>(buffer_[position_++]); }

 private:
  bool fill() {
    while (index_ < places_->size() && (*places_)[index_].begin + offset_ == (*places_)[index_].end) {
      ++index_;
      offset_ = 0;
    }
    if (index_ == places_->size()) return false;
    const auto& place = (*places_)[index_];
    buffer_at_ = place.begin + offset_;
    buffer_.resize(std::min<std::uint64_t>(kBufferBytes, place.end - buffer_at_));
    source_->read(buffer_at_, buffer_);
    offset_ += buffer_.size();
    position_ = 0;
    return true;
  }

  const Source* source_;
  const Places* places_;
  std::size_t index_ = 0;
  std::uint64_t offset_ = 0;  // the first byte of the range that is not in the buffer yet
  std::vector<std::byte> buffer_;
  std::uint64_t buffer_at_ = 0;
  std::size_t position_ = 0;
};

class IntegerStream final : public BlobStream {
 public:
  IntegerStream(const Source& source, const Places& places, Integers integers, const std::string& tensor)
      : source_(source), walk_(source, places), integers_(integers), tensor_(tensor) {}

  // Reads integers. If `out` ends inside an integer, the next call continues with the rest of it.
  std::size_t read(std::span<std::byte> out) override {
    std::size_t done = 0;
    while (done < out.size()) {
      if (left_ == 0) {
        if (walk_.is_at_end()) break;
        store_le(element_.data(), read_integer());
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
  std::uint64_t read_integer() {
    const std::uint64_t at = walk_.place();
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      if (shift > 63 || walk_.is_at_end()) fail("not a whole integer of 64 bits", at);
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
  unsigned left_ = 0;  // bytes of the element that have not been read yet
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
    discard_bytes(from, offset);
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
  for (Walk walk(source, places); !walk.is_at_end();) count += walk.next() < 0x80 ? 1 : 0;
  return count;
}

BlobPtr make_integer_list_blob(SourcePtr source, Places places, std::uint64_t count, Integers integers,
                               std::string tensor) {
  return std::make_shared<IntegerListBlob>(std::move(source), std::move(places), count, integers, std::move(tensor));
}

namespace {

constexpr std::size_t kMostPieces = 1 << 16;   // pieces of a field
constexpr std::size_t kMostExternalKeys = 16;  // ONNX defines location, offset, length and checksum
constexpr std::uint64_t kMostTextBytes = 1 << 20;

Message::Wire find_wire_type(ListField field) {
  if (field == ListField::float_data) return Message::Wire::fixed32;
  return field == ListField::double_data ? Message::Wire::fixed64 : Message::Wire::varint;
}

std::string_view find_field_name(ListField field) {
  switch (field) {
    case ListField::none: break;
    case ListField::float_data: return "float_data";
    case ListField::int32_data: return "int32_data";
    case ListField::int64_data: return "int64_data";
    case ListField::double_data: return "double_data";
    case ListField::uint64_data: return "uint64_data";
  }
  return "no field";
}

void read_list(Message& message, TensorProto& proto) {
  const auto field = static_cast<ListField>(message.number());
  const Message::Place place = message.read_packed(find_field_name(field), find_wire_type(field));
  if (place.begin == place.end) return;
  if (proto.field != ListField::none && proto.field != field)
    message.fail(find_field_name(field),
                 fmt::format("expected elements in one field, found others in {}", find_field_name(proto.field)));
  proto.field = field;
  add_piece(message, find_field_name(field), proto.list, place);
}

std::pair<std::string, std::string> read_entry(Message entry) {
  std::pair<std::string, std::string> pair;
  while (entry.next()) {
    if (entry.number() == 1) pair.first = entry.read_text("key");
    if (entry.number() == 2) pair.second = entry.read_text("value");
  }
  return pair;
}

// Returns the number of bytes of all elements; those of less than a byte are packed.
std::uint64_t count_bytes(const OnnxType& type, const Shape& dims) {
  const auto elements = element_count(dims);
  if (!elements || *elements > UINT64_MAX / 128)
    fail(fmt::format("dims: {} has more than 2^64 bytes", to_string(dims)));
  return (*elements * type.bits + 7) / 8;
}

void require_bytes(const TensorProto& proto, const OnnxType& type, std::uint64_t found, std::string_view where) {
  const std::uint64_t expected = count_bytes(type, proto.dims);
  if (found != expected)
    fail(fmt::format("{}: {} bytes, {} of {} needs {}", where, found, to_string(proto.dims), type.name, expected));
}

// Throws invalid_file for a file with several names (hard links). Unpacking an archive can make a hard link to any file
// of the user, and nobody can see where it leads. onnx refuses them, too (CVE-2026-34446).
void require_one_name(const Source& file, const std::string& name) {
  struct stat status {};
  if (::fstat(file.descriptor(), &status) != 0) throw_system_error("stat", file.name());
  if (status.st_nlink <= 1) return;
  fail(
      fmt::format("external_data: location: \"{}\" has {} names (hard links) and may be a file from outside of the "
                  "model's directory; if it belongs there, put a copy in its place",
                  name, status.st_nlink));
}

std::optional<std::uint64_t> parse_external_number(const TensorProto& proto, std::string_view key) {
  const auto entry = std::ranges::find(proto.external, key, &std::pair<std::string, std::string>::first);
  if (entry == proto.external.end()) return std::nullopt;
  const auto number = parse_number_text<std::uint64_t>(entry->second);
  if (!number) fail(fmt::format("external_data: {}: expected a number, found \"{}\"", key, entry->second));
  return number;
}

BlobPtr open_external_elements(const TensorProto& proto, const OnnxType& type, ExternalFiles& files) {
  const auto location = std::ranges::find(proto.external, "location", &std::pair<std::string, std::string>::first);
  if (location == proto.external.end()) fail("external_data: location is missing, expected the name of a file");
  const std::uint64_t offset = parse_external_number(proto, "offset").value_or(0);
  const std::uint64_t length = parse_external_number(proto, "length").value_or(count_bytes(type, proto.dims));
  require_bytes(proto, type, length, "external_data: length");
  const SourcePtr& source = files.open(location->second);
  if (offset > source->size() || length > source->size() - offset)
    fail(fmt::format("external_data: {} bytes at offset {} reach beyond the file {}, which has {} bytes", length,
                     offset, location->second, source->size()));
  return make_source_blob(source, offset, length);
}

BlobPtr open_listed_elements(const TensorProto& proto, const OnnxType& type, const SourcePtr& source) {
  if (proto.field != type.field)
    fail(fmt::format("{} has elements, expected {}, which holds those of {}", find_field_name(proto.field),
                     find_field_name(type.field), type.name));
  if (find_wire_type(type.field) == Message::Wire::varint) {
    const std::uint64_t count = count_integers(*source, proto.list);
    const unsigned width = std::max(1U, type.bits / 8);
    require_bytes(proto, type, count * width, find_field_name(type.field));
    return make_integer_list_blob(source, proto.list, count, {width, type.is_signed}, proto.name);
  }
  std::uint64_t bytes = 0;
  std::vector<BlobPtr> pieces;
  for (const auto& place : proto.list) {
    pieces.push_back(make_source_blob(source, place.begin, place.end - place.begin));
    bytes += place.end - place.begin;
  }
  require_bytes(proto, type, bytes, find_field_name(type.field));
  return make_joined_blob(std::move(pieces));
}

BlobPtr open_elements(const TensorProto& proto, const OnnxType& type, const SourcePtr& source, ExternalFiles& files) {
  if (proto.is_external) {
    if (proto.raw || proto.field != ListField::none)
      fail("data_location: expected elements in an external file alone, found others in the model");
    return open_external_elements(proto, type, files);
  }
  if (proto.raw) {
    if (proto.field != ListField::none)
      fail(fmt::format("raw_data: expected elements in one field, found others in {}", find_field_name(proto.field)));
    require_bytes(proto, type, proto.raw->end - proto.raw->begin, "raw_data");
    return make_source_blob(source, proto.raw->begin, proto.raw->end - proto.raw->begin);
  }
  if (proto.field != ListField::none) return open_listed_elements(proto, type, source);
  require_bytes(proto, type, 0, "elements");
  return make_memory_blob({}, source->name());
}

// Returns true for a relative path of plain names; it may begin with "./".
bool is_inside(std::string_view path) {
  if (path.starts_with("./")) path.remove_prefix(2);
  return is_plain_path(path);
}

}  // namespace

void fail(const std::string& problem, ErrorKind kind) { throw Error(kind, problem); }

void add_piece(const Message& message, std::string_view field, Places& places, Message::Place place) {
  if (places.size() == kMostPieces) message.fail(field, fmt::format("more than {} pieces", kMostPieces));
  places.push_back(place);
}

void read_dims(Message& message, Shape& dims) {
  message.visit_integers("dims", [&](std::uint64_t length) {
    if (length > INT64_MAX) message.fail("dims", "a dimension is negative");
    if (dims.size() == kMaxRank) message.fail("dims", fmt::format("more than {} dimensions", kMaxRank));
    dims.push_back(length);
  });
}

TensorProto read_tensor_proto(Message message) {
  TensorProto proto;
  proto.at = message.field_offset();
  while (message.next()) {
    switch (message.number()) {
      case 1: read_dims(message, proto.dims); break;
      case 2: proto.type = message.read_integer("data_type"); break;
      case 3: message.fail("segment", "tensors in several pieces are not read");
      case 4:
      case 5:
      case 7:
      case 10:
      case 11: read_list(message, proto); break;
      case 6: add_piece(message, "string_data", proto.texts, message.read_place("string_data")); break;
      case 8: proto.name = message.read_text("name"); break;
      case 9:
        if (proto.raw) message.fail("raw_data", "it appears twice");
        proto.raw = message.read_place("raw_data");
        break;
      case 13:
        if (proto.external.size() == kMostExternalKeys)
          message.fail("external_data", fmt::format("more than {} entries", kMostExternalKeys));
        proto.external.push_back(read_entry(message.read_message("external_data", "external_data")));
        break;
      case 14: proto.is_external = message.read_integer("data_location") == 1; break;
      default: break;
    }
  }
  return proto;
}

// Throws invalid_file for a file outside of the model's directory. If the model is a link, files next to its target are
// inside, too, because snapshots in the Hub's cache have links to blobs in one folder.
void ExternalFiles::require_inside(const std::filesystem::path& path, const std::string& name) const {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::path real = fs::canonical(path, ignored);
  const auto holds = [&](const fs::path& directory) {
    const fs::path folder = fs::canonical(directory, ignored);
    return !folder.empty() &&
           std::mismatch(folder.begin(), folder.end(), real.begin(), real.end()).first == folder.end();
  };
  if (!real.empty() && (holds(model_.has_parent_path() ? model_.parent_path() : ".") ||
                        holds(fs::canonical(model_, ignored).parent_path())))
    return;
  fail(fmt::format("external_data: location: \"{}\" is a link that leads out of the model's directory", name));
}

const SourcePtr& ExternalFiles::open(const std::string& name) {
  if (!is_inside(name)) fail(fmt::format("external_data: location: \"{}\" is not inside the model's directory", name));
  const auto found = opened_.find(name);
  if (found != opened_.end()) return found->second;
  if (!has_folder_)
    fail(fmt::format("external_data: the model is in memory, and its numbers are in the file {}: open the model by its "
                     "path",
                     name),
         ErrorKind::unsupported);
  const std::filesystem::path path = model_.parent_path() / name;
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored))
    fail(fmt::format("external_data: the file {} is missing in the model's directory", name), ErrorKind::not_found);
  require_inside(path, name);
  SourcePtr file = Source::open(path, options_.io);
  require_one_name(*file, name);
  return opened_.emplace(name, std::move(file)).first->second;
}

Tensor make_tensor(const TensorProto& proto, const SourcePtr& source, ExternalFiles& files) {
  const OnnxType* type = find_element_type(proto.type);
  if (type == nullptr) fail(fmt::format("data_type: {} is not known", proto.type), ErrorKind::unsupported);
  BlobPtr elements = open_elements(proto, *type, source, files);
  if (type->dtype != DType::unknown) return make_dense(proto.name, proto.dims, type->dtype, std::move(elements));
  Tensor tensor;
  tensor.name = proto.name;
  tensor.shape = proto.dims;
  tensor.layout = TensorLayout::other(fmt::format("onnx.{}", type->name));
  tensor.parts.push_back({.role = "data", .dtype = DType::u8, .blob = std::move(elements)});
  return tensor;
}

std::optional<Value> read_texts(const TensorProto& proto, const Source& source) {
  if (proto.is_external || proto.raw || proto.field != ListField::none)
    fail("string_data: expected the texts of a STRING tensor in this field, found elements in another one");
  if (element_count(proto.dims) != proto.texts.size())
    fail(fmt::format("string_data: found {}, expected those of shape {}", format_count(proto.texts.size(), "text"),
                     to_string(proto.dims)));
  Value::Array texts;
  std::uint64_t left = kMostTextBytes;
  for (const auto& place : proto.texts) {
    std::string text(std::min(left + 1, place.end - place.begin), '\0');
    if (text.size() > left) return std::nullopt;
    left -= text.size();
    source.read(place.begin, std::as_writable_bytes(std::span(text)));
    if (!is_utf8(text)) return std::nullopt;
    texts.emplace_back(std::move(text));
  }
  if (proto.dims.empty() && texts.size() == 1) return std::move(texts.front());
  return Value(std::move(texts));
}

}  // namespace poise::onnx
