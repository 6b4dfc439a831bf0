// gpt-oss.
#pragma once

#include "family/family.hpp"

namespace poise {

extern const Family kGptOssFamily;

}  // namespace poise
