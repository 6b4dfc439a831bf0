// The tokenizer in the metadata of a GGUF file. The input is a JSON object of keys and values, from which a file is
// made, the byte 0x1e, and a text to encode and decode. Thus all lengths in the file are right; the target `format`
// mutates the bytes of files.
#include <poise/error.hpp>
#include <poise/format.hpp>
#include <poise/tokenizer.hpp>

#include "bytes/byte_writer.hpp"
#include "formats/gguf/header.hpp"
#include "formats/gguf/key_values.hpp"
#include "formats/gguf/vocabulary.hpp"
#include "formats/metadata.hpp"
#include "target.hpp"

using namespace poise;

namespace {

// Returns the type that llama.cpp writes; std::nullopt for unknown keys.
std::optional<gguf::EntryType> find_entry_type(std::string_view key) {
  if (!key.starts_with(gguf::kTokenizer)) return std::nullopt;
  const std::string_view name = key.substr(gguf::kTokenizer.size());
  if (name == "scores") return gguf::EntryType{gguf::ValueType::array, gguf::ValueType::f32};
  if (name == "token_type") return gguf::EntryType{gguf::ValueType::array, gguf::ValueType::i32};
  if (name == "precompiled_charsmap") return gguf::EntryType{gguf::ValueType::array, gguf::ValueType::u8};
  if (name == "tokens" || name == "merges") return gguf::EntryType{gguf::ValueType::array, gguf::ValueType::text};
  return gguf::find_key_type(key, {});
}

// Converts the integers of a list to floating-point numbers.
Value convert_to_reals(const Value& value) {
  const auto* list = value.get_if<Value::Array>();
  if (list == nullptr) return value;
  Value::Array numbers = *list;
  for (Value& number : numbers) {
    if (const auto* whole = number.get_if<std::uint64_t>()) number = static_cast<double>(*whole);
    if (const auto* whole = number.get_if<std::int64_t>()) number = static_cast<double>(*whole);
  }
  return numbers;
}

// Makes a GGUF file of a JSON object; std::nullopt for any other text.
std::optional<std::vector<std::byte>> make_file(std::string_view json) {
  Value value;
  try {
    value = parse_json(json, "metadata");
  } catch (const Error&) {
    return std::nullopt;
  }
  const auto* object = value.get_if<Attributes>();
  if (object == nullptr) return std::nullopt;
  gguf::KeyValues keys;
  for (const auto& [key, item] : *object) {
    const auto type = find_entry_type(key);
    keys.add_value(key, type && type->items == gguf::ValueType::f32 ? convert_to_reals(item) : item, type);
  }
  ByteWriter file;
  file.append_text(gguf::kMagic);
  file.append_u32(3);
  file.append_u64(0);
  file.append_u64(keys.count());
  file.append(keys.bytes());
  return std::vector<std::byte>(file.bytes().begin(), file.bytes().end());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto texts = fuzz::split(fuzz::bytes_of(data, size), 2);
  const auto file = make_file(texts[0]);
  if (!file) return 0;
  fuzz::expect_sound(size + file->size(), [&] {
    const Model model = open(fuzz::make_source(*file, "fuzz.gguf"));
    const auto vocabulary = model.vocabulary ? model.vocabulary : make_described_vocabulary(model).made;
    if (vocabulary) fuzz::use_all(*vocabulary, texts[1]);
  });
  return 0;
}
