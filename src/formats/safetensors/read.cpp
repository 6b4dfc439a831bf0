// Reads the JSON header of a safetensors file, and checks that the tensors fill the rest exactly. safetensors.hpp has
// the layout. Source: README.md of github.com/huggingface/safetensors, "Format", and tensor.rs in the same repository.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/byte_reader.hpp"
#include "bytes/checked.hpp"
#include "formats/safetensors/safetensors.hpp"
#include "formats/spellings.hpp"
#include "io/in_place.hpp"
#include "model/limits.hpp"
#include "syntax/json.hpp"

namespace poise {
namespace {

using namespace safetensors;

// Holds the names of tensors in blocks of memory, and frees a block when all of its names have been released.
class Names {
 public:
  struct Name {
    std::uint32_t piece = 0;
    std::uint32_t begin = 0;
    std::uint32_t length = 0;
  };

  Name add(std::string_view text) {
    if (pieces_.empty() || pieces_.back().text.capacity() - pieces_.back().text.size() < text.size()) {
      pieces_.emplace_back().text.reserve(std::max(kPieceBytes, text.size()));
    }
    Piece& piece = pieces_.back();
    const Name name{static_cast<std::uint32_t>(pieces_.size() - 1), static_cast<std::uint32_t>(piece.text.size()),
                    static_cast<std::uint32_t>(text.size())};
    piece.text += text;
    ++piece.names;
    return name;
  }
  std::string_view get_text(const Name& name) const {
    return std::string_view(pieces_[name.piece].text).substr(name.begin, name.length);
  }
  // Returns the text of a name, and may free its block. Call it once for each name.
  std::string release_text(const Name& name) {
    std::string text(get_text(name));
    if (Piece& piece = pieces_[name.piece]; --piece.names == 0) piece.text = std::string();
    return text;
  }

 private:
  static constexpr std::size_t kPieceBytes = 256 << 10;  // large enough that free() returns the memory to the system
  struct Piece {
    std::string text;
    std::size_t names = 0;
  };
  std::vector<Piece> pieces_;
};

// Holds the header's description of a tensor. Headers have at most 100 MB, so positions fit 32 bits.
struct Entry {
  Names::Name name;
  std::uint32_t position = 0;  // the offset of the description in the file
  std::uint64_t begin = 0;     // the offset of the tensor's data, counted from the header's end
  Shape shape;
  std::uint8_t type = 0;  // the row of kElementTypes

  const ElementType& element_type() const { return kElementTypes[type]; }
  // Requires: the header has been checked.
  std::uint64_t end() const { return begin + count_bytes(element_type().bits(), element_count(shape).value()).value(); }
};

// Holds entries in blocks. consume_each() frees each block after its last entry.
class Entries {
 public:
  void add(Entry entry) {
    if (size_ % kBlock == 0) blocks_.emplace_back().reserve(kBlock);
    blocks_.back().push_back(std::move(entry));
    ++size_;
  }
  std::size_t size() const { return size_; }

  template <typename Visit>
  void for_each(const Visit& visit) const {
    for (const auto& block : blocks_) {
      for (const Entry& entry : block) visit(entry);
    }
  }
  template <typename UseEntry>
  void consume_each(const UseEntry& use_entry) {
    for (auto& block : blocks_) {
      for (Entry& entry : std::exchange(block, {})) use_entry(entry);
    }
    blocks_.clear();
    size_ = 0;
  }

  template <typename Before>
  void stable_sort(const Before& before) {
    const Entry* last = nullptr;
    bool sorted = true;
    for_each([&](const Entry& entry) {
      sorted = sorted && (last == nullptr || !before(entry, *last));
      last = &entry;
    });
    if (sorted) return;
    std::vector<Entry> all;
    all.reserve(size_);
    consume_each([&](Entry& entry) { all.push_back(std::move(entry)); });
    std::ranges::stable_sort(all, before);
    for (Entry& entry : all) add(std::move(entry));
  }

 private:
  static constexpr std::size_t kBlock = 4096;
  std::vector<std::vector<Entry>> blocks_;
  std::size_t size_ = 0;
};

class HeaderParser {
 public:
  HeaderParser(std::string path, Names& names) : path_(std::move(path)), names_(names) {}

  // Parses the header, which begins at `offset`.
  void parse(JsonText text, std::uint64_t offset) {
    const std::size_t first = text.text().find_first_not_of(kWhiteSpace);
    if (first == std::string_view::npos || text.text()[first] != '{')
      fail("JSON", "expected { as the first byte that is not white space");
    walk_json_object(text, path_, offset, [&](std::string_view name, JsonValue& value) {
      position_ = value.position();
      text.release_before(position_ - offset);
      if (name != kMetadata) {
        if (entries_.size() == kMaxTensors) fail(name, fmt::format("more than {} tensors", kMaxTensors));
        entries_.add(parse_entry(name, value));
      } else if (std::exchange(has_metadata_, true)) {
        fail_repeated_key(name, path_, position_);
      } else {
        metadata_ = check_metadata(value.read_tree());
      }
    });
  }

  Entries release_entries() { return std::move(entries_); }
  Attributes release_metadata() { return std::move(metadata_); }

 private:
  Entry parse_entry(std::string_view name, JsonValue& value) {
    Entry entry;
    entry.position = static_cast<std::uint32_t>(position_);
    bool has_dtype = false;
    bool has_shape = false;
    Shape offsets;
    const bool is_object = value.visit_members([&](std::string_view key, JsonValue& item) {
      if (key == "dtype") {
        has_dtype = true;
        entry.type = static_cast<std::uint8_t>(&parse_type(name, item) - kElementTypes.data());
      } else if (key == "shape") {
        has_shape = true;
        entry.shape = parse_numbers(name, item, key, kMaxRank, fmt::format("a rank of more than {}", kMaxRank));
      } else if (key == "data_offsets") {
        offsets = parse_numbers(name, item, key, 2, "expected [begin, end]");
      } else {
        fail(name, fmt::format("unknown key \"{}\", expected \"dtype\", \"shape\" or \"data_offsets\"", key));
      }
    });
    if (!is_object) fail(name, "expected an object");
    if (!has_dtype) fail(name, "dtype: expected text");
    if (!has_shape) fail(name, "shape: expected an array");
    if (offsets.size() != 2) fail(name, "data_offsets: expected [begin, end]");
    entry.begin = offsets[0];
    check_size(name, entry, offsets[1]);
    entry.name = names_.add(name);
    return entry;
  }

  // Returns the value of `__metadata__`. Throws if it does not map texts to texts.
  Attributes check_metadata(Value value) const {
    const auto* map = value.get_if<Attributes>();
    if (map == nullptr) fail(kMetadata, "expected an object");
    for (const auto& [key, item] : *map) {
      if (item.get_if<std::string>() == nullptr) fail(kMetadata, fmt::format("the value of \"{}\" is not text", key));
    }
    return std::move(value).take<Attributes>();
  }

  [[noreturn]] void fail(std::string_view name, std::string_view problem) const {
    throw Error(ErrorKind::invalid_file, fmt::format("safetensors: header: {}: {}", name, problem), path_, position_);
  }

  const ElementType& parse_type(std::string_view name, JsonValue& value) const {
    const auto spelling = value.read_text();
    if (!spelling) fail(name, "dtype: expected text");
    const ElementType* type = find_type(*spelling);
    if (type == nullptr)
      throw Error(ErrorKind::unsupported,
                  fmt::format("safetensors: header: {}: dtype \"{}\" is not known", name, *spelling), path_, position_);
    return *type;
  }

  Shape parse_numbers(std::string_view name, JsonValue& value, std::string_view key, std::size_t most,
                      std::string_view if_more) const {
    Shape result;
    const bool is_array = value.visit_items([&](JsonValue& item) {
      const auto number = item.read_unsigned();
      if (!number) fail(name, fmt::format("{}: expected non-negative integers", key));
      if (result.size() == most) fail(name, fmt::format("{}: {}", key, if_more));
      result.push_back(*number);
    });
    if (!is_array) fail(name, fmt::format("{}: expected an array", key));
    return result;
  }

  void check_size(std::string_view name, const Entry& entry, std::uint64_t end) const {
    if (entry.begin > end) fail(name, fmt::format("data_offsets: begin {} is after end {}", entry.begin, end));
    const auto elements = element_count(entry.shape);
    const ElementType& type = entry.element_type();
    const auto bytes = elements ? count_bytes(type.bits(), *elements) : std::nullopt;
    if (!bytes) fail(name, fmt::format("shape {} overflows 64 bits", to_string(entry.shape)));
    const std::string_view shown = type.is_known() ? to_string(type.dtype) : type.name;
    if (*bytes != end - entry.begin) {
      fail(name, fmt::format("shape {} of {} needs {} bytes, data_offsets hold {}", to_string(entry.shape), shown,
                             *bytes, end - entry.begin));
    }
    if (!fills_whole_bytes(type.bits(), *elements))
      fail(name, fmt::format("shape {} of {} does not fill whole bytes", to_string(entry.shape), shown));
  }

  std::string path_;
  Names& names_;
  std::uint64_t position_ = kSizeBytes;  // the offset of the member that is being parsed
  Entries entries_;
  bool has_metadata_ = false;
  Attributes metadata_;
};

// Sorts the entries by offset. Throws invalid_file unless they fill the file behind the header exactly.
void require_gapless(Entries& entries, const Names& names, const ByteReader& reader, std::uint64_t header_end) {
  const auto fail = [&](const Entry& entry, std::string_view problem) {
    throw Error(ErrorKind::invalid_file,
                fmt::format("safetensors: header: {}: {}", names.get_text(entry.name), problem), reader.path(),
                entry.position);
  };
  entries.stable_sort(
      [](const Entry& a, const Entry& b) { return a.begin != b.begin ? a.begin < b.begin : a.end() < b.end(); });
  std::uint64_t position = 0;
  entries.for_each([&](const Entry& entry) {
    if (entry.begin < position)
      fail(entry, fmt::format("overlaps the tensor before it: begins at {}, expected {}", entry.begin, position));
    if (entry.begin > position) fail(entry, fmt::format("a hole of {} bytes before it", entry.begin - position));
    position = entry.end();
  });
  reader.require_end(saturating_add(header_end, position), "tensor");
}

}  // namespace

Attributes read_safetensors(const SourcePtr& source, FunctionRef<void(Tensor)> add_tensor) {
  require_not_interrupted(*source, "safetensors");
  ByteReader reader(*source, "safetensors");
  if (source->size() < kSizeBytes)
    reader.fail("header length",
                fmt::format("the file is cut off: it needs at least {} bytes, has {}", kSizeBytes, source->size()), 0);
  const std::uint64_t length = reader.read_u64("header length");
  if (length > kMaxHeaderBytes)
    reader.fail("header length", fmt::format("{} bytes, at most {} are allowed", length, kMaxHeaderBytes), 0);
  if (length > reader.remaining()) {
    reader.fail("header length",
                fmt::format("the file is cut off: it needs at least {} bytes, has {}", length + 8, source->size()), 0);
  }
  Names names;
  HeaderParser parser(source->name(), names);
  parser.parse(JsonText(*source, kSizeBytes, length), kSizeBytes);
  const std::uint64_t header_end = kSizeBytes + length;
  Entries entries = parser.release_entries();
  require_gapless(entries, names, reader, header_end);
  entries.consume_each([&](Entry& entry) {
    const std::uint64_t size = entry.end() - entry.begin;
    try {
      const ElementType& type = entry.element_type();
      Tensor tensor = make_dense(names.release_text(entry.name), std::move(entry.shape), type.dtype,
                                 make_source_blob(source, header_end + entry.begin, size));
      if (!type.is_known()) tensor.parts[0].spelling = std::string(type.name);
      add_tensor(std::move(tensor));
    } catch (const Error& error) {
      if (error.offset()) throw;
      throw Error(error.kind(), error.message(), source->name(), entry.position);
    }
  });
  return parser.release_metadata();
}

std::vector<MetadataKey> list_safetensors_keys(const SourcePtr& source) {
  std::vector<MetadataKey> keys;
  for (const auto& [key, value] : read_safetensors(source, [](const Tensor&) {}))
    keys.push_back({key, describe_value_type(value), value});
  return keys;
}

}  // namespace poise
