// Reads model cards: README.md of a directory, whose front matter is YAML between two lines "---".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <poise/model.hpp>

#include "syntax/yaml.hpp"

namespace poise {

inline constexpr std::string_view kModelCard = "README.md";

// Returns the model card of the directory that the model was read from: whole lines, of at most kMostYamlBytes in all.
// The text is empty if there is no card, or if it is not UTF-8. Throws io.
std::string read_model_card(const Model& model);

// Holds the front matter of a README. It is empty if there is none, or if it is not YAML.
class FrontMatter {
 public:
  explicit FrontMatter(std::string_view readme);

  // Returns the values of a top-level key: a scalar, or the scalars of a list, without line breaks at their ends.
  // Returns an empty list for null values, maps and missing keys.
  std::vector<std::string> find_values(std::string_view key) const;
  // Returns the first value of a top-level key; empty if there are none.
  std::string find_value(std::string_view key) const;

  // Returns why the text between the lines "---" is not YAML, with the line of the README; empty if it is, or if there
  // is no front matter.
  const std::string& problem() const { return problem_; }

 private:
  YamlNode root_;
  std::string problem_;
};

}  // namespace poise
