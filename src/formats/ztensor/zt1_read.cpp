// A zTensor 1.1 file has this layout ("?" marks an optional key):
//
//   "ZTEN1000"
//   components    each on a multiple of 64, zero bytes between them
//   manifest      CBOR: {"version": "1.1.0", "attributes": {..}?, "objects": {name: {"shape": [..], "format": "dense",
//                 "attributes": {..}?, "components": {role: {"dtype": "f32", "offset", "length", "encoding"?,
//                 "digest"?}}}}}
//   u64           length of the manifest
//   "ZTEN1000"
//
// 1.2 adds the keys "type" and "uncompressed_length" to components. 1.0 has no magic at the end, "tensors" instead of
// "objects", "size" instead of "length", and one "dtype" for each tensor, in long form ("float32").
#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/byte_reader.hpp"
#include "bytes/text_table.hpp"
#include "formats/metadata.hpp"
#include "formats/ztensor/edit.hpp"
#include "formats/ztensor/object.hpp"
#include "formats/ztensor/zt1.hpp"
#include "model/limits.hpp"
#include "syntax/cbor.hpp"
#include "views/layout_type.hpp"

namespace poise {
namespace ztensor {
namespace {

constexpr std::string_view kContext1 = "zt 1.x: manifest";
constexpr std::uint64_t kMagicBytes = 8;
constexpr std::uint64_t kSizeBytes = 8;
constexpr std::uint64_t kLeastObjectBytes1 = 20;  // less than a name with shape, format and components takes

ManifestRange read_manifest_range(ByteReader& reader, std::uint64_t footer, std::string_view field = "manifest size") {
  reader.seek(footer);
  const std::uint64_t length = reader.read_u64(field);
  if (length > kMaxManifestBytes)
    reader.fail(field, fmt::format("{} bytes, at most {} are allowed", length, kMaxManifestBytes), footer);
  if (length > footer - kMagicBytes)
    reader.fail(field, fmt::format("{} bytes, but only {} are before it", length, footer - kMagicBytes), footer);
  return {footer - length, footer};
}

// Returns true if the file ends like a file of version 1.0: with only the manifest's size, and with a map at the place
// that the size implies.
bool ends_like_1_0(const Source& source) {
  if (source.size() < kMagicBytes + kSizeBytes + 1) return false;
  ByteReader reader(source, "zt 1.0");
  const std::uint64_t footer = source.size() - kSizeBytes;
  reader.seek(footer);
  const std::uint64_t length = reader.read_u64("manifest size");
  if (length == 0 || length > std::min(kMaxManifestBytes, footer - kMagicBytes)) return false;
  reader.seek(footer - length);
  return reader.read_u8("first byte of the manifest") >> 5 == 5;
}

[[noreturn]] void fail_without_magic(const Source& source) {
  std::string last(std::min(source.size(), kMagicBytes), '\0');
  source.read(source.size() - last.size(), std::as_writable_bytes(std::span(last)));
  throw Error(ErrorKind::invalid_file,
              fmt::format("zt 1.x: footer magic: expected \"{}\" as the last 8 bytes, found {}: the file is cut off or "
                          "damaged",
                          kMagic1, to_json(last)),
              source.name(), source.size());
}

struct Ending {
  ManifestRange manifest;
  bool has_magic = false;
};

Ending find_ending(const Source& source) {
  ByteReader reader(source, "zt 1.x");
  constexpr std::uint64_t kLeastBytes = 2 * kMagicBytes + kSizeBytes + 1;
  if (source.size() >= 2 * kMagicBytes) {
    reader.seek(source.size() - kMagicBytes);
    if (reader.read_text(kMagicBytes, "footer magic") == kMagic1) {
      if (source.size() < kLeastBytes) {
        reader.fail("manifest size",
                    fmt::format("the file is cut off: it needs at least {} bytes, has {}", kLeastBytes, source.size()),
                    source.size());
      }
      return {read_manifest_range(reader, source.size() - kMagicBytes - kSizeBytes), true};
    }
  }
  if (ends_like_1_0(source)) return {read_manifest_range(reader, source.size() - kSizeBytes), false};
  fail_without_magic(source);
}

// Returns the type with this dtype and, in 1.2, this logical type (empty: none), whose name is that of version 2 or of
// version 1. Returns DType::unknown if Poise does not know the type.
DType find_component_dtype(std::string_view dtype, std::string_view type) {
  if (type.empty()) return find_spelled_dtype(kSpellings1, dtype).value_or(DType::unknown);
  if (const auto found = find_stored_dtype(dtype, type)) return *found;
  const auto named = find_spelled_dtype(kSpellings1, type);
  return named && find_spelling(kSpellings2, *named).value_or(StorageType()).storage == dtype ? *named : DType::unknown;
}

class ManifestParser1 {
 public:
  ManifestParser1(ManifestBytes& bytes, cbor::Cursor& in, const Model& model, ModelBuilder1& builder)
      : bytes_(bytes), in_(in), model_(model), builder_(builder) {}

  void parse() {
    bool any_objects = false;
    for (auto root = in_.read_map(); root.next();) {
      if (root.is("version")) {
        version_ = in_.read_text();
      } else if (root.is("attributes")) {
        if (!in_.skip_null()) attributes_ = in_.read_attributes();
      } else if (root.is("generator")) {
        generator_ = in_.read_text();
      } else if (root.is("objects") || root.is("tensors")) {
        if (any_objects) in_.fail("expected \"objects\" or \"tensors\", found both", root.key_position());
        is_1_0_ = root.is("tensors");
        any_objects = true;
        parse_objects();
      } else {
        in_.skip();
      }
    }
    in_.require_end();
    if (!any_objects) in_.fail("\"objects\" is missing", in_.position());
    if (version_.empty()) in_.fail("\"version\" is missing", in_.position());
    if (!version_.starts_with("1."))
      in_.fail(fmt::format("version: expected 1.x, found \"{}\"", version_), in_.position(), ErrorKind::unsupported);
  }

  Attributes release_attributes() {
    if (!generator_.empty() && attributes_.find("generator") == nullptr) attributes_.set("generator", generator_);
    return std::move(attributes_);
  }
  bool is_1_0() const { return is_1_0_; }
  std::string get_format_name() const {
    return is_1_0_ ? "zt-1.0" : version_.starts_with("1.1") || version_.starts_with("1.0") ? "zt-1.1" : "zt-1.2";
  }

 private:
  void parse_objects() {
    auto map = in_.read_map(cbor::Keys::checked_by_caller);
    builder_.reserve(std::min({map.size_hint(), in_.bytes_left() / kLeastObjectBytes1, std::uint64_t{kMaxTensors}}));
    StoredObject object;
    while (map.next()) {
      if (!map.has_text_key()) in_.fail("expected a name", map.key_position());
      begin_object(object, model_.size(), in_);
      object.name = map.key();
      parse_object(object);
      builder_.add_object(object);
      bytes_.release_before(in_.position());
    }
  }

  void parse_object(StoredObject& object) {
    bool has_shape = false;
    bool has_format = false;
    bool has_components = false;
    std::string_view dtype;
    for (auto map = in_.read_map(); map.next();) {
      if (map.is("shape")) {
        has_shape = true;
        object.shape = parse_shape(in_);
      } else if (map.is("format")) {
        has_format = true;
        object.layout = parse_type_name(in_);
      } else if (map.is("attributes")) {
        if (!in_.skip_null()) object.attributes = in_.read_attributes();
      } else if (map.is("components")) {
        has_components = true;
        parse_components(object);
      } else if (map.is("dtype") && is_1_0_) {
        dtype = parse_type_name(in_);
      } else {
        in_.skip();
      }
    }
    if (!has_shape) in_.fail("\"shape\" is missing", object.position);
    if (!has_format) in_.fail("\"format\" is missing", object.position);
    if (!has_components) in_.fail("\"components\" is missing", object.position);
    if (is_1_0_) set_shared_dtype(object, dtype);
  }

  void parse_components(StoredObject& object) {
    auto map = in_.read_map();
    while (map.next()) {
      if (!map.has_text_key()) in_.fail("expected a role", map.key_position());
      if (object.components.size() == kMaxTensorParts)
        in_.fail(fmt::format("more than {} components", kMaxTensorParts), in_.position());
      if (++parts_ > kMaxParts) in_.fail(fmt::format("more than {} components in all", kMaxParts), in_.position());
      Component& component = object.components.emplace_back();
      component.role = map.key();
      component.position = in_.position();
      parse_component(component);
    }
  }

  void parse_component(Component& component) {
    bool has_offset = false;
    bool has_length = false;
    std::string_view dtype;
    std::string_view type;
    for (auto map = in_.read_map(); map.next();) {
      if (map.is("dtype")) {
        dtype = parse_type_name(in_);
      } else if (map.is("offset")) {
        has_offset = true;
        component.offset = in_.read_u64();
      } else if (map.is("length") || (map.is("size") && is_1_0_)) {
        if (has_length) in_.fail("expected \"length\" or \"size\", found both", map.key_position());
        has_length = true;
        component.length = in_.read_u64();
      } else if (in_.skip_null()) {
        continue;  // other fields may be null, which means that they are missing
      } else if (map.is("type")) {
        type = parse_type_name(in_);
      } else if (map.is("encoding")) {
        component.encoding = parse_type_name(in_);
      } else if (map.is("uncompressed_length")) {
        component.decoded_length = in_.read_u64();
      } else if (map.is("digest")) {
        component.digest = parse_type_name(in_);
      } else {
        in_.skip();
      }
    }
    if (dtype.empty() && !is_1_0_) in_.fail("\"dtype\" is missing", component.position);
    if (!has_offset) in_.fail("\"offset\" is missing", component.position);
    if (!has_length) in_.fail("\"length\" is missing", component.position);
    component.dtype = find_component_dtype(dtype, type);
    component.spelling = type.empty() ? choose_spelling(component.dtype, dtype)
                                      : choose_spelling(component.dtype, fmt::format("{}:{}", dtype, type));
  }

  // Sets the types of components of version 1.0: the tensor's type, except for the indices, which are uint64.
  void set_shared_dtype(StoredObject& object, std::string_view dtype) const {
    if (dtype.empty()) in_.fail("\"dtype\" is missing", object.position);
    for (Component& component : object.components) {
      const bool index = component.role == "indices" || component.role == "indptr" || component.role == "coords";
      const std::string_view spelled = index ? "uint64" : dtype;
      component.dtype = find_spelled_dtype(kSpellings0, spelled).value_or(DType::unknown);
      component.spelling = choose_spelling(component.dtype, spelled);
    }
  }

  ManifestBytes& bytes_;
  cbor::Cursor& in_;
  const Model& model_;
  ModelBuilder1& builder_;
  std::string version_;
  std::string generator_;
  bool is_1_0_ = false;  // the root has "tensors", not "objects"
  Attributes attributes_;
  std::size_t parts_ = 0;  // the number of parts of all objects so far
};

void read_version_1(Model& model, const SourcePtr& source) {
  const auto [range, has_magic] = find_ending(*source);
  ManifestBytes manifest(*source, range);
  cbor::Cursor in(manifest.bytes(), range.begin, source->name(), std::string(kContext1), cbor::Rules::lenient);
  ModelBuilder1 builder(model, source, range.begin, std::string(kContext1));
  ManifestParser1 parser(manifest, in, model, builder);
  parser.parse();
  if (!has_magic && !parser.is_1_0()) fail_without_magic(*source);  // only 1.0 has no magic at the end
  model.origin.format = parser.get_format_name();
  model.attributes = parser.release_attributes();
  builder.finish();
}

std::string read_magic(const Input& input) {
  const auto bytes = read_first_bytes(input, kMagicBytes);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool sniff1(const Input& input) {
  const std::string magic = read_magic(input);
  return magic == kMagic1 || magic == kMagic0;
}

// Returns true if the file has the footer of 1.x.
bool matches_damaged(const Input& input) {
  const std::uint64_t size = input.source->size();
  if (size < 2 * kMagicBytes) return false;
  std::string last(kMagicBytes, '\0');
  input.source->read(size - last.size(), std::as_writable_bytes(std::span(last)));
  return last == kMagic1 || ends_like_1_0(*input.source);
}

Model read1(const Input& input, const ReadOptions&) {
  Model model;
  model.origin = {input.path, "zt-0.1", input.source->size(), {input.path}};
  const std::string magic = read_magic(input);
  if (magic == kMagic0) {
    read_version_0(model, input.source);
  } else if (magic == kMagic1) {
    read_version_1(model, input.source);
  } else {
    throw Error(ErrorKind::invalid_file,
                fmt::format("zt 1.x: header magic: expected \"{}\", found {}", kMagic1, to_json(magic)),
                input.path.string(), 0);
  }
  parse_text_attributes(model);
  return model;
}

// Returns true for layouts that version 1.1 holds under their own names: all but MX and ggml's blocks, which came with
// version 2.
bool is_layout_of_version_1(const LayoutType& type) { return &type != &layouts::mx && &type != &layouts::blocks; }

bool is_version_0(const Source& source) {
  std::array<std::byte, kMagicBytes> magic{};
  if (source.size() < magic.size()) return false;
  source.read(0, magic);
  return std::string_view(reinterpret_cast<const char*>(magic.data()), magic.size()) == kMagic0;
}

// Returns the root attributes. Version 0.1 has none.
std::vector<MetadataKey> list_keys1(const Input& input) {
  if (is_version_0(*input.source)) return {};
  return list_keys(*input.source, find_ending(*input.source).manifest, cbor::Rules::lenient);
}

}  // namespace

std::uint64_t find_manifest_begin1(const Source& source) {
  return is_version_0(source) ? find_index0(source).begin : find_ending(source).manifest.begin;
}

ManifestRange find_manifest1(const Source& source) {
  const Ending ending = is_version_0(source) ? Ending() : find_ending(source);
  if (!ending.has_magic) {
    throw Error(ErrorKind::unsupported, "files of zTensor 1.0 and older can be read, but not edited", source.name())
        .with({.kind = Remedy::Kind::convert, .value = "zt"});
  }
  return ending.manifest;
}

}  // namespace ztensor

const Format kZtensor1 = {
    .info = {"zt1", "a zTensor 1.1 file", ".zt"},
    .options = {.zstd_level = true, .digest = true},
    .holds_bf16 = true,
    .holds_layout = ztensor::is_layout_of_version_1,
    .holds_more_parts = true,
    .sniff = ztensor::sniff1,
    .matches_damaged = ztensor::matches_damaged,
    .read = ztensor::read1,
    .prepare = prepare_with<ztensor::plan_zt1, ztensor::write_zt1, ztensor::list_zt1_losses>,
    .audit = ztensor::audit_version_1,
    .edit = ztensor::edit_version_1,
    .list_keys = ztensor::list_keys1,
    .name_unknown_type = ztensor::spell_unknown_type,
};

}  // namespace poise

namespace poise::ztensor {

// A zTensor 0.1 file has this layout ("?" marks an optional key):
//
//   "ZTEN0001"
//   blobs         each on a multiple of 64
//   index         CBOR: [{"name", "offset", "size", "dtype": "float32", "shape": [..], "encoding": "raw" | "zstd",
//                 "layout": "dense"?, "data_endianness": "little" | "big"?, "checksum"?, anything else}, ...]
//   u64           length of the index
//
// "sparsecsr" and "sparsecoo" pack everything into one blob in an undocumented way, so Poise only lists them.

namespace {

constexpr std::string_view kIndexContext = "zt 0.1: index";

class EntryParser {
 public:
  explicit EntryParser(cbor::Cursor& in) : in_(in) {}

  void parse(StoredObject& object) {
    Component& data = object.components.emplace_back();
    data.role = "data";
    data.position = in_.position();
    missing_ = {"name", "offset", "size", "dtype", "shape", "encoding"};
    attributes_.clear();
    for (auto map = in_.read_map(); map.next();) {
      std::erase(missing_, map.key());
      parse_field(map.key(), map.has_text_key(), object, data);
    }
    if (!missing_.empty()) in_.fail(fmt::format("\"{}\" is missing", missing_.front()), object.position);
    object.attributes = Attributes::from_unique(std::exchange(attributes_, {}));
  }

 private:
  void parse_field(std::string_view key, bool is_text, StoredObject& object, Component& data) {
    const std::uint64_t begin = in_.position();
    if (key == "name") {
      object.name = in_.read_text();
    } else if (key == "offset") {
      data.offset = in_.read_u64();
    } else if (key == "size") {
      data.length = in_.read_u64();
    } else if (key == "dtype") {
      const std::string_view spelled = parse_type_name(in_);
      data.dtype = find_spelled_dtype(kSpellings0, spelled).value_or(DType::unknown);
      data.spelling = choose_spelling(data.dtype, spelled);
    } else if (key == "shape") {
      object.shape = parse_shape(in_);
    } else if (key == "encoding") {
      data.encoding = parse_type_name(in_);
    } else if (in_.skip_null()) {
      return;
    } else if (key == "layout") {
      object.layout = parse_type_name(in_);
    } else if (key == "checksum") {
      data.digest = parse_type_name(in_);
    } else if (key == kByteOrder) {
      const std::string_view order = in_.read_text();
      if (order != "little" && order != "big")
        in_.fail(fmt::format("expected little or big, found \"{}\"", order), begin);
      object.big_endian = order == "big";
    } else if (is_text) {
      attributes_.emplace_back(key, in_.read_value());
    } else {
      in_.skip();
    }
  }

  cbor::Cursor& in_;
  std::vector<std::string_view> missing_;
  std::vector<Attributes::Entry> attributes_;
};

}  // namespace

ManifestRange find_index0(const Source& source) {
  ByteReader reader(source, "zt 0.1");
  reader.skip(kMagicBytes, "header magic");
  if (reader.remaining() < 9)
    reader.fail("index size", fmt::format("the file is cut off: it needs at least 17 bytes, has {}", source.size()),
                source.size());
  return read_manifest_range(reader, source.size() - kSizeBytes, "index size");
}

void read_version_0(Model& model, const SourcePtr& source) {
  const ManifestRange range = find_index0(*source);
  const ManifestBytes index(*source, range);
  cbor::Cursor in(index.bytes(), range.begin, source->name(), std::string(kIndexContext), cbor::Rules::lenient);
  EntryParser parser(in);
  ModelBuilder1 builder(model, source, range.begin, std::string(kIndexContext));
  StoredObject object;
  for (auto entries = in.read_array(); entries.next();) {
    begin_object(object, model.size(), in);
    parser.parse(object);
    builder.add_object(object);
  }
  in.require_end();
  builder.finish();
}

}  // namespace poise::ztensor
