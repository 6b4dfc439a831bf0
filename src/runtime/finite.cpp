#include "runtime/finite.hpp"

#include <cmath>

#include <fmt/format.h>

#include <poise/error.hpp>

namespace poise {

void refuse_non_finite(const std::string& what, double value, const std::string& path) {
  const char* const name = std::isnan(value) ? "NaN" : value > 0 ? "infinite" : "minus infinity";
  throw Error(ErrorKind::unsupported,
              fmt::format("{} is {}: the weights hold values that are not finite, or overflow", what, name), path);
}

}  // namespace poise
