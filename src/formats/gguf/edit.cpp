#include "formats/gguf/edit.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/byte_writer.hpp"
#include "bytes/checked.hpp"
#include "bytes/utf8.hpp"
#include "formats/gguf/header.hpp"
#include "formats/gguf/key_types.hpp"
#include "formats/gguf/key_values.hpp"
#include "formats/gguf/limits.hpp"
#include "formats/gguf/metadata.hpp"
#include "formats/gguf/read.hpp"
#include "formats/gguf/vocabulary.hpp"
#include "io/in_place.hpp"
#include "io/sink.hpp"
#include "io/source_range.hpp"

namespace poise::gguf {
namespace {

[[noreturn]] void refuse(const std::string& problem) { throw Error(ErrorKind::bad_argument, problem); }

// An entry as the file has it.
struct Entry {
  std::string key;
  ValueType type = ValueType::text;
  std::uint64_t begin = 0;  // in the file; its key comes first
  std::uint64_t end = 0;
  std::string replaced = {};  // key, type and value; empty: as in the file
};

struct Header {
  std::uint32_t version = 0;
  bool big_endian = false;
  std::vector<Entry> entries;
  std::uint64_t tensors = 0;
  std::uint64_t metadata_end = 0;
  std::uint64_t end = 0;
  std::uint64_t alignment = kUsualAlignment;
  bool split = false;  // it is a part of several
};

Header read_header(const Source& source) {
  const SourceRange range(source);
  HeaderReader reader(range);
  Header header;
  header.version = reader.version();
  header.big_endian = reader.is_big_endian();
  reader.metadata([&](std::string_view key, MetadataValue& value) {
    const std::uint64_t begin = value.position() - key.size() - sizeof(std::uint64_t);
    if (!header.entries.empty()) header.entries.back().end = begin;
    header.entries.push_back({std::string(key), value.type(), begin});
    if (key == kAlignmentKey) header.alignment = value.unsigned_integer().value_or(kUsualAlignment);
    if (key == "split.count") header.split = value.unsigned_integer().value_or(0) > 1;
  });
  header.metadata_end = reader.end();
  if (!header.entries.empty()) header.entries.back().end = header.metadata_end;
  reader.tensors([&](const TensorInfo&) { ++header.tensors; });
  header.end = reader.end();
  return header;
}

template <typename Number>
Number number_from(const std::string& key, const std::string& text, std::string_view type) {
  Number number{};
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || stop != text.data() + text.size())
    refuse(fmt::format("{} is {}, and \"{}\" is no such number", key, type, text));
  return number;
}

template <typename Number>
void append(ByteWriter& out, Number number) {
  std::array<std::byte, sizeof number> bytes;
  store_le(bytes.data(), number);
  out.append(bytes);
}

std::string encoded(const std::string& key, ValueType type, const std::string& text) {
  ByteWriter out;
  KeyValues::append_text(out, key);
  out.u32(static_cast<std::uint32_t>(type));
  switch (type) {
    case ValueType::u8: append(out, number_from<std::uint8_t>(key, text, "u8")); break;
    case ValueType::i8: append(out, number_from<std::int8_t>(key, text, "i8")); break;
    case ValueType::u16: append(out, number_from<std::uint16_t>(key, text, "u16")); break;
    case ValueType::i16: append(out, number_from<std::int16_t>(key, text, "i16")); break;
    case ValueType::u32: append(out, number_from<std::uint32_t>(key, text, "u32")); break;
    case ValueType::i32: append(out, number_from<std::int32_t>(key, text, "i32")); break;
    case ValueType::u64: append(out, number_from<std::uint64_t>(key, text, "u64")); break;
    case ValueType::i64: append(out, number_from<std::int64_t>(key, text, "i64")); break;
    case ValueType::f32: append(out, number_from<float>(key, text, "f32")); break;
    case ValueType::f64: append(out, number_from<double>(key, text, "f64")); break;
    case ValueType::boolean:
      if (text != "true" && text != "false")
        refuse(fmt::format("{} is a boolean, and \"{}\" is neither true nor false", key, text));
      out.u8(text == "true" ? 1 : 0);
      break;
    case ValueType::text: KeyValues::append_text(out, text); break;
    case ValueType::array: refuse(fmt::format("{} is an array, which is not edited", key));
  }
  return {reinterpret_cast<const char*>(out.bytes().data()), out.size()};
}

// llama.cpp's own keys have the type that it wants, others are text.
ValueType type_of_new(const std::string& key, const std::vector<Entry>& entries) {
  if (key.starts_with(kTokenizer)) return vocabulary_key_type(key.substr(kTokenizer.size()));
  const std::size_t dot = key.find('.');
  if (dot == std::string::npos) return ValueType::text;
  // Each architecture has this one.
  const std::string blocks = key.substr(0, dot) + ".block_count";
  return std::ranges::find(entries, blocks, &Entry::key) == entries.end()
             ? ValueType::text
             : hyperparameter_type(std::string_view(key).substr(dot + 1));
}

void apply(std::vector<Entry>& entries, const AttributeChanges& changes) {
  if (changes.set.empty() && changes.erase.empty()) refuse("there is nothing to change");
  std::set<std::string_view> seen;
  const auto require_editable = [&](const std::string& key) {
    if (!seen.insert(key).second) refuse(fmt::format("the attribute \"{}\" is to be changed twice", key));
    if (key == kAlignmentKey || key.starts_with("split."))
      refuse(fmt::format("{} says where the tensors are; converting changes it", key));
  };
  for (const std::string& key : changes.erase) {
    require_editable(key);
    if (std::erase_if(entries, [&](const Entry& entry) { return entry.key == key; }) == 0)
      refuse(fmt::format("there is no attribute \"{}\"", key));
  }
  for (const auto& [key, text] : changes.set) {
    require_editable(key);
    if (key.empty() || key.size() > kMaxKeyBytes || !is_utf8(key))
      refuse(fmt::format("the name of an attribute is UTF-8 of 1 to {} bytes", kMaxKeyBytes));
    const auto found = std::ranges::find(entries, key, &Entry::key);
    if (found == entries.end()) {
      const ValueType type = type_of_new(key, entries);
      entries.push_back({key, type, 0, 0, encoded(key, type, text)});
    } else {
      found->replaced = encoded(key, found->type, text);
    }
  }
}

// The file as it would be: another header before the data, which begin at `old_data` in the file. Requires: the header
// outlives this.
class Edited final : public Source {
 public:
  Edited(SourcePtr file, std::span<const std::byte> header, std::uint64_t old_data)
      : Source(file->name(), header.size() + (file->size() - old_data)),
        file_(std::move(file)),
        header_(header),
        old_data_(old_data) {}

  bool mapped() const override { return false; }
  std::span<const std::byte> bytes() const override { return {}; }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (offset < header_.size()) {
      const auto part = out.first(std::min<std::size_t>(out.size(), header_.size() - static_cast<std::size_t>(offset)));
      std::copy_n(header_.begin() + static_cast<std::ptrdiff_t>(offset), part.size(), part.begin());
      out = out.subspan(part.size());
      offset += part.size();
    }
    if (!out.empty()) file_->read(old_data_ + (offset - header_.size()), out);
  }

 private:
  SourcePtr file_;
  std::span<const std::byte> header_;
  std::uint64_t old_data_;
};

// The model with that header, tensors and all: what their shapes must be follows from metadata. Of a split file, whose
// parts may have other names where they are, the metadata alone. Throws bad_argument where the file could not be
// opened. Requires: the header goes as far as the data.
Model read_edited(std::span<const std::byte> header, const Input& input, std::uint64_t old_data, bool split) {
  const auto edited = std::make_shared<Edited>(input.source, header, old_data);
  try {
    if (!split) return read({input.path, edited}, {});
    const SourceRange range(*edited);
    HeaderReader reader(range);
    Metadata metadata(reader);
    Model model;
    metadata.move_into(model, {}, input.path.string());
    return model;
  } catch (const Error& error) {
    throw Error(ErrorKind::bad_argument, fmt::format("the file could not be opened afterwards: {}", error.message()),
                input.path.string());
  }
}

// poise.config counts where it says what another key says, too: then llama.cpp would see a change, and Poise would not.
// `edited`: the model with the header.
void require_seen(const Model& edited, std::span<const std::byte> header, const Input& input,
                  const AttributeChanges& changes) {
  const auto of_architecture = [](const std::string& key) {
    return key.find('.') != std::string::npos && !key.starts_with("general.") && !key.starts_with("tokenizer.") &&
           !key.starts_with("poise.");
  };
  const bool changed =
      std::ranges::any_of(changes.erase, of_architecture) ||
      std::ranges::any_of(changes.set, [&](const auto& change) { return of_architecture(change.first); });
  std::vector<std::byte> old_header(
      static_cast<std::size_t>(std::min<std::uint64_t>(header.size(), input.source->size())));
  input.source->read(0, old_header);
  if (!changed || std::ranges::equal(old_header, header)) return;
  const Model before = read(input, {});
  if (!(edited.config_json == before.config_json) || !(edited.attributes == before.attributes)) return;
  refuse(fmt::format(
      "{} says the same and counts for Poise, so that only llama.cpp would see the change; delete it in the same edit",
      kConfigKey));
}

void copy(const Source& source, std::uint64_t begin, std::uint64_t end, ByteWriter& out) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(end - begin));
  source.read(begin, bytes);
  out.append(bytes);
}

// Writes the bytes that differ from those the file begins with.
EditReport replace_beginning(const Input& input, std::span<const std::byte> bytes) {
  std::vector<std::byte> old_bytes(bytes.size());
  input.source->read(0, old_bytes);
  const auto first = static_cast<std::size_t>(std::ranges::mismatch(old_bytes, bytes).in1 - old_bytes.begin());
  std::size_t last = bytes.size();
  while (last > first && old_bytes[last - 1] == bytes[last - 1]) --last;
  if (last > first) replace_in_place(input.path, first, bytes.subspan(first, last - first));
  return {EditReport::Way::in_place, last - first};
}

}  // namespace

EditReport edit(const Input& input, const AttributeChanges& changes) {
  const Source& source = *input.source;
  Header header = read_header(source);
  if (header.version == 1 || header.big_endian) {
    throw Error(ErrorKind::unsupported,
                "only little-endian files of version 2 and 3 are edited; converting writes version 3",
                input.path.string());
  }
  apply(header.entries, changes);
  const bool has_config = std::ranges::find(header.entries, kConfigKey, &Entry::key) != header.entries.end();
  ByteWriter out;
  out.text(kMagic);
  out.u32(header.version);
  out.u64(header.tensors);
  out.u64(header.entries.size());
  for (const Entry& entry : header.entries) {
    if (entry.replaced.empty()) {
      copy(source, entry.begin, entry.end, out);
    } else {
      out.text(entry.replaced);
    }
  }
  copy(source, header.metadata_end, header.end, out);
  const std::uint64_t data = std::min(*checked_align(header.end, header.alignment), source.size());
  if (header.tensors > 0)
    out.zeros(static_cast<std::size_t>(*checked_align(out.size(), header.alignment) - out.size()));
  const Model edited = read_edited(out.bytes(), input, data, header.split);
  if (!header.split && has_config) require_seen(edited, out.bytes(), input, changes);
  if (out.size() == data) return replace_beginning(input, out.bytes());
  FileOutput output(input.path, true);
  output.main().write(out.bytes());
  output.main().copy(source, data, source.size() - data);
  const std::uint64_t bytes = output.bytes();
  output.commit();
  return {EditReport::Way::rewritten, bytes};
}

}  // namespace poise::gguf
