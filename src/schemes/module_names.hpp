// Which modules the lists of a quantization_config name, as compressed-tensors matches them: by names, by "re:" and a
// regular expression for the beginning of a name, and by classes.
#pragma once

#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include <poise/model.hpp>

#include "bytes/regex.hpp"

namespace poise {

// How a list names a module, the surest way last. Matrices are of the class Linear, as far as files tell.
enum class Naming : std::uint8_t { none, by_other_class, by_class, by_expression, by_name };

class ModuleNames {
 public:
  struct Match {
    Naming naming = Naming::none;
    std::string_view target = {};  // of several expressions the first in the order of characters
  };

  // Other values than texts name nothing. Throws invalid_file (without path) for an invalid expression; and unsupported
  // for more expressions than any real file has, and once they have taken longer than any real ones do. Requires: the
  // list lives as long as this.
  Match match(const Value::Array& list, const std::string& module);

 private:
  using Clock = std::chrono::steady_clock;
  struct Expression {
    std::string_view target;
    std::unique_ptr<const Regex> regex;
    std::unique_ptr<RegexMatcher> matcher;
  };
  struct Targets {
    std::unordered_set<std::string_view> names;
    std::vector<Expression> expressions;
    std::string_view linear = {};
    std::string_view other_class = {};
  };

  const Targets& targets_of(const Value::Array& list);
  Expression read(std::string_view target);
  bool matches(const Expression& expression, const std::string& module);
  void spend(Clock::duration time);

  std::map<const Value::Array*, Targets> read_;
  std::size_t expressions_ = 0;  // that were read
  Clock::duration spent_{};
};

}  // namespace poise
