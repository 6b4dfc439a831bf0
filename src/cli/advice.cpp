#include "cli/advice.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <poise/remote.hpp>

namespace poise::cli {
namespace {

constexpr std::array<std::string_view, 13> kOptions = {"only",         "skip",       "keep",     "align",  "imatrix",
                                                       "size",         "bpw",        "rename",   "layers", "set",
                                                       "strip_prefix", "vocab_size", "drop_rows"};

// Returns one piece of advice for all tensors with one kind of remedy: "--skip 'a' --skip 'b' leave them out".
std::string advise_for_tensors(const std::vector<Remedy>& remedies, Remedy::Kind kind) {
  constexpr std::size_t kNamed = 3;
  std::string options;
  std::size_t count = 0;
  for (const Remedy& remedy : remedies) {
    if (remedy.kind != kind || ++count > kNamed) continue;
    options += kind == Remedy::Kind::skip ? fmt::format("--skip '{}' ", remedy.tensor)
                                          : fmt::format("--keep '{}={}' ", remedy.tensor, remedy.value);
  }
  if (count > kNamed) options += "... ";
  if (kind == Remedy::Kind::skip) return options + (count == 1 ? "leaves it out" : "leave them out");
  return options + (count == 1 ? "stores it as that" : "store them as that");
}

std::string describe_remedy(const Remedy& remedy, const std::vector<Remedy>& all) {
  switch (remedy.kind) {
    case Remedy::Kind::overwrite: return "--force replaces it";
    case Remedy::Kind::format:
      return remedy.value.empty() ? "--to names one" : fmt::format("--to {} can", remedy.value);
    case Remedy::Kind::dtype: return fmt::format("--dtype {} converts it", remedy.value);
    case Remedy::Kind::keep:
    case Remedy::Kind::skip: return advise_for_tensors(all, remedy.kind);
    case Remedy::Kind::only: return fmt::format("--only '{}' writes that one alone", remedy.tensor);
    case Remedy::Kind::model_type: return fmt::format("--model-type {} sets it", remedy.value);
    case Remedy::Kind::force: return "--force changes it anyway";
    case Remedy::Kind::lora: return fmt::format("`poise convert BASE -o OUTPUT --lora {}` does", remedy.value);
    case Remedy::Kind::convert: return fmt::format("`poise convert` makes it a {} file", remedy.value);
  }
  return {};
}

// Returns the error's text, with the library's name of an option replaced by the command's: "--strip-prefix".
std::string translate_option_name(const Error& error) {
  std::string text = error.what();
  if (error.kind() != ErrorKind::bad_argument) return text;
  const auto* option = std::ranges::find_if(
      kOptions, [&](std::string_view name) { return text.starts_with(fmt::format("{}: ", name)); });
  if (option == kOptions.end()) return text;
  std::ranges::replace(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(option->size()), '_', '-');
  return "--" + text;
}

// Returns true for an error about "-" or a URL that a command took for a local file; false if a server has answered.
bool is_about_no_file(const Error& error) {
  return error.kind() == ErrorKind::not_found && error.message().starts_with("cannot open") &&
         (error.path() == "-" || is_url(error.path()));
}

// Returns the option of the command line whose value is a path, which a weight may follow, as in PATH:0.5. Returns an
// empty text for an argument, and std::nullopt if the command line does not have the path.
std::optional<std::string> find_naming_option(std::span<const char* const> arguments, const std::string& path) {
  std::string before;
  for (std::string_view argument : arguments) {
    const std::size_t equals = argument.starts_with("--") ? argument.find('=') : std::string_view::npos;
    if (equals != std::string_view::npos) before = argument.substr(0, equals);
    const std::string_view value = equals != std::string_view::npos ? argument.substr(equals + 1) : argument;
    if (value == path || value.starts_with(path + ":")) return before;
    before = argument.starts_with("--") && equals == std::string_view::npos ? argument : "";
  }
  return std::nullopt;
}

std::string advise_for_no_file(const std::string& path, const std::string& option) {
  constexpr std::array<std::string_view, 6> kNotModels = {"--lora",  "--delta",  "--imatrix",
                                                          "--vocab", "--merges", "--in-file"};
  if (path == "-") return "-: standard input cannot be read here; name a file";
  const std::string problem = path + ": this command does not read from servers; ";
  if (path.starts_with("hf://")) return fmt::format("{}`poise fetch {}` downloads it", problem, path);
  if (std::ranges::find(kNotModels, option) != kNotModels.end()) return problem + "download it first";
  return fmt::format("{}`poise convert {} -o FILE` downloads it", problem, path);
}

}  // namespace

std::string make_advice(const std::vector<Remedy>& remedies) {
  std::vector<std::string> texts;
  std::set<Remedy::Kind> said;  // kinds for tensors: one piece of advice covers all tensors
  for (const Remedy& remedy : remedies) {
    if (!remedy.tensor.empty() && !said.insert(remedy.kind).second) continue;
    std::string text = describe_remedy(remedy, remedies);
    if (std::ranges::find(texts, text) == texts.end()) texts.push_back(std::move(text));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

bool is_wrong_usage(const Error& error, std::span<const char* const> arguments) {
  return error.kind() == ErrorKind::bad_argument ||
         (is_about_no_file(error) && find_naming_option(arguments, error.path()));
}

std::string add_advice(const Error& error, std::span<const char* const> arguments) {
  if (is_about_no_file(error))
    return advise_for_no_file(error.path(), find_naming_option(arguments, error.path()).value_or(""));
  const std::string text = translate_option_name(error);
  const std::string helps = make_advice(error.remedies());
  if (helps.empty()) return text;
  return text + (error.message().find('\n') == std::string::npos ? "; " : "\n  ") + helps;
}

void add_path_to_errors(const std::string& path, const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    const bool is_about_a_file = error.kind() == ErrorKind::invalid_file || error.kind() == ErrorKind::unsupported;
    if (!error.path().empty() || !is_about_a_file) throw;
    Error named(error.kind(), error.message(), path, error.offset());
    for (const Remedy& remedy : error.remedies()) named = std::move(named).with(remedy);
    throw named;
  }
}

}  // namespace poise::cli
