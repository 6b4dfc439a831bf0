// Looks up filters, applies filters and tests, and looks up attributes of items for filters.
#include "jinja/filters.hpp"

#include <fmt/format.h>

namespace poise::jinja {

Method find_filter(std::string_view name) {
  for (const Filters* all : {&get_text_filters(), &get_sequence_filters(), &get_number_filters()}) {
    const auto found = all->find(name);
    if (found != all->end()) return found->second;
  }
  return nullptr;
}

Object Interpreter::apply_filter(std::string_view name, const Object& value, Parameters& given) {
  budget_.step();
  const Method found = find_filter(name);
  if (found == nullptr) fail(fmt::format("there is no filter '{}'", name));
  check_usable(value);
  given.set_call_name(fmt::format("filter '{}'", name));
  Object result = found(*this, value, given);
  given.check_all_read();
  return result;
}

bool Interpreter::apply_test(std::string_view name, const Object& value, Parameters& given) {
  budget_.step();
  check_usable(value);
  const Test found = find_test(name);
  if (found == nullptr) fail(fmt::format("there is no test '{}'", name));
  given.set_call_name(fmt::format("test '{}'", name));
  const bool result = found(*this, value, given);
  given.check_all_read();
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
    const auto index = parse_index(name);
    path_.push_back(index ? Object(*index) : Object(name));
    begin = end + 1;
  }
}

Object Key::operator()(const Object& item) const {
  Object found = item;
  for (const Object& name : path_) {
    in_.budget().step();
    found = in_.find_item(found, name);
    if (otherwise_ && found.is_undefined()) found = *otherwise_;
  }
  if (with_case_ || found.text() == nullptr) return found;
  in_.budget().charge(found.text()->size());
  return change_case(*found.text(), Case::lower);
}

}  // namespace poise::jinja
