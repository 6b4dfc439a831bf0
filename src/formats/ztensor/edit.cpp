#include "formats/ztensor/edit.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/byte_writer.hpp"
#include "bytes/limits.hpp"
#include "formats/ztensor/cbor.hpp"
#include "formats/ztensor/cbor_encoder.hpp"
#include "formats/ztensor/zt1.hpp"
#include "formats/ztensor/zt2.hpp"
#include "io/digest.hpp"
#include "io/file_tail.hpp"
#include "io/sink.hpp"
#include "model/metadata.hpp"

namespace poise::ztensor {
namespace {

constexpr std::string_view kAttributes = "attributes";
constexpr std::uint64_t kFooterBlock = 512;  // a footer inside of one is written in one piece

[[noreturn]] void refuse(const std::string& problem) { throw Error(ErrorKind::bad_argument, problem); }

void apply(Attributes& attributes, const AttributeChanges& changes) {
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
    attributes.set(key, text);
  }
}

// The file has to open with them.
void require_metadata(const Attributes& attributes, const Input& input) {
  Model model;
  model.origin.path = input.path;
  model.attributes = attributes;
  try {
    take_text_attributes(model);
  } catch (const Error& error) {
    throw Error(ErrorKind::bad_argument, fmt::format("the file could not be opened afterwards: {}", error.message()), input.path.string());
  }
}

// The root map of a manifest, entry by entry as it is encoded, with other attributes.
class RootMap {
 public:
  RootMap(const Source& source, const ManifestRange& range, cbor::Rules rules) : bytes_(source, range) {
    cbor::Cursor in(bytes_.bytes(), range.begin, source.name(), "zTensor: manifest", rules);
    const std::string_view text(reinterpret_cast<const char*>(bytes_.bytes().data()), bytes_.bytes().size());
    auto root = in.map();
    for (std::uint64_t begin = in.position(); root.next(); begin = in.position()) {
      const std::string key(root.key());
      if (key == kAttributes) {
        if (!in.null()) attributes_ = in.attributes();
      } else {
        in.skip();
        entries_.push_back({key, text.substr(begin - range.begin, in.position() - begin)});
      }
    }
  }

  Attributes& attributes() { return attributes_; }

  std::string encode(cbor::KeyOrder order) const {
    cbor::Encoder out(order);
    out.map(entries_.size() + (attributes_.empty() ? 0 : 1));
    bool written = attributes_.empty();
    for (const Entry& entry : entries_) {
      if (!written && belongs_before(entry, order)) {
        encode_attributes(out);
        written = true;
      }
      out.encoded(entry.encoded);
    }
    if (!written) encode_attributes(out);
    return out.take();
  }

 private:
  struct Entry {
    std::string key;  // empty when it is no text
    std::string_view encoded;
  };

  // Version 2 sorts its keys; version 1.1 has attributes in front of objects.
  static bool belongs_before(const Entry& entry, cbor::KeyOrder order) {
    if (order == cbor::KeyOrder::by_text) return entry.key == "objects";
    cbor::Encoder key(order);
    key.text(kAttributes);
    return key.bytes() < entry.encoded;
  }

  void encode_attributes(cbor::Encoder& out) const {
    out.text(kAttributes);
    out.value(attributes_);
  }

  ManifestBytes bytes_;
  std::vector<Entry> entries_;
  Attributes attributes_;
};

std::uint64_t round_up(std::uint64_t number, std::uint64_t multiple) { return (number + multiple - 1) / multiple * multiple; }

}  // namespace

EditReport edit_version_2(const Input& input, const AttributeChanges& changes) {
  const ManifestRange range = find_manifest2(*input.source);
  if (range.end == 0) throw Error(ErrorKind::unsupported, "this is a data shard: the attributes stand in the file with the manifest", input.path.string());
  RootMap root(*input.source, range, cbor::Rules::deterministic);
  apply(root.attributes(), changes);
  require_metadata(root.attributes(), input);
  const std::string manifest = root.encode(cbor::KeyOrder::by_encoding);
  if (manifest.size() > kMaxManifestBytes) throw Error(ErrorKind::unsupported, "zTensor 2: the manifest would be larger than 1 GiB");
  FileTail tail(input.path);
  if (tail.size() != input.source->size()) throw Error(ErrorKind::io, "the file changed while being read", input.path.string());
  const std::uint64_t offset = round_up(tail.size(), kLeastAlignment2);
  std::uint64_t footer_offset = offset + manifest.size();
  if (footer_offset % kFooterBlock > kFooterBlock - kFooterBytes2) footer_offset = round_up(footer_offset, kFooterBlock);
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
  RootMap root(*input.source, range, cbor::Rules::lenient);
  apply(root.attributes(), changes);
  require_metadata(root.attributes(), input);
  const std::string manifest = root.encode(cbor::KeyOrder::by_text);
  if (manifest.size() > kMaxManifestBytes) throw Error(ErrorKind::unsupported, "zTensor 1.1: the manifest would be larger than 1 GiB");
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
