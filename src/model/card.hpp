// The fields of a card as a caller gives them: texts that every format can hold, and dates.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <poise/finding.hpp>
#include <poise/model.hpp>

namespace poise {

// Returns the date of "YYYY-MM-DD" or of an ISO 8601 timestamp that begins with it, as "YYYY-MM-DD". std::nullopt for
// other texts and for days that do not exist.
std::optional<std::string> extract_day(std::string_view text);

// Describes a text of a card. The table is in the order of ALT's general section.
struct CardField {
  std::string_view name;
  std::string Card::*text;
};
std::span<const CardField> list_card_fields();

// Returns the card with its dates cut to days. Throws bad_argument, naming field and value, for invalid UTF-8 and
// invalid dates. Empty fields stay.
Card normalize_card(Card card);

// Adds a warning for elements that were not checked: for each tensor of Layout::other whose name `is_known_layout`
// rejects, and for each part of an unknown type.
void warn_of_unknown_types(const Model& model, bool (*is_known_layout)(std::string_view),
                           std::vector<Finding>& findings);

}  // namespace poise
