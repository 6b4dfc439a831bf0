#include "jinja/template.hpp"

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/utf8.hpp"
#include "jinja/interpreter.hpp"
#include "jinja/lexer.hpp"
#include "jinja/parser.hpp"
#include "jinja/scoping.hpp"

namespace poise::jinja {
namespace {

std::tm read_local_time() {
  const std::time_t now = std::time(nullptr);
  std::tm local = {};
  localtime_r(&now, &local);
  return local;
}

ErrorKind convert_kind(FailureKind kind) {
  switch (kind) {
    case FailureKind::syntax: return ErrorKind::invalid_file;
    case FailureKind::limit: return ErrorKind::unsupported;
    case FailureKind::runtime:
    case FailureKind::raised: break;
  }
  return ErrorKind::bad_argument;
}

}  // namespace

struct Template::Parsed {
  explicit Parsed(Body whole) : body(std::move(whole)) {}

  Body body;
  Scoping scoping{body};
};

Template::Template(std::string_view source, std::string name) : name_(std::move(name)) {
  if (!is_utf8(source)) throw Error(ErrorKind::invalid_file, name_ + ": it is not UTF-8");
  try {
    parsed_ = std::make_unique<const Parsed>(parse(source));
    check_known_names(parsed_->body);
  } catch (const SyntaxFailure& failure) {
    throw Error(ErrorKind::invalid_file, fmt::format("{}: line {}: {}", name_, failure.line, failure.what()));
  }
}

Template::~Template() = default;
Template::Template(Template&&) noexcept = default;
Template& Template::operator=(Template&&) noexcept = default;

Text Template::render(const std::vector<Variable>& variables, const RenderOptions& options) const {
  Interpreter in(options.limits, options.now ? options.now : read_local_time, parsed_->scoping);
  try {
    const ScopePtr globals = in.make_globals();
    for (const Variable& variable : variables)
      globals->set(variable.name, make_object(in.budget(), variable.value, variable.is_input));
    const ScopePtr scope = in.open_scope(globals, parsed_->body);
    return in.render(parsed_->body, scope);
  } catch (const Failure& failure) {
    const char* const by = failure.kind == FailureKind::raised ? "the template refuses this: " : "";
    throw Error(convert_kind(failure.kind), fmt::format("{}: line {}: {}{}", name_, in.line(), by, failure.what()));
  }
}

}  // namespace poise::jinja
