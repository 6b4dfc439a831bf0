// merge: makes one model from several, by the methods and recipes of mergekit (docs/merging.md).
//
//   poise::MergeRecipe recipe;
//   recipe.method = "linear";
//   recipe.slices = {{.sources = {{.model = "a/"}, {.model = "b.gguf"}}}};
//   poise::merge(recipe, "merged/");
//   poise::merge(poise::read_merge_recipe("recipe.yaml"), "merged.gguf");
//
// The inputs may have different formats, because open() gives tensors the names and values of the published model. The
// result is lazy: each tensor is computed in chunks when it is written.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <poise/convert.hpp>

namespace poise {

// Holds a parameter's value: one number for all tensors, or numbers by the tensors' names and layers.
struct MergeSetting {
  struct Case {
    std::string filter;           // applies to names that contain it; empty or "*": to all names
    std::vector<double> numbers;  // one number, or a gradient: interpolated from the slice's first layer to its last
  };
  std::vector<Case> cases;  // the first one whose filter fits counts

  MergeSetting() = default;
  MergeSetting(double number) : cases{{{}, {number}}} {}
};

// Maps names of parameters ("weight", "density", "t") to their values. Flags are 0 and 1.
using MergeSettings = std::map<std::string, MergeSetting, std::less<>>;

// Names the layers [begin, end) of a model.
struct MergeLayers {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  friend bool operator==(const MergeLayers&, const MergeLayers&) = default;
};

struct MergeSource {
  std::filesystem::path model;
  std::optional<MergeLayers> layers = {};  // std::nullopt: all
  MergeSettings settings = {};
};

// Describes consecutive layers of the result. Each is merged from one layer of every source.
struct MergeSlice {
  std::vector<MergeSource> sources;
  MergeSettings settings = {};
};

struct MergeRecipe {
  std::string method;  // "linear", "slerp", "ties", ...: list_merge_methods()
  // The slices of the result, in order. A single slice whose sources have no layers merges whole models.
  std::vector<MergeSlice> slices;
  // The base model, whose configuration the result has. Empty: none; the result has the first source's configuration.
  std::filesystem::path base = {};
  // A source's settings take precedence over its slice's, and both over these.
  MergeSettings settings = {};
  // The tokenizer of the result: "base" (that of the base model, or else of the first source), "union" (the same, with
  // the tokens of all other models added), or the path of one of the models. Rows of the embedding and of the output
  // matrix are then matched by their tokens. Empty: the same tokenizer as for "base", but rows with equal ids are
  // merged.
  std::string tokenizer_source = {};
  std::optional<DType> dtype = {};  // the type of the result, if ConvertOptions does not name one
  std::uint64_t seed = 0;           // the seed of the random numbers of DARE and DELLA
  std::filesystem::path file = {};  // the file of the recipe, which errors name; empty: none
};

// Reads a recipe in mergekit's YAML. Paths in it are relative to the current directory. Throws what opening a file
// throws, and invalid_file, naming line and key.
MergeRecipe read_merge_recipe(const std::filesystem::path& path);

// Describes a method of merging.
struct MergeMethodInfo {
  std::string name;         // "task_arithmetic"
  std::string short_name;   // "task"; empty: none
  std::string description;  // one line
};
std::vector<MergeMethodInfo> list_merge_methods();

// Plans merge() with the same arguments, and throws what it throws. Opens the inputs, writes nothing.
Plan plan_merge(const MergeRecipe& recipe, const std::filesystem::path& output, const ConvertOptions& options = {});

// Merges models and writes the result. Takes every option of a conversion except `delta`, `lora`, `vocab` and `merges`.
// Numbers are computed as float32. Without a type in options or recipe, each tensor gets its type in the base, if the
// method uses one, else in the first source. Throws what convert() throws; bad_argument for an unknown method or
// setting, and for numbers outside a setting's range; invalid_file, listing tensors that a model lacks and shapes that
// differ.
ConvertReport merge(const MergeRecipe& recipe, const std::filesystem::path& output, const ConvertOptions& options = {});

}  // namespace poise
