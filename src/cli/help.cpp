// poise help: shows what --help shows, under a name that many users try first.
#include "cli/help.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "cli/commands.hpp"
#include "cli/text.hpp"

namespace poise::cli {
namespace {

// Returns the width of the terminal, within limits that keep help easy to read.
std::size_t choose_help_width() {
  constexpr std::size_t kLeast = 60;
  constexpr std::size_t kMost = 110;
  constexpr std::size_t kUsual = 100;
  return std::clamp(find_terminal_columns(STDOUT_FILENO).value_or(kUsual), kLeast, kMost);
}

// Appends words, broken into lines that begin at column `indent`; the first line begins at column `at`.
void append_wrapped(std::string& out, std::string_view text, std::size_t indent, std::size_t at) {
  bool is_first = true;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    if (!is_first && at + 1 + word.size() > choose_help_width()) {
      out += '\n';
      out.append(indent, ' ');
      at = indent;
    } else if (!is_first) {
      out += ' ';
      ++at;
    }
    out += word;
    at += word.size();
    is_first = false;
  }
}

// Returns the help text of one option or command: "  NAME      description".
std::string make_help_entry(std::string_view name, std::string_view description) {
  constexpr std::size_t kIndent = 26;
  std::string line = fmt::format("  {}", name);
  if (line.size() + 2 > kIndent) {
    line += '\n';
    line.append(kIndent, ' ');
  } else {
    line.append(kIndent - line.size(), ' ');
  }
  append_wrapped(line, description, kIndent, kIndent);
  return line + "\n";
}

// Colours a heading if standard output and standard error both show colours: help goes to standard output, but to
// standard error if no command is given.
std::string paint_heading(std::string_view text) {
  return has_colors(STDERR_FILENO) ? paint(text, Color::bold, STDOUT_FILENO) : std::string(text);
}

std::string make_section_title(const std::string& title) { return fmt::format("\n{}\n", paint_heading(title + ":")); }

bool accepts_value(const CLI::Option& option) { return option.get_type_size() != 0; }

bool accepts_several_values(const CLI::Option& option) {
  return option.get_expected_max() >= CLI::detail::expected_max_vector_size;
}

// Returns an argument as the usage line shows it: "PATH...", "[TEXT]" if it is optional, "-o OUT" if it may also be
// given by an option's letter.
std::string describe_usage(const CLI::Option& option) {
  const std::string name = option.get_name(true, false);
  const std::string letter = option.get_snames().empty() ? "" : "-" + option.get_snames().front() + " ";
  const std::string text = letter + name + (accepts_several_values(option) ? "..." : "");
  return option.get_required() ? text : "[" + text + "]";
}

// Returns the names of an option and of its value: "-n, --max-tokens N".
std::string format_option_name(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  std::string text = fmt::format("{}", fmt::join(names, ", "));
  if (!accepts_value(option)) return text;
  const std::string value = option.get_positional() ? option.get_name(true, false) : option.get_type_name();
  if (!value.empty()) text += (text.empty() ? "" : " ") + value;
  return text + (accepts_several_values(option) ? "..." : "");
}

template <typename Options>
std::string join_option_names(const Options& options) {
  std::vector<std::string> names;
  names.reserve(options.size());
  for (const CLI::Option* option : options) names.push_back(option->get_name());
  std::ranges::sort(names);
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string format_description(const CLI::Option& option) {
  std::string text = option.get_description();
  if (accepts_value(option) && !option.get_default_str().empty())
    text += fmt::format(" (default: {})", option.get_default_str());
  if (!option.get_needs().empty()) text += fmt::format(" (with {})", join_option_names(option.get_needs()));
  if (!option.get_excludes().empty()) text += fmt::format(" (not with {})", join_option_names(option.get_excludes()));
  return text;
}

std::string make_usage(const CLI::App& app, const std::string& name) {
  std::vector<std::string> words = {name};
  if (!app.get_subcommands({}).empty()) words.emplace_back("COMMAND ...");
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) words.push_back(describe_usage(*option));
  }
  if (app.get_parent() != nullptr) words.emplace_back("[OPTIONS]");
  return fmt::format("{}", fmt::join(words, " "));
}

class HelpFormatter final : public CLI::FormatterBase {
 public:
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode) const override {
    std::string text;
    append_wrapped(text, app->get_description(), 0, 0);
    text += fmt::format("\n\n{} {}\n", paint_heading("Usage:"), make_usage(*app, name));
    text += make_option_section("Arguments",
                                app->get_options([](const CLI::Option* option) { return option->get_positional(); }));
    for (const std::string& group : app->get_groups()) {
      text += make_option_section(group, app->get_options([&](const CLI::Option* option) {
        return !option->get_positional() && option->get_group() == group;
      }));
    }
    text += make_command_section(*app);
    if (!app->get_footer().empty()) text += "\n" + app->get_footer();
    return text;
  }

 private:
  static std::string make_option_section(const std::string& title, const std::vector<const CLI::Option*>& options) {
    if (options.empty() || title.empty()) return {};
    std::string text = make_section_title(title);
    for (const CLI::Option* option : options)
      text += make_help_entry(format_option_name(*option), format_description(*option));
    return text;
  }

  static std::string make_command_section(const CLI::App& app) {
    const auto all = app.get_subcommands({});
    if (all.empty()) return {};
    std::string text = make_section_title("Commands");
    for (const CLI::App* command : all) text += make_help_entry(command->get_name(), command->get_description());
    return text;
  }
};

}  // namespace

std::shared_ptr<CLI::FormatterBase> make_help_formatter() { return std::make_shared<HelpFormatter>(); }

std::string make_usage_line(const CLI::App& command) {
  const CLI::App* const parent = command.get_parent();
  return make_usage(command, parent == nullptr ? command.get_name() : parent->get_name() + " " + command.get_name());
}

std::string make_overview(const CLI::App& app) {
  return app.get_formatter()->make_help(&app, app.get_name(), CLI::AppFormatMode::Normal);
}

void add_help_command(CLI::App& app) {
  const auto name = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("help", "Show this, or the options of a command, as --help does");
  command->add_option("COMMAND", *name, "The command");
  command->callback([&app, name] {
    if (name->empty()) {
      fmt::print("{}", make_overview(app));
      return;
    }
    require_known_command(app, *name);
    fmt::print("{}", app.get_subcommand(*name)->help(app.get_name()));
  });
}

namespace {

// Holds the words that CLI11 puts between the names of two options, and Poise's words for them.
struct Phrase {
  std::string_view theirs;
  std::string_view ours;
};
constexpr std::array kPhrases = {Phrase{" excludes ", " cannot be used with "}, Phrase{" requires ", " needs "}};

// Returns "--prompt" of "--prompt: 1 required TEXT missing".
std::string find_option_name(std::string_view message) { return std::string(message.substr(0, message.find(':'))); }

const CLI::App& find_chosen_command(const CLI::App& app) {
  const auto commands = app.get_subcommands();
  return commands.empty() ? app : *commands.front();
}

std::string append_usage(const CLI::App& app, const std::string& problem) {
  return fmt::format("{}; usage: {}", problem, make_usage_line(find_chosen_command(app)));
}

// Describes arguments that the command does not take.
std::string describe_extras(const CLI::App& app) {
  std::vector<std::string> extras;
  for (const std::string& argument : find_chosen_command(app).remaining()) {
    if (argument != "--") extras.push_back(fmt::format("\"{}\"", make_printable(argument)));
  }
  return append_usage(app,
                      fmt::format("unexpected argument{}: {}", extras.size() == 1 ? "" : "s", fmt::join(extras, " ")));
}

}  // namespace

std::string make_usage_message(const CLI::App& app, const CLI::ParseError& error) {
  const std::string text = error.what();
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) return describe_extras(app);
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr)
    return append_usage(app, fmt::format("{} is missing", text.substr(0, text.find(" is required"))));
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    const std::string name = find_option_name(text);
    if (text.ends_with(" missing")) return name + " needs a value";
    const CLI::Option* const option = find_chosen_command(app).get_option_no_throw(name);
    if (option == nullptr || !option->get_positional()) return name + " can be given only once";
    return append_usage(app, fmt::format("{} is given both as an option and as an argument", name));
  }
  if (dynamic_cast<const CLI::ConversionError*>(&error) != nullptr) {  // "Could not convert: --json = yes"
    const std::size_t begin = text.find("--");
    const std::string name = begin == std::string::npos ? "" : text.substr(begin, text.find(" = ") - begin);
    const CLI::Option* const option = find_chosen_command(app).get_option_no_throw(name);
    if (option != nullptr && option->get_items_expected_max() == 0) return name + " takes no value";
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
