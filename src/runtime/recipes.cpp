#include "runtime/recipes.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "family/llama.hpp"
#include "family/tiny_llama.hpp"

namespace poise {
namespace {

struct Row {
  const Family* family;
  Recipe make;
};

constexpr std::array kRecipes = std::to_array<Row>({
    {&kMistralFamily, make_mistral},
    {&kLlamaFamily, make_mistral},
    {&kTinyLlamaFamily, make_tiny_llama},
});

}  // namespace

Recipe recipe_of(const Family& family) {
  const auto* row = std::ranges::find(kRecipes, &family, &Row::family);
  if (row == kRecipes.end()) throw Error(ErrorKind::internal, fmt::format("there is no recipe for {} models", family.title));
  return row->make;
}

}  // namespace poise
