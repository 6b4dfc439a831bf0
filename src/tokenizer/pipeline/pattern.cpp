#include "tokenizer/pipeline/pattern.hpp"

#include <fmt/format.h>

namespace poise {

Pattern Pattern::from(const Fields& fields, std::string_view key) {
  const auto of_text = [&](std::string text) {
    // As the library has it, nothing is found between all characters: where an empty expression is.
    return text.empty() ? regex("", fields.where()) : Pattern(std::move(text));
  };
  if (const Value* value = fields.find(key); value != nullptr && value->get_if<std::string>() != nullptr)
    return of_text(*value->get_if<std::string>());
  const auto map = fields.map(key);
  if (!map) fields.fail(key, "is missing");
  if (const auto expression = map->optional_text("Regex")) return regex(*expression, map->where());
  if (auto text = map->optional_text("String")) return of_text(*std::move(text));
  fields.fail(key, "expected \"String\" or \"Regex\"");
}

}  // namespace poise
