// Holds entries of metadata: those of a file that is read, and those of a file that is written, with their types.
// Readers remove the entries that they understand; the rest becomes attributes.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <poise/value.hpp>

#include "bytes/byte_writer.hpp"
#include "formats/gguf/header.hpp"

namespace poise::gguf {

// Holds the entries of a file while a reader converts them.
class Entries {
 public:
  // Adds an entry, and returns its value, which is valid until entries change. Requires: the key is new.
  const Value& add(std::string key, Value value) { return list_.emplace_back(std::move(key), std::move(value)).second; }

  // Returns null if the key was never added, or has been removed.
  const Value* find(std::string_view key) const;
  template <typename T>
  const T* get_if(std::string_view key) const {
    const Value* value = find(key);
    return value == nullptr ? nullptr : value->get_if<T>();
  }
  // Returns an integer of 0 or more; 0 for every other value, and for a missing key.
  std::uint64_t find_number(std::string_view key) const;

  // Each function removes an entry and returns its value; std::nullopt for a missing key. remove_text() removes only
  // texts, and remove_number() only integers from 0 to 2^31 - 1. For other values they return std::nullopt.
  std::optional<Value> remove(std::string_view key);
  std::optional<std::string> remove_text(std::string_view key);
  std::optional<std::int64_t> remove_number(std::string_view key);

  // Returns the remaining entries, in order.
  std::vector<Attributes::Entry>& rest() { return list_; }
  const std::vector<Attributes::Entry>& rest() const { return list_; }

 private:
  std::vector<Attributes::Entry> list_;
};

// Appends the beginning of a file: magic, version, and the numbers of tensors and keys.
void append_file_start(ByteWriter& out, std::uint32_t version, std::uint64_t tensors, std::uint64_t keys);

// Holds the type of a value, and of its items if it is an array.
struct EntryType {
  ValueType type = ValueType::text;
  ValueType items = ValueType::text;

  friend bool operator==(const EntryType&, const EntryType&) = default;
};

// Each function converts between a type and its name, such as "u8" or "[i16]". parse_entry_type() returns std::nullopt
// for another text.
std::string to_string(const EntryType& type);
std::optional<EntryType> parse_entry_type(std::string_view name);

// Makes the metadata of a GGUF header, entry by entry.
class KeyValues {
 public:
  // Each function appends an entry, and throws internal if the key exists.
  void add_text(std::string_view key, std::string_view value);
  // Appends an entry unless the key exists or the text is empty.
  void add_text_if_new(std::string_view key, std::string_view value) {
    if (!value.empty() && !has(key)) add_text(key, value);
  }
  void add_u16(std::string_view key, std::uint16_t value);
  void add_u32(std::string_view key, std::uint64_t value);  // throws unsupported for more than 32 bits
  void add_i32(std::string_view key, std::int32_t value);
  void add_f32(std::string_view key, double value);
  void add_boolean(std::string_view key, bool value);
  // Begins an array. The caller appends the items to the returned writer.
  ByteWriter& begin_array(std::string_view key, ValueType items, std::uint64_t count);
  static void append_text(ByteWriter& out, std::string_view text);

  // Returns true if the value, or each item of a list, fits the type.
  static bool has_entry_type(const Value& value, const EntryType& type);
  // Appends a value as that type, if it fits, else as the type of choose_type().
  void add_value(std::string_view key, const Value& value, std::optional<EntryType> type = std::nullopt);

  // Returns the type with which a value is written: boolean or text for such values, u32, u64, i32 or i64 for an
  // integer, f32 or f64 for another number, and the common type of the items for an array. Maps, null, nested arrays,
  // and arrays without a common type become JSON text.
  static EntryType choose_type(const Value& value);

  bool has(std::string_view key) const { return keys_.contains(key); }
  std::uint64_t count() const { return keys_.size(); }
  std::span<const std::byte> bytes() const { return out_.bytes(); }

 private:
  void begin_entry(std::string_view key, ValueType type);

  ByteWriter out_;
  std::set<std::string, std::less<>> keys_;
};

// Returns the type that llama.cpp requires for a key; std::nullopt for other keys. `architecture` is the first word of
// the keys of hyperparameters; empty: unknown. Source: src/llama-arch.cpp, src/llama-model.cpp and src/models/ of
// llama.cpp v0.5.0, which rejects files with other types, and gguf-py/gguf/gguf_writer.py.
std::optional<EntryType> find_key_type(std::string_view key, std::string_view architecture);
// Returns the same, but std::nullopt for a number in place of a list with a number for each layer, which llama.cpp
// reads.
std::optional<EntryType> find_given_type(std::string_view key, std::string_view architecture, const Value& given);

}  // namespace poise::gguf
