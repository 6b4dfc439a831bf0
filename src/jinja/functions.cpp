// Makes the functions that every template has.
#include <locale.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "jinja/things.hpp"

namespace poise::jinja {
namespace {

constexpr std::int64_t kMostOfRange = 100'000;  // Jinja's sandbox has this limit

Object make_range(Interpreter& in, Parameters& given) {
  const std::vector<Object> bounds = given.read_positional();
  if (bounds.empty() || bounds.size() > 3) fail(fmt::format("range expected 1 to 3 arguments, got {}", bounds.size()));
  std::array<std::int64_t, 3> numbers = {0, 0, 1};
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    if (bounds[i].is_undefined()) fail_undefined(bounds[i]);
    const auto number = bounds[i].get_integer();
    if (!number) fail(fmt::format("'{}' object cannot be interpreted as an integer", get_type_name(bounds[i])));
    constexpr std::int64_t kLargest = std::int64_t{1} << 61;
    if (*number > kLargest || *number < -kLargest)
      fail(fmt::format("range() got {}, expected {} to {}", *number, -kLargest, kLargest));
    numbers[bounds.size() == 1 ? 1 : i] = *number;
  }
  if (numbers[2] == 0) fail("range() arg 3 must not be zero");
  const RangeObject range = {numbers[0], numbers[1], numbers[2], in.budget().number_object()};
  if (range.size() > kMostOfRange) fail(fmt::format("Range too big: more than {} items", kMostOfRange));
  return range;
}

// Returns the entries of dict(mapping, name=value, ...).
Dict read_dict_arguments(Interpreter& in, Parameters& given) {
  Dict dict;
  if (given.has_positional()) {
    const Object from = given.require("mapping");
    if (const auto* other = from.get_if<DictPtr>()) {
      in.budget().charge((*other)->entries().size(), 128);
      dict = **other;
    } else {
      for (const Object& item : read_items(in.budget(), from)) {
        const std::vector<Object> pair = read_items(in.budget(), item);
        if (pair.size() != 2) fail("dictionary update sequence needs pairs");
        dict.set(in.budget(), pair[0], pair[1]);
      }
    }
  }
  for (auto& [name, value] : given.read_keywords()) dict.set(in.budget(), std::move(name), std::move(value));
  return dict;
}

// Represents the function dict(), which is a type in Python.
class DictType final : public Thing {
 public:
  std::string type() const override { return "type"; }
  std::string describe() const override { return "<class 'dict'>"; }
  Object call(Interpreter& in, Parameters& given) override { return make_dict(read_dict_arguments(in, given)); }
  std::optional<Object> find_attribute(Interpreter&, std::string_view name) override {
    if (name != "fromkeys") return std::nullopt;
    return ThingPtr(std::make_shared<Function>(
        "fromkeys", [](Interpreter& in, Parameters& given) { return make_dict_from_keys(in, {}, given); }));
  }
};

Object make_namespace_from(Interpreter& in, Parameters& given) {
  const Dict dict = read_dict_arguments(in, given);
  const Object made = in.make_namespace();
  for (const auto& [key, value] : dict.entries()) {
    if (key.text() == nullptr) fail("names of a namespace have to be texts");
    (*made.get_if<Namespace*>())->entries.emplace_back(*key.text(), value);
  }
  return made;
}

// Represents the result of cycler("odd", "even").
class Cycler final : public Thing, public std::enable_shared_from_this<Cycler> {
 public:
  explicit Cycler(std::vector<Object> items) : items_(std::move(items)), depth_(compute_container_depth(items_)) {}

  std::string type() const override { return "Cycler"; }
  std::string describe() const override { return "<Cycler>"; }
  unsigned depth() const override { return depth_; }
  bool is_callable() const override { return false; }
  Object call(Interpreter&, Parameters&) override { fail("'Cycler' object is not callable"); }
  std::optional<Object> find_attribute(Interpreter&, std::string_view name) override {
    if (name == "current") return items_[at_];
    if (name != "next" && name != "reset") return std::nullopt;
    const bool advances = name == "next";
    return ThingPtr(std::make_shared<Function>(
        std::string(name),
        [self = shared_from_this(), advances](Interpreter&, Parameters&) -> Object {
          const std::size_t at = self->at_;
          self->at_ = advances ? (at + 1) % self->items_.size() : 0;
          return advances ? self->items_[at] : Object(nullptr);
        },
        depth_));
  }

 private:
  std::vector<Object> items_;
  unsigned depth_;
  std::size_t at_ = 0;
};

Object make_cycler(Interpreter&, Parameters& given) {
  std::vector<Object> items = given.read_positional();
  if (items.empty()) fail("at least one item has to be provided");
  return ThingPtr(std::make_shared<Cycler>(std::move(items)));
}

Object make_joiner(Interpreter& in, Parameters& given) {
  const Text separator = to_text(in.budget(), given.read("sep").value_or(", "));
  auto is_used = std::make_shared<bool>(false);
  return ThingPtr(std::make_shared<Function>("joiner", [separator, is_used](Interpreter&, Parameters&) -> Object {
    return std::exchange(*is_used, true) ? Object(separator) : Object("");
  }));
}

Object raise_exception(Interpreter& in, Parameters& given) {
  const std::string message = to_text(in.budget(), given.require("message")).bytes;
  given.check_all_read();
  throw Failure(FailureKind::raised, message);
}

// Formats a time in English, whatever the program's locale is: Python does so unless a program calls setlocale().
std::size_t format_time(std::span<char> out, const std::string& format, const std::tm& time) {
  static const ::locale_t kC = ::newlocale(LC_ALL_MASK, "C", nullptr);
  return ::strftime_l(out.data(), out.size(), format.c_str(), &time, kC);
}

Object strftime_now(Interpreter& in, Parameters& given) {
  const TextPtr format = given.read_text("format");
  if (format->size() > 1000)
    fail(fmt::format("the format of strftime_now() has {} bytes, at most 1000 are allowed", format->size()));
  const std::tm now = in.now();
  const std::string& bytes = format->bytes;
  Text out;
  for (std::size_t at = 0; at < bytes.size();) {
    if (bytes[at] != '%') {
      const std::size_t end = std::min(bytes.find('%', at), bytes.size());
      append(out, *format, at, end);
      at = end;
      continue;
    }
    // A conversion has flags and a width, a modifier, and a letter. Its text is input if its letter is.
    std::size_t end = std::min(bytes.find_first_not_of("_-^#+0123456789", at + 1), bytes.size());
    if (end < bytes.size() && (bytes[end] == 'E' || bytes[end] == 'O')) ++end;
    end = std::min(end + 1, bytes.size());
    std::array<char, 512> made = {};
    const std::size_t size = format_time(made, bytes.substr(at, end - at), now);
    append(out, std::string_view(made.data(), size), is_input(*format, end - 1));
    at = end;
  }
  return out;
}

}  // namespace

void add_functions(Interpreter&, Scope& globals) {
  const auto add = [&](const char* name, Function::Body body) {
    globals.set(name, ThingPtr(std::make_shared<Function>(name, std::move(body))));
  };
  add("range", make_range);
  globals.set("dict", ThingPtr(std::make_shared<DictType>()));
  add("namespace", make_namespace_from);
  add("cycler", make_cycler);
  add("joiner", make_joiner);
  add("raise_exception", raise_exception);
  add("strftime_now", strftime_now);
}

ScopePtr Interpreter::make_globals() {
  const auto scope = std::make_shared<Scope>(Scope{nullptr});
  add_functions(*this, *scope);
  return scope;
}

}  // namespace poise::jinja
