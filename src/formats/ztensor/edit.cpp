#include "formats/ztensor/edit.hpp"

#include <algorithm>
#include <deque>
#include <set>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/byte_writer.hpp"
#include "formats/metadata.hpp"
#include "formats/ztensor/limits.hpp"
#include "formats/ztensor/zt1.hpp"
#include "formats/ztensor/zt2.hpp"
#include "io/file_tail.hpp"
#include "io/sink.hpp"
#include "pack/digest.hpp"
#include "syntax/cbor.hpp"
#include "syntax/cbor_encoder.hpp"

namespace poise::ztensor {
namespace {

constexpr std::string_view kAttributes = "attributes";

[[noreturn]] void refuse(const std::string& problem) { throw Error(ErrorKind::bad_argument, problem); }

// The encoded entries of a map: those that are not changed keep their bytes. Keys and appended entries are
// not copied.
class EncodedMap {
 public:
  explicit EncodedMap(cbor::KeyOrder order) : order_(order) {}

  bool empty() const { return entries_.empty(); }

  // Puts it after all others. An entry is a key, empty when it is no text, and the encoded key and value.
  void append(std::string_view key, std::string_view encoded) { entries_.push_back({key, encoded}); }

  // Puts the entry into the place of the one with that key, or where it belongs among the others.
  void set(std::string_view key, const std::string& encoded_value) {
    const Entry entry{key, made_.emplace_back(cbor::encode(key) + encoded_value)};
    const auto same = std::ranges::find(entries_, key, &Entry::key);
    if (same != entries_.end()) {
      *same = entry;
    } else {
      entries_.insert(std::ranges::find_if(entries_, [&](const Entry& other) { return belongs_before(entry, other); }),
                      entry);
    }
  }

  bool erase(std::string_view key) {
    return std::erase_if(entries_, [&](const Entry& entry) { return entry.key == key; }) > 0;
  }

  std::string encode() const {
    cbor::Encoder out(order_);
    out.map(entries_.size());
    for (const Entry& entry : entries_) out.encoded(entry.encoded);
    return out.take();
  }

 private:
  struct Entry {
    std::string_view key;
    std::string_view encoded;
  };

  bool belongs_before(const Entry& entry, const Entry& other) const {
    return order_ == cbor::KeyOrder::by_text ? entry.key < other.key : entry.encoded < other.encoded;
  }

  cbor::KeyOrder order_;
  std::vector<Entry> entries_;
  std::deque<std::string> made_;  // the entries that were set
};

void apply(EncodedMap& attributes, const AttributeChanges& changes) {
  if (changes.set.empty() && changes.erase.empty()) refuse("there is nothing to change");
  std::set<std::string_view> seen;
  const auto require_new = [&](const std::string& key) {
    if (!seen.insert(key).second) refuse(fmt::format("the attribute \"{}\" is to be changed twice", key));
  };
  for (const std::string& key : changes.erase) {
    require_new(key);
    if (!attributes.erase(key)) refuse(fmt::format("there is no attribute \"{}\"", key));
  }
  for (const auto& [key, text] : changes.set) {
    require_new(key);
    if (key.empty() || key.size() > kMaxNameBytes2 || key.find('\0') != std::string::npos) {
      refuse(fmt::format("the name of an attribute has 1 to {} bytes without NUL", kMaxNameBytes2));
    }
    attributes.set(key, cbor::encode(text));
  }
}

// The file has to open with them.
void require_metadata(const std::string& encoded, cbor::Rules rules, const Input& input) {
  Model model;
  model.origin.path = input.path;
  try {
    model.attributes =
        cbor::Cursor(std::as_bytes(std::span(encoded)), 0, input.path.string(), "the new attributes", rules)
            .attributes();
    take_text_attributes(model);
  } catch (const Error& error) {
    throw Error(ErrorKind::bad_argument, fmt::format("the file could not be opened afterwards: {}", error.message()),
                input.path.string());
  }
}

// The manifest in `range`, with other attributes.
std::string edited_manifest(const Input& input, const ManifestRange& range, cbor::Rules rules,
                            const AttributeChanges& changes) {
  const auto order = rules == cbor::Rules::deterministic ? cbor::KeyOrder::by_encoding : cbor::KeyOrder::by_text;
  const ManifestBytes bytes(*input.source, range);
  const std::string_view text(reinterpret_cast<const char*>(bytes.bytes().data()), bytes.bytes().size());
  cbor::Cursor in(bytes.bytes(), range.begin, input.source->name(), "zTensor: manifest", rules);
  const auto since = [&](std::uint64_t begin) { return text.substr(begin - range.begin, in.position() - begin); };
  EncodedMap root(order);
  EncodedMap attributes(order);
  auto map = in.map();
  for (std::uint64_t begin = in.position(); map.next(); begin = in.position()) {
    if (map.key() != kAttributes) {
      in.skip();
      root.append(map.key(), since(begin));
    } else if (!in.null()) {
      auto old = in.map();
      for (std::uint64_t entry = in.position(); old.next(); entry = in.position()) {
        in.skip();
        attributes.append(old.key(), since(entry));
      }
    }
  }
  apply(attributes, changes);
  const std::string encoded = attributes.encode();
  require_metadata(encoded, rules, input);
  if (!attributes.empty()) root.set(kAttributes, encoded);
  std::string manifest = root.encode();
  if (manifest.size() > kMaxManifestBytes)
    throw Error(ErrorKind::unsupported, "zTensor: the manifest would be larger than 1 GiB");
  return manifest;
}

std::uint64_t round_up(std::uint64_t number, std::uint64_t multiple) {
  return (number + multiple - 1) / multiple * multiple;
}

}  // namespace

EditReport edit_version_2(const Input& input, const AttributeChanges& changes) {
  const ManifestRange range = find_manifest2(*input.source);
  if (range.end == 0)
    throw Error(ErrorKind::unsupported, "this is a data shard: the attributes are in the file with the manifest",
                input.path.string());
  const std::string manifest = edited_manifest(input, range, cbor::Rules::deterministic, changes);
  FileTail tail(input.path);
  if (tail.size() != input.source->size())
    throw Error(ErrorKind::io, "the file changed while being read", input.path.string());
  const std::uint64_t offset = round_up(tail.size(), kLeastAlignment2);
  std::uint64_t footer_offset = offset + manifest.size();
  if (footer_offset % kFooterBlock2 > kFooterBlock2 - kFooterBytes2)
    footer_offset = round_up(footer_offset, kFooterBlock2);
  ByteWriter footer;
  footer.u64(offset);
  footer.u64(manifest.size());
  footer.u64(xxh3_64(std::as_bytes(std::span(manifest))));
  footer.u32(2);
  footer.u32(0);
  footer.text(kMagic2);
  tail.append(offset, std::as_bytes(std::span(manifest)), footer_offset, footer.bytes());
  return {EditReport::Way::appended, footer_offset + kFooterBytes2 - tail.size()};
}

EditReport edit_version_1(const Input& input, const AttributeChanges& changes) {
  const ManifestRange range = find_manifest1(*input.source);
  const std::string manifest = edited_manifest(input, range, cbor::Rules::lenient, changes);
  FileOutput output(input.path, true);
  output.main().copy(*input.source, 0, range.begin);
  ByteWriter end;
  end.text(manifest);
  end.u64(manifest.size());
  end.text(kMagic1);
  output.main().write(end.bytes());
  const std::uint64_t bytes = output.bytes();
  output.commit();
  return {EditReport::Way::rewritten, bytes};
}

}  // namespace poise::ztensor
