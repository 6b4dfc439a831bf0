#include "model/fault_lists.hpp"
#include "ops/merge/methods.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/checked.hpp"
#include "bytes/short_text.hpp"
#include "family/families.hpp"
#include "family/tied_output.hpp"
#include "io/hub_cache.hpp"
#include "ops/block_recipe.hpp"
#include "ops/merge/token_rows.hpp"
#include "ops/transform/layer_list.hpp"
#include "views/dense.hpp"

namespace poise {
namespace {

namespace fs = std::filesystem;

using ModelPtr = std::shared_ptr<const Model>;

bool has_gradient(const MergeSettings& settings) {
  return std::ranges::any_of(settings, [](const auto& entry) {
    return std::ranges::any_of(entry.second.cases,
                               [](const MergeSetting::Case& row) { return row.numbers.size() > 1; });
  });
}

bool has_gradient(const MergeRecipe& recipe) {
  return has_gradient(recipe.settings) || std::ranges::any_of(recipe.slices, [](const MergeSlice& slice) {
           return has_gradient(slice.settings) || std::ranges::any_of(slice.sources, [](const MergeSource& source) {
                    return has_gradient(source.settings);
                  });
         });
}

// Describes where a tensor of the result belongs: the slice, its position there, and its layer if it has one.
struct Place {
  const MergeSlice* slice;
  double position = 0;            // the place of the layer in the slice, from 0 to 1
  std::uint64_t layer = 0;        // counted from the first layer of the slice
  std::optional<LayerName> name;  // with layer_range: the name in the reference model
};

// Returns the place of a layer among `count` layers: 0 for the first, 1 for the last; 1 for a single layer, and for
// layers beyond.
double compute_position(std::uint64_t layer, std::uint64_t count) {
  return count <= 1 ? 1 : std::min(1.0, static_cast<double>(layer) / static_cast<double>(count - 1));
}

class ModelMerge {
 public:
  ModelMerge(const MergeRecipe& recipe, const ReadOptions& options)
      : recipe_(unify_paths(recipe)), options_(options), method_(find_merge_method(recipe.method)) {
    check_recipe(recipe_, method_);
    has_ranges_ = has_layer_ranges();
    open_models();
    if (has_ranges_ || has_gradient(recipe_)) {
      for (const auto& [path, model] : models_) lists_.emplace(&*model, find_layers(*model));
      list_ = &lists_.at(reference_);
    }
    if (has_ranges_) check_ranges();
    if (!recipe_.tokenizer_source.empty()) tokens_.emplace(recipe_, models_, *reference_);
  }

  MergedModels merge() {
    made_ = Model(reference_->header());
    add_tensors();
    if (!faults_.empty()) throw Error(ErrorKind::invalid_file, format_faults(faults_), recipe_.file.string());
    if (has_ranges_) set_layer_keys();
    if (tokens_) tokens_->change_header(made_);
    add_origins();
    add_warnings();
    MergedModels result;
    result.merged = {std::make_shared<const Model>(std::move(made_)), std::move(types_)};
    for (auto& [path, model] : models_) result.inputs.push_back(std::move(model));
    result.used = std::move(used_);
    return result;
  }

 private:
  // These functions open and check the models.

  bool has_layer_ranges() const {
    std::size_t with = 0;
    std::size_t all = 0;
    for (const MergeSlice& slice : recipe_.slices) {
      for (const MergeSource& source : slice.sources) {
        ++all;
        if (source.layers) ++with;
      }
    }
    if (with != 0 && with != all)
      refuse_recipe(recipe_, "layer_range: some sources lack it; give it for all sources, or for none");
    if (with == 0 && recipe_.slices.size() > 1)
      refuse_recipe(recipe_, "layer_range is missing: with several slices, each source needs one");
    return with > 0;
  }

  ModelPtr open_model(const fs::path& path) const {
    auto model = std::make_shared<const Model>(open(find_model_path(path.string()), options_));
    if (auto resolved = resolve_tied_output(*model)) model = std::make_shared<const Model>(*std::move(resolved));
    return model;
  }

  void open_models() {
    const auto add = [&](const fs::path& path) {
      if (!models_.contains(path)) models_.emplace(path, open_model(path));
    };
    if (!recipe_.base.empty()) add(recipe_.base);
    for (const MergeSlice& slice : recipe_.slices) {
      for (const MergeSource& source : slice.sources) add(source.model);
    }
    store_outputs();
    reference_ = recipe_.base.empty() ? &get_model(recipe_.slices.front().sources.front()) : &*models_.at(recipe_.base);
  }

  // Adds an output matrix to models with tied embeddings, if another model has one.
  void store_outputs() {
    const auto has_output = [](const auto& entry) {
      const Family& family = find_family_or_llama(*entry.second);
      return !family.output.empty() && find_weight(*entry.second, family, family.output) != nullptr;
    };
    if (std::ranges::none_of(models_, has_output)) return;
    for (auto& [path, model] : models_) {
      if (auto stored = store_tied_output(*model)) model = std::make_shared<const Model>(std::move(stored->model));
    }
  }

  LayerList find_layers(const Model& model) const {
    try {
      return parse_layer_cut(model, "0:").list;
    } catch (const Error& error) {
      refuse_recipe(recipe_, fmt::format("layers of {}: {}", format_path(model), error.message()));
    }
  }

  const Model& get_model(const MergeSource& source) const { return *models_.at(source.model); }

  std::string format_path(const Model& model) const { return model.origin.path.string(); }

  void check_ranges() const {
    for (const MergeSlice& slice : recipe_.slices) {
      const MergeLayers& first = *slice.sources.front().layers;
      for (const MergeSource& source : slice.sources) {
        const MergeLayers& layers = *source.layers;
        const std::uint64_t count = lists_.at(&get_model(source)).count;
        if (layers.begin >= layers.end || layers.end > count)
          refuse_recipe(recipe_, fmt::format("layer_range: expected layers of {}, [0, {}]; found [{}, {}]",
                                             source.model.string(), count, layers.begin, layers.end));
        if (layers.end - layers.begin != first.end - first.begin)
          refuse_recipe(recipe_,
                        fmt::format("layer_range: the sources of a slice need as many layers each; found [{}, {}] of "
                                    "{} and [{}, {}] of {}",
                                    first.begin, first.end, slice.sources.front().model.string(), layers.begin,
                                    layers.end, source.model.string()));
      }
    }
  }

  // These functions merge the tensors.

  void add_tensors() {
    bool has_layers = false;
    for (const Tensor& tensor : reference_->tensors()) {
      const auto layer = list_ == nullptr ? std::nullopt : list_->split(tensor.name);
      if (!layer) {
        add_outside_layers(tensor);
      } else if (!has_ranges_) {
        add_merged_tensor(
            tensor.name, tensor.name,
            {&recipe_.slices.front(), compute_position(layer->number, list_->count), layer->number, std::nullopt});
      } else if (!std::exchange(has_layers, true)) {
        add_layers();
      }
    }
  }

  void add_outside_layers(const Tensor& tensor) {
    const Family& family = find_family_or_llama(*reference_);
    const bool is_last = std::ranges::find(family.tensors.last, find_table_name(family, tensor.name),
                                           &TensorRow::name) != family.tensors.last.end();
    const MergeSlice& slice = is_last ? recipe_.slices.back() : recipe_.slices.front();
    add_merged_tensor(tensor.name, tensor.name, {&slice, is_last ? 1.0 : 0.0, 0, std::nullopt});
  }

  // Returns the layer of the reference model whose tensors and configuration keys describe a layer of the slice. Throws
  // bad_argument if the reference model has no such layer.
  std::uint64_t find_reference_layer(const MergeSlice& slice, std::uint64_t layer) const {
    const auto own =
        std::ranges::find_if(slice.sources, [&](const auto& source) { return &get_model(source) == reference_; });
    const MergeSource& source = own == slice.sources.end() ? slice.sources.front() : *own;
    const std::uint64_t number = source.layers->begin + layer;
    if (number >= list_->count)
      refuse_recipe(recipe_, fmt::format("layer_range: layer {} of {} is not one of the {} layers of {}, whose "
                                         "configuration the result has; name another model as base_model",
                                         number, source.model.string(), list_->count, format_path(*reference_)));
    return number;
  }

  void add_layers() {
    std::multimap<std::uint64_t, const Tensor*> layers;
    for (const Tensor& tensor : reference_->tensors()) {
      if (const auto split = list_->split(tensor.name)) layers.emplace(split->number, &tensor);
    }
    for (const MergeSlice& slice : recipe_.slices) {
      const std::uint64_t count = slice.sources.front().layers->end - slice.sources.front().layers->begin;
      for (std::uint64_t layer = 0; layer < count; ++layer) {
        const double position = compute_position(layer, count);
        const std::uint64_t described = find_reference_layer(slice, layer);
        const auto [begin, end] = layers.equal_range(described);
        for (auto it = begin; it != end; ++it) {
          const LayerName split = *list_->split(it->second->name);
          add_merged_tensor(fmt::format("{}{}{}", split.prefix, kept_.size(), split.rest), it->second->name,
                            {&slice, position, layer, split});
        }
        kept_.push_back(described);
      }
    }
  }

  // Returns null if the model lacks the tensor.
  const Tensor* find_if_stored(const Model& model, const std::string& name) const {
    const Tensor* tensor = model.find(name);
    if (tensor != nullptr) return tensor;
    return find_weight(model, find_family_or_llama(model), find_table_name(find_family_or_llama(*reference_), name));
  }

  // Returns a tensor, which then counts as used. Adds a fault and returns null if the model lacks it.
  const Tensor* use_tensor(const Model& model, const std::string& name) {
    const Tensor* tensor = find_if_stored(model, name);
    if (tensor == nullptr) {
      add_fault(faults_, fmt::format("{}: {} has no such tensor", name, format_path(model)));
    } else {
      used_.insert(tensor);
    }
    return tensor;
  }

  const Tensor* find_in_source(const MergeSource& source, const std::string& name, const Place& place) {
    const Model& model = get_model(source);
    if (!place.name) return use_tensor(model, name);
    return use_tensor(model, fmt::format("{}{}{}", lists_.at(&model).prefixes.front(),
                                         source.layers->begin + place.layer, place.name->rest));
  }

  // Merges a tensor and adds it to the result. `described` is its name in the reference model.
  void add_merged_tensor(std::string name, const std::string& described, const Place& place) {
    const std::vector<const MergeSource*> sources = list_inputs(recipe_, *place.slice, method_);
    std::vector<const Tensor*> inputs;
    for (const MergeSource* source : sources) inputs.push_back(find_in_source(*source, described, place));
    const Tensor* base = find_base(described, place);
    if (std::ranges::find(inputs, nullptr) != inputs.end() || (has_base() && base == nullptr)) return;
    const std::string type = describe_stored_type(base != nullptr ? *base : *inputs.front());
    const bool is_arranged = arrange_tokens(described, place, sources, inputs, base);
    const Tensor& own = base != nullptr ? *base : *inputs.front();
    if (!are_fitting(name, own, inputs, sources)) return;
    const ParameterValues values = resolve_settings(recipe_, method_, *place.slice, name, place.position);
    const bool is_copy = values.has("scale") && values.get("scale") == 1;
    if (is_copy || !has_float_elements(own)) {
      if (!is_copy && inputs.size() > 1) copied_.push_back(name);
      if (is_arranged && describe_stored_type(own) != type) types_.emplace(name, type);
      Tensor copy = own;
      if (copy.name != name) copy.file_name = nullptr;
      copy.name = std::move(name);
      made_.add(std::move(copy));
      return;
    }
    TensorMerge merge{name, {}, std::nullopt, values, {}};
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      merge.inputs.push_back(*inputs[i]);
      merge.keys.push_back(make_random_key(recipe_.seed, i, name));
    }
    if (base != nullptr) merge.base = *base;
    types_.emplace(name, type);
    Tensor merged = make_dense(std::move(name), own.shape, DType::f32, make_merged_blob(method_, std::move(merge)));
    if (own.layout == Layout::dense) merged.attributes = own.attributes;
    made_.add(std::move(merged));
  }

  // Arranges the rows of the inputs and the base in the order of the result's tokens, if they have a row for each
  // token. Returns false for other tensors.
  bool arrange_tokens(const std::string& described, const Place& place, const std::vector<const MergeSource*>& sources,
                      std::vector<const Tensor*>& inputs, const Tensor*& base) {
    const auto axis = tokens_ && !place.name ? tokens_->find_axis(described) : std::nullopt;
    if (!axis) return false;
    std::vector<TokenRows::Input> donors;
    const auto add = [&](const Model& model) {
      const auto is_it = [&](const TokenRows::Input& input) { return input.model == &model; };
      if (std::ranges::any_of(donors, is_it)) return;
      const Tensor* tensor = find_if_stored(model, described);
      if (tensor == nullptr) return;
      used_.insert(tensor);
      donors.push_back({&model, tensor});
    };
    for (const MergeSource& source : place.slice->sources) add(get_model(source));
    if (!recipe_.base.empty()) add(*reference_);
    const std::size_t in_slice = donors.size();
    for (const auto& [path, model] : models_) add(*model);
    const Tensor& first = *donors.front().tensor;
    if (!std::ranges::all_of(donors, [&](const auto& donor) { return fits_rows(donor, first, *axis); })) return false;
    const auto arrange = [&](const Model& model) {
      auto found = arranged_.find({&model, described});
      if (found == arranged_.end())
        found = arranged_.emplace(std::pair(&model, described), tokens_->arrange(model, *axis, donors, in_slice)).first;
      return &found->second;
    };
    try {
      for (std::size_t i = 0; i < inputs.size(); ++i) inputs[i] = arrange(get_model(*sources[i]));
      if (base != nullptr) base = arrange(*reference_);
    } catch (const Error& error) {
      add_fault(faults_, error.message());
    }
    return true;
  }

  // Returns true if a tensor has a row for each of its model's tokens, and the shape of `other` apart from that axis.
  bool fits_rows(const TokenRows::Input& input, const Tensor& other, std::size_t axis) const {
    Shape shape = input.tensor->shape;
    if (axis >= shape.size() || shape[axis] != tokens_->count_rows(*input.model)) return false;
    if (axis >= other.shape.size()) return false;
    shape[axis] = other.shape[axis];
    return shape == other.shape;
  }

  bool has_base() const {
    using Base = MergeMethod::Base;
    return !recipe_.base.empty() && (method_.base == Base::required || method_.base == Base::optional);
  }

  const Tensor* find_base(const std::string& described, const Place& place) {
    if (!has_base()) return nullptr;
    const auto& sources = place.slice->sources;
    const auto own = std::ranges::find(sources, recipe_.base, &MergeSource::model);
    return own == sources.end() ? use_tensor(*reference_, described) : find_in_source(*own, described, place);
  }

  // Returns true if the shapes and kinds of numbers of the inputs fit `own`; otherwise adds faults. sources[i] is the
  // source of input i.
  bool are_fitting(const std::string& name, const Tensor& own, const std::vector<const Tensor*>& inputs,
                   const std::vector<const MergeSource*>& sources) {
    bool fits = true;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const Tensor& tensor = *inputs[i];
      const std::string model = format_path(get_model(*sources[i]));
      if (tensor.shape != own.shape) {
        // If the last axis (the hidden size) differs, the models differ in more than their tokens.
        const bool has_other_tokens = !tokens_ && is_embedding_or_output(name) && tensor.shape.size() == 2 &&
                                      own.shape.size() == 2 && tensor.shape.back() == own.shape.back();
        add_fault(faults_,
                  fmt::format("{}: {} has the shape {}, expected {}{}", name, model, to_string(tensor.shape),
                              to_string(own.shape),
                              has_other_tokens ? "; tokenizer_source merges models with different tokens" : ""));
        fits = false;
      } else if (has_float_elements(own) != has_float_elements(tensor)) {
        add_fault(faults_, fmt::format("{}: {} has it as {}, which does not merge with {}", name, model,
                                       describe_stored_type(tensor), describe_stored_type(own)));
        fits = false;
      }
    }
    return fits;
  }

  // These functions make the header.

  void set_layer_keys() {
    LayerCut cut{*list_, kept_};
    cut.is_ascending = std::ranges::adjacent_find(kept_, std::greater_equal()) == kept_.end();
    cut_layer_keys(made_, cut);
  }

  void add_origins() {
    made_.origin.files.clear();
    if (!recipe_.file.empty()) made_.origin.files.push_back(recipe_.file);
    made_.origin.size = 0;
    for (const auto& [path, model] : models_) {
      std::ranges::copy(model->origin.files, std::back_inserter(made_.origin.files));
      made_.origin.size = saturating_add(made_.origin.size, model->origin.size);
      if (&*model == reference_) continue;
      for (Finding finding : model->warnings) {
        if (finding.path.empty()) finding.path = format_path(*model);
        made_.warnings.push_back(std::move(finding));
      }
    }
  }

  void warn(std::string text) { made_.warnings.push_back({Severity::warning, std::move(text), {}, std::nullopt}); }

  void add_warnings() {
    if (!copied_.empty())
      warn(fmt::format("tensor {}: the numbers are not floating-point, and stay those of {}", list_names(copied_, 1),
                       format_path(*reference_)));
    for (const auto& [path, model] : models_) {
      std::vector<std::string> unused;
      for (const Tensor& tensor : model->tensors()) {
        const bool is_layer = has_ranges_ && lists_.at(&*model).split(tensor.name);
        if (!is_layer && !used_.contains(&tensor)) unused.push_back(tensor.name);
      }
      if (!unused.empty() && is_outer_source(*model))
        warn(fmt::format("{}: {} {} left out, because {} lacks {}", format_path(*model), list_names(unused),
                         unused.size() == 1 ? "is" : "are", format_path(*reference_),
                         unused.size() == 1 ? "it" : "them"));
    }
  }

  // Returns true if the model is a source of the first and the last slice: the merge should use all of its
  // tensors outside the layers.
  bool is_outer_source(const Model& model) const {
    const auto is_it = [&](const MergeSource& source) { return &get_model(source) == &model; };
    return std::ranges::any_of(recipe_.slices.front().sources, is_it) &&
           std::ranges::any_of(recipe_.slices.back().sources, is_it);
  }

  const MergeRecipe recipe_;
  const ReadOptions& options_;
  const MergeMethod& method_;
  bool has_ranges_ = false;
  std::map<fs::path, ModelPtr> models_;  // the models by their paths in the recipe
  const Model* reference_ = nullptr;     // gives the result its names, order, configuration and vocabulary
  std::map<const Model*, LayerList> lists_;
  const LayerList* list_ = nullptr;  // the layers of the reference; null: layers do not matter
  std::vector<std::uint64_t> kept_;  // for each layer of the result, the layer of the reference that describes it

  std::optional<TokenRows> tokens_;  // std::nullopt: rows with equal ids are merged
  std::map<std::pair<const Model*, std::string>, Tensor> arranged_;

  Model made_;
  MergedTypes types_;
  std::unordered_set<const Tensor*> used_;
  std::vector<std::string> copied_;
  std::vector<std::string> faults_;
};

}  // namespace

MergedModels merge_models(const MergeRecipe& recipe, const ReadOptions& options) {
  return ModelMerge(recipe, options).merge();
}

}  // namespace poise
