// Failure: why a template stopped. Template adds the line and throws poise::Error.
#pragma once

#include <stdexcept>
#include <string>

namespace poise::jinja {

enum class FailureKind {
  syntax,   // the template is malformed
  runtime,  // what Python raises as TypeError, UndefinedError, ...
  raised,   // by raise_exception()
  limit,    // too many steps, too deep, too long
};

struct Failure : std::runtime_error {
  Failure(FailureKind kind_, const std::string& message) : std::runtime_error(message), kind(kind_) {}
  FailureKind kind;
};

[[noreturn]] inline void fail(const std::string& message) { throw Failure(FailureKind::runtime, message); }

}  // namespace poise::jinja
