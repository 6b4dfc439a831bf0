// Which modules the lists of a quantization_config name, as compressed-tensors matches them: by names, by "re:" and a
// regular expression for the beginning of a name, and by classes.
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

// Says how a list names a module, the surest way last. Matrices are of the class Linear, because files do not name
// classes.
enum class Naming : std::uint8_t { none, by_other_class, by_class, by_expression, by_name };

// Limits all expressions of a configuration's lists together.
struct ExpressionBudget {
  using Clock = std::chrono::steady_clock;

  // Each throws unsupported (without path): for more expressions than any real file has, and once they have taken
  // longer than those of any real file.
  void count();
  void spend(Clock::duration time);

  std::mutex matching;          // held by the one thread that matches: a matcher has a state
  std::size_t expressions = 0;  // that were read
  Clock::duration spent{};
};

// Holds a list, read once: it owns its texts. Safe for threads.
class ModuleList {
 public:
  struct Match {
    Naming naming = Naming::none;
    std::string_view target = {};  // of several expressions the first in the order of characters; a view of the list's
  };

  // Reads a list. Values other than texts name no module. Throws invalid_file (without path) for an invalid expression,
  // and what ExpressionBudget throws.
  ModuleList(const Value::Array& list, std::shared_ptr<ExpressionBudget> budget);

  // Throws what ExpressionBudget::spend() throws.
  Match match(const std::string& module) const;

 private:
  struct Expression {
    std::string target;
    std::unique_ptr<const Regex> regex;
    std::unique_ptr<RegexMatcher> matcher;  // made once, since each has a stack
  };

  Expression read(const std::string& target);
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
  std::map<std::string, ModuleList, std::less<>> targets;  // of `config_groups`, by the group's name

  // Throws what ModuleList() throws.
  explicit ModuleLists(const Attributes& config);
};

// Files next to config.json that describe the quantization: quantizing programs wrote them before there was
// quantization_config, or write both.
//
// Sources: ModelOpt's export of Hugging Face checkpoints (hf_quant_config.json); BaseQuantizeConfig of AutoGPTQ
// (quantize_config.json); AutoAWQ before it wrote config.json (quant_config.json, with AWQ's own spellings of keys).

struct QuantizationFile {
  std::string_view name;
  // Returns its object as quantization_config, with quant_method; std::nullopt if it describes no quantized weights.
  // Throws invalid_file (without path).
  std::optional<Attributes> (*as_config)(const Attributes& file);
};

// Returns the table of files: the first that is there counts.
std::span<const QuantizationFile> list_quantization_files();

// Returns how two quantization_configs differ about the storage of weights: "bits is 4 and 8". Skips keys that only one
// of them has.
std::vector<std::string> find_differences(const Attributes& config, const Attributes& other);

}  // namespace poise
