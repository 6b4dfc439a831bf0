// The fields of a card as a caller gives them: text that every format can hold, and days.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <poise/model.hpp>

namespace poise {

// The day of "YYYY-MM-DD" or of an ISO 8601 timestamp that begins with it, as "YYYY-MM-DD". Nothing when it is neither
// or there is no such day.
std::optional<std::string> day_of(std::string_view text);

// The card with days for dates. Throws bad_argument, naming field and value, for text that is not UTF-8 and dates that
// are none. Empty fields stay.
Card checked_card(Card card);

}  // namespace poise
