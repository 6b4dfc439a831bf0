#include "cli/usage_errors.hpp"

#include <array>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/help.hpp"
#include "cli/text.hpp"

namespace poise::cli {
namespace {

// The parser's phrase between the names of two options, and ours.
struct Phrase {
  std::string_view theirs;
  std::string_view ours;
};
constexpr std::array kPhrases = {Phrase{" excludes ", " cannot be used with "}, Phrase{" requires ", " needs "}};

// "--prompt" of "--prompt: 1 required TEXT missing".
std::string option_of(std::string_view message) { return std::string(message.substr(0, message.find(':'))); }

const CLI::App& chosen_command(const CLI::App& app) {
  const auto commands = app.get_subcommands();
  return commands.empty() ? app : *commands.front();
}

std::string with_usage(const CLI::App& app, const std::string& problem) {
  return fmt::format("{}; usage: {}", problem, usage_line(chosen_command(app)));
}

// Arguments that no argument of the command is left for.
std::string message_of_extras(const CLI::App& app) {
  std::vector<std::string> extras;
  for (const std::string& argument : chosen_command(app).remaining()) {
    if (argument != "--") extras.push_back(fmt::format("\"{}\"", printable(argument)));
  }
  return with_usage(app, fmt::format("there {} left over: {}", extras.size() == 1 ? "is an argument" : "are arguments",
                                     fmt::join(extras, " ")));
}

}  // namespace

std::string usage_message(const CLI::App& app, const CLI::ParseError& error) {
  const std::string text = error.what();
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) return message_of_extras(app);
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr)
    return with_usage(app, fmt::format("{} is missing", text.substr(0, text.find(" is required"))));
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    const std::string name = option_of(text);
    if (text.ends_with(" missing")) return name + " needs a value";
    const CLI::Option* const option = chosen_command(app).get_option_no_throw(name);
    if (option == nullptr || !option->get_positional()) return name + " can be given only once";
    return with_usage(app, fmt::format("{} is given twice: as an argument, too", name));
  }
  for (const auto& [theirs, ours] : kPhrases) {
    const std::size_t at = text.find(theirs);
    const bool is_relation = dynamic_cast<const CLI::ExcludesError*>(&error) != nullptr ||
                             dynamic_cast<const CLI::RequiresError*>(&error) != nullptr;
    if (is_relation && at != std::string::npos)
      return fmt::format("{}{}{}", text.substr(0, at), ours, text.substr(at + theirs.size()));
  }
  return text;
}

}  // namespace poise::cli
