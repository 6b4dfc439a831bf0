// The table of filters, and the keys by which filters look into items.
#include "jinja/filters.hpp"

#include <fmt/format.h>

#include "bytes/number_text.hpp"

namespace poise::jinja {

Method filter_of(std::string_view name) {
  for (const Filters* all : {&text_filters(), &sequence_filters(), &number_filters(), &choosing_filters()}) {
    const auto found = all->find(name);
    if (found != all->end()) return found->second;
  }
  return nullptr;
}

Object Interpreter::filter(std::string_view name, const Object& value, Parameters& given) {
  budget_.step();
  const Method found = filter_of(name);
  if (found == nullptr) fail(fmt::format("there is no filter '{}'", name));
  require_usable(value);
  given.name_call(fmt::format("filter '{}'", name));
  return found(*this, value, given);
}

bool Interpreter::test(std::string_view name, const Object& value, Parameters& given) {
  budget_.step();
  require_usable(value);
  const Test found = test_of(name);
  if (found == nullptr) fail(fmt::format("there is no test '{}'", name));
  given.name_call(fmt::format("test '{}'", name));
  const bool result = found(*this, value, given);
  given.finish();
  return result;
}

Key::Key(Interpreter& in, const Object& attribute, bool with_case) : in_(in), with_case_(with_case) {
  const Text* const path = attribute.text();
  if (path == nullptr) {
    if (!attribute.is_none()) path_.push_back(attribute);
    return;
  }
  for (std::size_t begin = 0; begin <= path->size();) {
    const std::size_t end = std::min(path->bytes.find('.', begin), path->size());
    const std::string_view name = path->view().substr(begin, end - begin);
    in.budget().step(1 + name.size() / 16);
    in.budget().charge(2 * name.size() + 128);
    const bool is_number =
        !name.empty() && name.size() < 10 && name.find_first_not_of("0123456789") == std::string_view::npos;
    path_.push_back(is_number ? Object(number_from<std::int64_t>(name).value()) : Object(name));
    begin = end + 1;
  }
}

Object Key::operator()(const Object& item) const {
  Object found = item;
  for (const Object& name : path_) {
    in_.budget().step();
    found = in_.item(found, name);
    if (otherwise_ && found.is_undefined()) found = *otherwise_;
  }
  if (with_case_ || found.text() == nullptr) return found;
  in_.budget().charge(found.text()->size());
  return with_case(*found.text(), Case::lower);
}

}  // namespace poise::jinja
