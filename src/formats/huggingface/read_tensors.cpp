#include "formats/huggingface/read_tensors.hpp"

#include <map>
#include <set>
#include <unordered_set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <poise/error.hpp>

#include "family/check.hpp"
#include "family/families.hpp"
#include "formats/faulty_model.hpp"
#include "formats/huggingface/names.hpp"
#include "io/directory.hpp"
#include "io/plain_file_name.hpp"
#include "model/limits.hpp"
#include "syntax/value_budget.hpp"

namespace poise::huggingface {
namespace {

namespace fs = std::filesystem;

// The tensors of each shard, from the index.
using ShardMap = std::map<std::string, std::set<std::string>>;

ShardMap read_index(DirectoryReader& directory, const std::string& index, std::vector<Finding>& warnings) {
  const std::string path = directory.path(index).string();
  const Attributes root = directory.json_object(index, warnings);
  const Value* value = root.find("weight_map");
  const auto* map = value == nullptr ? nullptr : value->get_if<Attributes>();
  if (map == nullptr) throw Error(ErrorKind::invalid_file, "index: weight_map: expected an object", path);
  if (map->size() > kMaxTensors)
    throw Error(ErrorKind::invalid_file, fmt::format("index: weight_map: more than {} tensors", kMaxTensors), path);
  ShardMap shards;
  for (const auto& [tensor, shard] : *map) {
    const auto* name = shard.get_if<std::string>();
    if (name == nullptr)
      throw Error(ErrorKind::invalid_file, fmt::format("index: weight_map: {}: expected a file name", tensor), path);
    if (!is_plain_file_name(*name)) {
      throw Error(
          ErrorKind::invalid_file,
          fmt::format("index: weight_map: {}: \"{}\" is not a plain file name inside the directory", tensor, *name),
          path);
    }
    shards[*name].insert(tensor);
  }
  return shards;
}

void require_shards(const DirectoryReader& directory, const std::string& index, const ShardMap& shards) {
  constexpr std::size_t kMostNamed = 20;
  std::vector<std::string> absent;
  std::size_t more = 0;
  for (const auto& [shard, tensors] : shards) {
    if (directory.has(shard)) continue;
    if (absent.size() < kMostNamed) {
      absent.push_back(fmt::format("{} ({} tensor{})", shard, tensors.size(), tensors.size() == 1 ? "" : "s"));
    } else {
      ++more;
    }
  }
  if (absent.empty()) return;
  if (more > 0) absent.push_back(fmt::format("and {} more", more));
  throw Error(ErrorKind::not_found,
              fmt::format("the index names files that are not there: {}", fmt::join(absent, ", ")),
              directory.path(index).string());
}

class TensorCollector {
 public:
  // Leaves out tensors that the model's family computes.
  TensorCollector(Model& model, const WeightFiles& files)
      : model_(model), files_read_(files), family_(model.config ? &family_of(model) : nullptr) {}

  // `look_at` first gets the name of every tensor of the file.
  void add(DirectoryReader& directory, const std::string& file, FunctionRef<void(const std::string& name)> look_at) {
    const SourcePtr source = directory.open(file);
    const std::string path = directory.path(file).string();
    const auto take = [&](Tensor tensor) {
      look_at(tensor.name);
      if (const std::string why = why_left_out(tensor.name); why.empty()) {
        model_.add(std::move(tensor));
      } else {
        model_.warnings.push_back(
            {Severity::warning, fmt::format("tensor {} is left out: {}", tensor.name, why), path, std::nullopt});
      }
    };
    const Attributes metadata = files_read_.read(source, take, model_.warnings);
    for (const auto& [key, value] : metadata) {
      if (!keys_.insert(key).second) continue;
      if (!budget_.take_value() || !budget_.take_key(keys_.size()))
        throw Error(ErrorKind::invalid_file, "the shards hold too much metadata together", path);
      metadata_.emplace_back(key, value);
    }
    files_.push_back(directory.container().file_of(file));
  }

  // Moves the shards' metadata into the model. Returns the files.
  std::vector<fs::path> finish() {
    model_.attributes = Attributes::from_unique(std::move(metadata_));
    return std::move(files_);
  }

 private:
  // Empty if it stays.
  std::string why_left_out(std::string_view tensor) const {
    if (family_ == nullptr) return {};
    const ComputedTensor* computed = computed_tensor(*family_, tensor);
    return computed == nullptr ? std::string() : fmt::format("it is computed from {}", computed->from);
  }

  Model& model_;
  const WeightFiles& files_read_;
  const Family* family_;                     // null if unknown
  std::vector<Attributes::Entry> metadata_;  // if shards disagree about a key, the first one's value
  std::unordered_set<std::string> keys_;
  ValueBudget budget_{0};  // of all shards together
  std::vector<fs::path> files_;
};

}  // namespace

std::vector<fs::path> read_tensors(Model& model, DirectoryReader& directory, const LocatedWeights& weights) {
  TensorCollector collector(model, weights.files());
  if (!weights.is_index) {
    collector.add(directory, weights.name, [](const std::string&) {});
    return collector.finish();
  }
  const ShardMap shards = read_index(directory, weights.name, model.warnings);
  require_shards(directory, weights.name, shards);
  const std::string path = directory.path(weights.name).string();
  std::vector<Finding> faults;
  const auto tell = [&](const std::string& tensor, const std::string& problem) {
    add_fault(faults, {Severity::error, problem, path, std::nullopt, tensor});
  };
  for (const auto& [shard, promised] : shards) {
    std::set<std::string> found;
    collector.add(directory, shard, [&](const std::string& name) { found.insert(name); });
    for (const std::string& name : promised) {
      if (!found.contains(name)) tell(name, fmt::format("the index says that {} holds {}; it does not", shard, name));
    }
    for (const std::string& name : found) {
      if (!promised.contains(name))
        tell(name, fmt::format("{} holds {}, which the index does not put there", shard, name));
    }
  }
  std::vector<fs::path> files = collector.finish();
  if (faults.empty()) return files;
  model.origin = directory.origin();
  const std::string message = message_of_faults(faults);
  throw FaultyModel(message, path, std::move(faults), std::move(model));
}

}  // namespace poise::huggingface
