// Value: the plain data that files attach to models and tensors (JSON's types, plus 64-bit integers and byte strings).
//
// Maps keep the order of the file and hold each key once. Const values are thread-safe.
//
//   const poise::Value value = poise::parse_json(R"({"hidden_size": 64})", "config.json");
//   std::cout << poise::to_json(value) << "\n";
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace poise {

class Value;

// Maps text keys to values, in insertion order. find() and set() take time in proportion to the number of keys.
class Attributes {
 public:
  using Entry = std::pair<std::string, Value>;

  Attributes() = default;
  Attributes(std::initializer_list<Entry> entries);
  Attributes(const Attributes&);
  Attributes(Attributes&&) noexcept;
  Attributes& operator=(const Attributes&);
  Attributes& operator=(Attributes&&) noexcept;
  ~Attributes();
  // Returns attributes with these entries, in order. Requires: unique keys.
  static Attributes from_unique(std::vector<Entry> entries);

  const Value* find(std::string_view key) const;  // nullptr when absent
  template <typename T>
  const T* get_if(std::string_view key) const;  // nullptr when absent or of another type
  void set(std::string key, Value value);       // replaces in place, or appends
  bool erase(std::string_view key);             // returns false when the key is absent

  bool empty() const;
  std::size_t size() const;
  std::vector<Entry>::const_iterator begin() const;
  std::vector<Entry>::const_iterator end() const;

  friend bool operator==(const Attributes&, const Attributes&);

 private:
  std::vector<Entry> entries_;
};

// Holds null, a boolean, a number, text, bytes, an array or a map.
class Value {
 public:
  using Bytes = std::vector<std::byte>;
  using Array = std::vector<Value>;
  // Holds a map with keys of any type, which CBOR allows in attributes.
  using Pairs = std::vector<std::pair<Value, Value>>;
  using Storage = std::variant<std::nullptr_t, bool, std::int64_t, std::uint64_t, double, std::string, Bytes, Array,
                               Attributes, Pairs>;

  Value() : storage_(nullptr) {}
  Value(std::nullptr_t) : storage_(nullptr) {}
  Value(bool value) : storage_(value) {}
  Value(int value) : Value(static_cast<std::int64_t>(value)) {}
  // Always stores a non-negative integer as std::uint64_t, so that equal numbers are equal values.
  Value(std::int64_t value);
  Value(std::uint64_t value) : storage_(value) {}
  Value(double value) : storage_(value) {}
  Value(const char* value) : storage_(std::string(value)) {}
  Value(std::string value) : storage_(std::move(value)) {}
  Value(std::string_view value) : storage_(std::string(value)) {}
  Value(Bytes value) : storage_(std::move(value)) {}
  Value(Array value) : storage_(std::move(value)) {}
  Value(Attributes value) : storage_(std::move(value)) {}
  Value(Pairs value) : storage_(std::move(value)) {}
  Value(const Value&);
  Value(Value&&) noexcept;
  Value& operator=(const Value&);
  Value& operator=(Value&&) noexcept;
  ~Value();

  const Storage& storage() const { return storage_; }

  // Returns the value if it has this type of Storage, else null.
  template <typename T>
  const T* get_if() const {
    return std::get_if<T>(&storage_);
  }
  // Requires: get_if<T>() is not null.
  template <typename T>
  T take() && {
    return std::get<T>(std::move(storage_));
  }

  friend bool operator==(const Value&, const Value&);

 private:
  Storage storage_;
};

template <typename T>
const T* Attributes::get_if(std::string_view key) const {
  const Value* value = find(key);
  return value == nullptr ? nullptr : value->get_if<T>();
}
inline bool Attributes::empty() const { return entries_.empty(); }
inline std::size_t Attributes::size() const { return entries_.size(); }
inline std::vector<Attributes::Entry>::const_iterator Attributes::begin() const { return entries_.begin(); }
inline std::vector<Attributes::Entry>::const_iterator Attributes::end() const { return entries_.end(); }

// Returns JSON text (one line, or indented by `indent` spaces). NaN and infinities become null, byte strings lower-case
// hex, Pairs arrays of [key, value].
std::string to_json(const Value& value, int indent = -1);

// Parses strict JSON; throws invalid_file on a syntax error, a duplicate key or nesting deeper than 64.
// Errors show `name` as the path; `offset` is the place of the text in that file.
Value parse_json(std::string_view text, const std::string& name, std::uint64_t offset = 0);

}  // namespace poise
