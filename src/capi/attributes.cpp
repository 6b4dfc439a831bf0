#include <limits>

#include "capi/handles.hpp"

using namespace poise::capi;

namespace {

using poise::Attributes;
using poise::Value;

poise_value_type type_of(const Value& value) {
  struct Visitor {
    poise_value_type operator()(std::nullptr_t) const { return POISE_VALUE_NULL; }
    poise_value_type operator()(bool) const { return POISE_VALUE_BOOLEAN; }
    poise_value_type operator()(std::int64_t) const { return POISE_VALUE_INTEGER; }
    poise_value_type operator()(std::uint64_t) const { return POISE_VALUE_INTEGER; }
    poise_value_type operator()(double) const { return POISE_VALUE_REAL; }
    poise_value_type operator()(const std::string&) const { return POISE_VALUE_TEXT; }
    poise_value_type operator()(const Value::Bytes&) const { return POISE_VALUE_BYTES; }
    poise_value_type operator()(const Value::Array&) const { return POISE_VALUE_ARRAY; }
    poise_value_type operator()(const Attributes&) const { return POISE_VALUE_MAP; }
    poise_value_type operator()(const Value::Pairs&) const { return POISE_VALUE_MAP; }
  };
  return std::visit(Visitor{}, value.storage());
}

const char* type_name(poise_value_type type) {
  constexpr const char* kNames[] = {"null", "a boolean", "an integer", "a real number",
                                    "text", "bytes",     "an array",   "a map"};
  return kNames[type];
}

const Value& value_of(const poise_attributes* attributes, const char* key) {
  const Attributes& map = attributes_at(attributes);
  const Value* value = map.find(text_at(key, "key"));
  if (value == nullptr) no_such(fmt::format("there is no attribute \"{}\"", key));
  return *value;
}

[[noreturn]] void wrong_type(const char* key, const Value& value, const char* wanted) {
  throw poise::Error(poise::ErrorKind::unsupported,
                     fmt::format("attribute \"{}\" is {}, not {}", key, type_name(type_of(value)), wanted));
}

template <typename T>
const T& typed(const poise_attributes* attributes, const char* key, const char* wanted) {
  const Value& value = value_of(attributes, key);
  const T* found = value.get_if<T>();
  if (found == nullptr) wrong_type(key, value, wanted);
  return *found;
}

std::int64_t integer(const Value& value, const char* key) {
  if (const auto* number = value.get_if<std::int64_t>()) return *number;
  const auto* number = value.get_if<std::uint64_t>();
  if (number == nullptr) wrong_type(key, value, "an integer");
  if (*number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    wrong_type(key, value, "one that a signed integer can hold");
  return static_cast<std::int64_t>(*number);
}

double real(const Value& value, const char* key) {
  if (const auto* number = value.get_if<double>()) return *number;
  if (const auto* number = value.get_if<std::uint64_t>()) return static_cast<double>(*number);
  if (const auto* number = value.get_if<std::int64_t>()) return static_cast<double>(*number);
  wrong_type(key, value, "a number");
}

}  // namespace

poise_status poise_attributes_count(const poise_attributes* attributes, size_t* count, poise_error* error) {
  return guard(error, [&] { at(count, "count") = attributes_at(attributes).size(); });
}

poise_status poise_attributes_at(const poise_attributes* attributes, size_t index, poise_text* key,
                                 poise_value_type* type, poise_error* error) {
  return guard(error, [&] {
    const Attributes& map = attributes_at(attributes);
    if (index >= map.size()) no_such(fmt::format("attribute {}: there are {}", index, map.size()));
    const auto& [name, value] = map.begin()[static_cast<std::ptrdiff_t>(index)];
    poise_text& name_out = at(key, "key");
    at(type, "type") = type_of(value);
    name_out = lend(name);
  });
}

poise_status poise_attributes_get_boolean(const poise_attributes* attributes, const char* key, int* value,
                                          poise_error* error) {
  return guard(error, [&] { at(value, "value") = typed<bool>(attributes, key, "a boolean"); });
}

poise_status poise_attributes_get_integer(const poise_attributes* attributes, const char* key, int64_t* value,
                                          poise_error* error) {
  return guard(error, [&] { at(value, "value") = integer(value_of(attributes, key), key); });
}

poise_status poise_attributes_get_unsigned(const poise_attributes* attributes, const char* key, uint64_t* value,
                                           poise_error* error) {
  return guard(error, [&] { at(value, "value") = typed<std::uint64_t>(attributes, key, "an unsigned integer"); });
}

poise_status poise_attributes_get_real(const poise_attributes* attributes, const char* key, double* value,
                                       poise_error* error) {
  return guard(error, [&] { at(value, "value") = real(value_of(attributes, key), key); });
}

poise_status poise_attributes_get_text(const poise_attributes* attributes, const char* key, poise_text* value,
                                       poise_error* error) {
  return guard(error, [&] { at(value, "value") = lend(typed<std::string>(attributes, key, "text")); });
}

poise_status poise_attributes_get_bytes(const poise_attributes* attributes, const char* key, poise_bytes* value,
                                        poise_error* error) {
  return guard(error, [&] {
    const auto& bytes = typed<Value::Bytes>(attributes, key, "bytes");
    at(value, "value") = {bytes.data(), bytes.size()};
  });
}

poise_status poise_attributes_get_json(const poise_attributes* attributes, const char* key, poise_string* json,
                                       poise_error* error) {
  return guard(error, [&] {
    poise_string& out = at(json, "json");
    out = give(poise::to_json(key == nullptr ? Value(attributes_at(attributes)) : value_of(attributes, key)));
  });
}
