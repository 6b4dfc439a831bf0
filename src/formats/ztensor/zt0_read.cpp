// The layout of a zTensor 0.1 file:
//
//   "ZTEN0001"
//   blobs         each on a multiple of 64
//   index         CBOR: [{"name", "offset", "size", "dtype": "float32", "shape": [..], "encoding": "raw" | "zstd",
//                 "layout": "dense"?, "data_endianness": "little" | "big"?, "checksum"?, anything else}, ...]
//   u64           length of the index
//
// "sparsecsr" and "sparsecoo" pack everything into one blob in an undocumented way: they are only listed.
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/byte_reader.hpp"
#include "bytes/key_set.hpp"
#include "formats/ztensor/dtypes.hpp"
#include "formats/ztensor/limits.hpp"
#include "formats/ztensor/zt1.hpp"
#include "io/source_range.hpp"
#include "syntax/cbor.hpp"

namespace poise::ztensor {
namespace {

constexpr std::string_view kContext = "zt 0.1: index";
constexpr std::uint64_t kMagicBytes = 8;

class EntryParser {
 public:
  explicit EntryParser(cbor::Cursor& in) : in_(in) {}

  void parse(Object& object) {
    Component& data = object.components.emplace_back();
    data.role = "data";
    data.position = in_.position();
    missing_ = {"name", "offset", "size", "dtype", "shape", "encoding"};
    attributes_.clear();
    for (auto map = in_.map(); map.next();) {
      std::erase(missing_, map.key());
      field(map.key(), map.has_text_key(), object, data);
    }
    if (!missing_.empty()) in_.fail(fmt::format("\"{}\" is missing", missing_.front()), object.position);
    object.attributes = Attributes::from_unique(std::exchange(attributes_, {}));
  }

 private:
  void field(std::string_view key, bool is_text, Object& object, Component& data) {
    const std::uint64_t begin = in_.position();
    if (key == "name") {
      object.name = in_.text();
    } else if (key == "offset") {
      data.offset = in_.u64();
    } else if (key == "size") {
      data.length = in_.u64();
    } else if (key == "dtype") {
      const std::string_view spelled = parse_type_name(in_);
      data.dtype = dtype_spelled(kSpellings0, spelled).value_or(DType::unknown);
      data.spelling = spelling_of(data.dtype, spelled);
    } else if (key == "shape") {
      object.shape = parse_shape(in_);
    } else if (key == "encoding") {
      data.encoding = parse_type_name(in_);
    } else if (in_.null()) {
      return;
    } else if (key == "layout") {
      object.layout = parse_type_name(in_);
    } else if (key == "checksum") {
      data.digest = parse_type_name(in_);
    } else if (key == "data_endianness") {
      const std::string_view order = in_.text();
      if (order != "little" && order != "big")
        in_.fail(fmt::format("expected little or big, found \"{}\"", order), begin);
      object.big_endian = order == "big";
    } else if (is_text) {
      attributes_.emplace_back(key, in_.value());
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
  const SourceRange range(source);
  ByteReader reader(range, "zt 0.1");
  reader.skip(kMagicBytes, "header magic");
  if (reader.remaining() < 9)
    reader.fail("index size", fmt::format("the file is cut off: it needs at least 17 bytes, has {}", source.size()),
                source.size());
  const std::uint64_t footer = source.size() - 8;
  reader.seek(footer);
  const std::uint64_t length = reader.u64("index size");
  if (length > kMaxManifestBytes)
    reader.fail("index size", fmt::format("{} bytes, at most {} are allowed", length, kMaxManifestBytes), footer);
  if (length > footer - kMagicBytes)
    reader.fail("index size", fmt::format("{} bytes, but only {} are before it", length, footer - kMagicBytes), footer);
  return {footer - length, footer};
}

void read_version_0(Model& model, const SourcePtr& source) {
  const ManifestRange range = find_index0(*source);
  const ManifestBytes index(*source, range);
  cbor::Cursor in(index.bytes(), range.begin, source->name(), std::string(kContext), cbor::Rules::lenient);
  EntryParser parser(in);
  ModelBuilder1 builder(model, source, range.begin, std::string(kContext));
  Object object;
  for (auto entries = in.array(); entries.next();) {
    begin_object(object, model.size(), in);
    parser.parse(object);
    builder.take(object);
  }
  in.finish();
  builder.finish();
}

}  // namespace poise::ztensor
