// SmolLM3.
#pragma once

#include "family/family.hpp"

namespace poise {

extern const Family kSmolLm3Family;

}  // namespace poise
