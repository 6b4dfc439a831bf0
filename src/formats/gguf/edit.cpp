#include "formats/gguf/gguf.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/byte_writer.hpp"
#include "bytes/checked.hpp"
#include "bytes/short_text.hpp"
#include "bytes/utf8.hpp"
#include "formats/edited_beginning.hpp"
#include "formats/gguf/header.hpp"
#include "formats/gguf/key_values.hpp"
#include "formats/gguf/vocabulary.hpp"
#include "formats/metadata.hpp"
#include "numeric/float_formats.hpp"
#include "numeric/integers.hpp"
#include "syntax/element_value.hpp"

namespace poise::gguf {
namespace {

constexpr std::string_view kTokens = "tokenizer.ggml.tokens";
constexpr std::string_view kGeneral = "general.";
constexpr std::size_t kMostShown = 100;  // bytes of a value in a message

[[noreturn]] void refuse(const std::string& problem) { throw Error(ErrorKind::bad_argument, problem); }

// Is an entry in the file.
struct Entry {
  std::string key;
  EntryType type = {};
  std::uint64_t begin = 0;  // in the file, with its key
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
  std::uint64_t split_number = 0;  // of a split model: the file's number
  std::uint64_t split_count = 0;
  std::optional<std::uint64_t> tokens;  // of the vocabulary
};

Header read_header(const Source& source) {
  HeaderReader reader(source);
  Header header;
  header.version = reader.version();
  header.big_endian = reader.is_big_endian();
  reader.metadata([&](std::string_view key, MetadataValue& value) {
    const std::uint64_t begin = value.position() - key.size() - sizeof(std::uint64_t);
    if (!header.entries.empty()) header.entries.back().end = begin;
    header.entries.push_back({std::string(key), {value.type(), value.item_type()}, begin});
    if (key == kAlignmentKey) header.alignment = value.unsigned_integer().value_or(kUsualAlignment);
    if (key == kTokens && value.type() == ValueType::array) header.tokens = value.count();
    if (key == "split.no") header.split_number = value.unsigned_integer().value_or(0);
    if (key == "split.count") header.split_count = value.unsigned_integer().value_or(0);
  });
  header.metadata_end = reader.end();
  if (!header.entries.empty()) header.entries.back().end = header.metadata_end;
  reader.tensors([&](const TensorInfo&) { ++header.tensors; });
  header.end = reader.end();
  return header;
}

template <typename Number>
Number parse_number(const std::string& key, const std::string& text, std::string_view type) {
  Number number{};
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || stop != text.data() + text.size())
    refuse(fmt::format("{} is {}, and \"{}\" is not such a number", key, type, text));
  return number;
}

template <typename Number>
void append(ByteWriter& out, Number number) {
  std::array<std::byte, sizeof number> bytes;
  store_le(bytes.data(), number);
  out.append(bytes);
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string encode_text(const std::string& key, ValueType type, const std::string& text) {
  ByteWriter out;
  KeyValues::append_text(out, key);
  out.u32(static_cast<std::uint32_t>(type));
  if (is_integer(type)) {
    visit_integer(*dtype_from_name(to_string(type)),
                  [&]<typename Number>(Number) { append(out, parse_number<Number>(key, text, to_string(type))); });
    return text_of(out.bytes());
  }
  switch (type) {
    case ValueType::f32: append(out, parse_number<float>(key, text, "f32")); break;
    case ValueType::f64: append(out, parse_number<double>(key, text, "f64")); break;
    case ValueType::boolean:
      if (text != "true" && text != "false")
        refuse(fmt::format("{} is a boolean, and \"{}\" is neither true nor false", key, text));
      out.u8(text == "true" ? 1 : 0);
      break;
    default: KeyValues::append_text(out, text);
  }
  return text_of(out.bytes());
}

// Converts integers, where floating-point numbers are expected, to the nearest float32.
Value to_floating(const Value& value, ValueType type) {
  const auto given = number(&value);
  if (!given) return value;
  const bool fits = !(std::abs(*given) > static_cast<double>(std::numeric_limits<float>::max()));
  return type == ValueType::f32 && fits ? shortest(static_cast<float>(*given)) : *given;
}

bool is_floating(ValueType type) { return type == ValueType::f32 || type == ValueType::f64; }

// Returns the items of a list that is given as one, or as JSON.
Value::Array make_items(const std::string& key, const EntryType& type, const Value& given) {
  const auto* text = given.get_if<std::string>();
  const Value list = text == nullptr ? given : parse_json_list(*text).value_or(given);
  const auto* items = list.get_if<Value::Array>();
  if (items == nullptr) {
    refuse(fmt::format("{} is {}, and {} is not such a list; a list is JSON, such as {}", key, to_string(type),
                       text == nullptr ? to_json(given) : fmt::format("\"{}\"", shorten(*text, kMostShown)),
                       type.items == ValueType::text ? R"(["a", "b"])" : "[1, 2]"));
  }
  Value::Array result;
  for (const Value& item : *items) result.push_back(is_floating(type.items) ? to_floating(item, type.items) : item);
  return result;
}

// Returns key, type and value as bytes. Without a type, uses the usual one of the value.
std::string encode(const std::string& key, const std::optional<EntryType>& type, const Value& given) {
  const bool is_list = type && type->type == ValueType::array;
  if (is_list && type->items == ValueType::array)
    refuse(fmt::format("{} is a list of lists, which is not edited", key));
  if (const auto* text = given.get_if<std::string>(); text != nullptr && !is_list)
    return encode_text(key, type ? type->type : ValueType::text, *text);
  const Value value = is_list                           ? Value(make_items(key, *type, given))
                      : type && is_floating(type->type) ? to_floating(given, type->type)
                                                        : given;
  const EntryType entry = type ? *type : KeyValues::choose_type(value);
  if (!KeyValues::is_one(value, entry)) {
    refuse(fmt::format("{} is {}, and {} is not such a value", key, to_string(entry),
                       shorten(to_json(given), kMostShown)));
  }
  KeyValues out;
  out.value(key, value, entry);
  return text_of(out.bytes());
}

// Returns the type of llama.cpp's own keys; std::nullopt for others.
std::optional<EntryType> find_new_type(const std::string& key, const std::vector<Entry>& entries) {
  if (key.starts_with(kGeneral)) return find_general_type(key.substr(kGeneral.size()));
  if (key.starts_with(kTokenizer)) return find_vocabulary_type(key.substr(kTokenizer.size()));
  const std::size_t dot = key.find('.');
  if (dot == std::string::npos) return std::nullopt;
  // Each architecture has this key.
  if (std::ranges::find(entries, key.substr(0, dot) + ".block_count", &Entry::key) == entries.end())
    return std::nullopt;
  return find_hyperparameter_type(std::string_view(key).substr(dot + 1));
}

// Returns the new keys.
std::vector<std::string> apply(std::vector<Entry>& entries, const AttributeChanges& changes) {
  const auto require_editable = [](const std::string& key) {
    if (key == kAlignmentKey || key.starts_with("split."))
      refuse(fmt::format("{} places the tensors and cannot be edited; converting changes it", key));
  };
  const auto erase = [&](const std::string& key) {
    require_editable(key);
    return std::erase_if(entries, [&](const Entry& entry) { return entry.key == key; }) > 0;
  };
  const auto set = [&](const std::string& key, const Value& value) {
    require_editable(key);
    if (key.empty() || key.size() > kMaxKeyBytes || !is_utf8(key))
      refuse(fmt::format("the name of an attribute is UTF-8 of 1 to {} bytes", kMaxKeyBytes));
    const auto found = std::ranges::find(entries, key, &Entry::key);
    const bool is_new = found == entries.end();
    if (is_new) {
      entries.push_back({key, {}, 0, 0, encode(key, find_new_type(key, entries), value)});
    } else {
      found->replaced = encode(key, found->type, value);
    }
    return is_new;
  };
  return apply_changes(changes, erase, set);
}

// Returns a sentence about a changed special token outside the vocabulary, which readers ignore; empty if there is
// none.
std::string find_id_problem(const AttributeChanges& changes, const std::optional<std::uint64_t>& tokens) {
  if (!tokens) return {};
  for (const auto& [key, value] : changes.set) {
    if (!key.starts_with(kTokenizer) || !key.ends_with("_token_id")) continue;
    const auto* text = value.get_if<std::string>();
    const auto* number = value.get_if<std::uint64_t>();
    const std::string given = text == nullptr ? to_json(value) : *text;
    std::uint64_t id = number == nullptr ? *tokens : *number;
    if (text != nullptr) std::from_chars(text->data(), text->data() + text->size(), id);
    if (id >= *tokens)
      return fmt::format("nothing is changed: {} would be {}, and there are {} tokens", key, given, *tokens);
  }
  return {};
}

void copy(const Source& source, std::uint64_t begin, std::uint64_t end, ByteWriter& out) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(end - begin));
  source.read(begin, bytes);
  out.append(bytes);
}

void require_first(const Header& header, const Input& input) {
  if (header.split_number == 0) return;
  const auto prefix = find_split_prefix(input.path.filename().string(), header.split_number, header.split_count);
  throw Error(
      ErrorKind::bad_argument,
      fmt::format("this is part {} of {}, whose attributes no program reads; those of the model are in part 1, {}",
                  header.split_number + 1, header.split_count,
                  make_split_name(prefix.value_or("..."), 0, header.split_count)),
      input.path.string());
}

class EditedHeader final : public EditedBeginning {
 public:
  // Takes `has_config`, true if the header has poise.config, and `problem`, why a change has no effect; it is empty if
  // all have.
  EditedHeader(const Input& input, const ByteWriter& header, std::uint64_t old_data, const AttributeChanges& changes,
               std::vector<std::string> added, bool has_config, std::string problem)
      : EditedBeginning(input, header.bytes(), old_data, std::move(added)), problem_(std::move(problem)) {
    const auto of_architecture = [](const std::string& key) {
      return key.find('.') != std::string::npos && !key.starts_with("general.") && !key.starts_with("tokenizer.") &&
             !key.starts_with("poise.");
    };
    may_be_covered_ =
        has_config &&
        (std::ranges::any_of(changes.erase, of_architecture) ||
         std::ranges::any_of(changes.set, [&](const auto& change) { return of_architecture(change.first); }));
  }

  // Throws for a change that only llama.cpp would see: poise.config takes precedence over other keys with the same
  // value.
  void require_effect(const Model& before, const Model& after) const override {
    if (!problem_.empty())
      throw Error(ErrorKind::bad_argument, problem_, path().string()).with({.kind = Remedy::Kind::force});
    if (!may_be_covered_ || !changes_header()) return;
    if (!(after.config_json == before.config_json) || !(after.attributes == before.attributes)) return;
    throw Error(ErrorKind::bad_argument,
                fmt::format("{} states the same, and Poise reads that one, so only llama.cpp would see the change; "
                            "delete it in the same edit",
                            kConfigKey),
                path().string())
        .with({.kind = Remedy::Kind::force});
  }

 private:
  std::string problem_;
  bool may_be_covered_ = false;  // poise.config may have the value of a changed key, too
};

}  // namespace

std::unique_ptr<PreparedEdit> edit(const Input& input, const AttributeChanges& changes) {
  const Source& source = *input.source;
  Header header = read_header(source);
  if (header.version == 1 || header.big_endian) {
    throw Error(ErrorKind::unsupported,
                "only little-endian files of version 2 and 3 are edited; converting writes version 3",
                input.path.string());
  }
  require_first(header, input);
  std::vector<std::string> added = apply(header.entries, changes);
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
  return std::make_unique<EditedHeader>(input, out, data, changes, std::move(added), has_config,
                                        find_id_problem(changes, header.tokens));
}

}  // namespace poise::gguf
