// GPT-2.
#pragma once

#include "family/family.hpp"

namespace poise {

extern const Family kGpt2Family;

}  // namespace poise
