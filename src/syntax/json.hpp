// JSON texts with a budget of their own, and those that are too large to be kept as one value.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include <poise/value.hpp>

#include "syntax/value_budget.hpp"

namespace poise {

// As poise::parse_json(), which takes the usual budget.
Value parse_json(std::string_view text, const std::string& name, ValueBudget budget);

// Gets a member of an object: its key, its value, and where its key begins in the file.
using TakeMember = std::function<void(std::string key, Value value, std::uint64_t offset)>;

// Gives the members of the object that the text is to `take_member`, in their order, and keeps none. Everything else is as with
// parse_json().
void parse_json_members(std::string_view text, const std::string& name, std::uint64_t offset, const TakeMember& take_member);

}  // namespace poise
