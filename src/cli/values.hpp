// Adds options to commands, and parses their values. Errors name the option, its value and the values that it takes.
// Requires, for all functions with `value`: the variable outlives the command.
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
  if (bounded) refuse(option, text, fmt::format("{} from {} to {}", kKind, range.least, range.most));
  const bool has_least = range.least > std::numeric_limits<Number>::lowest();
  refuse(option, text, has_least ? fmt::format("{} of at least {}", kKind, range.least) : kKind);
}

// Parses token ids: "1,2,3". Throws what refuse() throws for other text.
std::vector<TokenId> parse_tokens(std::string_view option, std::string_view text);

// Returns the last of an option's names, which have commas between them: "--max-tokens" of "-n,--max-tokens".
std::string find_long_name(const std::string& names);

// Adds an option. `parse` gets its value, and throws what refuse() throws if that is bad. `type` names it in help.
CLI::Option* add_parsed_option(CLI::App& command, const std::string& names, const std::string& type,
                               const std::string& description,
                               const std::function<void(const std::string& text)>& parse);
// Adds an option that may be repeated. `parse` gets each of its values in turn.
CLI::Option* add_parsed_list_option(CLI::App& command, const std::string& names, const std::string& type,
                                    const std::string& description,
                                    const std::function<void(const std::string& text)>& parse);

// Adds an option whose value is a number in the range. Help shows the current `value` as its default.
template <typename Number>
requires std::is_arithmetic_v<Number> CLI::Option* add_number_option(CLI::App& command, const std::string& names,
                                                                     Number& value, const std::string& description,
                                                                     const NumberRange<Number>& range = {}) {
  const auto set = [name = find_long_name(names), range, &value](const std::string& text) {
    value = parse_number(name, text, range);
  };
  return add_parsed_option(command, names, "N", description, set)->default_str(fmt::format("{}", value));
}

// Adds an option whose value is a number in the range. Help shows no default.
template <typename Number>
CLI::Option* add_number_option(CLI::App& command, const std::string& names, std::optional<Number>& value,
                               const std::string& description, const NumberRange<Number>& range = {}) {
  const auto set = [name = find_long_name(names), range, &value](const std::string& text) {
    value = parse_number(name, text, range);
  };
  return add_parsed_option(command, names, "N", description, set);
}

// Adds an option whose value is a size of at least one byte, as parse_size() reads it ("64KiB").
CLI::Option* add_size_option(CLI::App& command, const std::string& names, std::optional<std::uint64_t>& value,
                             const std::string& description);

// Adds an option whose value is one of a few names, in upper or lower case. `value` may be a std::optional. Requires:
// `choices` has names in lower case.
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

// Returns a check for CLI::Option::check() that refuses an empty value.
CLI::Validator make_nonempty_check();
// Returns a check that refuses an empty value, and a value that is not UTF-8.
CLI::Validator make_text_check();

// Adds an option whose value is a text that is not empty. `value` may be a std::optional.
template <typename Value>
CLI::Option* add_text_option(CLI::App& command, const std::string& names, Value& value, const std::string& type,
                             const std::string& description) {
  return command.add_option(names, value, description)->check(make_nonempty_check())->type_name(type);
}

}  // namespace poise::cli
