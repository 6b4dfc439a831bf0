#include "jinja/things.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace poise::jinja {

std::string Macro::describe() const {
  return macro_.name.empty() ? "<Macro anonymous>" : fmt::format("<Macro '{}'>", macro_.name);
}

std::optional<Object> Macro::find_attribute(Interpreter& in, std::string_view name) {
  if (name == "name") return macro_.name.empty() ? Object(nullptr) : Object(Text{macro_.name});
  if (name == "catch_kwargs") return macro_.takes_keywords;
  if (name == "catch_varargs") return macro_.takes_more;
  if (name == "caller") return macro_.takes_caller;
  if (name != "arguments") return std::nullopt;
  std::vector<Object> names;
  for (const Parameter& parameter : macro_.parameters) names.emplace_back(Text{parameter.name});
  return make_tuple(in.budget(), std::move(names));
}

Loop::Loop(const Statement& loop, ScopePtr scope, std::vector<Object> items, std::size_t depth)
    : loop_(loop),
      scope_(std::move(scope)),
      items_(std::move(items)),
      depth_(depth),
      object_depth_(compute_container_depth(items_)) {}

std::string Loop::describe() const { return fmt::format("<LoopContext {}/{}>", index_ + 1, items_.size()); }

Object Loop::call(Interpreter& in, Parameters& parameters) {
  if (!loop_.is_recursive) fail("The loop must have the 'recursive' marker to be called recursively.");
  parameters.set_call_name("loop()");
  const Object over = parameters.require("iterable");
  const ScopePtr scope = scope_.lock();
  if (!scope) fail("the loop has ended");
  Text out;
  in.run_loop(loop_, read_items(in.budget(), over), scope, depth_ + 1, out);
  return out;
}

std::vector<Object> Loop::pop_items(Budget& budget, std::size_t most) {
  std::vector<Object> pairs;
  while (index_ + 1 < items_.size() && pairs.size() < most) {
    budget.step();
    ++index_;
    pairs.push_back(make_tuple(budget, {items_[index_], ThingPtr(shared_from_this())}));
  }
  return pairs;
}

Object Loop::cycle(Parameters& parameters) const {
  const std::vector<Object> values = parameters.read_positional();
  if (values.empty()) fail("no items for cycling given");
  return values[index_ % values.size()];
}

bool Loop::changed(Interpreter& in, Parameters& parameters) {
  if (has_ended_) fail("the loop has ended");
  std::vector<Object> values = parameters.read_positional();
  bool is_same = last_ && last_->size() == values.size();
  for (std::size_t i = 0; is_same && i < values.size(); ++i) is_same = are_equal(in.budget(), (*last_)[i], values[i]);
  if (is_same) return false;
  object_depth_ = std::max(object_depth_, compute_container_depth(values));
  last_ = std::move(values);
  return true;
}

std::optional<Object> Loop::find_attribute(Interpreter&, std::string_view name) {
  const auto make_number = [](std::size_t value) { return Object(static_cast<std::int64_t>(value)); };
  const std::size_t count = items_.size();
  if (name == "index") return make_number(index_ + 1);
  if (name == "index0") return make_number(index_);
  if (name == "revindex") return make_number(count - index_);
  if (name == "revindex0") return make_number(count - index_ - 1);
  if (name == "first") return index_ == 0;
  if (name == "last") return index_ + 1 == count;
  if (name == "length") return make_number(count);
  if (name == "depth") return make_number(depth_ + 1);
  if (name == "depth0") return make_number(depth_);
  if (name == "previtem") return index_ == 0 ? make_undefined("there is no previous item") : items_[index_ - 1];
  if (name == "nextitem") return index_ + 1 == count ? make_undefined("there is no next item") : items_[index_ + 1];
  if (name != "cycle" && name != "changed") return std::nullopt;
  const bool is_cycle = name == "cycle";
  const auto body = [self = shared_from_this(), is_cycle](Interpreter& in, Parameters& given) {
    return is_cycle ? self->cycle(given) : Object(self->changed(in, given));
  };
  return ThingPtr(std::make_shared<Function>(std::string(name), body, object_depth_));
}

}  // namespace poise::jinja
