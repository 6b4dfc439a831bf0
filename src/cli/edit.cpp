// poise edit: change a file's attributes without touching its tensors.
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <poise/edit.hpp>

#include "bytes/utf8.hpp"
#include "cli/commands.hpp"
#include "cli/format_names.hpp"
#include "cli/text.hpp"
#include "cli/values.hpp"

namespace poise::cli {
namespace {

struct EditArguments {
  std::string path;
  std::vector<std::string> set;
  AttributeChanges changes;
};

// "KEY=TEXT", divided at the first "=".
std::pair<std::string, std::string> parse_set(const std::string& text) {
  const auto equals = text.find('=');
  if (equals == std::string::npos || equals == 0) refuse("--set", text, "KEY=TEXT");
  if (!is_utf8(text)) refuse("--set", text, "UTF-8");
  return {text.substr(0, equals), text.substr(equals + 1)};
}

std::string_view done(EditReport::Way way) {
  switch (way) {
    case EditReport::Way::appended: return "appended";
    case EditReport::Way::in_place: return "replaced in place";
    case EditReport::Way::rewritten: return "rewrote the file of";
  }
  return {};
}

void run(EditArguments& options) {
  for (const std::string& text : options.set) options.changes.set.push_back(parse_set(text));
  const EditReport report = edit(options.path, options.changes);
  fmt::print("{}: {} set{}, {} deleted; {} {}\n", printable(options.path), options.changes.set.size(),
             report.added.empty() ? "" : printable(fmt::format(" (new: {})", fmt::join(report.added, ", "))),
             options.changes.erase.size(), done(report.way), human_bytes(report.bytes));
}

}  // namespace

void add_edit(CLI::App& app) {
  const auto options = std::make_shared<EditArguments>();
  CLI::App* command =
      app.add_subcommand("edit", "Change the attributes of a zTensor or GGUF file without touching its tensors");
  command
      ->add_option("PATH", options->path,
                   fmt::format("A file of these formats: {}",
                               format_names([](const Format& format) { return format.edit != nullptr; })))
      ->required();
  command->add_option("--set", options->set, "Give an attribute this text")
      ->type_name("KEY=TEXT")
      ->expected(1)
      ->allow_extra_args(false)  // else CLI11 splits text in brackets
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_option("--delete", options->changes.erase, "Take an attribute away")
      ->type_name("KEY")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_flag("--force", options->changes.force,
                    "Also where verify would then fail, or the configuration or vocabulary would be lost");
  command->callback([options] { run(*options); });
}

}  // namespace poise::cli
