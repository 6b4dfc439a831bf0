#include "formats/gguf/gguf.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <span>
#include <type_traits>
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
constexpr std::size_t kMostShown = 100;  // bytes of a value in a message

[[noreturn]] void refuse(const std::string& problem) { throw Error(ErrorKind::bad_argument, problem); }

[[noreturn]] void refuse_value(const std::string& key, std::string_view expected, const Value& found) {
  refuse(fmt::format("{}: expected {}, found {}", key, expected, shorten(to_json(found), kMostShown)));
}

// Holds an entry of the metadata: a range of the file's bytes, or new bytes.
struct Entry {
  std::string key;
  EntryType type = {};
  std::uint64_t begin = 0;  // the offset in the file; the entry begins with its key
  std::uint64_t end = 0;
  std::string replaced = {};  // new bytes of key, type and value; empty: those in the file
};

struct Header {
  std::uint32_t version = 0;
  bool big_endian = false;
  std::vector<Entry> entries;
  std::uint64_t tensors = 0;
  std::uint64_t metadata_end = 0;
  std::uint64_t end = 0;
  std::uint64_t alignment = kUsualAlignment;
  std::uint64_t split_number = 0;  // the number of the file in a split model, counted from 0
  std::uint64_t split_count = 0;
  std::optional<std::uint64_t> tokens;  // the number of tokens in the vocabulary
};

Header read_header(const Source& source) {
  HeaderReader reader(source);
  Header header;
  header.version = reader.version();
  header.big_endian = reader.is_big_endian();
  reader.read_metadata([&](std::string_view key, MetadataValue& value) {
    const std::uint64_t begin = value.position() - key.size() - sizeof(std::uint64_t);
    if (!header.entries.empty()) header.entries.back().end = begin;
    header.entries.push_back({std::string(key), {value.type(), value.item_type()}, begin});
    if (key == kAlignmentKey) header.alignment = value.read_unsigned().value_or(kUsualAlignment);
    if (key == kTokens && value.type() == ValueType::array) header.tokens = value.count();
    if (key == kSplitNumberKey) header.split_number = value.read_unsigned().value_or(0);
    if (key == kSplitCountKey) header.split_count = value.read_unsigned().value_or(0);
  });
  header.metadata_end = reader.end();
  if (!header.entries.empty()) header.entries.back().end = header.metadata_end;
  reader.read_tensors([&](const TensorInfo&) { ++header.tensors; });
  header.end = reader.end();
  return header;
}

template <typename Number>
Number parse_number(const std::string& key, const std::string& text, ValueType type) {
  Number number{};
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || stop != text.data() + text.size())
    refuse_value(key, fmt::format("a number of type {}", to_string(type)), text);
  return number;
}

// Parses a text as a value of a type other than array.
Value parse_text(const std::string& key, ValueType type, const std::string& text) {
  if (is_integer(type)) {
    return visit_integer(*dtype_from_name(to_string(type)), [&]<typename Number>(Number) {
      using Wide = std::conditional_t<std::is_signed_v<Number>, std::int64_t, std::uint64_t>;
      return Value(static_cast<Wide>(parse_number<Number>(key, text, type)));
    });
  }
  switch (type) {
    case ValueType::f32: return convert_by_spelling(parse_number<float>(key, text, type));
    case ValueType::f64: return parse_number<double>(key, text, type);
    case ValueType::boolean:
      if (text != "true" && text != "false") refuse_value(key, "true or false", text);
      return text == "true";
    default: return text;
  }
}

// Converts a number to a floating-point type. A number too large for float32 becomes a double. Other values stay as
// they are.
Value convert_to_floating(const Value& value, ValueType type) {
  const auto given = convert_to_double(&value);
  if (!given) return value;
  const bool fits = !(std::abs(*given) > static_cast<double>(std::numeric_limits<float>::max()));
  return type == ValueType::f32 && fits ? convert_by_spelling(static_cast<float>(*given)) : *given;
}

bool is_floating(ValueType type) { return type == ValueType::f32 || type == ValueType::f64; }

// Returns the items of a list, which may be given as JSON text.
Value::Array parse_list_items(const std::string& key, const EntryType& type, const Value& given) {
  if (type.items == ValueType::array) refuse(fmt::format("{} is a list of lists, which cannot be set", key));
  const auto* text = given.get_if<std::string>();
  const Value list = text == nullptr ? given : parse_json_list(*text).value_or(given);
  const auto* items = list.get_if<Value::Array>();
  if (items == nullptr) {
    refuse_value(key,
                 fmt::format("a list of type {} as JSON, such as {}", to_string(type),
                             type.items == ValueType::text ? R"(["a", "b"])" : "[1, 2]"),
                 given);
  }
  Value::Array result;
  for (const Value& item : *items)
    result.push_back(is_floating(type.items) ? convert_to_floating(item, type.items) : item);
  return result;
}

}  // namespace

Value convert_value(const std::string& key, const EntryType& type, const Value& given) {
  const auto* text = given.get_if<std::string>();
  Value value = type.type == ValueType::array ? Value(parse_list_items(key, type, given))
                : text != nullptr             ? parse_text(key, type.type, *text)
                : is_floating(type.type)      ? convert_to_floating(given, type.type)
                                              : given;
  if (!KeyValues::has_entry_type(value, type))
    refuse_value(key, fmt::format("a value of type {}", to_string(type)), given);
  return value;
}

namespace {

// Returns key, type and value as bytes. Without a type, uses KeyValues::choose_type().
std::string encode_entry(const std::string& key, const std::optional<EntryType>& type, const Value& given) {
  const EntryType entry = type ? *type : KeyValues::choose_type(given);
  KeyValues out;
  out.add_value(key, convert_value(key, entry, given), entry);
  const std::span<const std::byte> bytes = out.bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Returns the first word of a key if the file has a key WORD.block_count, because the word is then the file's
// architecture. Returns an empty text for another word.
std::string_view find_key_architecture(std::string_view key, const std::vector<Entry>& entries) {
  const std::string_view word = key.substr(0, key.find('.'));
  const bool is_one = std::ranges::find(entries, fmt::format("{}.block_count", word), &Entry::key) != entries.end();
  return is_one ? word : std::string_view();
}

// Applies the changes to the entries, and returns the new keys.
std::vector<std::string> apply_to_entries(std::vector<Entry>& entries, const AttributeChanges& changes) {
  const auto require_editable = [](const std::string& key) {
    if (is_placement_key(key))
      refuse(fmt::format("{} cannot be edited, because it places the tensors; convert the file to change it", key));
  };
  const auto erase = [&](const std::string& key) {
    require_editable(key);
    return std::erase_if(entries, [&](const Entry& entry) { return entry.key == key; }) > 0;
  };
  const auto set = [&](const std::string& key, const Value& value) {
    require_editable(key);
    if (key.empty() || key.size() > kMaxKeyBytes || !is_utf8(key))
      refuse(fmt::format("an attribute's name: expected UTF-8 of 1 to {} bytes, found {} bytes{}", kMaxKeyBytes,
                         key.size(), is_utf8(key) ? "" : " that are not UTF-8"));
    const auto found = std::ranges::find(entries, key, &Entry::key);
    const bool is_new = found == entries.end();
    if (is_new) {
      entries.push_back(
          {key, {}, 0, 0, encode_entry(key, find_given_type(key, find_key_architecture(key, entries), value), value)});
    } else {
      found->replaced = encode_entry(key, found->type, value);
    }
    return is_new;
  };
  return apply_changes(changes, erase, set);
}

// Returns a sentence if the id of a special token is outside the vocabulary, because readers ignore such an id. Returns
// an empty text for other keys and ids.
std::string find_id_problem(const std::string& key, const Value& value, std::uint64_t tokens) {
  if (!key.starts_with(kTokenizer) || !key.ends_with("_token_id")) return {};
  const auto* text = value.get_if<std::string>();
  const auto* number = value.get_if<std::uint64_t>();
  const std::string given = text == nullptr ? to_json(value) : *text;
  std::uint64_t id = number == nullptr ? tokens : *number;
  if (text != nullptr) std::from_chars(text->data(), text->data() + text->size(), id);
  return id < tokens ? std::string()
                     : fmt::format("{} would be {}, but the vocabulary has {} tokens", key, given, tokens);
}

std::string find_id_problem(const AttributeChanges& changes, const std::optional<std::uint64_t>& tokens) {
  if (!tokens) return {};
  for (const auto& [key, value] : changes.set) {
    if (const std::string problem = find_id_problem(key, value, *tokens); !problem.empty())
      return fmt::format("nothing is changed: {}", problem);
  }
  return {};
}

void copy_bytes(const Source& source, std::uint64_t begin, std::uint64_t end, ByteWriter& out) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(end - begin));
  source.read(begin, bytes);
  out.append(bytes);
}

void require_first_part(const Header& header, const Input& input) {
  if (header.split_number == 0) return;
  const auto prefix = find_split_prefix(input.path.filename().string(), header.split_number, header.split_count);
  throw Error(ErrorKind::bad_argument,
              fmt::format("this is part {} of {}, and programs read attributes only from part 1: edit {}",
                          header.split_number + 1, header.split_count,
                          make_split_name(prefix.value_or("..."), 0, header.split_count)),
              input.path.string());
}

class EditedHeader final : public EditedBeginning {
 public:
  // `has_config` is true if the header has poise.config. `problem` explains why a change has no effect; it is empty if
  // the caller found no such change.
  EditedHeader(const Input& input, const ByteWriter& header, std::uint64_t old_data, const AttributeChanges& changes,
               std::vector<std::string> added, bool has_config, std::string problem)
      : EditedBeginning(input, header.bytes(), old_data, std::move(added)), problem_(std::move(problem)) {
    const auto is_hyperparameter_key = [](const std::string& key) {
      return key.find('.') != std::string::npos && !key.starts_with("general.") && !key.starts_with("tokenizer.") &&
             !key.starts_with("poise.");
    };
    may_be_covered_ =
        has_config &&
        (std::ranges::any_of(changes.erase, is_hyperparameter_key) ||
         std::ranges::any_of(changes.set, [&](const auto& change) { return is_hyperparameter_key(change.first); }));
  }

  // Throws bad_argument for a change without effect, and for one that only llama.cpp would see, because Poise prefers
  // the value in poise.config.
  void require_effect(const Model& before, const Model& after) const override {
    if (!problem_.empty())
      throw Error(ErrorKind::bad_argument, problem_, path().string()).with({.kind = Remedy::Kind::force});
    if (!may_be_covered_ || !changes_header()) return;
    if (!(after.config_json == before.config_json) || !(after.attributes == before.attributes)) return;
    throw Error(ErrorKind::bad_argument,
                fmt::format("{} has the old value, which takes precedence for Poise, so only llama.cpp would see the "
                            "change; delete {} in the same edit",
                            kConfigKey, kConfigKey),
                path().string())
        .with({.kind = Remedy::Kind::force});
  }

 private:
  std::string problem_;
  bool may_be_covered_ = false;  // true if poise.config may also have the value of a changed key
};

// Throws bad_argument for keys that the writer derives from the model.
void require_settable_key(const Model& model, std::string_view key) {
  if (is_placement_key(key))
    refuse(fmt::format("{} cannot be set: it follows from shard size and alignment, so choose those instead", key));
  if (key == kArchitectureKey) refuse(fmt::format("{} follows from model_type; set that instead", key));
  if (key == "general.file_type" || key == "general.quantization_version")
    refuse(fmt::format("{} follows from the types of the tensors, so it cannot be set", key));
  if (model.vocabulary && is_vocabulary_key(key))
    refuse(fmt::format("{} follows from the model's vocabulary, so it cannot be set; change the files of the tokenizer",
                       key));
}

// Returns the number of tokens of a model's vocabulary; std::nullopt without one.
std::optional<std::uint64_t> count_tokens(const Model& model) {
  if (model.vocabulary) return model.vocabulary->size();
  const auto* tokens = model.attributes.get_if<Value::Array>(kTokens);
  return tokens == nullptr ? std::nullopt : std::optional<std::uint64_t>(tokens->size());
}

}  // namespace

Value make_attribute(const Model& model, const std::string& key, const Value& given) {
  require_settable_key(model, key);
  const Architecture* architecture = find_family_architecture(model.card.model_type);
  const auto type = find_given_type(
      key, architecture == nullptr ? std::string_view(model.card.model_type) : architecture->name, given);
  Value value = type ? convert_value(key, *type, given) : given;
  if (const auto tokens = count_tokens(model)) {
    if (const std::string problem = find_id_problem(key, value, *tokens); !problem.empty()) refuse(problem);
  }
  return value;
}

std::unique_ptr<PreparedEdit> edit(const Input& input, const AttributeChanges& changes) {
  const Source& source = *input.source;
  Header header = read_header(source);
  if (header.version == 1 || header.big_endian) {
    throw Error(ErrorKind::unsupported,
                fmt::format("the file is {} and of version {}, but only little-endian files of version 2 and 3 can be "
                            "edited; convert the file first, which writes version 3",
                            header.big_endian ? "big-endian" : "little-endian", header.version),
                input.path.string());
  }
  require_first_part(header, input);
  std::vector<std::string> added = apply_to_entries(header.entries, changes);
  const bool has_config = std::ranges::find(header.entries, kConfigKey, &Entry::key) != header.entries.end();
  ByteWriter out;
  append_file_start(out, header.version, header.tensors, header.entries.size());
  for (const Entry& entry : header.entries) {
    if (entry.replaced.empty()) {
      copy_bytes(source, entry.begin, entry.end, out);
    } else {
      out.append_text(entry.replaced);
    }
  }
  copy_bytes(source, header.metadata_end, header.end, out);
  const std::uint64_t data = std::min(*checked_align(header.end, header.alignment), source.size());
  if (header.tensors > 0)
    out.append_zeros(static_cast<std::size_t>(*checked_align(out.size(), header.alignment) - out.size()));
  return std::make_unique<EditedHeader>(input, out, data, changes, std::move(added), has_config,
                                        find_id_problem(changes, header.tokens));
}

}  // namespace poise::gguf
