#include "tokenizer/pipeline/pattern.hpp"

#include <fmt/format.h>

namespace poise {

Pattern Pattern::from(const Fields& fields, std::string_view key) {
  if (const Value* value = fields.find(key); value != nullptr && value->get_if<std::string>() != nullptr)
    return Pattern(*value->get_if<std::string>());
  const auto map = fields.map(key);
  if (!map) fields.fail(key, "is missing");
  if (const auto expression = map->optional_text("Regex")) return regex(*expression, map->where());
  if (auto text = map->optional_text("String")) return Pattern(*std::move(text));
  fields.fail(key, "expected \"String\" or \"Regex\"");
}

}  // namespace poise
