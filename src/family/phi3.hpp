// Phi-3, Phi-3.5 and Phi-4.
#pragma once

#include "family/family.hpp"

namespace poise {

extern const Family kPhi3Family;

}  // namespace poise
