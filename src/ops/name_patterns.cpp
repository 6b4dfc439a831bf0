#include "ops/name_patterns.hpp"

#include "ops/transform/transform.hpp"
#include "patterns/glob.hpp"

namespace poise {

NamePatterns::NamePatterns(std::string_view option, const std::vector<std::string>& patterns) : option_(option) {
  for (const std::string& pattern : patterns) patterns_.emplace_back(pattern, false);
}

bool NamePatterns::match(std::span<const std::string> names) {
  bool any = false;
  for (auto& [pattern, used] : patterns_) {
    for (const std::string& name : names) {
      if (matches_glob(pattern, name)) any = used = true;
    }
  }
  return any;
}

void NamePatterns::require_all_used() const {
  for (const auto& [pattern, used] : patterns_) {
    if (!used) refuse_pattern(option_, pattern);
  }
}

std::vector<const Tensor*> select_tensors(const Model& model, const std::vector<std::string>& only,
                                          const std::vector<std::string>& skip) {
  NamePatterns wanted("only", only);
  NamePatterns unwanted("skip", skip);
  std::vector<const Tensor*> selected;
  for (const Tensor& tensor : model.tensors()) {
    std::vector<std::string> names;
    if (!only.empty() || !skip.empty()) names = {tensor.name, std::string(tensor.name_in_file())};
    const bool is_wanted = wanted.empty() || wanted.match(names);
    const bool is_unwanted = unwanted.match(names);
    if (is_wanted && !is_unwanted) selected.push_back(&tensor);
  }
  wanted.require_all_used();
  unwanted.require_all_used();
  return selected;
}

}  // namespace poise
