// Reads the tensors in a NodeProto and its AttributeProtos. Also reads the messages that describe the model: the inputs
// and outputs (ValueInfoProto), metadata and operator sets. Source: onnx/onnx.proto of github.com/onnx/onnx.
#include "formats/onnx/onnx.hpp"

#include <fmt/format.h>

#include "bytes/utf8.hpp"

namespace poise::onnx {
namespace {

constexpr std::uint64_t kFloat = 1;  // OnnxType::number
constexpr std::uint64_t kInt64 = 7;

// Describes a field of an AttributeProto that gives the value of a Constant as numbers or texts, without a TensorProto.
struct Constant {
  std::uint64_t field;
  std::string_view name;
  std::uint64_t type;
  ListField list;
  Message::Wire wire;
  bool is_list;
  std::uint64_t attribute;  // AttributeProto.AttributeType
};
constexpr std::uint64_t kAttributeType = 20;  // the number of the field `type`
constexpr std::array kConstants = std::to_array<Constant>({
    {2, "f", kFloat, ListField::float_data, Message::Wire::fixed32, false, 1},
    {3, "i", kInt64, ListField::int64_data, Message::Wire::varint, false, 2},
    {4, "s", kText, ListField::none, Message::Wire::bytes, false, 3},
    {7, "floats", kFloat, ListField::float_data, Message::Wire::fixed32, true, 6},
    {8, "ints", kInt64, ListField::int64_data, Message::Wire::varint, true, 7},
    {9, "strings", kText, ListField::none, Message::Wire::bytes, true, 8},
});

std::uint64_t count_elements(const TensorProto& proto, const Source& source) {
  if (proto.type == kText) return proto.texts.size();
  if (proto.type == kInt64) return count_integers(source, proto.list);
  std::uint64_t bytes = 0;
  for (const Message::Place& place : proto.list) bytes += place.end - place.begin;
  return bytes / sizeof(float);
}

// Returns the numbers or texts of a Constant as a TensorProto; std::nullopt if the attribute has none.
std::optional<TensorProto> read_constant(Message attribute, const Source& source) {
  TensorProto proto;
  proto.at = attribute.field_offset();
  const Constant* kind = nullptr;
  std::uint64_t claimed = 0;
  while (attribute.next()) {
    if (attribute.number() == kAttributeType) claimed = attribute.read_integer("type");
    const auto* const row = std::ranges::find(kConstants, attribute.number(), &Constant::field);
    if (row == kConstants.end()) continue;
    if (kind != nullptr && (kind != row || !row->is_list))
      attribute.fail(row->name, "expected a constant with one value, found a second one");
    kind = row;
    if (row->type == kText) {
      add_piece(attribute, row->name, proto.texts, attribute.read_place(row->name));
    } else {
      add_piece(attribute, row->name, proto.list, attribute.read_packed(row->name, row->wire));
    }
  }
  if (kind == nullptr) {  // an empty list has no field of its own
    kind =
        std::ranges::find_if(kConstants, [&](const Constant& row) { return row.is_list && row.attribute == claimed; });
    if (kind == kConstants.end()) return std::nullopt;
  }
  proto.type = kind->type;
  if (kind->is_list) proto.dims = {count_elements(proto, source)};
  if (!proto.list.empty()) proto.field = kind->list;
  return proto;
}

void read_attribute(Message attribute, Node& node) {
  const std::uint64_t at = attribute.field_offset();
  while (attribute.next()) {
    switch (attribute.number()) {
      case 5: node.tensors.push_back(read_tensor_proto(attribute.read_message("t", "t"))); break;
      case 6:
      case 11: node.graphs.push_back(at); break;
      case 10:
      case 23: node.lists.push_back(at); break;
      case 22:
        node.sparse.push_back(read_sparse_proto(attribute.read_message("sparse_tensor", "sparse_tensor")));
        break;
      default: break;
    }
  }
}

}  // namespace

Node read_node(const Message& message, const Source& source) {
  Node node;
  std::string output;
  for (Message fields = message; fields.next();) {
    if (fields.number() == 2 && output.empty()) output = fields.read_text("output");
    if (fields.number() == 4) node.is_constant = fields.read_text("op_type") == "Constant";
  }
  for (Message fields = message; fields.next();) {
    if (fields.number() != 5) continue;
    const Message attribute = fields.read_message("attribute", "attribute");
    read_attribute(attribute, node);
    auto constant = node.is_constant ? read_constant(attribute, source) : std::nullopt;
    if (constant) node.tensors.push_back(*std::move(constant));
  }
  node.is_constant = node.is_constant && node.tensors.size() + node.sparse.size() == 1;
  if (node.is_constant) (node.sparse.empty() ? node.tensors[0] : node.sparse[0].values).name = std::move(output);
  return node;
}

namespace {

std::string format_type(std::uint64_t number) {
  if (number == kText) return "STRING";
  const OnnxType* const type = find_element_type(number);
  return type == nullptr ? fmt::format("type {}", number) : std::string(type->name);
}

std::string_view find_kind_name(std::uint64_t field) {
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
  if (!budget_.charge_value() || !budget_.charge_text(text_bytes))
    message.fail("values", "they take more memory than a model's description justifies");
}

std::string ValueReader::read_text(Message& message, std::string_view field) {
  std::string text(message.read_text(field));
  charge(message, text.size());
  if (!is_utf8(text)) message.fail(field, "the text is not UTF-8");
  return text;
}

Value ValueReader::read_value_info(Message message) {
  Attributes info;
  charge(message);
  while (message.next()) {
    if (message.number() == 1) info.set("name", read_text(message, "name"));
    if (message.number() == 2) read_type(message.read_message("type", "type"), info);
    if (message.number() == 3) info.set("doc_string", read_text(message, "doc_string"));
  }
  return info;
}

void ValueReader::read_type(Message message, Attributes& into) {
  while (message.next()) {
    if (message.number() == 1) {
      read_tensor_type(message.read_message("tensor_type", "tensor_type"), into);
    } else if (const std::string_view kind = find_kind_name(message.number()); !kind.empty()) {
      charge(message);
      into.set("type", std::string(kind));
    }
  }
}

void ValueReader::read_tensor_type(Message message, Attributes& into) {
  while (message.next()) {
    if (message.number() == 1) {
      charge(message);
      into.set("type", format_type(message.read_integer("elem_type")));
    }
    if (message.number() != 2) continue;
    Value::Array shape;
    Message dims = message.read_message("shape", "shape");
    while (dims.next()) {
      if (dims.number() == 1) shape.push_back(read_dimension(dims.read_message("dim", "dim")));
    }
    into.set("shape", Value(std::move(shape)));
  }
}

Value ValueReader::read_dimension(Message message) {
  Value value;
  charge(message);
  while (message.next()) {
    if (message.number() == 1) value = Value(static_cast<std::int64_t>(message.read_integer("dim_value")));
    if (message.number() == 2) value = Value(read_text(message, "dim_param"));
  }
  return value;
}

Attributes::Entry ValueReader::read_entry(Message message) {
  Attributes::Entry entry;
  charge(message);
  while (message.next()) {
    if (message.number() == 1) entry.first = read_text(message, "key");
    if (message.number() == 2) entry.second = Value(read_text(message, "value"));
  }
  return entry;
}

Attributes::Entry ValueReader::read_operator_set(Message message) {
  Attributes::Entry entry;
  charge(message);
  while (message.next()) {
    if (message.number() == 1) entry.first = read_text(message, "domain");
    if (message.number() == 2) entry.second = Value(static_cast<std::int64_t>(message.read_integer("version")));
  }
  if (entry.first.empty()) entry.first = "ai.onnx";
  return entry;
}

}  // namespace poise::onnx
