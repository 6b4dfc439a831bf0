// Computes Python's operators on objects.
#pragma once

#include <string_view>

#include "jinja/interpreter.hpp"

namespace poise::jinja {

// Returns `left sign right`. The sign is + - * / // % or **.
Object compute(Interpreter& in, std::string_view sign, const Object& left, const Object& right);
Object apply_sign(const Object& value, bool is_negative);
// Returns true if `left sign right` holds. The sign is == != < <= > or >=.
bool compare(Budget& budget, std::string_view sign, const Object& left, const Object& right);
// Returns object[start:stop:step]. A bound that is None counts as left out.
Object slice_object(Budget& budget, const Object& object, const Object& start, const Object& stop, const Object& step);

}  // namespace poise::jinja
