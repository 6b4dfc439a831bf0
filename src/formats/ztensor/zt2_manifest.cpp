// zTensor 2 has this manifest, in core deterministic CBOR ("?" marks an optional key):
//
//   {"shards": {name: {"size", "digest"}}?,
//    "objects": {name: {"parts": {role: {"blob": [offset, length], "type"?, "dtype", "shard"?, "digest"?, "encoding"?,
//                                        "decoded_length"?}}, "shape": [..], "layout", "attributes"?}},
//    "attributes": {..}?}
//
// The parser ignores unknown keys at every level.
#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/byte_reader.hpp"
#include "bytes/utf8.hpp"
#include "formats/ztensor/object.hpp"
#include "formats/ztensor/zt2.hpp"
#include "model/limits.hpp"
#include "pack/digest.hpp"
#include "pack/part_digest.hpp"
#include "syntax/cbor.hpp"

namespace poise::ztensor {
namespace {

// An object with name, shape, layout, and one part with blob and dtype takes at least this many bytes.
constexpr std::uint64_t kLeastObjectBytes2 = 48;

bool is_storage_type(std::string_view name) {
  return std::ranges::any_of(kSpellings2, [&](const auto& row) { return row.text.storage == name; });
}

bool is_lower_hex(std::string_view digits) {
  return std::ranges::all_of(digits, [](char c) { return parse_hex_digit(c) >= 0 && !is_ascii_upper(c); });
}

// Returns true for "algorithm:text". For xxh3 and sha256, which version 2 defines, the text is a fixed number of
// lower-case hexadecimal digits. For other algorithms it is any text that is not empty.
bool is_digest(std::string_view text) {
  const auto colon = text.find(':');
  if (colon == std::string_view::npos || colon == 0) return false;
  const std::string_view name = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  if (!std::ranges::all_of(name, [](char c) { return is_ascii_lower(c) || is_ascii_digit(c); })) return false;
  if (name == "xxh3") return digits.size() == 16 && is_lower_hex(digits);
  if (name == "sha256") return digits.size() == 64 && is_lower_hex(digits);
  return !digits.empty();
}

bool is_shard_name(std::string_view name) {
  const auto is_allowed = [](char c) { return is_ascii_alphanumeric(c) || c == '.' || c == '_' || c == '-'; };
  return !name.empty() && name.size() <= kMaxShardNameBytes2 && name.front() != '.' &&
         std::ranges::all_of(name, is_allowed);
}

// Formats bytes as "89 5a 54 32".
std::string format_bytes(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes)
    text += fmt::format("{}{:02x}", text.empty() ? "" : " ", static_cast<unsigned char>(byte));
  return text;
}

// Returns the hexadecimal XXH3-64 of a manifest. Releases its mapped pages, which can be read again.
std::string hash_manifest(const Source& source, const ManifestRange& range) {
  constexpr std::size_t kPiece = 256 << 10;
  ManifestBytes manifest(source, range);
  const auto hasher = make_xxh3();
  for (auto rest = manifest.bytes(); !rest.empty(); rest = rest.subspan(std::min(kPiece, rest.size()))) {
    hasher->update(rest.first(std::min(kPiece, rest.size())));
    manifest.release_before(range.end - rest.size());
  }
  return hasher->finish();
}

class ManifestParser2 {
 public:
  ManifestParser2(ManifestBytes& bytes, cbor::Cursor& in, const ObjectReceiver2* receiver)
      : bytes_(bytes), in_(in), receiver_(receiver) {}

  Manifest2 parse() {
    Manifest2 manifest;
    bool has_objects = false;
    for (auto root = in_.read_map(); root.next();) {
      if (root.is("objects")) {
        has_objects = true;
        parse_objects(manifest.shards);  // complete: keys ascend, and "shards" precedes "objects"
      } else if (root.is("shards")) {
        parse_shards(manifest);
      } else if (root.is("attributes")) {
        manifest.attributes = parse_attributes();
      } else {
        in_.skip();
      }
    }
    in_.require_end();
    if (!has_objects) in_.fail("\"objects\" is missing", in_.position());
    return manifest;
  }

 private:
  std::string_view parse_name(const cbor::Map& map) const {
    const std::string_view key = map.key();
    if (!map.has_text_key()) in_.fail("expected a name", map.key_position());
    if (key.empty() || key.size() > kMaxNameBytes2)
      in_.fail(fmt::format("expected a name of 1 to {} bytes, found {}", kMaxNameBytes2, key.size()),
               map.key_position());
    if (key.find('\0') != std::string_view::npos) in_.fail("expected a name without NUL", map.key_position());
    return key;
  }

  Attributes parse_attributes() {
    std::vector<Attributes::Entry> entries;
    for (auto map = in_.read_map(); map.next();) {
      const std::string_view key = parse_name(map);
      entries.emplace_back(key, in_.read_value());
    }
    return Attributes::from_unique(std::move(entries));
  }

  void parse_shards(Manifest2& manifest) {
    for (auto map = in_.read_map(); map.next();) {
      if (!map.has_text_key() || !is_shard_name(map.key())) {
        in_.fail(
            fmt::format(
                "expected a shard's name of 1 to {} characters of A-Z a-z 0-9 . _ - that does not begin with a dot",
                kMaxShardNameBytes2),
            map.key_position());
      }
      if (manifest.shards.size() == kMaxShards)
        in_.fail(fmt::format("more than {} shards", kMaxShards), map.key_position());
      manifest.shards.push_back(parse_shard(std::string(map.key())));
    }
  }

  Shard parse_shard(std::string name) {
    const std::uint64_t begin = in_.position();
    Shard shard{std::move(name), 0, {}};
    bool has_size = false;
    for (auto map = in_.read_map(); map.next();) {
      if (map.is("size")) {
        has_size = true;
        shard.size = in_.read_u64();
      } else if (map.is("digest")) {
        shard.digest = parse_digest();
      } else {
        in_.skip();
      }
    }
    if (!has_size) in_.fail("\"size\" is missing", begin);
    if (shard.digest.empty()) in_.fail("\"digest\" is missing", begin);
    if (shard.size < kLeastFileBytes2)
      in_.fail(
          fmt::format("size: expected at least {}, the bytes of an empty file, found {}", kLeastFileBytes2, shard.size),
          begin);
    return shard;
  }

  std::string_view parse_digest() {
    const std::uint64_t begin = in_.position();
    const std::string_view text = parse_type_name(in_);
    if (!is_digest(text)) {
      in_.fail(
          fmt::format("expected \"xxh3:\" and 16 or \"sha256:\" and 64 lower-case hexadecimal digits, found \"{}\"",
                      shorten_name(text)),
          begin);
    }
    return text;
  }

  void parse_objects(const std::vector<Shard>& shards) {
    auto map = in_.read_map();
    if (receiver_ != nullptr)
      receiver_->begin(shards,
                       std::min({map.size_hint(), in_.bytes_left() / kLeastObjectBytes2, std::uint64_t{kMaxTensors}}));
    StoredObject object;
    for (std::size_t count = 0; map.next(); ++count) {
      begin_object(object, count, in_);
      object.name = parse_name(map);
      parse_object(object);
      if (receiver_ != nullptr) receiver_->add_object(object);
      bytes_.release_before(in_.position());
    }
  }

  void parse_object(StoredObject& object) {
    bool has_shape = false;
    bool has_parts = false;
    object.layout = {};
    for (auto map = in_.read_map(); map.next();) {
      if (map.is("shape")) {
        has_shape = true;
        object.shape = parse_shape(in_);
      } else if (map.is("layout")) {
        object.layout = parse_type_name(in_);
        if (object.layout.empty()) in_.fail("expected the name of a layout", map.key_position());
      } else if (map.is("attributes")) {
        object.attributes = parse_attributes();
      } else if (map.is("parts")) {
        has_parts = true;
        parse_parts(object);
      } else {
        in_.skip();
      }
    }
    if (!has_shape) in_.fail("\"shape\" is missing", object.position);
    if (object.layout.empty()) in_.fail("\"layout\" is missing", object.position);
    if (!has_parts || object.components.empty()) in_.fail("\"parts\" is missing or empty", object.position);
    if (!element_count(object.shape))
      in_.fail(fmt::format("shape: the product of {} does not fit 64 bits", to_string(object.shape)), object.position);
  }

  void parse_parts(StoredObject& object) {
    auto map = in_.read_map();
    while (map.next()) {
      if (object.components.size() == kMaxTensorParts)
        in_.fail(fmt::format("more than {} parts", kMaxTensorParts), in_.position());
      if (++parts_ > kMaxParts) in_.fail(fmt::format("more than {} parts in all", kMaxParts), in_.position());
      Component& part = object.components.emplace_back();
      part.role = parse_name(map);
      part.position = in_.position();
      parse_part(part);
    }
  }

  void parse_part(Component& part) {
    bool has_blob = false;
    bool has_encoding = false;
    std::optional<std::string_view> dtype;
    std::string_view type;
    for (auto map = in_.read_map(); map.next();) {
      if (map.is("dtype")) {
        dtype = parse_type_name(in_);
      } else if (map.is("type")) {
        type = parse_type_name(in_);
        if (type.empty()) in_.fail("expected the name of a logical type", map.key_position());
      } else if (map.is("blob")) {
        has_blob = true;
        parse_blob(part);
      } else if (map.is("shard")) {
        part.shard = in_.read_text();
        if (part.shard.empty()) in_.fail("expected the name of a shard", map.key_position());
      } else if (map.is("encoding")) {
        has_encoding = true;
        part.encoding = parse_type_name(in_);
      } else if (map.is("decoded_length")) {
        part.decoded_length = in_.read_u64();
      } else if (map.is("digest")) {
        part.digest = parse_digest();
      } else {
        in_.skip();
      }
    }
    if (!dtype) in_.fail("\"dtype\" is missing", part.position);
    if (!has_blob) in_.fail("\"blob\" is missing", part.position);
    if (has_encoding != part.decoded_length.has_value())
      in_.fail("expected both \"encoding\" and \"decoded_length\", found one of them", part.position);
    set_part_type(part, *dtype, type);
  }

  void parse_blob(Component& part) {
    const std::uint64_t begin = in_.position();
    std::array<std::uint64_t, 2> numbers{};
    std::size_t count = 0;
    for (auto items = in_.read_array(); items.next(); ++count) {
      const std::uint64_t number = in_.read_u64();
      if (count < numbers.size()) numbers[count] = number;
    }
    if (count != numbers.size()) in_.fail(fmt::format("expected [offset, length], found {} numbers", count), begin);
    part.offset = numbers[0];
    part.length = numbers[1];
  }

  void set_part_type(Component& part, std::string_view dtype, std::string_view type) const {
    if (!is_storage_type(dtype))
      in_.fail(fmt::format("dtype: expected one of the twelve storage types, such as f32 or u8, found \"{}\"", dtype),
               part.position);
    const auto resolved = find_stored_dtype(dtype, type);
    const auto* const known =
        std::ranges::find_if(kSpellings2, [&](const auto& row) { return !type.empty() && row.text.logical == type; });
    if (known != kSpellings2.end() && !resolved) {
      in_.fail(fmt::format("type: {} is stored as {}, not as {}", type, known->text.storage, dtype), part.position);
    }
    part.dtype = resolved.value_or(DType::unknown);
    if (!resolved) part.spelling = fmt::format("{}:{}", dtype, type);
  }

  ManifestBytes& bytes_;
  cbor::Cursor& in_;
  const ObjectReceiver2* receiver_;
  std::size_t parts_ = 0;  // the number of parts of all objects so far
};

}  // namespace

DigestAlgorithm parse_digest_algorithm2(std::string_view text) {
  const DigestAlgorithm algorithm = parse_digest_algorithm(text);
  return algorithm == DigestAlgorithm::xxh3 || algorithm == DigestAlgorithm::sha256 ? algorithm
                                                                                    : DigestAlgorithm::unknown;
}

ManifestRange find_manifest2(const Source& source) {
  ByteReader reader(source, "zt 2");
  if (source.size() < kLeastFileBytes2)
    reader.fail("file size",
                fmt::format("{} bytes, at least {} are needed: the file is cut off", source.size(), kLeastFileBytes2),
                source.size());
  if (const std::string_view found = reader.read_text(kMagic2.size(), "header magic"); found != kMagic2)
    reader.fail("header magic", fmt::format("expected {}, found {}", format_bytes(kMagic2), format_bytes(found)), 0);
  const std::uint64_t footer = source.size() - kFooterBytes2;
  reader.seek(footer);
  const std::uint64_t offset = reader.read_u64("manifest_offset");
  const std::uint64_t length = reader.read_u64("manifest_length");
  const std::uint64_t hash = reader.read_u64("manifest_hash");
  const std::uint32_t version = reader.read_u32("version");
  reader.skip(4, "reserved");
  if (const std::string_view found = reader.read_text(kMagic2.size(), "footer magic"); found != kMagic2) {
    reader.fail("footer magic",
                fmt::format("expected {} as the last 8 bytes, found {}: the file is cut off or damaged",
                            format_bytes(kMagic2), format_bytes(found)),
                source.size() - kMagic2.size());
  }
  if (version != 2)
    throw Error(ErrorKind::unsupported, fmt::format("zt 2: version: expected 2, found {}", version), source.name(),
                footer + 24);
  if (length == 0) {
    if (offset != 0 || hash != 0)
      reader.fail("manifest_length", "0, as in a data shard, but its offset or hash is not 0", footer + 8);
    return {};
  }
  if (length > kMaxManifestBytes)
    reader.fail("manifest_length", fmt::format("{} bytes, at most {} are allowed", length, kMaxManifestBytes),
                footer + 8);
  if (offset % kLeastAlignment2 != 0 || offset < kLeastAlignment2)
    reader.fail("manifest_offset", fmt::format("{} is not a positive multiple of {}", offset, kLeastAlignment2),
                footer);
  if (offset > footer || length > footer - offset)
    reader.fail("manifest_offset",
                fmt::format("{} bytes at {} reach beyond the data, which end at {}", length, offset, footer), footer);
  const std::string computed = hash_manifest(source, {offset, offset + length});
  if (const std::string found = fmt::format("{:016x}", hash); found != computed) {
    reader.fail("manifest_hash", fmt::format("expected {}, the XXH3 of the manifest, found {}", computed, found),
                footer + 16);
  }
  return {offset, offset + length};
}

Manifest2 parse_manifest2(const Source& source, const ManifestRange& range, const ObjectReceiver2* receiver) {
  ManifestBytes bytes(source, range);
  cbor::Cursor in(bytes.bytes(), range.begin, source.name(), "zt 2: manifest", cbor::Rules::deterministic);
  return ManifestParser2(bytes, in, receiver).parse();
}

std::filesystem::path make_shard_path(const std::filesystem::path& root, std::string_view shard) {
  return root.parent_path() / fmt::format("{}-{}.zt", root.stem().string(), shard);
}

}  // namespace poise::ztensor
