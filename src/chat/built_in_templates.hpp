// Built-in chat templates, by name, for models whose files have no template. They are the forms that the makers of
// models publish.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include <poise/tokenizer.hpp>

namespace poise {

struct BuiltInTemplate {
  std::string_view name;                      // "chatml"
  std::string_view source;                    // Jinja, without what make_built_in_source() puts in front
  std::string_view end;                       // the text that ends an answer; empty: the vocabulary's EOS
  std::span<const std::string_view> special;  // texts that are one token each in the models that the form was made for
};

// Returns all built-in templates, the most frequent ones first.
std::span<const BuiltInTemplate> get_built_in_templates();
// Returns the template of that name; null if there is none.
const BuiltInTemplate* find_built_in_template(std::string_view name);

// Returns the source for a vocabulary. Its output begins with BOS if encode_with_special() adds BOS.
std::string make_built_in_source(const BuiltInTemplate& built_in, const Tokenizer& tokenizer);

}  // namespace poise
