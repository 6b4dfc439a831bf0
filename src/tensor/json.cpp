// JSON text: values written, and read with the bounds that a hostile text calls for.
#include "tensor/json.hpp"

#include <array>
#include <cmath>
#include <deque>
#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <poise/error.hpp>

#include "bytes/key_set.hpp"
#include "bytes/limits.hpp"
#include "tensor/value_budget.hpp"

namespace poise {
namespace {

using Json = nlohmann::ordered_json;

// Text from a file, fit for an error message: short, and without bytes that a terminal might obey.
std::string excerpt(std::string_view text) {
  constexpr std::size_t kLongest = 200;
  std::string result(text.substr(0, kLongest));
  for (char& c : result) {
    if (c < ' ' || c > '~') c = '?';
  }
  return text.size() > kLongest ? result + "..." : result;
}

std::string hex(const Value::Bytes& bytes) {
  std::string text;
  for (const std::byte byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned>(byte));
  return text;
}

// Writes values as JSON text. Only scalars become nlohmann's: the destructor of its arrays and objects allocates, and ends the program
// where there is no memory left.
class Writer {
 public:
  explicit Writer(int indent) : indent_(indent) {}

  std::string take() { return std::move(text_); }
  void write(const Value& value) { std::visit(*this, value.storage()); }

  void operator()(std::nullptr_t) { text_ += "null"; }
  void operator()(double number) { scalar(std::isfinite(number) ? Json(number) : Json(nullptr)); }
  void operator()(const Value::Bytes& bytes) { scalar(hex(bytes)); }
  void operator()(const Value::Array& array) {
    list('[', array, ']', [&](const Value& item) { write(item); });
  }
  void operator()(const Value::Pairs& pairs) {
    list('[', pairs, ']', [&](const auto& pair) { list('[', std::array{&pair.first, &pair.second}, ']', [&](const Value* item) { write(*item); }); });
  }
  void operator()(const Attributes& map) {
    list('{', map, '}', [&](const Attributes::Entry& entry) {
      scalar(entry.first);
      text_ += indent_ < 0 ? ":" : ": ";
      write(entry.second);
    });
  }
  template <typename Plain>
  void operator()(const Plain& plain) {
    scalar(plain);
  }

 private:
  void scalar(const Json& json) { text_ += json.dump(-1, ' ', false, Json::error_handler_t::replace); }

  void new_line() {
    if (indent_ < 0) return;
    text_ += '\n';
    text_.append(depth_ * static_cast<std::size_t>(indent_), ' ');
  }

  template <typename Items, typename Write>
  void list(char open, const Items& items, char close, Write&& write_item) {
    text_ += open;
    ++depth_;
    bool first = true;
    for (const auto& item : items) {
      if (!first) text_ += ',';
      first = false;
      new_line();
      write_item(item);
    }
    --depth_;
    if (!first) new_line();
    text_ += close;
  }

  int indent_;
  std::size_t depth_ = 0;
  std::string text_;
};

// Characters of a text, and how many of them have been read: nlohmann does not say where it is.
struct TrackedText {
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  const char* at;
  const char** read_up_to;

  reference operator*() const { return *at; }
  TrackedText& operator++() {
    *read_up_to = ++at;
    return *this;
  }
  TrackedText operator++(int) {
    TrackedText before = *this;
    ++*this;
    return before;
  }
  friend bool operator==(const TrackedText& a, const TrackedText& b) { return a.at == b.at; }
};

// Builds a Value from nlohmann's events, with bounded depth and without accepting a key twice.
class Builder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  // With `take_member`, the members of the root are given away one by one.
  Builder(std::string_view text, std::string name, std::uint64_t offset, ValueBudget budget, const TakeMember* take_member)
      : text_(text), read_up_to_(text.data()), name_(std::move(name)), offset_(offset), take_member_(take_member), budget_(budget) {}

  Value build() {
    // nlohmann takes a NUL for the end of the text, whatever comes behind it.
    if (const auto nul = text_.find('\0'); nul != std::string_view::npos) fail("a NUL byte", text_.data() + nul);
    nlohmann::json::sax_parse(TrackedText{text_.data(), &read_up_to_}, TrackedText{text_.data() + text_.size(), &read_up_to_}, this);
    if (take_member_ != nullptr && root_.get_if<Attributes>() == nullptr) fail("expected an object", text_.data());
    return std::move(root_);
  }

  bool null() override { return put(Value()); }
  bool boolean(bool value) override { return put(Value(value)); }
  bool number_integer(number_integer_t value) override { return put(Value(static_cast<std::int64_t>(value))); }
  bool number_unsigned(number_unsigned_t value) override { return put(Value(static_cast<std::uint64_t>(value))); }
  bool number_float(number_float_t value, const string_t&) override { return put(Value(value)); }
  bool string(string_t& value) override { return put(Value(std::move(value))); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(true); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(false); }
  bool end_array() override { return close(); }
  bool key(string_t& key) override {
    Level& level = levels_[depth_ - 1];
    level.key_begin = opening_quote(read_up_to_ - 1);
    const std::string_view spelling(level.key_begin + 1, read_up_to_ - 1);
    charge(budget_.take_key(level.keys.size()));
    if (!level.keys.insert(spelling == key ? spelling : level.escaped.emplace_back(key)))
      fail(fmt::format("the key \"{}\" stands twice in one object", excerpt(key)), level.key_begin);
    level.key = std::move(key);
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    const std::string text = error.what();
    const auto cut = text.find("] ");
    fail(excerpt(cut == std::string::npos ? text : text.substr(cut + 2)), text_.data() + position - 1);  // it counts the byte at fault
  }

 private:
  // A container that is open. The keys view the text and `escaped`, so that this stays where it is.
  struct Level {
    Level() = default;
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

    bool is_object = false;
    std::string key;
    const char* key_begin = nullptr;
    KeySet keys;
    std::deque<std::string> escaped;  // keys that the text does not hold as they are
    std::vector<Attributes::Entry> entries;
    Value::Array items;
  };

  [[noreturn]] void fail(std::string_view problem, const char* place) const {
    throw Error(ErrorKind::invalid_file, fmt::format("JSON: {}", problem), name_, offset_of(place));
  }
  std::uint64_t offset_of(const char* place) const { return offset_ + static_cast<std::uint64_t>(place - text_.data()); }

  // Of the string whose closing quote is given.
  const char* opening_quote(const char* closing) const {
    std::string_view before = text_.substr(0, static_cast<std::size_t>(closing - text_.data()));
    while (true) {
      const std::size_t quote = before.rfind('"');
      if (quote == std::string_view::npos) throw Error(ErrorKind::internal, "JSON: a key without quotes", name_);
      before = before.substr(0, quote);
      const std::size_t slashes = before.size() - (before.find_last_not_of('\\') + 1);
      if (slashes % 2 == 0) return before.data() + quote;
    }
  }

  bool open(bool is_object) {
    if (depth_ == kMaxNesting) fail(fmt::format("nested deeper than {}", kMaxNesting), read_up_to_ - 1);
    if (depth_ == levels_.size()) levels_.emplace_back();
    Level& level = levels_[depth_++];
    level.is_object = is_object;
    level.keys.clear();
    level.escaped.clear();
    return true;
  }

  bool close() {
    Level& level = levels_[--depth_];
    if (!level.is_object) return put(Value(taken(level.items)));
    return put(Value(Attributes::from_unique(taken(level.entries))));
  }

  // What a level has collected, in no more memory than it needs. The memory of the level is used again.
  template <typename Item>
  static std::vector<Item> taken(std::vector<Item>& items) {
    constexpr std::size_t kMany = 1024;
    if (items.size() > kMany) return std::exchange(items, {});
    std::vector<Item> result(std::make_move_iterator(items.begin()), std::make_move_iterator(items.end()));
    items.clear();
    return result;
  }

  void charge(bool affordable) const {
    if (!affordable) fail("more values than a text of this size may hold", read_up_to_);
  }

  bool put(Value value) {
    if (depth_ == 0) {
      root_ = std::move(value);
      return true;
    }
    Level& level = levels_[depth_ - 1];
    charge(budget_.take_value());
    if (!level.is_object) {
      level.items.push_back(std::move(value));
    } else if (depth_ == 1 && take_member_ != nullptr) {
      (*take_member_)(std::move(level.key), std::move(value), offset_of(level.key_begin));
      budget_ = ValueBudget(text_.size());  // nothing of it is kept here
    } else {
      level.entries.emplace_back(std::move(level.key), std::move(value));
    }
    return true;
  }

  std::string_view text_;
  const char* read_up_to_;
  std::string name_;
  std::uint64_t offset_;
  const TakeMember* take_member_;
  ValueBudget budget_;
  Value root_;
  std::deque<Level> levels_;  // the first depth_ of them are open
  std::size_t depth_ = 0;
};

}  // namespace

std::string to_json(const Value& value, int indent) {
  Writer writer(indent);
  writer.write(value);
  return writer.take();
}

Value parse_json(std::string_view text, const std::string& name, std::uint64_t offset) {
  return Builder(text, name, offset, ValueBudget(text.size()), nullptr).build();
}

Value parse_json(std::string_view text, const std::string& name, ValueBudget budget) { return Builder(text, name, 0, budget, nullptr).build(); }

void parse_json_members(std::string_view text, const std::string& name, std::uint64_t offset, const TakeMember& take_member) {
  Builder(text, name, offset, ValueBudget(text.size()), &take_member).build();
}

}  // namespace poise
