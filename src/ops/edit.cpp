#include <poise/edit.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "formats/format.hpp"
#include "formats/metadata.hpp"
#include "io/file_lock.hpp"
#include "io/in_place.hpp"
#include "ops/check_headers.hpp"

namespace poise {
namespace {

// The message, with the attribute that the error names instead of the file.
std::string message_of(const Error& error, const std::string& path) {
  const std::string& named = error.path();
  const std::string prefix = path + ": ";
  return named.starts_with(prefix) ? fmt::format("{}: {}", named.substr(prefix.size()), error.message())
                                   : error.message();
}

// Throws bad_argument where the file could not be opened.
Model read_edited(const Format& format, const Input& edited) {
  try {
    return format.read(edited, {});
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::io) throw;
    throw Error(
        ErrorKind::bad_argument,
        fmt::format("nothing is changed: the file would not open with it: {}", message_of(error, edited.path.string())),
        edited.path.string());
  }
}

std::optional<Vocabulary> vocabulary_of(const Model& model) {
  return model.vocabulary ? model.vocabulary : described_vocabulary(model).made;
}

// The first special token that the vocabulary no longer names.
std::string lost_token(const Vocabulary& before, const Vocabulary& after) {
  struct Special {
    std::string_view name;
    std::int32_t Vocabulary::*id;
  };
  constexpr std::array kSpecial = std::to_array<Special>({{"BOS", &Vocabulary::bos_id},
                                                          {"EOS", &Vocabulary::eos_id},
                                                          {"unknown", &Vocabulary::unk_id},
                                                          {"padding", &Vocabulary::pad_id}});
  for (const auto& [name, id] : kSpecial) {
    if (before.*id >= 0 && after.*id < 0)
      return fmt::format("the vocabulary would lose its {} token, which is {}", name, before.*id);
  }
  return {};
}

std::vector<std::string> errors_in(const Model& model, const std::filesystem::path& path) {
  std::vector<std::string> errors;
  for (Finding& finding : check_headers(model, path)) {
    if (finding.severity == Severity::error) errors.push_back(std::move(finding.message));
  }
  return errors;
}

// The first hyperparameter that changes: an absent key has a default.
std::string changed_hyperparameter(const Model& before, const Model& after) {
  if (!before.config || !after.config || *before.config == *after.config) return {};
  const Attributes was = config_to_attributes(*before.config, before.card.model_type);
  for (const auto& [key, value] : config_to_attributes(*after.config, after.card.model_type)) {
    const Value* const old = was.find(key);
    if (old != nullptr && !(*old == value))
      return fmt::format("{} would be {}, not {}", key, to_json(value), to_json(*old));
  }
  return {};
}

// What the edit breaks in the model; empty: nothing.
std::string harm(const Model& before, const Model& after, const AttributeChanges& changes,
                 const std::filesystem::path& path) {
  if (before.config && !after.config) return "the model would lose its configuration";
  if (const auto vocabulary = vocabulary_of(before)) {
    const auto left = vocabulary_of(after);
    if (!left) return "the model would lose its vocabulary";
    std::string lost = lost_token(*vocabulary, *left);
    if (!lost.empty()) return lost;
  }
  if (changes.set.empty()) {
    std::string changed = changed_hyperparameter(before, after);
    if (!changed.empty()) return changed;
  }
  const std::vector<std::string> errors = errors_in(after, path);
  if (errors.empty() || !errors_in(before, path).empty()) return {};
  const std::string more = errors.size() == 1 ? "" : fmt::format(" (and {} more)", errors.size() - 1);
  return fmt::format("verify would then fail: {}{}", errors.front(), more);
}

}  // namespace

EditReport edit(const std::filesystem::path& named, const AttributeChanges& changes) {
  // Changes the target of a link, not the link.
  std::error_code unknown;
  std::filesystem::path path = named;
  if (std::filesystem::is_symlink(named, unknown)) path = std::filesystem::canonical(named, unknown);
  if (unknown) path = named;  // opening it reports the reason
  std::optional<FileLock> lock;
  if (!changes.dry_run) {
    lock.emplace(path);  // held from reading to writing
    roll_back(path);     // an interrupted edit
  }
  // Checks the whole structure before anything changes. Other parts of the model are next to the link.
  const Opened opened = open_with_format(named, {});
  if (opened.format->edit == nullptr) {
    throw Error(ErrorKind::unsupported,
                fmt::format("{} files have no attributes that can be edited; zt, gguf and safetensors files have",
                            opened.format->info.name),
                path.string())
        .with({.kind = Remedy::Kind::convert, .value = "zt"});
  }
  const std::unique_ptr<PreparedEdit> prepared = opened.format->edit(opened.input, changes);
  const Model after = read_edited(*opened.format, {named, prepared->edited()});
  if (!changes.force) {
    const std::string problem = harm(opened.model, after, changes, named);
    if (!problem.empty()) {
      throw Error(ErrorKind::bad_argument, fmt::format("nothing is changed: {}", problem), named.string())
          .with({.kind = Remedy::Kind::force});
    }
    prepared->require_effect(opened.model, after);
  }
  EditReport report = prepared->report();
  report.added = prepared->added();
  if (!changes.dry_run) prepared->commit(path);
  return report;
}

}  // namespace poise
