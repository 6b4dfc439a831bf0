#include <poise/edit.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "formats/format.hpp"
#include "formats/metadata.hpp"
#include "io/file_descriptor.hpp"
#include "io/hub_cache.hpp"
#include "io/in_place.hpp"
#include "io/sink.hpp"
#include "ops/check_headers.hpp"
#include "ops/destination.hpp"

namespace poise {
namespace {

// Returns the message of an error, preceded by the attribute's key if the error names one ("FILE: KEY" as its path).
std::string format_read_error(const Error& error, const std::string& path) {
  const std::string& named = error.path();
  const std::string prefix = path + ": ";
  return named.starts_with(prefix) ? fmt::format("{}: {}", named.substr(prefix.size()), error.message())
                                   : error.message();
}

// Reads the edited model before Poise writes it. Throws bad_argument if Poise cannot read it.
Model read_edited(const Format& format, const Input& edited) {
  try {
    return format.read(edited, {});
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::io) throw;
    throw Error(ErrorKind::bad_argument,
                fmt::format("nothing is changed: Poise could not open the edited file: {}",
                            format_read_error(error, edited.path.string())),
                edited.path.string());
  }
}

std::optional<Vocabulary> find_vocabulary(const Model& model) {
  return model.vocabulary ? model.vocabulary : make_described_vocabulary(model).made;
}

// Returns a sentence about the first special token that the vocabulary would lose; empty if it keeps all. Unless
// `may_change`, a token whose id changes counts, too: if the key of an id is deleted, readers of GGUF use a default.
std::string describe_lost_token(const Vocabulary& before, const Vocabulary& after, bool may_change) {
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
      return fmt::format("the vocabulary would lose its {} token (id {})", name, before.*id);
    if (!may_change && before.*id >= 0 && after.*id != before.*id)
      return fmt::format("the id of the vocabulary's {} token would change from {} to {}", name, before.*id, after.*id);
  }
  return {};
}

std::vector<std::string> list_errors(const Model& model, const std::filesystem::path& path) {
  std::vector<std::string> errors;
  for (Finding& finding : check_headers(model, path)) {
    if (finding.severity == Severity::error) errors.push_back(std::move(finding.message));
  }
  return errors;
}

// Returns a sentence about the first hyperparameter that would change because its key is deleted; empty if none would.
std::string describe_changed_hyperparameter(const Model& before, const Model& after) {
  if (!before.config || !after.config || *before.config == *after.config) return {};
  const Attributes was = config_to_attributes(*before.config, before.card.model_type);
  for (const auto& [key, value] : config_to_attributes(*after.config, after.card.model_type)) {
    const Value* const old = was.find(key);
    if (old != nullptr && !(*old == value))
      return fmt::format("{} would change from {} to {}", key, to_json(*old), to_json(value));
  }
  return {};
}

// Describes the harm that the edit would do to the model; empty if there is none.
std::string describe_harm(const Model& before, const Model& after, const AttributeChanges& changes,
                          const std::filesystem::path& path) {
  if (before.config && !after.config) return "the model would lose its configuration";
  if (const auto vocabulary = find_vocabulary(before)) {
    const auto left = find_vocabulary(after);
    if (!left) return "the model would lose its vocabulary";
    std::string lost = describe_lost_token(*vocabulary, *left, !changes.set.empty());
    if (!lost.empty()) return lost;
  }
  if (changes.set.empty()) {
    std::string changed = describe_changed_hyperparameter(before, after);
    if (!changed.empty()) return changed;
  }
  const std::vector<std::string> errors = list_errors(after, path);
  if (errors.empty() || !list_errors(before, path).empty()) return {};
  const std::string more = errors.size() == 1 ? "" : fmt::format(" (and {} more)", errors.size() - 1);
  return fmt::format("the edited file would fail verify: {}{}", errors.front(), more);
}

// Describes the first new attribute whose name begins as those of the card's fields and of the configuration's keys in
// ConvertOptions::set; empty if there is none.
std::string describe_mistaken_key(const std::vector<std::string>& added) {
  for (const auto& [prefix, place] : {std::pair("card.", "the card"), std::pair("config.", "the configuration")}) {
    const auto begins_so = [&beginning = prefix](const std::string& key) { return key.starts_with(beginning); };
    const auto found = std::ranges::find_if(added, begins_so);
    if (found == added.end()) continue;
    return fmt::format("{} would be a new attribute, and not change {}: `poise convert --set` does", *found, place);
  }
  return {};
}

struct ReadyEdit {
  Opened opened;
  std::unique_ptr<PreparedEdit> prepared;
};

// Reads the model and prepares the edit, without changing the file. Throws bad_argument if Poise could not read the
// edited model, or, unless `force` is set, if the changes would harm it.
ReadyEdit prepare_edit(const std::filesystem::path& path, const AttributeChanges& changes) {
  ReadyEdit ready{open_with_format(open_input(path, {}), {}), nullptr};
  const Opened& opened = ready.opened;
  if (opened.format->edit == nullptr) {
    throw Error(ErrorKind::unsupported,
                fmt::format("attributes of {} files cannot be edited, expected a zt, gguf or safetensors file",
                            opened.format->info.name),
                path.string())
        .with({.kind = Remedy::Kind::convert, .value = "zt"});
  }
  ready.prepared = opened.format->edit(opened.input, changes);
  const Model after = read_edited(*opened.format, {path, ready.prepared->make_edited_source()});
  if (changes.force) return ready;
  std::string problem = describe_mistaken_key(ready.prepared->added());
  if (problem.empty()) problem = describe_harm(opened.model, after, changes, path);
  if (!problem.empty()) {
    throw Error(ErrorKind::bad_argument, fmt::format("nothing is changed: {}", problem), path.string())
        .with({.kind = Remedy::Kind::force});
  }
  ready.prepared->require_effect(opened.model, after);
  return ready;
}

// Throws bad_argument if the copy would not find other files of the model: because it is in another directory, or
// because its name is part of their names. `output` is empty for a stream, which is in no directory.
void require_other_files(const ReadyEdit& ready, const std::filesystem::path& output) {
  const Opened& opened = ready.opened;
  const auto find_folder = [](const std::filesystem::path& path) {
    std::error_code ignored;
    return std::filesystem::weakly_canonical(path.has_parent_path() ? path.parent_path() : ".", ignored);
  };
  const bool is_same_folder = !output.empty() && find_folder(opened.input.path) == find_folder(output);
  std::optional<Model> copy;  // as readers of the copy will see the model
  for (std::size_t i = 0; i < opened.model.size(); ++i) {
    const Tensor& tensor = opened.model.tensors()[i];
    for (const Part& part : tensor.parts) {
      const auto at = part.blob->stored();
      if (!at || at->source->name() == opened.input.source->name()) continue;
      if (is_same_folder && !copy) copy = read_edited(*opened.format, {output, ready.prepared->make_edited_source()});
      const Tensor* const copied = copy ? copy->find(tensor.name) : nullptr;
      const Part* const same = copied == nullptr ? nullptr : copied->part(part.role);
      const auto found = same == nullptr ? std::nullopt : same->blob->stored();
      if (found && std::filesystem::path(found->source->name()).filename() ==
                       std::filesystem::path(at->source->name()).filename())
        continue;
      throw Error(
          ErrorKind::bad_argument,
          fmt::format("tensor {} is in {}, which the copy would not find: edit the file itself, or convert it to "
                      "a single file first",
                      tensor.name, at->source->name()),
          output.string());
    }
  }
}

EditReport write_copy(const std::filesystem::path& path, Destination destination, const AttributeChanges& changes,
                      bool overwrite, std::vector<std::filesystem::path> inputs) {
  const ReadyEdit ready = prepare_edit(path, changes);
  destination.require_possible(*ready.opened.format, overwrite, inputs, changes.dry_run);
  require_other_files(ready, destination.path());
  const SourcePtr edited = ready.prepared->make_edited_source();
  // The other files of a split model are found by the name of this one.
  if (destination.path() != path && ready.opened.model.origin.files.size() > 1)
    (void)read_edited(*ready.opened.format, {destination.path(), edited});
  EditReport report{EditReport::Way::copied, edited->size(), ready.prepared->added()};
  if (changes.dry_run) return report;
  SavedOutput& file = destination.open(*ready.opened.format, overwrite, std::move(inputs));
  file.main().copy(*edited, 0, edited->size());
  file.commit();
  return report;
}

}  // namespace

EditReport edit(const std::filesystem::path& named, const AttributeChanges& changes) {
  if (!find_hub_blob(named).empty()) {
    throw Error(ErrorKind::bad_argument,
                "nothing is changed: this is a blob of the Hugging Face cache. Its name is the digest of its bytes, "
                "and snapshots share it; edit a copy",
                named.string());
  }
  // Changes the target of a link, not the link.
  std::error_code unknown;
  std::filesystem::path path = named;
  if (std::filesystem::is_symlink(named, unknown)) path = std::filesystem::canonical(named, unknown);
  if (unknown) path = named;  // opening the path then reports the reason
  std::optional<FileLock> lock;
  if (!changes.dry_run) {
    lock.emplace(path);  // held from reading to writing
    roll_back(path);     // undoes an interrupted edit
  }
  // The model's other files are next to the link, so the link is opened.
  const ReadyEdit ready = prepare_edit(named, changes);
  EditReport report = ready.prepared->report();
  report.added = ready.prepared->added();
  if (!changes.dry_run) ready.prepared->commit(path);
  return report;
}

EditReport edit_copy(const std::filesystem::path& path, const std::filesystem::path& output,
                     const AttributeChanges& changes, bool overwrite) {
  const bool is_replaced = output.empty();
  const std::filesystem::path& target = is_replaced ? path : output;
  std::error_code ignored;
  if (is_replaced && !find_hub_blob(path).empty() && !std::filesystem::is_symlink(path, ignored)) {
    throw Error(ErrorKind::bad_argument,
                "nothing is changed: this is a blob of the Hugging Face cache, whose name is the digest of its bytes; "
                "give the copy another name",
                path.string());
  }
  overwrite = overwrite || is_replaced;
  auto inputs = is_replaced ? std::vector<std::filesystem::path>() : std::vector{path};
  FileOutput::check_replaceable(target, overwrite, inputs);
  return write_copy(path, Destination(target), changes, overwrite, std::move(inputs));
}

EditReport edit_copy(const std::filesystem::path& path, Destination destination, const AttributeChanges& changes,
                     bool overwrite) {
  return write_copy(path, std::move(destination), changes, overwrite, {path});
}

}  // namespace poise
