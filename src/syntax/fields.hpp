// Reads typed fields of an object in a JSON file. A null counts as absent, and a field of the wrong type is an error
// with its name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <poise/value.hpp>

namespace poise {

// Returns the member `key` of an object; null if it is absent or of another type, or if there is no object.
template <typename T>
const T* get_member(const Attributes* object, std::string_view key) {
  return object == nullptr ? nullptr : object->get_if<T>(key);
}
template <typename T>
const T* get_member(const Value& object, std::string_view key) {
  return get_member<T>(object.get_if<Attributes>(), key);
}

// Reads typed fields of an object. Functions throw invalid_file for a value of another type. Requires: the map and the
// path outlive this.
class Fields {
 public:
  // Errors read "<where>: <key>: expected text", or "<where>: <object>.<key>: ..." in nested objects, and show `path`.
  // If `where` is empty, they read "<key>: expected text", and the path names the file.
  Fields(const Attributes& map, std::string where, std::string_view path = {})
      : map_(&map), where_(std::move(where)), path_(path) {}

  // Returns null if the field is missing or null.
  const Value* find(std::string_view key) const;
  // Returns null if the field is missing, null or of another type.
  template <typename T>
  const T* get_if(std::string_view key) const {
    return map_->get_if<T>(key);
  }
  // Returns true when the key is missing; false if its value is null.
  bool is_absent(std::string_view key) const { return map_->find(key) == nullptr; }

  std::optional<bool> read_boolean(std::string_view key) const;
  bool read_boolean(std::string_view key, bool missing) const { return read_boolean(key).value_or(missing); }
  std::optional<std::string> read_text(std::string_view key) const;
  std::string read_text(std::string_view key, std::string_view missing) const;
  std::string require_text(std::string_view key) const;
  std::uint64_t read_unsigned(std::string_view key, std::uint64_t missing) const;
  // These functions return null or std::nullopt if the field is absent.
  const Attributes* find_object(std::string_view key) const;
  const Value::Array* find_array(std::string_view key) const;
  std::optional<Fields> find_map(std::string_view key) const;
  // Returns the maps in a list. Throws if the list is missing, unless `optional`.
  std::vector<Fields> read_list(std::string_view key, bool optional = false) const;

  // Throws invalid_file "tokenizer: normalizer.type: <problem>".
  [[noreturn]] void fail(std::string_view key, std::string_view problem) const;
  const Attributes& keys() const { return *map_; }
  const std::string& where() const { return where_; }
  std::string_view path() const { return path_; }

 private:
  Fields(const Value& value, std::string where, std::string_view path);
  std::string make_name(std::string_view key) const;
  template <typename T>
  const T* find_typed(std::string_view key, std::string_view expected) const;

  const Attributes* map_;
  std::string where_;
  std::string_view path_;
  bool nested_ = false;
};

}  // namespace poise
