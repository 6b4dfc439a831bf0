#include "cli/set_option.hpp"

#include <optional>

#include <fmt/format.h>

#include <poise/error.hpp>
#include <poise/source.hpp>

#include "bytes/utf8.hpp"
#include "cli/standard_input.hpp"
#include "cli/values.hpp"
#include "io/source_range.hpp"

namespace poise::cli {
namespace {

constexpr std::uint64_t kMostFileBytes = 64 << 20;

// Returns the exact content of a text file, or of standard input for "-".
std::string read_value_file(const std::string& path) {
  std::string text;
  if (path == "-") {
    text = TextInput().read_all();
  } else {
    const SourcePtr source = Source::open(path, IoMode::read);
    if (source->size() > kMostFileBytes)
      throw Error(ErrorKind::bad_argument,
                  fmt::format("the file of a value is longer than {} bytes, the limit", kMostFileBytes), path);
    text = read_text(*source, source->size());
  }
  if (!is_utf8(text))
    throw Error(ErrorKind::bad_argument, "this file is not UTF-8, as the text of a value must be", path);
  return text;
}

// Returns the file of "KEY=@FILE"; std::nullopt for "KEY=TEXT" and "KEY=@@TEXT".
std::optional<std::string> find_value_file(const std::string& setting) {
  const auto equals = setting.find('=');
  if (equals == std::string::npos || setting.compare(equals + 1, 1, "@") != 0) return std::nullopt;
  std::string file = setting.substr(equals + 2);
  return file.starts_with('@') ? std::nullopt : std::optional(std::move(file));
}

// Parses one setting as parse_settings() does.
std::pair<std::string, std::string> parse_setting(const std::string& given) {
  const auto equals = given.find('=');
  if (equals == std::string::npos || equals == 0) refuse("--set", given, "KEY=TEXT or KEY=@FILE");
  if (!is_utf8(given)) refuse("--set", given, "UTF-8");
  std::string text = given.substr(equals + 1);
  if (const auto file = find_value_file(given)) return {given.substr(0, equals), read_value_file(*file)};
  if (text.starts_with("@@")) text.erase(0, 1);
  return {given.substr(0, equals), std::move(text)};
}

// Converts "KEY=FILE" of --set-file to "KEY=@FILE" of --set.
std::string convert_file_setting(std::string given) {
  const auto equals = given.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == given.size()) refuse("--set-file", given, "KEY=FILE");
  const bool looks_like_text = given.compare(equals + 1, 1, "@") == 0;  // "KEY=@@..." would be a text
  return given.insert(equals + 1, looks_like_text ? "@./" : "@");
}

// Lets an option occur several times, with one value each.
CLI::Option* make_repeatable(CLI::Option* option) {
  return option->expected(1)
      ->allow_extra_args(false)  // else CLI11 splits text in brackets
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

}  // namespace

CLI::Option* add_set_option(CLI::App& command, std::vector<std::string>& values, const std::string& description) {
  CLI::Option* option = make_repeatable(command.add_option("--set", values, description)->type_name("KEY=TEXT|@FILE"));
  // CLI11 handles options in the order in which they were added, so the values of --set-file come last.
  const auto add_files = [&values](const std::vector<std::string>& given) {
    for (const std::string& setting : given) values.push_back(convert_file_setting(setting));
  };
  make_repeatable(
      command.add_option_function<std::vector<std::string>>("--set-file", add_files, "The same as --set KEY=@FILE"))
      ->type_name("KEY=FILE");
  return option;
}

std::vector<std::pair<std::string, Value>> parse_settings(const std::vector<std::string>& values) {
  std::vector<std::pair<std::string, Value>> settings;
  for (const std::string& value : values) settings.push_back(parse_setting(value));
  return settings;
}

std::vector<std::filesystem::path> list_value_files(const std::vector<std::string>& values) {
  std::vector<std::filesystem::path> files;
  for (const std::string& value : values) {
    if (const auto file = find_value_file(value); file && *file != "-") files.emplace_back(*file);
  }
  return files;
}

}  // namespace poise::cli
