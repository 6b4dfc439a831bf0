// The fields of a card as a caller gives them: texts that every format can hold, and dates.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <poise/model.hpp>

namespace poise {

// The date of "YYYY-MM-DD" or of an ISO 8601 timestamp that begins with it, as "YYYY-MM-DD". Nothing for other texts
// and for days that do not exist.
std::optional<std::string> day_of(std::string_view text);

// The card with its dates cut to days. Throws bad_argument, naming field and value, for invalid UTF-8 and invalid
// dates. Empty fields stay.
Card checked_card(Card card);

}  // namespace poise
