// Python's operators on objects.
#pragma once

#include <string_view>

#include "jinja/interpreter.hpp"

namespace poise::jinja {

// left sign right; sign: + - * / // % **
Object compute(Interpreter& in, std::string_view sign, const Object& left, const Object& right);
Object with_sign(const Object& value, bool is_negative);
// sign: == != < <= > >=
bool compares(Budget& budget, std::string_view sign, const Object& left, const Object& right);
// of[start:stop:step]; None: left out.
Object slice_of(Budget& budget, const Object& of, const Object& start, const Object& stop, const Object& step);

}  // namespace poise::jinja
