// The fields of a pipeline's parts, which come from a file: a missing field has its default, and a field of the wrong
// type is an error with its name.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <poise/value.hpp>

namespace poise {

class Fields {
 public:
  // `where` names the value in errors: "normalizer". Throws invalid_file if the value is not a map. Requires: the value
  // outlives this.
  Fields(const Value& value, std::string where);
  Fields(const Attributes& map, std::string where) : map_(&map), where_(std::move(where)) {}

  // Null if the field is missing or null.
  const Value* find(std::string_view key) const;

  bool boolean(std::string_view key, bool missing) const;
  std::string text(std::string_view key, std::string_view missing) const;
  std::string required_text(std::string_view key) const;
  std::optional<std::string> optional_text(std::string_view key) const;
  std::uint64_t number(std::string_view key, std::uint64_t missing) const;
  // Nothing if it is missing or null.
  std::optional<Fields> map(std::string_view key) const;
  // The maps in a list; throws if it is missing, unless `optional`.
  std::vector<Fields> list(std::string_view key, bool optional = false) const;

  // Throws invalid_file: "normalizer: type: " and the problem.
  [[noreturn]] void fail(std::string_view key, std::string_view problem) const;
  const std::string& where() const { return where_; }

 private:
  std::string name(std::string_view key) const;

  const Attributes* map_;
  std::string where_;
};

[[noreturn]] void throw_unknown_type(const Fields& fields, std::string_view type);

// Selects a maker by the part's "type". Throws unsupported for unknown types.
template <typename Rows>
const auto& row_of(const Rows& rows, const Fields& fields) {
  const std::string type = fields.required_text("type");
  for (const auto& row : rows) {
    if (row.type == type) return row;
  }
  throw_unknown_type(fields, type);
}

// Sequences may nest up to this depth, with this many steps in all.
inline constexpr std::size_t kMaxSteps = 256;

// Throws when a part has too many steps.
class StepCount {
 public:
  void add(const Fields& fields);

 private:
  std::size_t steps_ = 0;
};

}  // namespace poise
