#include "cli/advice.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
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

// Returns the advice to download a URL that a command took for a local file; the error's text if a server has answered.
std::string advise_for_url(const std::string& url, const std::string& text) {
  if (text.find("cannot open") == std::string::npos) return text;  // not an error from opening a local file
  if (url.starts_with("hf://"))
    return fmt::format("{}: this command does not read from servers; `poise fetch {}` downloads it", url, url);
  return fmt::format("{}: this command does not read from servers; `poise convert {} -o FILE` downloads it", url, url);
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

std::string add_advice(const Error& error) {
  const std::string text = translate_option_name(error);
  if (error.kind() == ErrorKind::not_found && error.path() == "-")
    return "-: standard input cannot be read here; name a file";
  if (error.kind() == ErrorKind::not_found && is_url(error.path())) return advise_for_url(error.path(), text);
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
