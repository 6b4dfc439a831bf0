#include "runtime/recipes.hpp"

#include <gtest/gtest.h>

#include <poise/error.hpp>

#include "family/families.hpp"

namespace poise {
namespace {

TEST(Recipes, EveryFamilyHasOne) {
  for (const Family* family : families()) EXPECT_NE(recipe_of(*family), nullptr) << family->title;
}

TEST(Recipes, AFamilyWithoutOneIsABug) {
  const Family another = *families().front();
  EXPECT_THROW(recipe_of(another), Error);
}

}  // namespace
}  // namespace poise
