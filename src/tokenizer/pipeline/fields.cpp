#include "tokenizer/pipeline/fields.hpp"

#include <fmt/format.h>

#include <poise/error.hpp>

namespace poise {

void throw_unknown_type(const Fields& fields, std::string_view type) {
  throw Error(ErrorKind::unsupported, fmt::format("{}: the type \"{}\" is not known", fields.where(), type));
}

void count_step(const Fields& fields, std::size_t& steps) {
  constexpr std::size_t kMaxSteps = 256;
  if (++steps > kMaxSteps)
    throw Error(ErrorKind::unsupported, fmt::format("{}: more than {} steps", fields.where(), kMaxSteps));
}

Pattern Pattern::read(const Fields& fields, std::string_view key) {
  const auto make_from_text = [&](std::string text) {
    // As in Hugging Face's library, an empty text matches between all characters, like an empty expression.
    return text.empty() ? compile("", fields.where()) : Pattern(std::move(text));
  };
  if (const auto* text = fields.get_if<std::string>(key)) return make_from_text(*text);
  const auto map = fields.find_map(key);
  if (!map) fields.fail(key, "is missing");
  if (const auto expression = map->read_text("Regex")) return compile(*expression, map->where());
  if (auto text = map->read_text("String")) return make_from_text(*std::move(text));
  fields.fail(key, "expected \"String\" or \"Regex\"");
}

}  // namespace poise
