// Template: a text with Jinja in it, and what it renders.
//
// As Hugging Face's library runs chat templates: in a sandbox in which nothing is changed that others see, with
// trim_blocks, lstrip_blocks, loop controls, raise_exception(), strftime_now(), tojson that escapes no HTML, and
// {% generation %}. There are no files and no attributes but those of the values. docs/chat.md lists what there is.
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

// A name that a template may use.
struct Variable {
  std::string name;
  Value value;
  bool is_input = true;  // its texts are marked as such, keys as well
};

struct RenderOptions {
  Limits limits = {};
  std::function<std::tm()> now = {};  // for strftime_now(); empty: the local time
};

class Template {
 public:
  // `name` opens messages: "chat template". Throws invalid_file, with the line, for what is malformed.
  Template(std::string_view source, std::string name);
  ~Template();
  Template(Template&&) noexcept;
  Template& operator=(Template&&) noexcept;

  // Throws bad_argument, with the line, for what the template refuses or what goes wrong in it, and unsupported beyond
  // a limit. May be called from several threads at once.
  Text render(const std::vector<Variable>& variables, const RenderOptions& options = {}) const;

 private:
  struct Parsed;
  std::unique_ptr<const Parsed> parsed_;
  std::string name_;
};

}  // namespace poise::jinja
