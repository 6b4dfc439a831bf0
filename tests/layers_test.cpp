// Includes go one way: bytes <- io <- tensor <- model <- {formats, runtime} <- ops <- api <- {capi, cli}, and bytes <- kernels <- runtime.
// formats and runtime never see each other. docs/design.md says why.
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

// What each layer may include, besides itself.
const std::map<std::string, std::set<std::string>> kAllowed = {
    {"bytes", {}},
    {"io", {"bytes"}},
    {"tensor", {"bytes", "io"}},
    {"model", {"bytes", "io", "tensor"}},
    {"formats", {"bytes", "io", "tensor", "model"}},
    {"kernels", {"bytes"}},
    {"runtime", {"bytes", "io", "tensor", "model", "kernels"}},
    {"ops", {"bytes", "io", "tensor", "model", "formats"}},
    {"api", {"bytes", "io", "tensor", "model", "formats", "runtime", "ops"}},
    {"capi", {"bytes", "io", "tensor", "model", "formats", "runtime", "ops", "api"}},
    {"cli", {"bytes", "io", "tensor", "model", "formats", "runtime", "ops", "api"}},
};

// The layer that implements each public header.
const std::map<std::string, std::string> kPublic = {
    {"error.hpp", "bytes"},        {"source.hpp", "io"},         {"blob.hpp", "io"},         {"progress.hpp", "io"},     {"dtype.hpp", "tensor"},
    {"dtype.def", "tensor"},       {"value.hpp", "tensor"},      {"tensor.hpp", "tensor"},   {"model.hpp", "model"},     {"format.hpp", "formats"},
    {"stored_type.hpp", "tensor"}, {"convert.hpp", "ops"},       {"verify.hpp", "ops"},      {"hash.hpp", "ops"},        {"diff.hpp", "ops"},
    {"weights.hpp", "runtime"},    {"tokenizer.hpp", "runtime"}, {"session.hpp", "runtime"}, {"sampler.hpp", "runtime"}, {"tiny_llama.hpp", "api"},
    {"edit.hpp", "formats"},
};

fs::path root() { return poise::source_directory(); }

// The layer of an included name: "io/sink.hpp" or "poise/blob.hpp". Empty for what is not ours.
std::string layer_of_include(const std::string& name) {
  const auto slash = name.find('/');
  if (slash == std::string::npos) return {};
  const std::string folder = name.substr(0, slash);
  if (folder == "poise") {
    const auto found = kPublic.find(name.substr(slash + 1));
    return found == kPublic.end() ? "a public header that kPublic does not place: " + name : found->second;
  }
  return kAllowed.contains(folder) ? folder : std::string();
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
    EXPECT_TRUE(kAllowed.at(layer).contains(other)) << fs::relative(file, root()) << " (" << layer << ") includes " << name << " (" << other << ")";
  }
}

TEST(Layers, SourcesIncludeOnlyLowerLayers) {
  std::size_t files = 0;
  for (const auto& [layer, allowed] : kAllowed) {
    for (const auto& entry : fs::recursive_directory_iterator(root() / "src" / layer)) {
      if (!entry.is_regular_file()) continue;
      expect_layer_respected(entry.path(), layer);
      ++files;
    }
  }
  EXPECT_GT(files, 30U);
}

TEST(Layers, PublicHeadersIncludeOnlyLowerLayers) {
  for (const auto& entry : fs::directory_iterator(root() / "include" / "poise")) {
    const std::string name = entry.path().filename().string();
    ASSERT_TRUE(kPublic.contains(name)) << name << " has no layer: add it to kPublic";
    expect_layer_respected(entry.path(), kPublic.at(name));
  }
}

TEST(Layers, EverySourceFolderIsALayer) {
  for (const auto& entry : fs::directory_iterator(root() / "src")) EXPECT_TRUE(kAllowed.contains(entry.path().filename().string())) << entry.path();
}

// Formats meet in the Model: none includes another's folder. A Hugging Face directory is made of safetensors files, and is
// the one exception.
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

}  // namespace
