// NamePatterns holds the patterns of an option like --only, and checks that each matches a tensor.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <poise/model.hpp>

namespace poise {

class NamePatterns {
 public:
  // `option` is the name of the option in errors.
  NamePatterns(std::string_view option, const std::vector<std::string>& patterns);

  bool empty() const { return patterns_.empty(); }
  // Returns true if a pattern matches one of a tensor's names. Marks all patterns that match as used.
  bool match(std::span<const std::string> names);
  // Throws bad_argument for a pattern that has matched no tensor.
  void require_all_used() const;

 private:
  std::string_view option_;
  std::vector<std::pair<std::string, bool>> patterns_;  // true if the pattern has matched
};

// Returns the tensors that `only` (empty: all) and `skip` select by their names in Poise and in the file. Throws
// bad_argument for a pattern that matches no tensor.
std::vector<const Tensor*> select_tensors(const Model& model, const std::vector<std::string>& only,
                                          const std::vector<std::string>& skip);

}  // namespace poise
