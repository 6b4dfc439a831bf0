// Metadata as text: how a model's card, configuration and vocabulary travel in formats that only have text attributes.
//
// Three attributes hold JSON: "poise.card", "poise.config" (config.json's keys) and "poise.vocabulary"
// (docs/formats/ztensor.md).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <poise/model.hpp>

namespace poise {

// Every value as text: JSON text where it was none.
Attributes text_attributes(const Attributes& attributes);

// A vocabulary that a model's attributes describe as GGUF has it. Nothing where the model has its own, or none.
struct DescribedVocabulary {
  std::optional<Vocabulary> made;
  Attributes attributes;  // the model's, without those that it was made of
  std::string problem;    // why attributes that are there make none; empty: they do, or there are none
};
DescribedVocabulary described_vocabulary(const Model& model);

// The model's attributes so, and after them the three of Poise for what the model has, or its attributes describe.
Attributes text_attributes(const Model& model);

// What text_attributes() makes of attributes that are no text, in a sentence for people. Empty: all are.
std::string text_loss(const Attributes& attributes, std::string_view format);

// A value as JSON text. NaN and infinities, which JSON does not have, as Python spells them: "NaN", "-Infinity".
std::string json_text(const Value& value);

// "a, b become JSON text", for the end of a sentence about these attributes; what becomes of numbers that JSON does not
// have is part of it.
std::string becomes_json_text(const Attributes& attributes, const std::vector<std::string>& names);

// What text_attributes() makes of a vocabulary that attributes describe, in a sentence for people. Empty: there is
// none.
std::string text_loss(const DescribedVocabulary& described, std::string_view format);

// "a, b, c, d, e, ...": the first few, for a message.
std::string listed(const std::vector<std::string>& names);

// The three alone, for formats whose attributes need not be text.
Attributes metadata_attributes(const Model& model);

// "poise.config" alone, as JSON. Throws unsupported where JSON cannot hold it, or readers would not take it.
std::string config_text(const Model& model);

// "poise.card" alone, as JSON; nothing for an empty card.
std::optional<std::string> card_text(const Card& card);
// The reverse: takes it out of model.attributes. Throws invalid_file.
std::optional<Card> take_card_text(Model& model);

// Throws unsupported for a number that JSON cannot hold, wherever it is in the map, and names its key after `what`.
void require_finite(const Attributes& map, std::string_view what = "config");

// Throws unsupported when values of that reading_cost() in a text of that size are more than readers take.
void require_readable(std::uint64_t cost, std::uint64_t text_bytes);

// The reverse: moves Poise's three attributes from model.attributes into card, config and vocabulary. Throws
// invalid_file naming attribute and field when one of them does not parse.
void take_text_attributes(Model& model);

}  // namespace poise
