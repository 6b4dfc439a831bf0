#include "formats/spellings.hpp"

#include <cstdint>
#include <variant>

#include <fmt/format.h>

namespace poise {
namespace {

struct TypeName {
  std::string operator()(std::nullptr_t) const { return "null"; }
  std::string operator()(bool) const { return "boolean"; }
  std::string operator()(std::int64_t) const { return "integer"; }
  std::string operator()(std::uint64_t) const { return "integer"; }
  std::string operator()(double) const { return "float"; }
  std::string operator()(const std::string&) const { return "text"; }
  std::string operator()(const Value::Bytes& bytes) const { return fmt::format("bytes[{}]", bytes.size()); }
  std::string operator()(const Value::Array& items) const { return fmt::format("array[{}]", items.size()); }
  std::string operator()(const Attributes& map) const { return fmt::format("map[{}]", map.size()); }
  std::string operator()(const Value::Pairs& map) const { return fmt::format("map[{}]", map.size()); }
};

}  // namespace

std::string describe_value_type(const Value& value) { return std::visit(TypeName(), value.storage()); }

}  // namespace poise
