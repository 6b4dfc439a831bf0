// Mistral, also as the text model of Mistral 3, and Llama (1, 2 and 3): one architecture with two sets of defaults.
#pragma once

#include "family/family.hpp"

namespace poise {

extern const Family kMistralFamily;
extern const Family kMistral3Family;
extern const Family kLlamaFamily;

}  // namespace poise
