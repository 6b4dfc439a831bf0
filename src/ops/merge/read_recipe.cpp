// Reads recipes in mergekit's YAML.
#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <poise/error.hpp>
#include <poise/merge.hpp>
#include <poise/source.hpp>

#include "bytes/number_text.hpp"
#include "bytes/short_text.hpp"
#include "bytes/utf8.hpp"
#include "io/source_range.hpp"
#include "ops/option_words.hpp"
#include "syntax/yaml.hpp"

namespace poise {
namespace {

constexpr std::size_t kShownText = 60;  // bytes of a text in a message

using NodeKind = YamlNode::Kind;

std::string describe_node(const YamlNode& node) {
  switch (node.kind) {
    case NodeKind::null: return "no value";
    case NodeKind::list: return "a list";
    case NodeKind::map: return "a map";
    case NodeKind::scalar: break;
  }
  return fmt::format("\"{}\"", shorten(node.text, kShownText));
}

// Reads one YAML document. Errors name file, line and key.
class RecipeReader {
 public:
  explicit RecipeReader(std::string path) : path_(std::move(path)) {}

  MergeRecipe read(const YamlNode& root) {
    if (root.kind != NodeKind::map) fail(root, "the recipe", "a map that has merge_method and models or slices");
    MergeRecipe recipe;
    recipe.file = path_;
    const YamlNode* models = nullptr;
    const YamlNode* slices = nullptr;
    const YamlNode* tokenizer_source = nullptr;
    const YamlNode* tokenizer = nullptr;
    read_map(root, "",
             {{"merge_method", [&](const YamlNode& node) { recipe.method = read_text(node, "merge_method"); }},
              {"models", [&](const YamlNode& node) { models = &node; }},
              {"slices", [&](const YamlNode& node) { slices = &node; }},
              {"base_model",
               [&](const YamlNode& node) {
                 if (node.kind != NodeKind::null) recipe.base = read_model(node, "base_model");
               }},
              {"parameters", [&](const YamlNode& node) { recipe.settings = read_settings(node); }},
              {"dtype", [&](const YamlNode& node) { set_type(recipe, node, "dtype", false); }},
              {"out_dtype", [&](const YamlNode& node) { set_type(recipe, node, "out_dtype", true); }},
              {"tokenizer_source",
               [&](const YamlNode& node) {
                 if (node.kind != NodeKind::null) tokenizer_source = &node;
                 set_tokenizer(recipe, node, "tokenizer_source");
               }},
              {"tokenizer",
               [&](const YamlNode& node) {
                 if (node.kind == NodeKind::null) return;
                 tokenizer = &node;
                 recipe.tokenizer_source = "union";  // mergekit's value if the map has no source
                 read_map(node, "tokenizer",
                          {{"source", [&](const YamlNode& source) { set_tokenizer(recipe, source, "source"); }}});
               }},
              {"name", [](const YamlNode&) {}}});
    if (recipe.method.empty()) fail_missing(root, "merge_method", "name a method such as linear");
    if (models == nullptr && slices == nullptr) fail_missing(root, "models", "list models to merge, or slices of them");
    if (models != nullptr && slices != nullptr) fail_line(root, "both models and slices are given: keep one of them");
    if (tokenizer_source != nullptr && tokenizer != nullptr)
      fail_line(*tokenizer, "both tokenizer_source and tokenizer are given: keep one of them");
    if (models != nullptr) {
      recipe.slices.push_back({.sources = read_sources(*models, "models", false), .settings = {}});
    } else {
      read_slices(*slices, recipe);
    }
    return recipe;
  }

 private:
  struct Key {
    std::string_view name;
    std::function<void(const YamlNode&)> read;
  };

  [[noreturn]] void fail(const YamlNode& node, std::string_view key, std::string_view expected) const {
    fail_line(node, fmt::format("{}: expected {}; found {}", key, expected, describe_node(node)));
  }
  [[noreturn]] void fail_missing(const YamlNode& map, std::string_view key, std::string_view remedy) const {
    fail_line(map, fmt::format("the key \"{}\" is missing: {}", key, remedy));
  }
  [[noreturn]] void fail_line(const YamlNode& node, std::string_view problem) const {
    throw Error(ErrorKind::invalid_file, fmt::format("line {}: {}", node.line, problem), path_);
  }

  void read_map(const YamlNode& node, std::string_view where, const std::vector<Key>& known) const {
    if (node.kind != NodeKind::map) fail(node, where, "a map");
    for (std::size_t i = 0; i < node.keys.size(); ++i) {
      const YamlKey& key = node.keys[i];
      const auto row = std::ranges::find(known, key.text, &Key::name);
      if (row == known.end()) {
        std::vector<std::string_view> names;
        for (const Key& name : known) names.push_back(name.name);
        throw Error(ErrorKind::invalid_file,
                    fmt::format("line {}: {}{}Poise does not know the key \"{}\"; expected one of {}", key.line, where,
                                where.empty() ? "" : ": ", shorten(key.text, kShownText), fmt::join(names, ", ")),
                    path_);
      }
      row->read(node.items[i]);
    }
  }

  std::string read_text(const YamlNode& node, std::string_view key) const {
    if (node.kind != NodeKind::scalar || node.text.empty()) fail(node, key, "text");
    return node.text;
  }

  // Reads the path of a model: a text, or mergekit's long form, a map with a path.
  std::filesystem::path read_model(const YamlNode& node, std::string_view key) const {
    if (node.kind != NodeKind::map) return read_text(node, key);
    std::filesystem::path path;
    read_map(node, key,
             {{"model", [&](const YamlNode& inner) { path = read_model(inner, "model"); }},
              {"path", [&](const YamlNode& inner) { path = read_text(inner, "path"); }}});
    if (path.empty()) fail_missing(node, "path", "give the path of a model");
    return path;
  }

  // Sets the recipe's type. out_dtype takes precedence over dtype, in any order.
  void set_type(MergeRecipe& recipe, const YamlNode& node, std::string_view key, bool is_last) {
    if (node.kind == NodeKind::null) return;
    const std::string text = read_text(node, key);
    const auto type = parse_cast_type(text);
    if (!type) fail(node, key, "float32, float16 or bfloat16");
    if (is_last || !has_last_type_) recipe.dtype = type;
    has_last_type_ = has_last_type_ || is_last;
  }

  void set_tokenizer(MergeRecipe& recipe, const YamlNode& node, std::string_view key) const {
    if (node.kind != NodeKind::null) recipe.tokenizer_source = read_model(node, key).string();
  }

  double read_number(const YamlNode& node, std::string_view key) const {
    if (node.kind == NodeKind::scalar && node.is_plain) {
      const std::string lower = to_lower_ascii(node.text);
      if (lower == "true") return 1;
      if (lower == "false") return 0;
      if (const auto number = parse_number_text<double>(node.text)) return *number;
    }
    fail(node, key, "a number, true or false");
  }

  std::vector<double> read_numbers(const YamlNode& node, std::string_view key) const {
    if (node.kind != NodeKind::list) return {read_number(node, key)};
    std::vector<double> numbers;
    for (const YamlNode& item : node.items) numbers.push_back(read_number(item, key));
    if (numbers.empty()) fail(node, key, "numbers");
    return numbers;
  }

  MergeSetting read_setting(const YamlNode& node, std::string_view key) const {
    const bool has_filters = node.kind == NodeKind::map || (node.kind == NodeKind::list && !node.items.empty() &&
                                                            node.items[0].kind == NodeKind::map);
    MergeSetting setting;
    if (!has_filters) {
      setting.cases.push_back({{}, read_numbers(node, key)});
      return setting;
    }
    const auto read_case = [&](const YamlNode& item) {
      MergeSetting::Case& row = setting.cases.emplace_back();
      read_map(item, key,
               {{"filter",
                 [&](const YamlNode& text) {
                   if (text.kind != NodeKind::null) row.filter = read_text(text, "filter");
                 }},
                {"value", [&](const YamlNode& value) { row.numbers = read_numbers(value, key); }}});
      if (row.numbers.empty()) fail_missing(item, "value", fmt::format("give the {} of these tensors", key));
    };
    if (node.kind == NodeKind::map) {
      read_case(node);
    } else {
      std::ranges::for_each(node.items, read_case);
    }
    return setting;
  }

  MergeSettings read_settings(const YamlNode& node) const {
    MergeSettings settings;
    if (node.kind == NodeKind::null) return settings;
    if (node.kind != NodeKind::map) fail(node, "parameters", "a map");
    for (std::size_t i = 0; i < node.keys.size(); ++i)
      settings.emplace(node.keys[i].text, read_setting(node.items[i], node.keys[i].text));
    return settings;
  }

  MergeLayers read_layers(const YamlNode& node) const {
    constexpr std::string_view kExpected = "two numbers, such as [0, 16]";
    if (node.kind != NodeKind::list || node.items.size() != 2) fail(node, "layer_range", kExpected);
    const auto read_layer = [&](const YamlNode& item) {
      const auto number = item.kind == NodeKind::scalar ? parse_number_text<std::uint64_t>(item.text) : std::nullopt;
      if (!number) fail(item, "layer_range", kExpected);
      return *number;
    };
    return {read_layer(node.items[0]), read_layer(node.items[1])};
  }

  std::vector<MergeSource> read_sources(const YamlNode& node, std::string_view key, bool has_layers) const {
    if (node.kind != NodeKind::list || node.items.empty()) fail(node, key, "a list of models");
    std::vector<MergeSource> sources;
    for (const YamlNode& item : node.items) {
      MergeSource& source = sources.emplace_back();
      std::vector<Key> keys = {
          {"model", [&](const YamlNode& model) { source.model = read_model(model, "model"); }},
          {"parameters", [&](const YamlNode& settings) { source.settings = read_settings(settings); }}};
      if (has_layers)
        keys.push_back({"layer_range", [&](const YamlNode& layers) { source.layers = read_layers(layers); }});
      read_map(item, key, keys);
      if (source.model.empty()) fail_missing(item, "model", "give the path of a model");
      if (has_layers && !source.layers) fail_missing(item, "layer_range", "give two numbers, such as [0, 16]");
    }
    return sources;
  }

  void read_slices(const YamlNode& node, MergeRecipe& recipe) const {
    if (node.kind != NodeKind::list || node.items.empty()) fail(node, "slices", "a list");
    for (const YamlNode& item : node.items) {
      MergeSlice& slice = recipe.slices.emplace_back();
      read_map(item, "slices",
               {{"sources", [&](const YamlNode& sources) { slice.sources = read_sources(sources, "sources", true); }},
                {"parameters", [&](const YamlNode& settings) { slice.settings = read_settings(settings); }}});
      if (slice.sources.empty()) fail_missing(item, "sources", "list the models of the slice");
    }
  }

  std::string path_;
  bool has_last_type_ = false;
};

}  // namespace

MergeRecipe read_merge_recipe(const std::filesystem::path& path) {
  const SourcePtr source = Source::open(path, IoMode::read);
  const std::string text = read_text(*source, std::min<std::uint64_t>(source->size(), kMostYamlBytes + 1));
  return RecipeReader(path.string()).read(parse_yaml(text, path.string()));
}

}  // namespace poise
