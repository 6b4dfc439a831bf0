// Parameters: the arguments of one call; the callee takes them one by one.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jinja/object.hpp"

namespace poise::jinja {

// Names keep their marks: those after ** may be input.
using Keywords = std::vector<std::pair<Text, Object>>;

class Parameters {
 public:
  Parameters() = default;
  Parameters(std::vector<Object> positional, Keywords keywords)
      : positional_(std::move(positional)), keywords_(std::move(keywords)) {}

  // For messages: "replace()".
  void name_call(std::string name) { call_ = std::move(name); }
  const std::string& call_name() const { return call_; }

  // The next positional argument, else the one with that name.
  std::optional<Object> take(std::string_view name);
  Object required(std::string_view name);
  std::int64_t integer(std::string_view name, std::int64_t otherwise);
  std::optional<std::int64_t> optional_integer(std::string_view name);  // none counts as left out
  bool truth(std::string_view name, bool otherwise);
  // Throws if it is not a text.
  TextPtr text(std::string_view name);
  // Only by name.
  std::optional<Object> keyword(std::string_view name);

  // The remaining arguments.
  std::vector<Object> positional();
  Keywords keywords();
  bool has_positional() const { return next_ < positional_.size(); }
  // Throws if arguments remain.
  void finish() const;

 private:
  std::string call_ = "the function";
  std::vector<Object> positional_;
  std::size_t next_ = 0;
  Keywords keywords_;
};

}  // namespace poise::jinja
