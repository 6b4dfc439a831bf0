#pragma once

#include "jinja/interpreter.hpp"

namespace poise::jinja {

// lipsum(n=5, html=true, min=20, max=100): paragraphs of random Latin words.
Object lorem_ipsum(Interpreter& in, Parameters& given);

}  // namespace poise::jinja
