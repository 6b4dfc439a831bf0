// Includes go one way, from a module to those below it. docs/design.md lists the modules.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "support/directories.hpp"

namespace {

namespace fs = std::filesystem;

// A module, and the modules whose files its own may include: those named here and all that these may include. A folder
// "a/b" is a module where it is named here; other folders are part of the module around them.
const std::map<std::string, std::set<std::string>> kBelow = {
    {"bytes", {}},
    {"patterns", {"bytes"}},
    {"io", {"bytes"}},
    {"numeric", {"bytes"}},
    {"syntax", {"numeric"}},
    {"jinja", {"syntax"}},
    {"pack", {"io"}},
    {"remote", {"pack", "syntax", "patterns"}},
    {"codec", {"numeric"}},
    {"kernels", {"codec"}},
    {"tensor", {"pack", "syntax", "codec", "patterns"}},
    {"views", {"tensor"}},
    {"model", {"views", "cluster"}},
    {"schemes", {"model"}},
    {"family", {"schemes"}},
    {"tokenizer/tokens", {"model"}},
    {"tokenizer/pipeline", {"tokenizer/tokens"}},
    {"tokenizer/sentencepiece", {"tokenizer/pipeline"}},
    {"tokenizer/gguf", {"tokenizer/sentencepiece"}},
    {"tokenizer/files", {"tokenizer/gguf"}},
    {"tokenizer", {"tokenizer/files"}},
    {"chat", {"tokenizer", "jinja"}},
    {"formats", {"family", "tokenizer", "remote"}},
    {"cluster", {"io"}},
    {"runtime", {"family", "tokenizer", "kernels", "cluster"}},
    {"ops", {"formats", "cluster"}},
    {"api", {"ops", "runtime", "chat"}},
    {"report", {"ops", "runtime", "chat"}},
    {"capi", {"api", "report"}},
    {"cli", {"api", "report"}},
    {"python", {"api", "report"}},
};

std::set<std::string> reachable(const std::string& module) {
  std::set<std::string> all;
  for (const std::string& below : kBelow.at(module)) {
    all.insert(below);
    all.merge(reachable(below));
  }
  return all;
}

// The modules that each module may include, besides itself.
const std::map<std::string, std::set<std::string>> kAllowed = [] {
  std::map<std::string, std::set<std::string>> allowed;
  for (const auto& [module, below] : kBelow) allowed[module] = reachable(module);
  return allowed;
}();

// The lowest module whose types each public header declares. io implements Source, and readers in bytes use it.
const std::map<std::string, std::string> kPublic = {
    {"error.hpp", "bytes"},        {"finding.hpp", "bytes"},
    {"source.hpp", "bytes"},       {"blob.hpp", "io"},
    {"progress.hpp", "io"},        {"dtype.hpp", "numeric"},
    {"dtype.def", "numeric"},      {"value.hpp", "syntax"},
    {"digest.hpp", "pack"},        {"affine.hpp", "codec"},
    {"stored_type.hpp", "codec"},  {"tensor.hpp", "tensor"},
    {"values.hpp", "views"},       {"model.hpp", "model"},
    {"remote.hpp", "remote"},      {"fetch.hpp", "remote"},

    {"format.hpp", "formats"},     {"edit.hpp", "formats"},
    {"convert.hpp", "ops"},        {"verify.hpp", "ops"},
    {"hash.hpp", "ops"},           {"diff.hpp", "ops"},
    {"statistics.hpp", "ops"},     {"tokenizer.hpp", "tokenizer/tokens"},
    {"weights.hpp", "runtime"},    {"session.hpp", "runtime"},
    {"sampler.hpp", "runtime"},    {"sampling_defaults.hpp", "runtime"},
    {"tiny_llama.hpp", "api"},     {"chat.hpp", "chat"},
    {"lora.hpp", "ops"},           {"batch.hpp", "runtime"},
    {"perplexity.hpp", "runtime"}, {"embedder.hpp", "runtime"},
    {"cache_type.hpp", "kernels"}, {"merge.hpp", "ops"},
    {"report.hpp", "report"},      {"delta.hpp", "ops"},
    {"imatrix.hpp", "formats"},    {"make_lora.hpp", "ops"},
    {"divergence.hpp", "api"}};

fs::path root() { return poise::source_directory(); }

// The extension of the Python package is built separately, next to that package; all other modules belong to the
// library and the command.
fs::path folder_of(const std::string& module) {
  return module == "python" ? root() / "python" / "src" : root() / "src" / module;
}

// Returns the innermost module of a file, by its path in src/; empty if it has none.
std::string module_of(const fs::path& file) {
  for (fs::path folder = file.parent_path(); !folder.empty(); folder = folder.parent_path()) {
    if (kAllowed.contains(folder.string())) return folder.string();
  }
  return {};
}

// Returns the layer of an included name: "io/sink.hpp" or "poise/blob.hpp". Empty for what is not ours.
std::string layer_of_include(const std::string& name) {
  const auto slash = name.find('/');
  if (slash == std::string::npos) return {};
  if (name.substr(0, slash) == "poise") {
    const auto found = kPublic.find(name.substr(slash + 1));
    return found == kPublic.end() ? "a public header that kPublic does not place: " + name : found->second;
  }
  return module_of(name);
}

std::vector<std::string> includes_of(const fs::path& file) {
  static const std::regex kInclude(R"re(^\s*#\s*include\s+[<"]([^>"]+)[>"])re");
  std::vector<std::string> names;
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    std::smatch match;
    if (std::regex_search(line, match, kInclude)) names.push_back(match[1]);
  }
  return names;
}

void expect_layer_respected(const fs::path& file, const std::string& layer) {
  for (const std::string& name : includes_of(file)) {
    const std::string other = layer_of_include(name);
    if (other.empty() || other == layer) continue;
    EXPECT_TRUE(kAllowed.at(layer).contains(other))
        << fs::relative(file, root()) << " (" << layer << ") includes " << name << " (" << other << ")";
  }
}

TEST(Layers, SourcesIncludeOnlyLowerLayers) {
  std::size_t files = 0;
  for (const auto& [layer, allowed] : kAllowed) {
    for (const auto& entry : fs::recursive_directory_iterator(folder_of(layer))) {
      const fs::path file = fs::relative(entry.path(), folder_of(layer));
      if (!entry.is_regular_file() || module_of(fs::path(layer) / file) != layer) continue;
      expect_layer_respected(entry.path(), layer);
      ++files;
    }
  }
  EXPECT_GT(files, 30U);
}

TEST(Layers, PublicHeadersIncludeOnlyLowerLayers) {
  for (const auto& entry : fs::recursive_directory_iterator(root() / "include" / "poise")) {
    if (!entry.is_regular_file()) continue;
    const std::string name = fs::relative(entry.path(), root() / "include" / "poise").string();
    ASSERT_TRUE(kPublic.contains(name)) << name << " has no layer: add it to kPublic";
    expect_layer_respected(entry.path(), kPublic.at(name));
  }
}

TEST(Layers, EverySourceFolderIsALayer) {
  for (const auto& entry : fs::directory_iterator(root() / "src"))
    EXPECT_TRUE(kAllowed.contains(entry.path().filename().string())) << entry.path();
}

// No format includes another's folder. A Hugging Face directory, which is made of safetensors files, is the one
// exception.
TEST(Layers, FormatsDoNotKnowEachOther) {
  for (const auto& folder : fs::directory_iterator(root() / "src" / "formats")) {
    if (!folder.is_directory()) continue;
    const std::string own = folder.path().filename().string();
    for (const auto& entry : fs::recursive_directory_iterator(folder.path())) {
      if (!entry.is_regular_file()) continue;
      for (const std::string& name : includes_of(entry.path())) {
        static const std::regex kOther(R"(^formats/([a-z_]+)/)");
        std::smatch match;
        if (!std::regex_search(name, match, kOther) || match[1] == own) continue;
        EXPECT_TRUE(own == "huggingface" && match[1] == "safetensors") << entry.path() << " includes " << name;
      }
    }
  }
}

TEST(Layers, OnlyTheRegistryKnowsFormats) {
  static const std::regex kOfAFormat("^formats/[a-z_]+/");
  for (const auto& entry : fs::recursive_directory_iterator(root() / "src")) {
    const std::string file = fs::relative(entry.path(), root() / "src").string();
    if (!entry.is_regular_file() || file == "formats/registry.cpp" || std::regex_search(file, kOfAFormat)) continue;
    for (const std::string& name : includes_of(entry.path()))
      EXPECT_FALSE(std::regex_search(name, kOfAFormat)) << file << " includes " << name;
  }
}

}  // namespace
