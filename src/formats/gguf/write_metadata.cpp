#include "formats/gguf/gguf.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/short_text.hpp"
#include "bytes/utf8.hpp"
#include "family/check.hpp"
#include "family/config_json.hpp"
#include "family/decoder_plan.hpp"
#include "family/families.hpp"
#include "formats/gguf/header.hpp"
#include "formats/gguf/vocabulary.hpp"
#include "formats/losses.hpp"
#include "formats/metadata.hpp"
#include "model/limits.hpp"
#include "tokenizer/gguf/form.hpp"
#include "tokenizer/tokens/token_types.hpp"

namespace poise::gguf {
namespace {

constexpr std::uint32_t kQuantizationVersion = 2;

// These keys of config.json follow from the tensors.
constexpr std::array<std::string_view, 2> kImplied = {"torch_dtype", "dtype"};

// Returns true if the values are equal, or are an integer of 0 or more and a double of the same value.
bool are_equal(const Value& a, const Value& b) {
  const auto convert_to_real = [](const Value& value) {
    const auto* integer = value.get_if<std::uint64_t>();
    return integer == nullptr ? value : Value(static_cast<double>(*integer));
  };
  return convert_to_real(a) == convert_to_real(b);
}

// Returns the hyperparameters in a config.json; std::nullopt if they are invalid.
std::optional<Config> read_hyperparameters(const Attributes& map, std::string model_type) {
  try {
    return read_config_attributes(map, model_type, {});
  } catch (const Error&) {
    return std::nullopt;
  }
}

// Returns true if a model with that configuration computes as this one does, or if Poise cannot run one of the two.
bool is_same_computation(const Attributes& map, const Model& model) {
  if (!model.config) return true;
  try {
    Model other;
    parse_config(other, map, {});
    if (!other.config) return true;
    const ConfigView view = make_config_view(model);
    const Family& family = find_family_or_llama(model);
    const Family& other_family = find_family_or_llama(other);
    const ConfigView other_view(*other.config, find_family_keys(other_family, other.config_json), view.experts);
    if (!check_config(view, family).empty() || !check_config(other_view, other_family).empty()) return true;
    return other_family.plan(other_view) == family.plan(view);
  } catch (const Error&) {
    return true;
  }
}

// Returns the keys of config.json that the entries do not hold.
Attributes list_other_keys(const Model& model, const Architecture& architecture,
                           const Hyperparameters& hyperparameters) {
  Entries entries;
  for (const auto& [key, value] : hyperparameters.entries) entries.add(key, value);
  Attributes said =
      extract_config(entries, *find_file_architecture(entries, architecture.name), model, hyperparameters.factors);
  Attributes rest;
  const auto add = [&](const std::string& key, const Value& value) {
    const Value* found = said.find(key);
    if (found != nullptr && are_equal(*found, value)) return;
    rest.set(key, value);
    said.set(key, value);
  };
  const Attributes config = whole_config(model);
  add("model_type", model.card.model_type);
  for (const auto& [key, value] : config) {
    if (model.config_json.find(key) != nullptr && std::ranges::find(kImplied, key) == kImplied.end()) add(key, value);
  }
  // If the keys that only the entries imply change the computation, sets all of them to null.
  if (!is_same_computation(said, model)) {
    std::vector<std::string> more;
    for (const auto& [key, value] : said) {
      if (config.find(key) == nullptr) more.push_back(key);
    }
    for (const std::string& key : more) add(key, Value());
  }
  // Adds the family's hyperparameters if they still differ.
  if (model.config && read_hyperparameters(said, model.card.model_type) != model.config) {
    for (const auto& [key, value] : config_to_attributes(*model.config, model.card.model_type)) add(key, value);
  }
  // A reader appends these keys to those of the entries. In sorted order the file is the same when written again.
  std::vector<Attributes::Entry> sorted(rest.begin(), rest.end());
  std::ranges::sort(sorted, {}, &Attributes::Entry::first);
  return Attributes::from_unique(std::move(sorted));
}

// Returns the keys of list_other_keys() as JSON text: "{}" if there are none, because a reader takes a file without
// poise.config for another program's and adds keys. Returns all keys if the architecture is null, and an empty text if
// there is no configuration.
std::string make_poise_config(const Model& model, const Architecture* architecture,
                              const Hyperparameters& hyperparameters) {
  if (architecture == nullptr)
    return model.config || !model.config_json.empty() ? make_config_text(model) : std::string();
  const Attributes rest = list_other_keys(model, *architecture, hyperparameters);
  require_finite(rest);
  return to_json(rest);
}

// Returns the number of rows of the embedding; 0 if it is unknown, or more than a vocabulary may have.
std::uint64_t count_embedding_rows(const Model& model, const Architecture* architecture) {
  if (architecture == nullptr) return 0;
  const auto name = find_poise_name(*architecture, kEmbedding);
  const Tensor* embedding = model.find(name ? std::string_view(name->name) : kEmbedding);
  const std::uint64_t rows = embedding == nullptr || embedding->shape.empty() ? 0 : embedding->shape.front();
  return rows > kMaxTokens ? 0 : rows;
}

bool has_tokens(const Model& model) {
  return model.vocabulary || model.attributes.find(fmt::format("{}model", kTokenizer)) != nullptr;
}

// Writes that there are no tokens, and the number of ids: llama.cpp does not load a file without tokens otherwise.
void write_no_vocabulary(std::uint64_t rows, const Architecture& architecture, KeyValues& out) {
  out.add_text(fmt::format("{}model", kTokenizer), kNoTokenizer);
  const std::string size = fmt::format("{}.vocab_size", architecture.name);
  if (rows > 0 && !out.has(size)) out.add_u32(size, rows);
}

std::vector<std::string> list_other_losses(const Model& model, const Architecture* architecture) {
  std::vector<std::string> losses;
  if (architecture == nullptr && !is_from_gguf(model) && !read_adapter(model, nullptr)) {
    const std::string& type = model.card.model_type;
    const bool is_known = find_family_architecture(type) != nullptr;
    losses.push_back(fmt::format("llama.cpp will not run the file: {}",
                                 is_known ? "the model has no configuration"
                                 : type.empty()
                                     ? "the model has no model_type"
                                     : fmt::format("Poise does not know llama.cpp's name for {} models", type)));
  }
  if (architecture != nullptr && !has_tokens(model))
    losses.emplace_back("llama.cpp runs the file with token ids only: the model has no vocabulary");
  if (lacks_output_matrix(model))
    losses.emplace_back(
        "llama.cpp uses the embedding as the output matrix, which the model lacks: vectors are right, generated text "
        "is not");
  std::vector<std::string> maps;
  for (const auto& [key, value] : model.attributes) {
    const bool nested =
        value.get_if<Value::Array>() != nullptr && KeyValues::choose_type(value).type != ValueType::array;
    if (value.get_if<Attributes>() != nullptr || value.get_if<Value::Pairs>() != nullptr ||
        value.get_if<std::nullptr_t>() != nullptr || nested)
      maps.push_back(key);
  }
  if (!maps.empty())
    losses.push_back(
        fmt::format("gguf holds numbers, texts and arrays of these: {}", describe_json_texts(model.attributes, maps)));
  if (const std::string tensors = describe_tensor_attributes(model); !tensors.empty())
    losses.push_back(fmt::format("gguf cannot hold {}", tensors));
  return losses;
}

// Parses a number, a boolean or a list of these, which formats with text attributes store as JSON. Returns std::nullopt
// for other texts, for empty lists, and for more than 1 MiB.
std::optional<Value> parse_number_or_list(const std::string& text) {
  constexpr std::size_t kLongest = 1 << 20;
  if (text.empty() || text.size() > kLongest ||
      std::string_view("0123456789-tf[").find(text.front()) == std::string_view::npos)
    return std::nullopt;
  const auto is_plain = [](const Value& value) {
    return value.get_if<std::uint64_t>() != nullptr || value.get_if<std::int64_t>() != nullptr ||
           value.get_if<double>() != nullptr || value.get_if<bool>() != nullptr;
  };
  try {
    Value value = parse_json(text, {});
    const auto* items = value.get_if<Value::Array>();
    if (is_plain(value) || (items != nullptr && !items->empty() && std::ranges::all_of(*items, is_plain))) return value;
  } catch (const Error&) {  // the text is not JSON
  }
  return std::nullopt;
}

Value convert_to_needed(const std::string& key, const EntryType& type, const Value& value) {
  try {
    return convert_value(key, type, value);
  } catch (const Error& error) {
    throw Error(ErrorKind::unsupported, fmt::format("gguf: attribute {}", error.message()));
  }
}

// Writes an attribute in the form that llama.cpp requires: numbers and lists for its own keys, which other formats
// store as texts, and bytes for the rules of SentencePiece's normalizers. Throws unsupported for a value that has not
// the type of its key, because readers reject it.
void write_attribute(const std::string& key, const Value& value, const Model& model, std::string_view architecture,
                     KeyValues& out) {
  const auto* items = value.get_if<Value::Array>();
  const auto convert_to_byte = [](const Value& item) -> std::optional<std::uint8_t> {
    const auto* number = item.get_if<std::uint64_t>();
    if (number != nullptr && *number <= 0xff) return static_cast<std::uint8_t>(*number);
    const auto* negative = item.get_if<std::int64_t>();
    if (negative != nullptr && *negative >= -0x80) return static_cast<std::uint8_t>(*negative);
    return std::nullopt;
  };
  const auto is_byte = [&](const Value& item) { return convert_to_byte(item).has_value(); };
  if (key == fmt::format("{}precompiled_charsmap", kTokenizer) && items != nullptr &&
      std::ranges::all_of(*items, is_byte)) {
    ByteWriter& bytes = out.begin_array(key, ValueType::u8, items->size());
    for (const Value& item : *items) bytes.append_u8(*convert_to_byte(item));
    return;
  }
  const auto* text = value.get_if<std::string>();
  const bool is_tokenizer = key.starts_with(kTokenizer);
  const bool own = is_tokenizer || (!architecture.empty() && key.starts_with(fmt::format("{}.", architecture)));
  if (own && !is_from_gguf(model)) {
    const auto needed = find_given_type(key, architecture, value);
    const bool needs_texts = is_tokenizer && needed == EntryType{ValueType::array, ValueType::text};
    if (const auto number = text == nullptr || needs_texts ? std::nullopt : parse_number_or_list(*text))
      return out.add_value(key, *number);
    const bool may_be_list = !is_tokenizer || (needed && needed->type == ValueType::array && !needs_texts);
    if (needed && (items == nullptr || !may_be_list))
      return out.add_value(key, convert_to_needed(key, *needed, value), needed);
  }
  // A file's attribute keeps its type.
  const auto type = model.origin.attribute_types.find(key);
  out.add_value(key, value,
                type != model.origin.attribute_types.end() ? parse_entry_type(type->second)
                : is_from_gguf(model)                      ? std::nullopt
                                                           : find_given_type(key, architecture, value));
}

// Returns new values for the attributes with the tokens' texts and types if several tokens have the same text: repeated
// tokens get other texts and become unused. Appends a loss about them.
Attributes make_unique_tokens(const Attributes& attributes, std::vector<std::string>& losses) {
  Attributes changed;
  const std::string key = fmt::format("{}tokens", kTokenizer);
  const auto* items = attributes.get_if<Value::Array>(key);
  if (items == nullptr) return changed;
  std::vector<std::string> tokens;
  tokens.reserve(items->size());
  for (const Value& item : *items) {
    const auto* text = item.get_if<std::string>();
    tokens.push_back(text == nullptr ? std::string() : *text);
  }
  const std::vector<std::size_t> repeated = rename_repeated_tokens(tokens);
  if (repeated.empty()) return changed;
  losses.push_back(describe_repeated_tokens("gguf", repeated));
  Value::Array named = *items;
  for (const std::size_t id : repeated) named[id] = std::move(tokens[id]);
  changed.set(key, std::move(named));
  const std::string types_key = fmt::format("{}token_type", kTokenizer);
  const auto* numbers = attributes.get_if<Value::Array>(types_key);
  if (numbers == nullptr || numbers->size() != tokens.size()) return changed;
  Value::Array unused = *numbers;
  for (const std::size_t id : repeated) unused[id] = Value(std::int64_t{find_token_type_number(TokenType::unused)});
  changed.set(types_key, std::move(unused));
  return changed;
}

// Throws unsupported if Poise refuses a file with these entries. Only attributes with the keys of hyperparameters,
// tokens and Poise can cause that, because readers interpret these.
void require_readable(const Model& model, std::string_view architecture, const KeyValues& entries) {
  const bool may_fail = std::ranges::any_of(model.attributes, [&](const Attributes::Entry& attribute) {
    const std::string_view key = attribute.first;
    return key == kArchitectureKey || key.starts_with(kTokenizer) || key.starts_with("poise.") ||
           (!architecture.empty() && key.starts_with(fmt::format("{}.", architecture)));
  });
  if (!may_fail) return;
  ByteWriter file;
  append_file_start(file, kLastVersion, 0, entries.count());
  file.append(entries.bytes());
  try {
    read({{}, Source::from_memory({file.bytes().begin(), file.bytes().end()}, ""), false}, {});
  } catch (const Error& error) {
    throw Error(ErrorKind::unsupported,
                fmt::format("gguf: Poise could not open the file because of its attributes. Change or remove them: {}",
                            error.message()));
  }
}

bool is_writable_key(std::string_view key) { return !key.empty() && key.size() <= kMaxKeyBytes && is_utf8(key); }

}  // namespace

WrittenMetadata make_metadata(const Model& model, const Architecture* architecture,
                              const Hyperparameters& hyperparameters, std::optional<std::uint32_t> file_type,
                              const std::vector<CountedTensor>& tensors) {
  WrittenMetadata written;
  KeyValues& out = written.entries;
  const std::string_view named = architecture != nullptr ? architecture->name : std::string_view(model.card.model_type);
  if (!named.empty()) out.add_text(kArchitectureKey, named);
  if (file_type) out.add_u32("general.file_type", *file_type);
  out.add_u32("general.quantization_version", kQuantizationVersion);
  const std::string rest = make_poise_config(model, architecture, hyperparameters);
  // Attributes are the keys of the model's own file. They are written before the card and the hyperparameters, which
  // then leave out keys that exist.
  const Attributes changed = model.vocabulary ? Attributes() : make_unique_tokens(model.attributes, written.losses);
  std::vector<std::string> decided;
  std::vector<std::string> unwritable;
  for (const auto& [key, original] : model.attributes) {
    if (is_placement_key(key) || (model.vocabulary && is_vocabulary_key(key))) {
      decided.push_back(key);
      continue;
    }
    if (!is_writable_key(key)) {
      unwritable.push_back(shorten(key, 100));
      continue;
    }
    const Value& value = changed.find(key) != nullptr ? *changed.find(key) : original;
    const bool is_said = key == kConfigKey && !rest.empty();
    if (!out.has(key) && !is_said) write_attribute(key, value, model, named, out);
  }
  if (!decided.empty())
    written.losses.push_back(
        fmt::format("left out: {}, which the file's tensors and vocabulary decide", list_names(decided)));
  if (!unwritable.empty())
    written.losses.push_back(fmt::format("left out: {} with keys that GGUF cannot hold, of 1 to {} bytes in UTF-8: {}",
                                         format_count(unwritable.size(), "attribute"), kMaxKeyBytes,
                                         list_names(unwritable)));
  WrittenGeneral general = write_general(model, architecture != nullptr, tensors, out);
  std::ranges::move(general.losses, std::back_inserter(written.losses));
  if (architecture != nullptr) {
    for (const auto& [key, value] : hyperparameters.entries) {
      if (!out.has(key)) out.add_value(key, value);  // an attribute may have it, with a value for each layer
    }
  }
  if (!rest.empty()) out.add_text(kConfigKey, rest);
  std::ranges::copy(hyperparameters.differences, std::back_inserter(written.losses));
  if (model.vocabulary) {
    std::ranges::move(write_vocabulary(model, general.name, count_embedding_rows(model, architecture), out),
                      std::back_inserter(written.losses));
  }
  if (architecture != nullptr && !has_tokens(model))
    write_no_vocabulary(count_embedding_rows(model, architecture), *architecture, out);
  require_readable(model, named, out);
  std::ranges::move(list_other_losses(model, architecture), std::back_inserter(written.losses));
  return written;
}

}  // namespace poise::gguf
