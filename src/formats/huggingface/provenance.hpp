// The card of a Hugging Face model, and an id made from its content.
#pragma once

#include <string>

#include <poise/model.hpp>

#include "formats/front_matter.hpp"

namespace poise {

// Returns the fields that config.json and the README's front matter state; the rest stays empty.
Card read_card(const Attributes& config, const FrontMatter& front_matter);

// Fills in empty fields of a card, for a format that stores all fields: from the model's content, from other fields,
// and the dates from the environment variable SOURCE_DATE_EPOCH if it is set. Throws bad_argument if that is not a
// date, io.
void complete_card(const Model& model, Card& card);

// Returns a version 8 UUID (RFC 9562) made from the SHA-256 of configuration, vocabulary and tensors: their names,
// shapes, types, and the first and last 4 KiB of their bytes. The same model gives the same id, however its files are
// split.
std::string make_content_uuid(const Model& model);

}  // namespace poise
