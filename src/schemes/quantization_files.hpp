// Compares the names of modules with the lists of a quantization_config. As in compressed-tensors, an item of a list is
// a name, a class, or "re:" with a regular expression that matches the beginning of a name. Also lists the files next
// to config.json that hold such a configuration.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include <poise/value.hpp>

#include "patterns/regex.hpp"

namespace poise {

// Lists the ways in which a list names a module, the most specific one last. Files do not give the modules' classes, so
// Poise assumes that every matrix belongs to the class Linear (by_class).
enum class Naming : std::uint8_t { none, by_other_class, by_class, by_expression, by_name };

// Limits the number and the time of all regular expressions in a configuration's lists.
struct ExpressionBudget {
  using Clock = std::chrono::steady_clock;

  // Each function throws unsupported (without path) when its limit is exceeded. No real file exceeds the limits.
  void count_expression();
  void add_time(Clock::duration time);

  std::mutex matching;          // held by the thread that matches, because a matcher has a state
  std::size_t expressions = 0;  // the number of expressions that were read
  Clock::duration spent{};
};

// Holds the texts and compiled expressions of a list of modules. Thread-safe.
class ModuleList {
 public:
  struct Match {
    Naming naming = Naming::none;
    std::string_view target = {};  // the item that matches; if several expressions do, the first in sorted order
  };

  // Reads a list. Ignores values other than texts. Throws invalid_file (without path) for an invalid expression, and
  // what ExpressionBudget throws.
  ModuleList(const Value::Array& list, std::shared_ptr<ExpressionBudget> budget);

  // Finds how the list names a module. Throws what ExpressionBudget::add_time() and RegexMatcher::find_next() throw.
  Match match(const std::string& module) const;

 private:
  struct Expression {
    std::string target;
    std::unique_ptr<const Regex> regex;
    std::unique_ptr<RegexMatcher> matcher;  // made once, because each allocates a stack
  };

  Expression compile_expression(const std::string& target);
  bool matches(const Expression& expression, const std::string& module) const;

  std::shared_ptr<ExpressionBudget> budget_;
  std::unordered_set<std::string> names_;
  std::vector<Expression> expressions_;
  std::string linear_;
  std::string other_class_;
};

// Holds the lists of a configuration of compressed-tensors.
struct ModuleLists {
  std::optional<ModuleList> ignored;                       // `ignore`
  std::map<std::string, ModuleList, std::less<>> targets;  // by name of a group in `config_groups`: its `targets`

  // Throws what ModuleList() throws.
  explicit ModuleLists(const Attributes& config);
};

// Names a file next to config.json that describes the quantization. Quantizing programs wrote such files before
// config.json had quantization_config, or write both.
//
// Sources: ModelOpt's export of Hugging Face checkpoints (hf_quant_config.json); BaseQuantizeConfig of AutoGPTQ
// (quantize_config.json); AutoAWQ before it wrote config.json (quant_config.json, with AWQ's own spellings of keys).
struct QuantizationFile {
  std::string_view name;
  // Converts the file's object to a quantization_config, with quant_method. Returns std::nullopt if it describes no
  // quantized weights. Throws invalid_file (without path).
  std::optional<Attributes> (*make_config)(const Attributes& file);
};

// Lists the known files. If a directory has several, the first one that describes quantized weights counts.
std::span<const QuantizationFile> list_quantization_files();

// Returns the differences between two quantization_configs in how weights are stored: "bits is 4 and 8". Skips keys
// that only one of them has.
std::vector<std::string> find_differences(const Attributes& config, const Attributes& other);

}  // namespace poise
