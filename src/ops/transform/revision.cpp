#include "ops/transform/revision.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "ops/transform/transform.hpp"

namespace poise {
namespace {

// These are the revisions in order. Each gets the results of those before it. Renaming is first, because it may give
// tensors the family's names, by which the next two find layers and rows.
constexpr std::array<Revise, 4> kRevisions = {rename_tensors, cut_layers, cut_vocabulary, set_keys};

bool has_revisions(const ConvertOptions& options) {
  return !options.rename.empty() || !options.strip_prefix.empty() || !options.add_prefix.empty() ||
         !options.layers.empty() || options.vocab_size || options.drop_rows || !options.set.empty();
}

Revision begin_revision(const Model& input, const Format& target) {
  Revision revision;
  revision.target = &target;
  revision.model = Model(input.header());
  revision.model.reserve(input.size());
  for (const Tensor& tensor : input.tensors()) {
    revision.sources.push_back(tensor.name);
    revision.model.add(tensor);
  }
  return revision;
}

}  // namespace

void refuse_option(std::string_view option, std::string_view problem) {
  throw Error(ErrorKind::bad_argument, fmt::format("{}: {}", option, problem));
}

void Revision::change_tensors(FunctionRef<bool(Tensor&)> change) {
  Model changed(model.header());
  changed.reserve(model.size());
  std::vector<std::string> kept;
  kept.reserve(sources.size());
  for (std::size_t i = 0; i < sources.size(); ++i) {
    Tensor tensor = model.tensors()[i];
    if (!change(tensor)) {
      left_out.push_back(std::move(sources[i]));
      continue;
    }
    if (tensor.name != model.tensors()[i].name) tensor.file_name = nullptr;
    changed.add(std::move(tensor));
    kept.push_back(std::move(sources[i]));
  }
  model = std::move(changed);
  sources = std::move(kept);
}

std::string_view RevisedModel::find_name(const std::string& input_name) const {
  if (!names) return input_name;
  const auto found = names->find(input_name);
  return found == names->end() ? std::string_view() : std::string_view(found->second);
}

RevisedModel revise_model(MergedModel merged, const Format& target, const ConvertOptions& options) {
  if (!has_revisions(options)) return {std::move(merged), {}, {}};
  Revision revision = begin_revision(*merged.model, target);
  for (const Revise revise : kRevisions) revise(revision, options);
  warn_of_new_faults(*merged.model, revision.model, "no longer fits its configuration");
  std::unordered_map<std::string, std::string> names;
  names.reserve(revision.sources.size());
  for (std::size_t i = 0; i < revision.sources.size(); ++i)
    names.emplace(revision.sources[i], revision.model.tensors()[i].name);
  RevisedModel revised;
  for (auto& [name, type] : merged.types) {
    if (const auto found = names.find(name); found != names.end())
      revised.types.emplace(found->second, std::move(type));
  }
  revised.model = std::make_shared<const Model>(std::move(revision.model));
  revised.left_out = std::move(revision.left_out);
  revised.changes = std::move(revision.changes);
  revised.names = std::make_shared<const std::unordered_map<std::string, std::string>>(std::move(names));
  return revised;
}

}  // namespace poise
