// Checks cards: texts in UTF-8, and dates without a time, which every format can hold. Warns of unknown tensor types.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <poise/finding.hpp>
#include <poise/model.hpp>

namespace poise {

// Returns "YYYY-MM-DD" from a date in this form, or from an ISO 8601 timestamp that begins with it; std::nullopt for
// other texts and for days that do not exist.
std::optional<std::string> extract_day(std::string_view text);

// Names a text of a card. list_card_fields() has the order of ALT's general section.
struct CardField {
  std::string_view name;
  std::string Card::*text;
};
std::span<const CardField> list_card_fields();

// Returns the names of the card's empty fields.
std::vector<std::string> list_empty_card_fields(const Card& card);

// Returns the card with its dates cut to days. Empty fields stay empty. Throws bad_argument, which names field and
// value, for invalid UTF-8 and invalid dates.
Card normalize_card(Card card);

// Adds a warning about unchecked elements for each tensor of Layout::other without a scheme, unless `is_known_layout`
// accepts the layout's name, and for each part of an unknown type.
void warn_of_unknown_types(const Model& model, bool (*is_known_layout)(std::string_view),
                           std::vector<Finding>& findings);

}  // namespace poise
