#include "formats/ztensor/edit.hpp"

#include <algorithm>
#include <deque>
#include <set>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/byte_writer.hpp"
#include "bytes/checked.hpp"
#include "bytes/short_text.hpp"
#include "formats/metadata.hpp"
#include "formats/spellings.hpp"
#include "formats/ztensor/zt1.hpp"
#include "formats/ztensor/zt2.hpp"
#include "io/in_place.hpp"
#include "io/sink.hpp"
#include "io/source_range.hpp"
#include "syntax/json_writer.hpp"

namespace poise::ztensor {
namespace {

constexpr std::string_view kAttributes = "attributes";
constexpr std::size_t kMostShown = 100;  // bytes of a value in a message

[[noreturn]] void refuse(const std::string& problem) { throw Error(ErrorKind::bad_argument, problem); }

// Edits the encoded entries of a map: unchanged entries keep their bytes. Requires: keys and appended entries outlive
// this, which does not copy them.
class EncodedMap {
 public:
  explicit EncodedMap(cbor::KeyOrder order) : order_(order) {}

  bool empty() const { return entries_.empty(); }

  std::size_t size() const { return entries_.size(); }

  // Appends an encoded entry. `key` is empty if the key is not text.
  void append(std::string_view key, std::string_view encoded) { entries_.push_back({key, encoded}); }

  // Inserts an entry before the one with this index. Requires: there is none with that key.
  void insert(std::size_t index, std::string_view key, const std::string& encoded_value) {
    entries_.insert(entries_.begin() + static_cast<std::ptrdiff_t>(index),
                    {key, made_.emplace_back(cbor::encode(key) + encoded_value)});
  }

  // Replaces the entry with that key, or inserts it in order. Returns true if it is new.
  bool set(std::string_view key, const std::string& encoded_value) {
    const Entry entry{key, made_.emplace_back(cbor::encode(key) + encoded_value)};
    const auto same = std::ranges::find(entries_, key, &Entry::key);
    if (same != entries_.end()) {
      *same = entry;
      return false;
    }
    entries_.insert(std::ranges::find_if(entries_, [&](const Entry& other) { return is_before(entry, other); }), entry);
    return true;
  }

  bool erase(std::string_view key) {
    return std::erase_if(entries_, [&](const Entry& entry) { return entry.key == key; }) > 0;
  }

  std::string encode() const {
    cbor::Encoder out(order_);
    out.begin_map(entries_.size());
    for (const Entry& entry : entries_) out.append_encoded(entry.encoded);
    return out.release();
  }

 private:
  struct Entry {
    std::string_view key;
    std::string_view encoded;
  };

  bool is_before(const Entry& entry, const Entry& other) const {
    return order_ == cbor::KeyOrder::by_text ? entry.key < other.key : entry.encoded < other.encoded;
  }

  cbor::KeyOrder order_;
  std::vector<Entry> entries_;
  std::deque<std::string> made_;  // the bytes of the entries that were set
};

// Says which keys of the file have lists, and whether it should have texts only, for the public ztensor library.
struct OldAttributes {
  std::set<std::string, std::less<>> lists;
  bool texts_only = false;
};

// Returns the value to store. Throws bad_argument for a text that replaces a list, unless it is JSON of a list.
Value convert_value(const std::string& key, const Value& given, const OldAttributes& old) {
  const bool is_list = old.lists.contains(key);
  const auto* text = given.get_if<std::string>();
  if (text == nullptr) {
    const bool stays_list = is_list && given.get_if<Value::Array>() != nullptr;
    return old.texts_only && !stays_list ? Value(format_python_json(given)) : given;
  }
  if (!is_list) return given;
  if (auto list = parse_json_list(*text)) return *std::move(list);
  refuse(fmt::format("{}: expected a list as JSON, such as [\"a\", \"b\"], found \"{}\"", key,
                     shorten(*text, kMostShown)));
}

// Applies the changes, and returns the new keys.
std::vector<std::string> apply_to_map(EncodedMap& attributes, const OldAttributes& old,
                                      const AttributeChanges& changes) {
  const auto set = [&](const std::string& key, const Value& value) {
    if (key.empty() || key.size() > kMaxNameBytes2 || key.find('\0') != std::string::npos)
      refuse(fmt::format("an attribute's name: expected 1 to {} bytes without NUL", kMaxNameBytes2));
    return attributes.set(key, cbor::encode(convert_value(key, value, old)));
  };
  return apply_changes(
      changes, [&](const std::string& key) { return attributes.erase(key); }, set);
}

struct EditedManifest {
  std::string bytes;
  std::vector<std::string> added;
};

// Returns the manifest in `range` with new attributes.
EditedManifest edit_manifest(const Input& input, const ManifestRange& range, cbor::Rules rules,
                             const AttributeChanges& changes) {
  const auto order = rules == cbor::Rules::deterministic ? cbor::KeyOrder::by_encoding : cbor::KeyOrder::by_text;
  const ManifestBytes bytes(*input.source, range);
  const std::string_view text(reinterpret_cast<const char*>(bytes.bytes().data()), bytes.bytes().size());
  cbor::Cursor in(bytes.bytes(), range.begin, input.source->name(), "zTensor: manifest", rules);
  const auto get_bytes_since = [&](std::uint64_t begin) {
    return text.substr(begin - range.begin, in.position() - begin);
  };
  EncodedMap root(order);
  EncodedMap attributes(order);
  OldAttributes old_attributes;
  std::size_t place = 0;  // where version 1 has the attributes: as before, or else after the version
  bool has_attributes = false;
  auto map = in.read_map();
  for (std::uint64_t begin = in.position(); map.next(); begin = in.position()) {
    if (rules == cbor::Rules::lenient && map.is("version")) {
      old_attributes.texts_only = in.read_text().starts_with("1.1");
      root.append(map.key(), get_bytes_since(begin));
      if (!has_attributes) place = root.size();
      continue;
    }
    if (map.key() != kAttributes) {
      in.skip();
      root.append(map.key(), get_bytes_since(begin));
      continue;
    }
    has_attributes = true;
    place = root.size();
    if (!in.skip_null()) {
      auto old = in.read_map();
      for (std::uint64_t entry = in.position(); old.next(); entry = in.position()) {
        if (in.is_at_array()) old_attributes.lists.emplace(old.key());
        in.skip();
        attributes.append(old.key(), get_bytes_since(entry));
      }
    }
  }
  std::vector<std::string> added = apply_to_map(attributes, old_attributes, changes);
  if (!attributes.empty()) {
    if (rules == cbor::Rules::deterministic) {
      root.set(kAttributes, attributes.encode());
    } else {
      root.insert(place, kAttributes, attributes.encode());
    }
  }
  std::string manifest = root.encode();
  if (manifest.size() > kMaxManifestBytes)
    throw Error(ErrorKind::unsupported, "zTensor: the manifest would be larger than 1 GiB");
  return {std::move(manifest), std::move(added)};
}

SourcePtr make_text_source(std::string_view text, const Input& input) {
  const auto bytes = std::as_bytes(std::span(text));
  return Source::from_memory({bytes.begin(), bytes.end()}, input.path.string());
}

StoredRange make_whole_range(const SourcePtr& source) { return {source, 0, source->size()}; }
StoredRange make_zeros(std::uint64_t count, const Input& input) {
  return {Source::from_memory(std::vector<std::byte>(count), input.path.string()), 0, count};
}

// Appends a new manifest and footer after the old ones.
class Appended final : public PreparedEdit {
 public:
  Appended(const Input& input, EditedManifest manifest)
      : PreparedEdit(std::move(manifest.added)), input_(input), manifest_(make_text_source(manifest.bytes, input)) {
    manifest_offset_ = checked_align(input.source->size(), kLeastAlignment2).value();
    footer_offset_ = manifest_offset_ + manifest.bytes.size();
    if (footer_offset_ % kFooterBlock2 > kFooterBlock2 - kFooterBytes2)
      footer_offset_ = checked_align(footer_offset_, kFooterBlock2).value();
    footer_ = make_footer(manifest_offset_, manifest.bytes);
  }

  SourcePtr make_edited_source() const override {
    const auto footer = Source::from_memory({footer_.bytes().begin(), footer_.bytes().end()}, input_.path.string());
    return make_spliced_source(
        input_.path.string(),
        {make_whole_range(input_.source), make_zeros(manifest_offset_ - input_.source->size(), input_),
         make_whole_range(manifest_), make_zeros(footer_offset_ - manifest_offset_ - manifest_->size(), input_),
         make_whole_range(footer)});
  }

  EditReport report() const override {
    return {EditReport::Way::appended, footer_offset_ + kFooterBytes2 - input_.source->size()};
  }

  void commit(const std::filesystem::path& path) override {
    FileTail tail(path);
    if (tail.size() != input_.source->size())
      throw Error(ErrorKind::io, "the file changed while being read", path.string());
    tail.append(manifest_offset_, manifest_->bytes(), footer_offset_, footer_.bytes());
  }

 private:
  Input input_;
  SourcePtr manifest_;
  std::uint64_t manifest_offset_ = 0;
  std::uint64_t footer_offset_ = 0;
  ByteWriter footer_;
};

// Writes the file's blobs and a new manifest to another file, which replaces this one.
class Rewritten final : public PreparedEdit {
 public:
  Rewritten(const Input& input, std::uint64_t blobs_end, EditedManifest manifest)
      : PreparedEdit(std::move(manifest.added)), input_(input), blobs_end_(blobs_end) {
    ByteWriter end;
    end.append_text(manifest.bytes);
    end.append_u64(manifest.bytes.size());
    end.append_text(kMagic1);
    end_ = Source::from_memory({end.bytes().begin(), end.bytes().end()}, input.path.string());
  }

  SourcePtr make_edited_source() const override {
    return make_spliced_source(input_.path.string(), {{input_.source, 0, blobs_end_}, make_whole_range(end_)});
  }

  EditReport report() const override { return {EditReport::Way::rewritten, blobs_end_ + end_->size()}; }

  void commit(const std::filesystem::path& path) override {
    FileOutput output(path, true);
    output.main().copy(*input_.source, 0, blobs_end_);
    output.main().write(end_->bytes());
    output.commit();
  }

 private:
  Input input_;
  std::uint64_t blobs_end_;
  SourcePtr end_;
};

}  // namespace

std::unique_ptr<PreparedEdit> edit_version_2(const Input& input, const AttributeChanges& changes) {
  const ManifestRange range = find_manifest2(*input.source);
  if (range.end == 0)
    throw Error(ErrorKind::unsupported,
                "this is a data shard: edit the file with the manifest, which has the attributes", input.path.string());
  return std::make_unique<Appended>(input, edit_manifest(input, range, cbor::Rules::deterministic, changes));
}

std::unique_ptr<PreparedEdit> edit_version_1(const Input& input, const AttributeChanges& changes) {
  const ManifestRange range = find_manifest1(*input.source);
  return std::make_unique<Rewritten>(input, range.begin, edit_manifest(input, range, cbor::Rules::lenient, changes));
}

std::vector<MetadataKey> list_keys(const Source& source, const ManifestRange& range, cbor::Rules rules) {
  const ManifestBytes bytes(source, range);
  cbor::Cursor in(bytes.bytes(), range.begin, source.name(), "zTensor: manifest", rules);
  std::vector<MetadataKey> keys;
  for (auto root = in.read_map(); root.next();) {
    if (root.key() != "attributes") {
      in.skip();
    } else if (!in.skip_null()) {
      for (const auto& [key, value] : in.read_attributes()) keys.push_back({key, describe_value_type(value), value});
    }
  }
  return keys;
}

}  // namespace poise::ztensor
