#include "formats/onnx/tensor_proto.hpp"

#include <sys/stat.h>

#include <algorithm>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/number_text.hpp"
#include "bytes/utf8.hpp"
#include "io/plain_file_name.hpp"
#include "io/system_error.hpp"
#include "model/limits.hpp"
#include "views/joined.hpp"

namespace poise::onnx {
namespace {

constexpr std::size_t kMostPieces = 1 << 16;   // of a field
constexpr std::size_t kMostExternalKeys = 16;  // location, offset, length, checksum
constexpr std::uint64_t kMostTextBytes = 1 << 20;

Message::Wire wire_of(ListField field) {
  if (field == ListField::float_data) return Message::Wire::fixed32;
  return field == ListField::double_data ? Message::Wire::fixed64 : Message::Wire::varint;
}

std::string_view name_of(ListField field) {
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

void take_list(Message& message, TensorProto& proto) {
  const auto field = static_cast<ListField>(message.number());
  const Message::Place place = message.packed(name_of(field), wire_of(field));
  if (place.begin == place.end) return;
  if (proto.field != ListField::none && proto.field != field)
    message.fail(name_of(field), fmt::format("{} has elements, too", name_of(proto.field)));
  proto.field = field;
  take_piece(message, name_of(field), proto.list, place);
}

std::pair<std::string, std::string> read_entry(Message entry) {
  std::pair<std::string, std::string> pair;
  while (entry.next()) {
    if (entry.number() == 1) pair.first = entry.text("key");
    if (entry.number() == 2) pair.second = entry.text("value");
  }
  return pair;
}

// Bytes of all elements.
std::uint64_t bytes_of(const ElementType& type, const Shape& dims) {
  const auto elements = element_count(dims);
  if (!elements || *elements > UINT64_MAX / 128)
    fail(fmt::format("dims: {} has more than 2^64 bytes", to_string(dims)));
  return (*elements * type.bits + 7) / 8;
}

void require_bytes(const TensorProto& proto, const ElementType& type, std::uint64_t found, std::string_view where) {
  const std::uint64_t expected = bytes_of(type, proto.dims);
  if (found != expected)
    fail(fmt::format("{}: {} bytes, {} of {} needs {}", where, found, to_string(proto.dims), type.name, expected));
}

// A hard link does not show where it comes from: an archive of a model may make one to a file of its reader's. onnx
// refuses them, too (CVE-2026-34446).
void require_one_name(const Source& file, const std::string& name) {
  struct stat status {};
  if (::fstat(file.descriptor(), &status) != 0) throw_system_error("stat", file.name());
  if (status.st_nlink <= 1) return;
  fail(
      fmt::format("external_data: location: \"{}\" has {} names (hard links) and may be a file from outside of the "
                  "model's directory; if it belongs there, put a copy in its place",
                  name, status.st_nlink));
}

std::optional<std::uint64_t> external_number(const TensorProto& proto, std::string_view key) {
  const auto entry = std::ranges::find(proto.external, key, &std::pair<std::string, std::string>::first);
  if (entry == proto.external.end()) return std::nullopt;
  const auto number = number_from<std::uint64_t>(entry->second);
  if (!number) fail(fmt::format("external_data: {}: expected a number, found \"{}\"", key, entry->second));
  return number;
}

BlobPtr external_elements(const TensorProto& proto, const ElementType& type, ExternalFiles& files) {
  const auto location = std::ranges::find(proto.external, "location", &std::pair<std::string, std::string>::first);
  if (location == proto.external.end()) fail("external_data: location: it is missing");
  const std::uint64_t offset = external_number(proto, "offset").value_or(0);
  const std::uint64_t length = external_number(proto, "length").value_or(bytes_of(type, proto.dims));
  require_bytes(proto, type, length, "external_data: length");
  const SourcePtr& source = files.open(location->second);
  if (offset > source->size() || length > source->size() - offset)
    fail(fmt::format("external_data: {} bytes at {} are wanted of {}, which has {}", length, offset, location->second,
                     source->size()));
  return make_source_blob(source, offset, length);
}

BlobPtr listed_elements(const TensorProto& proto, const ElementType& type, const SourcePtr& source) {
  if (proto.field != type.field)
    fail(fmt::format("{} has elements: those of {} are in {}", name_of(proto.field), type.name, name_of(type.field)));
  if (wire_of(type.field) == Message::Wire::varint) {
    const std::uint64_t count = count_integers(*source, proto.list);
    const unsigned width = std::max(1U, type.bits / 8);
    require_bytes(proto, type, count * width, name_of(type.field));
    return make_integer_list_blob(source, proto.list, count, {width, type.is_signed}, proto.name);
  }
  std::uint64_t bytes = 0;
  std::vector<BlobPtr> pieces;
  for (const auto& place : proto.list) {
    pieces.push_back(make_source_blob(source, place.begin, place.end - place.begin));
    bytes += place.end - place.begin;
  }
  require_bytes(proto, type, bytes, name_of(type.field));
  return make_joined_blob(std::move(pieces));
}

BlobPtr elements_of(const TensorProto& proto, const ElementType& type, const SourcePtr& source, ExternalFiles& files) {
  if (proto.is_external) {
    if (proto.raw || proto.field != ListField::none) fail("data_location: its elements are in the model, too");
    return external_elements(proto, type, files);
  }
  if (proto.raw) {
    if (proto.field != ListField::none) fail(fmt::format("raw_data: {} has elements, too", name_of(proto.field)));
    require_bytes(proto, type, proto.raw->end - proto.raw->begin, "raw_data");
    return make_source_blob(source, proto.raw->begin, proto.raw->end - proto.raw->begin);
  }
  if (proto.field != ListField::none) return listed_elements(proto, type, source);
  require_bytes(proto, type, 0, "elements");
  return make_memory_blob({}, source->name());
}

// A relative path of plain names; it may begin with "./".
bool is_inside(std::string_view path) {
  if (path.starts_with("./")) path.remove_prefix(2);
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    if (!is_plain_file_name(path.substr(begin, end - begin))) return false;
    begin = end + 1;
  }
  return true;
}

}  // namespace

void fail(const std::string& problem, ErrorKind kind) { throw Error(kind, problem); }

void take_piece(const Message& message, std::string_view field, Places& places, Message::Place place) {
  if (places.size() == kMostPieces) message.fail(field, fmt::format("more than {} pieces", kMostPieces));
  places.push_back(place);
}

void take_dims(Message& message, Shape& dims) {
  message.integers("dims", [&](std::uint64_t length) {
    if (length > INT64_MAX) message.fail("dims", "a dimension is negative");
    if (dims.size() == kMaxRank) message.fail("dims", fmt::format("more than {} dimensions", kMaxRank));
    dims.push_back(length);
  });
}

TensorProto read_tensor_proto(Message message) {
  TensorProto proto;
  proto.at = message.start();
  while (message.next()) {
    switch (message.number()) {
      case 1: take_dims(message, proto.dims); break;
      case 2: proto.type = message.integer("data_type"); break;
      case 3: message.fail("segment", "tensors in several pieces are not read");
      case 4:
      case 5:
      case 7:
      case 10:
      case 11: take_list(message, proto); break;
      case 6: take_piece(message, "string_data", proto.texts, message.place("string_data")); break;
      case 8: proto.name = message.text("name"); break;
      case 9:
        if (proto.raw) message.fail("raw_data", "it comes twice");
        proto.raw = message.place("raw_data");
        break;
      case 13:
        if (proto.external.size() == kMostExternalKeys)
          message.fail("external_data", fmt::format("more than {} entries", kMostExternalKeys));
        proto.external.push_back(read_entry(message.message("external_data", "external_data")));
        break;
      case 14: proto.is_external = message.integer("data_location") == 1; break;
      default: break;
    }
  }
  return proto;
}

// A link may lead to a file of the directory that the model is in: the Hub's cache has links to both next to each
// other.
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
    fail(fmt::format("external_data: the model names the file {}, which is not there", name), ErrorKind::not_found);
  require_inside(path, name);
  SourcePtr file = Source::open(path, options_.io);
  require_one_name(*file, name);
  return opened_.emplace(name, std::move(file)).first->second;
}

Tensor make_tensor(const TensorProto& proto, const SourcePtr& source, ExternalFiles& files) {
  const ElementType* type = element_type(proto.type);
  if (type == nullptr) fail(fmt::format("data_type: {} is not known", proto.type), ErrorKind::unsupported);
  BlobPtr elements = elements_of(proto, *type, source, files);
  if (type->dtype != DType::unknown) return make_dense(proto.name, proto.dims, type->dtype, std::move(elements));
  Tensor tensor;
  tensor.name = proto.name;
  tensor.shape = proto.dims;
  tensor.layout = TensorLayout::other(fmt::format("onnx.{}", type->name));
  tensor.parts.push_back({.role = "data", .dtype = DType::u8, .blob = std::move(elements)});
  return tensor;
}

std::optional<Value> texts_of(const TensorProto& proto, const Source& source) {
  Value::Array texts;
  std::uint64_t left = kMostTextBytes;
  for (const auto& place : proto.texts) {
    std::string text(static_cast<std::size_t>(std::min(left + 1, place.end - place.begin)), '\0');
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
