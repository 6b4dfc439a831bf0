// OLMo 2.
#pragma once

#include "family/family.hpp"

namespace poise {

extern const Family kOlmo2Family;

}  // namespace poise
