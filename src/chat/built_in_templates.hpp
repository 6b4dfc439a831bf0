// Finds built-in chat templates by name, for models whose files have no template. They follow the documentation of the
// models' makers.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include <poise/tokenizer.hpp>

namespace poise {

struct BuiltInTemplate {
  std::string_view name;                      // "chatml"
  std::string_view source;                    // Jinja, to which make_built_in_source() adds a beginning
  std::string_view end;                       // the text that ends an answer; empty: the vocabulary's EOS
  std::span<const std::string_view> special;  // texts that are one token each in the models of the template
};

// Returns all built-in templates, the most widely used first.
std::span<const BuiltInTemplate> get_built_in_templates();
// Returns the template of that name; null if there is none.
const BuiltInTemplate* find_built_in_template(std::string_view name);

// Returns the whole source for a tokenizer. The rendered text begins with BOS if encode_with_special() puts BOS in
// front of texts.
std::string make_built_in_source(const BuiltInTemplate& built_in, const Tokenizer& tokenizer);

}  // namespace poise
