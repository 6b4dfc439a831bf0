#include "model/card.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poise/error.hpp>

namespace poise {
namespace {

using testing::HasSubstr;

TEST(Card, DaysAndTimestamps) {
  for (const std::string_view text :
       {"2024-07-05", "2024-07-05T12:34", "2024-07-05T12:34:56Z", "2024-07-05 12:34:56.789012",
        "2024-07-05T12:34:56+02:00", "2024-07-05T12:34:60,5-0330", "2024-07-05t23:59:59z"}) {
    EXPECT_EQ(extract_day(text), "2024-07-05") << text;
  }
  EXPECT_EQ(extract_day("2024-02-29"), "2024-02-29");
}

TEST(Card, WhatIsNoDay) {
  for (const std::string_view text :
       {"", "x", "2024", "2024-7-5", "05-07-2024", "2024/07/05", "2024-13-01", "2024-00-01", "2023-02-29", "2024-07-00",
        "2024-07-05x", "2024-07-05T", "2024-07-05T24:00", "2024-07-05T12:34:56+25:00", "2024-07-05T12:34:56Zulu",
        " 2024-07-05"}) {
    EXPECT_EQ(extract_day(text), std::nullopt) << text;
  }
}

TEST(Card, AFaultNamesFieldAndValue) {
  const auto fault = [](std::string Card::*field, std::string text) -> std::string {
    Card card;
    card.*field = std::move(text);
    try {
      normalize_card(card);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::bad_argument);
      return error.what();
    }
    return "none";
  };
  EXPECT_EQ(fault(&Card::license, ""), "none");
  EXPECT_EQ(fault(&Card::license, "MIT \xe2\x9c\x93"), "none");
  EXPECT_THAT(fault(&Card::license, "MIT\xff"), HasSubstr("license: \"MIT\xff\""));
  EXPECT_THAT(fault(&Card::created_at, "x"), HasSubstr("created_at: \"x\": expected YYYY-MM-DD"));
}

}  // namespace
}  // namespace poise
