// Edits a zTensor or GGUF file. The first byte gives the length of the changes, and the rest is the file. A change is a
// line: "key=text" sets a key, "-key" erases it, and "!" forces the edit. A rejected edit leaves every byte as it was;
// after a successful one the file opens, its tensors have the same bytes, and its keys are as requested.
#include <poise/edit.hpp>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "formats/format.hpp"
#include "target.hpp"

using namespace poise;

namespace {

namespace fs = std::filesystem;

AttributeChanges parse_changes(std::string_view lines) {
  AttributeChanges changes;
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(line.size() + 1, lines.size()));
    const std::size_t equals = line.find('=');
    if (line == "!") {
      changes.force = true;
    } else if (line.starts_with('-')) {
      changes.erase.emplace_back(line.substr(1));
    } else if (equals != std::string_view::npos) {
      changes.set.emplace_back(line.substr(0, equals), line.substr(equals + 1));
    }
  }
  return changes;
}

std::vector<char> read_bytes_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Reads the parts that are small enough: an edit must not change them.
std::vector<std::string> read_tensors(const Model& model) {
  std::vector<std::string> all;
  std::uint64_t left = fuzz::kMostBytes;
  for (const Tensor& tensor : model.tensors()) {
    all.push_back(fmt::format("{} {} {}", tensor.name, to_string(tensor.shape), to_json(tensor.attributes)));
    for (const Part& part : tensor.parts) {
      all.push_back(fmt::format("{} {} {}", tensor.name, part.role, part.blob->size()));
      if (part.blob->size() > left) continue;
      left -= part.blob->size();
      try {
        const auto bytes = read_all(*part.blob);
        all.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      } catch (const Error& error) {
        all.emplace_back(error.message());
      }
    }
  }
  return all;
}

// Holds the content that is compared before and after an edit.
struct Content {
  explicit Content(const fs::path& path) {
    const Opened opened = open_with_format(open_input(path, {}), {});
    model_type = opened.model.card.model_type;
    if (opened.model.config) config = to_json(config_to_attributes(*opened.model.config, model_type));
    tensors = read_tensors(opened.model);
    for (const MetadataKey& key : list_metadata_keys(opened)) keys[key.key] = key.type + to_json(key.value);
  }

  std::string model_type;
  std::string config;
  std::vector<std::string> tensors;
  std::map<std::string, std::string> keys;  // with their values
};

// Checks that changed keys are set or erased, as requested, and that the others have their values.
void expect_keys(const Content& before, const Content& after, const AttributeChanges& changes) {
  auto keys = before.keys;
  for (const std::string& key : changes.erase) keys.erase(key);
  for (const auto& change : changes.set) {
    const auto found = after.keys.find(change.first);
    if (found == after.keys.end()) fuzz::report(fmt::format("an edit has not set {}", change.first));
    keys[change.first] = found->second;
  }
  if (keys != after.keys) fuzz::report("an edit has changed keys that it was not asked to change");
}

void expect_edited(const std::optional<Content>& before, const fs::path& path, const AttributeChanges& changes) {
  try {
    const Content after(path);
    if (!before) return;
    expect_keys(*before, after, changes);
    // The names of tensors and the order of their rows depend on these.
    const bool same_family = before->model_type == after.model_type && before->config == after.config;
    if (same_family && before->tensors != after.tensors) fuzz::report("an edit has changed tensors");
  } catch (const Error& error) {
    if (before) fuzz::report(fmt::format("an edited file does not open: {}", error.what()));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t length = std::min<std::size_t>(data[0], size - 1);
  const AttributeChanges changes = parse_changes({reinterpret_cast<const char*>(data) + 1, length});
  const fs::path directory = fuzz::get_scratch_directory() / "edit";
  fs::create_directories(directory);
  const fs::path path = directory / "file";
  fuzz::write_file(path, fuzz::bytes_of(data + 1 + length, size - 1 - length));
  const std::vector<char> original = read_bytes_of(path);
  fuzz::expect_sound(size, [&] {
    std::optional<Content> before;
    try {
      before.emplace(path);
    } catch (const Error&) {  // a file that does not open belongs to other targets
    }
    bool edited = false;
    fuzz::expect_answer([&] {
      edit(path, changes);
      edited = true;
    });
    if (std::distance(fs::directory_iterator(directory), fs::directory_iterator()) != 1)
      fuzz::report("an edit has left other files in the directory");
    if (edited) {
      expect_edited(before, path, changes);
    } else if (read_bytes_of(path) != original) {
      fuzz::report("an edit that was refused has changed the file");
    }
  });
  return 0;
}
