#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/utf8.hpp"
#include "cli/help.hpp"
#include "cli/text.hpp"
#include "cli/values.hpp"

namespace poise::cli {
namespace {

// Maps another program's name of a command or option to Poise's.
struct Synonym {
  std::string_view command;  // the command that has the option; empty if `given` is a command
  std::string_view given;
  std::string_view meant;  // what Poise calls it: a command with its options, or an option or argument
};

constexpr auto kSynonyms = std::to_array<Synonym>({
    {"", "quantize", "convert IN -o OUT --quantize TYPE"},
    {"", "cast", "convert IN -o OUT --dtype TYPE"},
    {"", "split", "convert IN -o OUT --shard-size SIZE"},
    {"", "export", "convert IN -o OUT"},
    {"", "ls", "inspect PATH --tensors"},
    {"", "info", "inspect PATH"},
    {"", "dump", "inspect PATH --keys"},
    {"", "check", "verify PATH"},
    {"", "validate", "verify PATH"},
    {"", "compare", "diff A B"},
    {"", "sha256", "hash PATH"},
    {"", "generate", "run PATH -p PROMPT"},
    {"", "perplexity", "run PATH --perplexity FILE"},
    {"", "encode", "tokenize PATH TEXT"},
    {"", "set", "edit PATH --set KEY=TEXT"},
    {"", "version", "--version"},

    {"convert", "--outfile", "-o"},
    {"convert", "--outtype", "--dtype"},
    {"convert", "--qtype", "--quantize"},
    {"run", "--n-predict", "--max-tokens"},
    {"run", "--max-new-tokens", "--max-tokens"},
    {"run", "--eos-id", "--stop-id"},
    {"run", "--chat-template", "--template"},
    {"run", "-m", "the argument PATH"},
    {"chat", "-m", "the argument PATH"},
});

// Returns the edit distance of two words: the number of insertions, deletions, replacements, and swaps of neighbours
// that turn one into the other.
std::size_t compute_edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> table(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        table[i][j] = i + j;
        continue;
      }
      const std::size_t replaced = table[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      table[i][j] = std::min({replaced, table[i - 1][j] + 1, table[i][j - 1] + 1});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) table[i][j] = std::min(table[i][j], table[i - 2][j - 2] + 1);
    }
  }
  return table.back().back();
}

std::string_view remove_dashes(std::string_view name) {
  return name.substr(std::min(name.find_first_not_of('-'), name.size()));
}

// Returns a hint to append to a message: "; use `poise convert ...`", `; the nearest is "verify"`, or "". `command` is
// the command that has the option; it is empty if `given` is a command.
std::string suggest_name(std::string_view command, std::string_view given, const std::vector<std::string>& names) {
  const auto synonym =
      std::ranges::find_if(kSynonyms, [&](const Synonym& row) { return row.command == command && row.given == given; });
  if (synonym != kSynonyms.end())
    return command.empty() ? fmt::format("; use `poise {}`", synonym->meant) : fmt::format("; use {}", synonym->meant);
  const std::string* name = find_nearest(names, given);
  return name == nullptr ? "" : fmt::format("; the nearest is \"{}\"", *name);
}

std::vector<std::string> list_option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

}  // namespace

const std::string* find_nearest(const std::vector<std::string>& names, std::string_view given) {
  constexpr std::size_t kLongest = 64;  // bounds the time for a text that was pasted by mistake
  const std::string small = to_lower_ascii(remove_dashes(given));
  if (small.empty() || given.size() > kLongest) return nullptr;
  // Allows one mistake in three letters, and none in names of one or two letters, since these would all be similar.
  const std::size_t most = small.size() <= 2 ? 0 : std::max<std::size_t>(1, small.size() / 3);
  const std::string* best = nullptr;
  std::size_t least = most + 1;
  for (const std::string& name : names) {
    const std::string_view bare = remove_dashes(name);
    const std::size_t changes = compute_edit_distance(small, to_lower_ascii(bare));
    if (changes >= least || (bare.size() <= 2 && changes > 0)) continue;
    best = &name;
    least = changes;
  }
  if (best != nullptr) return best;
  const auto begins = [&](const std::string& name) { return remove_dashes(name).starts_with(small); };
  const auto longer = small.size() <= 2 ? names.end() : std::ranges::find_if(names, begins);
  return longer == names.end() ? nullptr : &*longer;
}

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
  std::error_code ignored;
  const bool is_file = std::filesystem::exists(given, ignored);
  throw Error(ErrorKind::bad_argument,
              fmt::format("there is no command \"{}\"{} (poise help lists all)", given,
                          is_file ? "; a command goes before the file: poise inspect, poise run, ..."
                                  : suggest_name("", given, names)));
}

void require_known_options(const CLI::App& app) {
  for (const CLI::App* command : app.get_subcommands()) {
    const std::vector<std::string> names = list_option_names(*command);
    for (const std::string& argument : command->remaining()) {
      const std::string given = argument.substr(0, argument.find('='));
      const bool is_option = given.size() > 1 && given.starts_with('-') && given != "--";
      if (!is_option || std::ranges::find(names, given) != names.end()) continue;
      throw Error(
          ErrorKind::bad_argument,
          fmt::format("{} has no option \"{}\"{} (poise {} --help lists all)", command->get_name(),
                      make_printable(given), suggest_name(command->get_name(), given, names), command->get_name()));
    }
  }
}

}  // namespace poise::cli
