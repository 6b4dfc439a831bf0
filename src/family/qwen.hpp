// Qwen2, Qwen2.5, Qwen3 and Qwen3's mixture of experts.
#pragma once

#include "family/family.hpp"

namespace poise {

extern const Family kQwen2Family;
extern const Family kQwen3Family;
extern const Family kQwen3MoeFamily;

}  // namespace poise
