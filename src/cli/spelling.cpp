#include "cli/spelling.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "cli/synonyms.hpp"
#include "cli/text.hpp"
#include "cli/values.hpp"

namespace poise::cli {
namespace {

// The edit distance: insertions, deletions and replacements.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, diagonal + 1, row[j] + 1});
    }
  }
  return row.back();
}

// The most similar name; nullptr if more than half of the given one would have to change.
const std::string* nearest(const std::vector<std::string>& names, std::string_view given) {
  const std::string small = to_lower_ascii(given);
  const auto to_given = [&](const std::string& name) { return distance(small, name); };
  const auto found = std::ranges::min_element(names, {}, to_given);
  return found == names.end() || to_given(*found) > given.size() / 2 ? nullptr : &*found;
}

// "; that is `poise convert ...`", "; the nearest is "verify"", or nothing. `command` is empty for commands.
std::string meant(std::string_view command, std::string_view given, const std::vector<std::string>& names) {
  const auto synonym =
      std::ranges::find_if(kSynonyms, [&](const Synonym& row) { return row.command == command && row.given == given; });
  if (synonym != kSynonyms.end())
    return command.empty() ? fmt::format("; that is `poise {}`", synonym->meant)
                           : fmt::format("; that is {}", synonym->meant);
  const std::string* name = nearest(names, given);
  return name == nullptr ? "" : fmt::format("; the nearest is \"{}\"", *name);
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

}  // namespace

void require_known_command(const CLI::App& app, int argc, char** argv) {
  if (argc < 2) return;
  const std::string_view given = argv[1];
  if (!given.starts_with('-')) return require_known_command(app, given);
  if (app.get_option_no_throw(std::string(given)) != nullptr) return;
  throw Error(ErrorKind::bad_argument,
              fmt::format("there is no option \"{}\" before the command (poise help lists all)", given));
}

void require_known_command(const CLI::App& app, std::string_view given) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  if (std::ranges::find(names, given) != names.end()) return;
  throw Error(ErrorKind::bad_argument,
              fmt::format("there is no command \"{}\"{} (poise help lists all)", given, meant("", given, names)));
}

void require_known_options(const CLI::App& app) {
  for (const CLI::App* command : app.get_subcommands()) {
    const std::vector<std::string> names = option_names(*command);
    for (const std::string& argument : command->remaining()) {
      const std::string given = argument.substr(0, argument.find('='));
      const bool is_option = given.size() > 1 && given.starts_with('-') && given != "--";
      if (!is_option || std::ranges::find(names, given) != names.end()) continue;
      throw Error(ErrorKind::bad_argument,
                  fmt::format("{} has no option \"{}\"{} (poise {} --help lists all)", command->get_name(),
                              printable(given), meant(command->get_name(), given, names), command->get_name()));
    }
  }
}

}  // namespace poise::cli
