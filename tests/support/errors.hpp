// The errors of a call, for tests that check them.
#pragma once

#include <string>

#include <gtest/gtest.h>

#include <poise/error.hpp>

namespace poise::support {

// Returns the Error that `action` throws; if it throws none, one of kind `internal` with "nothing was thrown".
template <typename Action>
Error error_of(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorKind::internal, "nothing was thrown");
}

// Returns the message and place of the Error that `action` throws; empty if it throws none. An internal error fails the
// test.
template <typename Action>
std::string message_of(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_NE(error.kind(), ErrorKind::internal) << error.what();
    return error.what();
  }
  return {};
}

}  // namespace poise::support
