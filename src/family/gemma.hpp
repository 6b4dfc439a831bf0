// Gemma, Gemma 2 and Gemma 3's language model.
#pragma once

#include "family/family.hpp"

namespace poise {

extern const Family kGemmaFamily;
extern const Family kGemma2Family;
extern const Family kGemma3TextFamily;
extern const Family kGemma3Family;

}  // namespace poise
