// Values of options: parsed as a whole, or rejected with the option's name, the value, and what was expected.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <poise/tokenizer.hpp>

#include "bytes/number_text.hpp"
#include "bytes/utf8.hpp"

namespace poise::cli {

template <typename Number>
struct NumberRange {
  Number least = std::numeric_limits<Number>::lowest();
  Number most = std::numeric_limits<Number>::max();
};

// Throws what CLI11 reports as "OPTION: "TEXT": expected EXPECTED".
[[noreturn]] void refuse(std::string_view option, std::string_view text, std::string_view expected);

// Throws what refuse() throws for text that is not a number in the range.
template <typename Number>
Number parse_number(std::string_view option, std::string_view text, const NumberRange<Number>& range = {}) {
  const auto number = number_from<Number>(text);
  if (number && *number >= range.least && *number <= range.most) return *number;
  constexpr const char* kKind = std::integral<Number> ? "a whole number" : "a number";
  const bool bounded = std::integral<Number> || range.most < std::numeric_limits<Number>::max();
  refuse(option, text, bounded ? fmt::format("{} from {} to {}", kKind, range.least, range.most) : kKind);
}

// Token ids: "1,2,3". Throws what refuse() throws for other text.
std::vector<TokenId> parse_tokens(std::string_view option, std::string_view text);

// "--max-tokens" of "-n,--max-tokens".
std::string long_name(const std::string& names);

// An option whose value is a number; its default is the current `value`. Requires: `value` outlives the command.
template <typename Number>
requires std::is_arithmetic_v<Number> CLI::Option* add_number(CLI::App& command, const std::string& names,
                                                              Number& value, const std::string& description,
                                                              const NumberRange<Number>& range = {}) {
  const auto set = [name = long_name(names), range, &value](const std::string& text) {
    value = parse_number(name, text, range);
  };
  return command.add_option_function<std::string>(names, set, description)
      ->type_name("N")
      ->default_str(fmt::format("{}", value));
}

// The same for one without a default.
template <typename Number>
CLI::Option* add_number(CLI::App& command, const std::string& names, std::optional<Number>& value,
                        const std::string& description, const NumberRange<Number>& range = {}) {
  const auto set = [name = long_name(names), range, &value](const std::string& text) {
    value = parse_number(name, text, range);
  };
  return command.add_option_function<std::string>(names, set, description)->type_name("N");
}

// An option whose value is a size of at least one byte.
CLI::Option* add_size(CLI::App& command, const std::string& names, std::optional<std::uint64_t>& value,
                      const std::string& description);

// An option whose value is one of a few names. `value` may be an optional.
template <typename Value, typename Choice>
CLI::Option* add_choice(CLI::App& command, const std::string& names, Value& value,
                        const std::vector<std::pair<std::string_view, Choice>>& choices,
                        const std::string& description) {
  const auto all = [choices](std::string_view separator) {
    std::string text;
    for (const auto& [name, choice] : choices) text += (text.empty() ? "" : std::string(separator)) + std::string(name);
    return text;
  };
  const auto set = [name = long_name(names), choices, all, &value](const std::string& text) {
    const auto found =
        std::ranges::find(choices, to_lower_ascii(text), [](const auto& choice) { return choice.first; });
    if (found == choices.end()) refuse(name, text, "one of " + all(", "));
    value = found->second;
  };
  return command.add_option_function<std::string>(names, set, description)->type_name(all("|"));
}

// For an option's check().
CLI::Validator not_empty();
CLI::Validator is_text();

}  // namespace poise::cli
