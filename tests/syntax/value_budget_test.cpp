// Writers assume at least the cost of a value that readers charge.
#include "syntax/value_budget.hpp"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "formats/metadata.hpp"
#include "syntax/json.hpp"

namespace poise {
namespace {

bool can_read(const Value& value, std::uint64_t values) {
  try {
    return parse_json(to_json(value), "test", ValueBudget::make_for_values(values)) == value;
  } catch (const Error&) {
    return false;
  }
}

TEST(ValueBudget, EveryValueIsCharged) {
  const Value::Array ten(10, Value(1));
  EXPECT_TRUE(can_read(ten, 10));  // the outermost value is free
  EXPECT_FALSE(can_read(ten, 9));
  EXPECT_TRUE(can_read(Value::Array{ten, ten}, 22));
  EXPECT_FALSE(can_read(Value::Array{ten, ten}, 21));
}

TEST(ValueBudget, KeysOfLargeMapsAreCharged) {
  Attributes small;
  for (int i = 0; i < 8; ++i) small.set(fmt::format("{}", i), 0);
  EXPECT_TRUE(can_read(small, 8));
  EXPECT_FALSE(can_read(small, 7));
  Attributes large = small;
  for (int i = 8; i < 100; ++i) large.set(fmt::format("{}", i), 0);
  EXPECT_FALSE(can_read(large, 100));
  EXPECT_TRUE(can_read(large, 200));
}

TEST(ValueBudget, WritersAssumeAtLeastTheCostsOfReaders) {
  const std::uint64_t cost = measure_cost(Value());
  Attributes map;
  for (int i = 0; i < 100; ++i) map.set(fmt::format("{}", i), Value::Array{i, Attributes{{"a", "b"}}});
  for (const Value& value : {Value(Value::Array(50, Value(1))), Value(map), Value("text")}) {
    EXPECT_TRUE(can_read(value, measure_cost(value) / cost));
    EXPECT_GE(measure_cost(value), cost);
  }
}

TEST(ValueBudget, ValuesThatReadersWouldRefuseAreNotWritten) {
  Attributes map;
  EXPECT_NO_THROW(require_readable(measure_cost(map), 100));
  std::vector<Attributes::Entry> entries;
  for (int i = 0; i < 700'000; ++i) entries.emplace_back(fmt::format("{}", i), "");
  map = Attributes::from_unique(std::move(entries));
  const std::string text = to_json(map);
  EXPECT_THROW(parse_json(text, "test"), Error);
  EXPECT_THROW(require_readable(measure_cost(map), text.size()), Error);
}

}  // namespace
}  // namespace poise
