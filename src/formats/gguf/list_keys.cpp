#include "formats/gguf/list_keys.hpp"

#include <string>
#include <string_view>

#include <fmt/format.h>

#include "formats/gguf/header.hpp"
#include "io/source_range.hpp"

namespace poise::gguf {
namespace {

std::string type_name(const MetadataValue& value) {
  if (value.type() != ValueType::array) return std::string(to_string(value.type()));
  return fmt::format("{}[{}]", to_string(value.item_type()), value.count());
}

}  // namespace

std::vector<MetadataKey> list_keys(const Input& input) {
  const SourceRange range(*input.source);
  HeaderReader header(range);
  std::vector<MetadataKey> keys;
  header.metadata([&](std::string_view key, MetadataValue& value) {
    std::string type = type_name(value);
    keys.push_back({std::string(key), std::move(type), value.tree()});
  });
  return keys;
}

}  // namespace poise::gguf
