#include "formats/ztensor/list_keys.hpp"

#include <string>
#include <string_view>
#include <variant>

#include <fmt/format.h>

namespace poise::ztensor {
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

std::vector<MetadataKey> list_keys(const Source& source, const ManifestRange& range, cbor::Rules rules) {
  const ManifestBytes bytes(source, range);
  cbor::Cursor in(bytes.bytes(), range.begin, source.name(), "zTensor: manifest", rules);
  std::vector<MetadataKey> keys;
  for (auto root = in.map(); root.next();) {
    if (root.key() != "attributes") {
      in.skip();
    } else if (!in.null()) {
      for (const auto& [key, value] : in.attributes())
        keys.push_back({key, std::visit(TypeName(), value.storage()), value});
    }
  }
  return keys;
}

}  // namespace poise::ztensor
