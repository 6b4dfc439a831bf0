// The layout of a zTensor 0.1 file:
//
//   "ZTEN0001"
//   blobs         each on a multiple of 64
//   index         CBOR: [{"name", "offset", "size", "dtype": "float32", "shape": [..], "encoding": "raw" | "zstd",
//                 "layout": "dense"?, "data_endianness": "little" | "big"?, "checksum"?, anything else}, ...]
//   u64           length of the index
#include <set>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/byte_reader.hpp"
#include "bytes/limits.hpp"
#include "formats/ztensor/cbor.hpp"
#include "formats/ztensor/zt1.hpp"
#include "io/source_range.hpp"
#include "tensor/byte_swap.hpp"

namespace poise::ztensor {
namespace {

constexpr std::string_view kContext = "zt 0.1: index";
constexpr std::uint64_t kMagicBytes = 8;

struct Entry {
  Object object;
  std::vector<Attributes::Entry> attributes;
  bool big_endian = false;
};

class EntryParser {
 public:
  explicit EntryParser(cbor::Cursor& in) : in_(in) {}

  Entry parse() {
    Entry entry;
    entry.object.position = in_.position();
    Component data;
    data.role = "data";
    data.position = in_.position();
    missing_ = {"name", "offset", "size", "dtype", "shape", "encoding"};
    for (auto map = in_.map(); map.next();) {
      std::erase(missing_, map.key());
      field(map.key(), map.has_text_key(), entry, data);
    }
    if (!missing_.empty()) in_.fail(fmt::format("\"{}\" is missing", missing_.front()), entry.object.position);
    entry.object.components.push_back(std::move(data));
    entry.object.attributes = Attributes::from_unique(std::move(entry.attributes));
    return entry;
  }

 private:
  void field(std::string_view key, bool is_text, Entry& entry, Component& data) {
    const std::uint64_t begin = in_.position();
    if (key == "name") {
      entry.object.name = in_.text();
    } else if (key == "offset") {
      data.offset = in_.u64();
    } else if (key == "size") {
      data.length = in_.u64();
    } else if (key == "dtype") {
      data.dtype_name = in_.text();
      data.dtype = dtype_from(&DTypeInfo::zt0, data.dtype_name).value_or(DType::unknown);
    } else if (key == "shape") {
      for (auto dimensions = in_.array(); dimensions.next();) entry.object.shape.push_back(in_.u64());
    } else if (key == "encoding") {
      data.encoding = in_.text();
    } else if (in_.null()) {
      return;
    } else if (key == "layout") {
      entry.object.layout = in_.text();
    } else if (key == "checksum") {
      data.digest = in_.text();
    } else if (key == "data_endianness") {
      const std::string_view order = in_.text();
      if (order != "little" && order != "big") in_.fail(fmt::format("expected little or big, found \"{}\"", order), begin);
      entry.big_endian = order == "big";
    } else if (is_text) {
      entry.attributes.emplace_back(key, in_.value());
    } else {
      in_.skip();
    }
  }

  cbor::Cursor& in_;
  std::vector<std::string_view> missing_;
};

// "sparsecsr" and "sparsecoo" pack everything into one blob in a way that was never written down: they are listed only.
void swap_bytes(Tensor& tensor) {
  for (Part& part : tensor.parts) {
    if (part.dtype != DType::unknown) part.blob = make_byte_swapped_blob(part.blob, info(part.dtype).bits / 8);
  }
}

}  // namespace

ManifestRange find_index0(const Source& source) {
  const SourceRange range(source);
  ByteReader reader(range, "zt 0.1");
  reader.skip(kMagicBytes, "header magic");
  if (reader.remaining() < 9) reader.fail("index size", fmt::format("the file is cut off: it needs at least 17 bytes, has {}", source.size()), source.size());
  const std::uint64_t footer = source.size() - 8;
  reader.seek(footer);
  const std::uint64_t length = reader.u64("index size");
  if (length > kMaxManifestBytes) reader.fail("index size", fmt::format("{} bytes, at most {} are allowed", length, kMaxManifestBytes), footer);
  if (length > footer - kMagicBytes) reader.fail("index size", fmt::format("{} bytes, but only {} lie before it", length, footer - kMagicBytes), footer);
  return {footer - length, footer};
}

void read_version_0(Model& model, const SourcePtr& source) {
  const ManifestRange range = find_index0(*source);
  const ManifestBytes index(*source, range);
  cbor::Cursor in(index.bytes(), range.begin, source->name(), std::string(kContext), cbor::Rules::lenient);
  EntryParser parser(in);
  std::vector<Object> objects;
  std::set<std::string> big_endian;
  for (auto entries = in.array(); entries.next();) {
    Entry entry = parser.parse();
    if (entry.big_endian) big_endian.insert(entry.object.name);
    objects.push_back(std::move(entry.object));
  }
  in.finish();
  for (Tensor& tensor : tensors_from_objects(std::move(objects), source, range.begin, std::string(kContext))) {
    if (big_endian.contains(tensor.name)) swap_bytes(tensor);
    model.add(std::move(tensor));
  }
}

}  // namespace poise::ztensor
