// Parses values of options. Errors name the option, the given value and the expected one.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <functional>
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

// Throws an error that CLI11 reports as `OPTION: "TEXT": expected EXPECTED`.
[[noreturn]] void refuse(std::string_view option, std::string_view text, std::string_view expected);

// Parses a number. Throws what refuse() throws for text that is not a number in the range.
template <typename Number>
Number parse_number(std::string_view option, std::string_view text, const NumberRange<Number>& range = {}) {
  const auto number = parse_number_text<Number>(text);
  if (number && *number >= range.least && *number <= range.most) return *number;
  constexpr const char* kKind = std::integral<Number> ? "a whole number" : "a number";
  const bool bounded = std::integral<Number> || range.most < std::numeric_limits<Number>::max();
  refuse(option, text, bounded ? fmt::format("{} from {} to {}", kKind, range.least, range.most) : kKind);
}

// Parses token ids: "1,2,3". Throws what refuse() throws for other text.
std::vector<TokenId> parse_tokens(std::string_view option, std::string_view text);

// Returns "--max-tokens" of "-n,--max-tokens".
std::string find_long_name(const std::string& names);

// Adds an option. `parse` reads its value, and throws what refuse() throws. `type` names the value in help.
CLI::Option* add_parsed_option(CLI::App& command, const std::string& names, const std::string& type,
                               const std::string& description,
                               const std::function<void(const std::string& text)>& parse);
// Adds an option that may be repeated, and whose values `parse` reads.
CLI::Option* add_parsed_list_option(CLI::App& command, const std::string& names, const std::string& type,
                                    const std::string& description,
                                    const std::function<void(const std::string& text)>& parse);

// Adds an option whose value is a number; its default is the current `value`. Requires: `value` outlives the command.
template <typename Number>
requires std::is_arithmetic_v<Number> CLI::Option* add_number_option(CLI::App& command, const std::string& names,
                                                                     Number& value, const std::string& description,
                                                                     const NumberRange<Number>& range = {}) {
  const auto set = [name = find_long_name(names), range, &value](const std::string& text) {
    value = parse_number(name, text, range);
  };
  return add_parsed_option(command, names, "N", description, set)->default_str(fmt::format("{}", value));
}

// Adds an option whose value is a number, and which has no default.
template <typename Number>
CLI::Option* add_number_option(CLI::App& command, const std::string& names, std::optional<Number>& value,
                               const std::string& description, const NumberRange<Number>& range = {}) {
  const auto set = [name = find_long_name(names), range, &value](const std::string& text) {
    value = parse_number(name, text, range);
  };
  return add_parsed_option(command, names, "N", description, set);
}

// Adds an option whose value is a size of at least one byte.
CLI::Option* add_size_option(CLI::App& command, const std::string& names, std::optional<std::uint64_t>& value,
                             const std::string& description);

// Adds an option whose value is one of a few names. `value` may be an optional.
template <typename Value, typename Choice>
CLI::Option* add_choice_option(CLI::App& command, const std::string& names, Value& value,
                               const std::vector<std::pair<std::string_view, Choice>>& choices,
                               const std::string& description) {
  const auto join_names = [choices](std::string_view separator) {
    std::string text;
    for (const auto& [name, choice] : choices) text += (text.empty() ? "" : std::string(separator)) + std::string(name);
    return text;
  };
  const auto set = [name = find_long_name(names), choices, join_names, &value](const std::string& text) {
    const auto found =
        std::ranges::find(choices, to_lower_ascii(text), [](const auto& choice) { return choice.first; });
    if (found == choices.end()) refuse(name, text, "one of " + join_names(", "));
    value = found->second;
  };
  return add_parsed_option(command, names, join_names("|"), description, set);
}

// Each function returns a check for CLI::Option::check(): that the value is not empty, or that it is UTF-8 and not
// empty.
CLI::Validator make_nonempty_check();
CLI::Validator make_text_check();

// Adds an option whose value is a text that is not empty. `value` may be an optional.
template <typename Value>
CLI::Option* add_text_option(CLI::App& command, const std::string& names, Value& value, const std::string& type,
                             const std::string& description) {
  return command.add_option(names, value, description)->check(make_nonempty_check())->type_name(type);
}

}  // namespace poise::cli
