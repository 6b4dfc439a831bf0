// The includes of README.md's example, and all that it says of the library.
#include <poise/convert.hpp>
#include <poise/session.hpp>
#include <poise/values.hpp>

#include <gtest/gtest.h>

namespace {

TEST(Readme, ErrorsAreSeenWithItsIncludes) {
  try {
    poise::open("/nothing");
    FAIL();
  } catch (const poise::Error& error) {
    EXPECT_EQ(error.kind(), poise::ErrorKind::not_found);
  }
}

}  // namespace
