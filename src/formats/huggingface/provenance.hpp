// Makes the card of a Hugging Face model, and an id from its content.
#pragma once

#include <string>

#include <poise/model.hpp>

#include "formats/front_matter.hpp"

namespace poise {

// Returns a card with the fields that config.json and the README's front matter state.
Card read_card(const Attributes& config, const FrontMatter& front_matter);

// Fills in empty fields of a card, for a format that stores all fields: the author from base_model, the id from the
// model's content, and the dates from the environment variable SOURCE_DATE_EPOCH if it is set. Throws io, and
// bad_argument if the variable is not a number of seconds before the year 10000.
void complete_card(const Model& model, Card& card);

// Returns a version 8 UUID (RFC 9562) made from the SHA-256 of configuration, vocabulary and tensors: their names,
// shapes, types, and the first and last 4 KiB of their bytes. The same model gives the same id, however its files are
// split.
std::string make_content_uuid(const Model& model);

}  // namespace poise
