#include "formats/onnx/values.hpp"

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/utf8.hpp"
#include "formats/onnx/element_types.hpp"

namespace poise::onnx {
namespace {

std::string type_name(std::uint64_t number) {
  if (number == kText) return "STRING";
  const ElementType* const type = element_type(number);
  return type == nullptr ? fmt::format("type {}", number) : std::string(type->name);
}

std::string_view kind_name(std::uint64_t field) {
  switch (field) {
    case 4: return "sequence";
    case 5: return "map";
    case 7: return "opaque";
    case 8: return "sparse tensor";
    case 9: return "optional";
    default: return {};
  }
}

}  // namespace

void ValueReader::charge(const Message& message, std::size_t text_bytes) {
  if (!budget_.take_value() || !budget_.take_text(text_bytes))
    message.fail("values", "they take more memory than a model's description justifies");
}

std::string ValueReader::text(Message& message, std::string_view field) {
  std::string text(message.text(field));
  charge(message, text.size());
  if (!is_utf8(text)) message.fail(field, "the text is not UTF-8");
  return text;
}

Value ValueReader::value_info(Message message) {
  Attributes info;
  charge(message);
  while (message.next()) {
    if (message.number() == 1) info.set("name", text(message, "name"));
    if (message.number() == 2) take_type(message.message("type", "type"), info);
    if (message.number() == 3) info.set("doc_string", text(message, "doc_string"));
  }
  return info;
}

void ValueReader::take_type(Message message, Attributes& into) {
  while (message.next()) {
    if (message.number() == 1) {
      take_tensor_type(message.message("tensor_type", "tensor_type"), into);
    } else if (const std::string_view kind = kind_name(message.number()); !kind.empty()) {
      charge(message);
      into.set("type", std::string(kind));
    }
  }
}

void ValueReader::take_tensor_type(Message message, Attributes& into) {
  while (message.next()) {
    if (message.number() == 1) {
      charge(message);
      into.set("type", type_name(message.integer("elem_type")));
    }
    if (message.number() != 2) continue;
    Value::Array shape;
    Message dims = message.message("shape", "shape");
    while (dims.next()) {
      if (dims.number() == 1) shape.push_back(dimension(dims.message("dim", "dim")));
    }
    into.set("shape", Value(std::move(shape)));
  }
}

Value ValueReader::dimension(Message message) {
  Value value;
  charge(message);
  while (message.next()) {
    if (message.number() == 1) value = Value(static_cast<std::int64_t>(message.integer("dim_value")));
    if (message.number() == 2) value = Value(text(message, "dim_param"));
  }
  return value;
}

Attributes::Entry ValueReader::entry(Message message) {
  Attributes::Entry entry;
  charge(message);
  while (message.next()) {
    if (message.number() == 1) entry.first = text(message, "key");
    if (message.number() == 2) entry.second = Value(text(message, "value"));
  }
  return entry;
}

Attributes::Entry ValueReader::operator_set(Message message) {
  Attributes::Entry entry;
  charge(message);
  while (message.next()) {
    if (message.number() == 1) entry.first = text(message, "domain");
    if (message.number() == 2) entry.second = Value(static_cast<std::int64_t>(message.integer("version")));
  }
  if (entry.first.empty()) entry.first = "ai.onnx";
  return entry;
}

}  // namespace poise::onnx
