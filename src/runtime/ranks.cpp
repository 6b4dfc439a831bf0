#include "runtime/ranks.hpp"

#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>

namespace poise {

DecoderPlan plan_of_rank(DecoderPlan plan, const Ranks& ranks) {
  if (plan.heads % ranks.count != 0 || plan.kv_heads % ranks.count != 0) {
    throw Error(ErrorKind::unsupported, fmt::format("{} heads of queries and {} of keys and values do not divide among "
                                                    "{} ranks",
                                                    plan.heads, plan.kv_heads, ranks.count));
  }
  plan.heads /= ranks.count;
  plan.kv_heads /= ranks.count;
  return plan;
}

}  // namespace poise
