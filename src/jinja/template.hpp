// A template is text with code in the language Jinja.
//
// It runs as in Hugging Face's library: in a sandbox that refuses changes of lists and dictionaries, with trim_blocks,
// lstrip_blocks, loop controls, raise_exception(), strftime_now(), tojson without HTML escapes, and {% generation %}.
// It has no access to files. docs/chat.md lists what is supported.
#pragma once

#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <poise/value.hpp>

#include "jinja/budget.hpp"
#include "jinja/text.hpp"

namespace poise::jinja {

// Holds a value that a template may use under a name.
struct Variable {
  std::string name;
  Value value;
  bool is_input = true;  // the texts in the value, keys included, are marked as input
};

struct RenderOptions {
  Limits limits = {};
  std::function<std::tm()> now = {};  // the time for strftime_now(); if empty, the local time
};

class Template {
 public:
  // Begins messages with `name`, such as "chat template". Throws invalid_file, with the line, for a malformed template.
  Template(std::string_view source, std::string name);
  ~Template();
  Template(Template&&) noexcept;
  Template& operator=(Template&&) noexcept;

  // Returns the template's output. Throws bad_argument, with the line, if the template fails or rejects the variables,
  // and unsupported beyond a limit. Several threads may call it at once.
  Text render(const std::vector<Variable>& variables, const RenderOptions& options = {}) const;

 private:
  struct Parsed;
  std::unique_ptr<const Parsed> parsed_;
  std::string name_;
};

}  // namespace poise::jinja
