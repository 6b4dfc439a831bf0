#include "cli/chat_settings.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <poise/error.hpp>

#include "cli/sampling_options.hpp"
#include "cli/spelling.hpp"
#include "cli/text.hpp"
#include "cli/usage_errors.hpp"
#include "runtime/weights.hpp"

namespace poise::cli {
namespace {

[[noreturn]] void refuse_setting(std::string_view name) {
  const std::vector<std::string> names = setting_names();
  const std::string* const near = find_nearest(names, name);
  throw Error(ErrorKind::bad_argument,
              fmt::format("there is no setting \"{}\"{}", printable(name),
                          near == nullptr ? "; /help lists them" : fmt::format("; the nearest is \"{}\"", *near)));
}

}  // namespace

std::vector<std::string> setting_names() {
  CLI::App app;
  GenerateOptions options;
  std::vector<std::string> names;
  for (const CLI::Option* option : add_generate_options(app, options)) names.push_back(option->get_lnames().back());
  return names;
}

void change_setting(const std::string& text, const Weights& weights, GenerateOptions& options) {
  const std::size_t name_end = std::min(text.find_first_of(" \t="), text.size());
  std::string name = text.substr(0, name_end);
  std::ranges::replace(name, '_', '-');
  const std::size_t value_begin = text.find_first_not_of(" \t=", name_end);
  GenerateOptions changed = options;
  CLI::App app("", "/set");
  app.set_help_flag();
  add_generate_options(app, changed);
  if (app.get_option_no_throw("--" + name) == nullptr) refuse_setting(name);
  // From the last to the first, as CLI11 takes them.
  std::vector<std::string> arguments = {"--" + name};
  if (value_begin != std::string::npos) arguments.insert(arguments.begin(), text.substr(value_begin));
  try {
    app.parse(arguments);
  } catch (const CLI::ParseError& error) {
    throw Error(ErrorKind::bad_argument, usage_message(app, error));
  }
  check_generate_options(changed);
  require_tokens(weights, changed);
  options = changed;
}

std::string settings_text(const GenerateOptions& options) {
  const SamplingOptions& sampling = options.sampling;
  const bool is_unlimited = options.max_tokens == std::numeric_limits<std::size_t>::max();
  return fmt::format(
      "temperature {}, top-k {}, top-p {}, min-p {}, repetition-penalty {}, presence-penalty {}, frequency-penalty {}, "
      "seed {}, max-tokens {}",
      sampling.temperature, sampling.top_k, sampling.top_p, sampling.min_p, sampling.repetition_penalty,
      sampling.presence_penalty, sampling.frequency_penalty, sampling.seed,
      is_unlimited ? "-1" : std::to_string(options.max_tokens));
}

}  // namespace poise::cli
