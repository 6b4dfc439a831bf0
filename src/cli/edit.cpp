// poise edit: changes a file's attributes without touching its tensors.
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <poise/edit.hpp>
#include <poise/error.hpp>

#include "cli/commands.hpp"
#include "cli/conversion_options.hpp"
#include "cli/options.hpp"
#include "cli/set_option.hpp"
#include "cli/text.hpp"
#include "cli/values.hpp"
#include "io/hub_cache.hpp"
#include "io/sink.hpp"
#include "io/streams.hpp"
#include "ops/destination.hpp"

namespace poise::cli {
namespace {

struct EditArguments {
  std::string path;
  std::vector<std::string> set;
  AttributeChanges changes;
  bool copy = false;
  std::string output;  // the path of the edited copy, or "-"; empty: `path` itself changes

  bool writes_stream() const { return output == "-"; }
};

// Returns a phrase for what an edit did to the file, or would do in a dry run.
std::string_view describe_action(EditReport::Way way, bool is_dry_run) {
  switch (way) {
    case EditReport::Way::appended: return is_dry_run ? "would append" : "appended";
    case EditReport::Way::in_place: return is_dry_run ? "would replace in place" : "replaced in place";
    case EditReport::Way::rewritten: return is_dry_run ? "would rewrite the file of" : "rewrote the file of";
    case EditReport::Way::copied: return is_dry_run ? "would write a copy of" : "wrote a copy of";
  }
  return {};
}

EditReport edit_or_copy(const EditArguments& options) {
  if (options.writes_stream()) {
    const bool is_dry_run = options.changes.dry_run;
    if (!is_dry_run) require_standard_output("zt", false);  // the formats that edit() takes are files, as zt is
    std::optional<StreamOutput> stream;
    return edit_copy(options.path, make_destination(options.output, is_dry_run, stream), options.changes,
                     options.changes.force);
  }
  if (options.copy || !options.output.empty())
    return edit_copy(options.path, options.output, options.changes, options.changes.force);
  try {
    return edit(options.path, options.changes);
  } catch (const Error& error) {
    if (find_hub_blob(options.path).empty()) throw;
    throw Error(error.kind(), error.message() + ": --copy replaces the link with an edited copy, -o FILE writes one",
                error.path(), error.offset());
  }
}

void run_edit(EditArguments& options) {
  options.changes.set = parse_settings(options.set);
  if (!options.output.empty() && !options.writes_stream())
    FileOutput::require_not_input(list_value_files(options.set), options.output);
  const EditReport report = edit_or_copy(options);
  const bool is_dry_run = options.changes.dry_run;
  if (options.writes_stream() && !is_dry_run) return;
  fmt::print("{}: {} set{}, {} deleted; {} {}{}\n", make_printable(options.path), options.changes.set.size(),
             report.added.empty() ? "" : make_printable(fmt::format(" (new: {})", fmt::join(report.added, ", "))),
             options.changes.erase.size(), describe_action(report.way, is_dry_run), format_bytes(report.bytes),
             is_dry_run ? "; dry run, nothing is written" : "");
}

}  // namespace

void add_edit_command(CLI::App& app) {
  const auto options = std::make_shared<EditArguments>();
  CLI::App* command =
      app.add_subcommand("edit", "Change the attributes of a zTensor, GGUF or safetensors file, not its tensors");
  command
      ->add_option("PATH", options->path,
                   fmt::format("A file of these formats: {}",
                               join_format_names([](const Format& format) { return format.edit != nullptr; })))
      ->required();
  add_set_option(*command, options->set,
                 "Set an attribute to this text, or to that of a file (@@ begins a text with @); a list is JSON. "
                 "`poise convert --set` also sets card.FIELD and config.KEY");
  command->add_option("--delete", options->changes.erase, "Remove an attribute")
      ->type_name("KEY")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  auto* copy = command->add_flag(
      "--copy", options->copy,
      "Put an edited copy in the place of PATH: a link, as in the Hugging Face cache, is replaced, not followed");
  add_text_option(*command, "-o,--output", options->output, "FILE",
                  "Write the edited copy to this file, and leave PATH as it is; - is standard output")
      ->excludes(copy);
  command->add_flag("--force", options->changes.force,
                    "Edit even if verify would then fail, or the configuration or vocabulary would be lost; replace an "
                    "existing output");
  command->add_flag("--dry-run", options->changes.dry_run, "Report what would change; write nothing");
  command->callback([options] { run_edit(*options); });
}

}  // namespace poise::cli
