// Mixtral: Mistral with experts.
#pragma once

#include "family/family.hpp"

namespace poise {

extern const Family kMixtralFamily;

}  // namespace poise
