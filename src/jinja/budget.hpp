// Limits a rendering, and reports why it fails: code throws a Failure, and Template::render() turns it into a
// poise::Error with the line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace poise::jinja {

enum class FailureKind {
  syntax,   // the template is malformed
  runtime,  // where Python raises TypeError, UndefinedError, ...
  raised,   // the template called raise_exception()
  limit,    // too many steps, too deep, too long
};

struct Failure : std::runtime_error {
  Failure(FailureKind kind_, const std::string& message) : std::runtime_error(message), kind(kind_) {}
  FailureKind kind;
};

[[noreturn]] inline void fail(const std::string& message) { throw Failure(FailureKind::runtime, message); }

// Limits one rendering. A template comes with a model, so it may be hostile.
struct Limits {
  std::uint64_t steps = 50'000'000;              // expressions, statements, items, parts of texts
  std::uint64_t bytes = std::uint64_t{1} << 30;  // the bytes of all values that are made, in total
  std::uint64_t output = std::uint64_t{1} << 26;
  std::size_t depth = 400;  // how deep expressions and statements nest, those of macros included
};

inline constexpr unsigned kMaxObjectDepth = 512;  // containers in containers

class Budget {
 public:
  explicit Budget(const Limits& limits) : limits_(limits) {}

  // Counts steps of the rendering. Throws if there are more than the limit allows.
  void step(std::uint64_t count = 1) {
    if (count > limits_.steps - steps_) throw Failure(FailureKind::limit, "the template takes too many steps");
    steps_ += count;
  }
  // Counts the bytes of a value. Throws beyond the limit. Call it before making a value that may be large.
  void charge(std::uint64_t bytes) {
    if (bytes > limits_.bytes - bytes_) throw Failure(FailureKind::limit, "the template makes too many values");
    bytes_ += bytes;
  }
  void charge(std::uint64_t count, std::uint64_t bytes_each) {
    if (count > limits_.bytes) throw Failure(FailureKind::limit, "the template makes too many values");
    charge(count * bytes_each);
  }
  const Limits& limits() const { return limits_; }
  // Returns a number that no other object of the rendering has.
  std::uint64_t number_object() { return ++objects_; }

 private:
  Limits limits_;
  std::uint64_t steps_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t objects_ = 0;
};

}  // namespace poise::jinja
