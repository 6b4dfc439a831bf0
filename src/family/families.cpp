#include "family/families.hpp"

#include <algorithm>
#include <array>

#include "family/llama.hpp"
#include "family/tiny_llama.hpp"

namespace poise {
namespace {

constexpr std::array<const Family*, 3> kFamilies = {&kMistralFamily, &kLlamaFamily, &kTinyLlamaFamily};

}  // namespace

std::span<const Family* const> families() { return kFamilies; }

const Family* find_family(std::string_view model_type) {
  const auto answers = [&](const Family* family) { return std::ranges::find(family->model_types, model_type) != family->model_types.end(); };
  const auto* found = std::ranges::find_if(kFamilies, answers);
  return found == kFamilies.end() ? nullptr : *found;
}

const Family& family_of(std::string_view model_type) {
  const Family* family = find_family(model_type);
  return family == nullptr ? kLlamaFamily : *family;
}

std::string known_model_types() {
  std::vector<std::string_view> types;
  for (const Family* family : kFamilies) types.insert(types.end(), family->model_types.begin(), family->model_types.end());
  std::string text(types.front());
  for (std::size_t i = 1; i < types.size(); ++i) text.append(i + 1 == types.size() ? " and " : ", ").append(types[i]);
  return text;
}

const ComputedTensor* computed_tensor(const Family& family, std::string_view name) {
  const auto found = std::ranges::find_if(family.computed, [&](const ComputedTensor& row) { return name.ends_with(row.ending); });
  return found == family.computed.end() ? nullptr : &*found;
}

}  // namespace poise
