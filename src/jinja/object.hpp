// A value of a template has Python's semantics.
//
// Lists and dictionaries never change: Hugging Face runs templates in a sandbox that refuses to change them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include <poise/value.hpp>

#include "jinja/budget.hpp"
#include "jinja/text.hpp"

namespace poise::jinja {

class Object;
class Interpreter;
class Parameters;

// Stands for a missing name, attribute or item. Most operations on it throw a Failure with its reason.
struct Undefined {
  std::shared_ptr<const std::string> reason;
};

using TextPtr = std::shared_ptr<const Text>;

// Holds the items of a list or tuple.
struct SequenceObject {
  std::vector<Object> items;
  unsigned depth = 1;     // how deep containers nest, with this one
  bool is_group = false;  // a tuple of the filter groupby, with the attributes grouper and list
};
using SequencePtr = std::shared_ptr<const SequenceObject>;
struct List {
  SequencePtr items;
};
struct Tuple {
  SequencePtr items;
};

// Represents a dictionary, which keeps its entries in order of insertion.
class Dict {
 public:
  using Entry = std::pair<Object, Object>;

  const std::vector<Entry>& entries() const { return entries_; }
  unsigned depth() const { return depth_; }
  const Object* find(Budget& budget, const Object& key) const;
  const Object* find(std::string_view key) const;
  // Adds an entry, or replaces the value of an existing one. Throws for a key without a hash, such as a list.
  void set(Budget& budget, Object key, Object value);

 private:
  // Returns the index of the key's entry, or the number of entries if the key is missing.
  std::size_t find_place(Budget& budget, const Object& key) const;

  std::vector<Entry> entries_;
  std::unordered_map<std::string, std::size_t> texts_;  // indices of keys that are texts
  bool has_other_keys_ = false;
  unsigned depth_ = 1;
};
using DictPtr = std::shared_ptr<const Dict>;

struct RangeObject {
  std::int64_t start = 0;
  std::int64_t stop = 0;
  std::int64_t step = 1;
  std::uint64_t identity = 0;  // Budget::number_object(), for is_same()

  std::int64_t size() const;
  std::int64_t at(std::int64_t index) const { return start + index * step; }
};

// Represents the result of dict.keys() and similar methods.
struct DictView {
  enum class Of { keys, values, items } of = Of::keys;
  DictPtr dict;
  std::uint64_t identity = 0;  // as in RangeObject
};

// Represents an iterator, which returns each item once.
struct Iterator {
  std::string type;  // Python's name of the iterator's type
  std::vector<Object> items;
  std::size_t next = 0;
  unsigned depth = 1;
};
using IteratorPtr = std::shared_ptr<Iterator>;

// Represents the result of namespace(). The interpreter owns it, so that namespaces may hold each other.
struct Namespace;

// Represents a function, a method, a macro, a loop, or another object that can be called or has attributes.
class Thing {
 public:
  virtual ~Thing() = default;
  virtual std::string type() const = 0;
  virtual std::string describe() const = 0;
  virtual unsigned depth() const { return 0; }
  virtual bool is_callable() const { return true; }
  virtual Object call(Interpreter& in, Parameters& parameters) = 0;
  virtual std::optional<Object> find_attribute(Interpreter& in, std::string_view name);
  // Returns Python's len(); std::nullopt if there is none.
  virtual std::optional<std::size_t> length() const { return std::nullopt; }
  virtual bool is_iterable() const { return false; }
  // Removes the next items of an iteration and returns them, at most `most`. Requires: is_iterable().
  virtual std::vector<Object> pop_items(Budget& budget, std::size_t most);
  virtual void check_usable() const {}
};
using ThingPtr = std::shared_ptr<Thing>;

class Object {
 public:
  using Storage = std::variant<Undefined, std::nullptr_t, bool, std::int64_t, double, TextPtr, List, Tuple, DictPtr,
                               RangeObject, DictView, IteratorPtr, Namespace*, ThingPtr>;

  Object() = default;  // undefined
  Object(std::nullptr_t) : storage_(nullptr) {}
  Object(bool value) : storage_(value) {}
  Object(int value) : storage_(std::int64_t{value}) {}
  Object(std::int64_t value) : storage_(value) {}
  Object(double value) : storage_(value) {}
  Object(Text value) : storage_(std::make_shared<const Text>(std::move(value))) {}
  Object(std::string_view value) : Object(Text{std::string(value)}) {}
  Object(const char* value) : Object(std::string_view(value)) {}
  Object(Undefined value) : storage_(std::move(value)) {}
  Object(List value) : storage_(std::move(value)) {}
  Object(Tuple value) : storage_(std::move(value)) {}
  Object(DictPtr value) : storage_(std::move(value)) {}
  Object(RangeObject value) : storage_(value) {}
  Object(DictView value) : storage_(std::move(value)) {}
  Object(IteratorPtr value) : storage_(std::move(value)) {}
  Object(Namespace* value) : storage_(value) {}
  Object(ThingPtr value) : storage_(std::move(value)) {}

  template <typename Kept>
  const Kept* get_if() const {
    return std::get_if<Kept>(&storage_);
  }
  template <typename Kept>
  bool is() const {
    return std::holds_alternative<Kept>(storage_);
  }
  // Returns the text; null if the object is not a text.
  const Text* text() const {
    const TextPtr* const found = get_if<TextPtr>();
    return found == nullptr ? nullptr : found->get();
  }
  // Returns the items of a list or tuple; null for others.
  const std::vector<Object>* sequence() const;
  bool is_undefined() const { return is<Undefined>(); }
  bool is_none() const { return is<std::nullptr_t>(); }
  // Each function returns std::nullopt for other types. Booleans are integers, too.
  std::optional<std::int64_t> get_integer() const;
  std::optional<double> get_number() const;

  const Storage& storage() const { return storage_; }

 private:
  Storage storage_;
};

struct Namespace {
  std::vector<std::pair<Text, Object>> entries;
};

Object make_undefined(std::string reason);
// These three throw where containers nest too deeply.
Object make_list(Budget& budget, std::vector<Object> items);
Object make_tuple(Budget& budget, std::vector<Object> items);
Object make_iterator(Budget& budget, std::vector<Object> items, std::string type = "generator");
Object make_dict(Dict dict);
unsigned measure_depth(const Object& object);
// Each function returns the depth of a container, from that of its deepest value, or from its items. Throws if the
// container is too deep.
unsigned compute_container_depth(unsigned depth);
unsigned compute_container_depth(const std::vector<Object>& items);

// Converts a JSON value; marks its texts as input if `is_input`. An integer of 2^63 and above becomes an object that
// throws where a template uses it. Bytes, and maps with keys that are not texts, become None.
Object make_object(Budget& budget, const Value& value, bool is_input);

// Returns Python's name of the type: "str", "NoneType", ...
std::string get_type_name(const Object& object);
bool is_true(const Object& object);
// Compares two objects as Python's operator == does.
bool are_equal(Budget& budget, const Object& left, const Object& right);
// Approximates Python's operator `is`: compares numbers and texts by value, most other objects by identity.
bool is_same(const Object& left, const Object& right);
// Compares two objects as Python's operator < does. Throws for types without an order; `sign` is for the message.
bool is_less(Budget& budget, const Object& left, const Object& right, std::string_view sign = "<");
// Returns Python's len(); std::nullopt if there is none.
std::optional<std::size_t> find_length(const Object& object);
// Returns the items of a loop over an object; empties an iterator. Throws if the object is not iterable.
std::vector<Object> read_items(Budget& budget, const Object& object);
bool is_iterable(const Object& object);
// Returns true for an object that gives each item once, such as a generator.
bool is_iterator(const Object& object);
// Removes the next item and returns it; std::nullopt at the end. Requires: is_iterator(object).
std::optional<Object> pop_item(Budget& budget, const Object& object);
// Returns true if the object can be a key of a dictionary.
bool is_hashable(Budget& budget, const Object& object);
// Throws if it cannot.
void check_hashable(Budget& budget, const Object& object);
[[noreturn]] void fail_undefined(const Object& object);
// Throws for a number that make_object() could not convert.
void check_usable(const Object& object);

// Each function converts an object to text, as Python's str() and repr() do. In a Text, input stays marked.
Text to_text(Budget& budget, const Object& object);
void append_repr(Budget& budget, Text& out, const Object& object);
void append_repr(Text& out, const Text& text);
std::string format_repr(Budget& budget, const Object& object);
std::string format_repr(double number);

}  // namespace poise::jinja
