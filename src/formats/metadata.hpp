// Stores a model's card, configuration and vocabulary in three attributes, for formats that have no other place for
// them. Converts other attributes to text, for formats whose attributes are texts.
//
// The three attributes hold JSON: "poise.card", "poise.config" (config.json's keys) and "poise.vocabulary"
// (docs/formats/ztensor.md).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <poise/edit.hpp>
#include <poise/model.hpp>

#include "bytes/function_ref.hpp"

namespace poise {

// Returns the attributes with all values as texts: JSON for values that are not text already.
Attributes make_text_attributes(const Attributes& attributes);

// Holds the vocabulary that a model's attributes describe in GGUF's terms. `made` is std::nullopt if the model has a
// vocabulary of its own, or if the attributes give none.
struct DescribedVocabulary {
  std::optional<Vocabulary> made;
  Attributes attributes;  // the model's, without those that `made` holds
  std::string
      problem;  // why Poise cannot make a vocabulary of the attributes; empty if it can, or if none describe one
};
DescribedVocabulary make_described_vocabulary(const Model& model);

// Returns the model's attributes as texts, followed by Poise's three attributes for card, configuration and vocabulary;
// the vocabulary may be one that the attributes describe.
Attributes make_text_attributes(const Model& model);

// Returns a sentence about how make_text_attributes() changes attributes other than texts; empty if all are texts.
std::string describe_text_loss(const Attributes& attributes, std::string_view format);

// Returns the items of a JSON array; std::nullopt for another text.
std::optional<Value> parse_json_list(std::string_view text);

// Returns the end of a sentence about these attributes: "a, b become JSON text", and how NaN and infinities are
// spelled.
std::string describe_json_texts(const Attributes& attributes, const std::vector<std::string>& names);

// Returns a sentence about how make_text_attributes() changes a vocabulary that attributes describe; empty if there is
// none.
std::string describe_text_loss(const DescribedVocabulary& described, std::string_view format);

// Returns only Poise's three attributes, for formats whose attributes need not be text.
Attributes make_metadata_attributes(const Model& model);

// Returns the JSON of "poise.config". Throws unsupported if JSON cannot hold the configuration, or readers would reject
// it.
std::string make_config_text(const Model& model);

// Returns the JSON of "poise.card"; std::nullopt for an empty card.
std::optional<std::string> make_card_text(const Card& card);
// Parses "poise.card" and removes it from model.attributes; std::nullopt if it is missing. Throws invalid_file.
std::optional<Card> parse_card(Model& model);

// Throws unsupported if a number anywhere in the map is not finite. The message has `what` and the key.
void require_finite(const Attributes& map, std::string_view what = "config");

// Throws unsupported if readers would reject values of this measure_cost() in a text of this size.
void require_readable(std::uint64_t cost, std::uint64_t text_bytes);

// Moves Poise's three attributes from model.attributes into card, config and vocabulary. Throws invalid_file, which
// names attribute and field, if one of them is not valid.
void parse_text_attributes(Model& model);

// Applies changes with the format's functions, first those that erase, and returns the new keys. erase(key) returns
// false if the key is missing; set(key, value) returns true if it is new. Throws bad_argument if there is nothing to
// change, for a key that is changed twice, and for a missing key to erase.
std::vector<std::string> apply_changes(const AttributeChanges& changes, FunctionRef<bool(const std::string&)> erase,
                                       FunctionRef<bool(const std::string&, const Value&)> set);

// Returns a vocabulary as a JSON object: the value of the attribute "poise.vocabulary" (docs/formats/ztensor.md).
// Scores that JSON lacks become the texts "inf", "-inf" and "nan"; texts of tokens that are not UTF-8, or begin with
// NUL, become NUL and hexadecimal digits. Throws unsupported for more than kMaxMerges merges, and for other numbers
// that are not finite.
std::string make_vocabulary_json(const Vocabulary& vocabulary);

// Parses the result of make_vocabulary_json(). Errors name `attribute` and `path`, the model's file. Throws
// invalid_file.
Vocabulary parse_vocabulary_json(std::string_view json, std::string_view attribute, const std::string& path);

}  // namespace poise
