#include "jinja/uses.hpp"

#include <algorithm>

namespace poise::jinja {
namespace {

class Search {
 public:
  explicit Search(std::string_view name) : name_(name) {}

  bool in(const Body& body) const {
    return std::ranges::any_of(body, [&](const auto& statement) { return in(*statement); });
  }

  bool in(const Statement& of) const {
    const auto in_parameter = [&](const Parameter& parameter) { return in(parameter.otherwise); };
    const auto in_branch = [&](const Branch& branch) { return in(branch.test) || in(branch.body); };
    return in(of.target) || in(of.value) || in(of.test) || in(of.targets) || in(of.values) ||
           std::ranges::any_of(of.parameters, in_parameter) || std::ranges::any_of(of.branches, in_branch) ||
           in(of.body) || in(of.otherwise);
  }

 private:
  bool in(const std::vector<ExpressionPtr>& all) const {
    return std::ranges::any_of(all, [&](const ExpressionPtr& expression) { return in(expression); });
  }

  bool in(const ExpressionPtr& of) const {
    if (!of) return false;
    if (of->kind == ExpressionKind::name && of->name == name_) return true;
    const Arguments& arguments = of->arguments;
    return in(of->operands) || in(arguments.positional) ||
           std::ranges::any_of(arguments.keywords, [&](const auto& keyword) { return in(keyword.second); }) ||
           in(arguments.rest) || in(arguments.rest_keywords);
  }

  std::string_view name_;
};

}  // namespace

bool uses(const Statement& macro, std::string_view name) { return Search(name).in(macro.body); }

}  // namespace poise::jinja
