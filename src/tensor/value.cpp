#include <poise/value.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <poise/error.hpp>

#include "bytes/limits.hpp"

namespace poise {

Attributes::Attributes(std::initializer_list<Entry> entries) {
  for (const Entry& entry : entries) set(entry.first, entry.second);
}

const Value* Attributes::find(std::string_view key) const {
  for (const Entry& entry : entries_) {
    if (entry.first == key) return &entry.second;
  }
  return nullptr;
}

void Attributes::set(std::string key, Value value) {
  for (Entry& entry : entries_) {
    if (entry.first == key) {
      entry.second = std::move(value);
      return;
    }
  }
  entries_.emplace_back(std::move(key), std::move(value));
}

bool Attributes::erase(std::string_view key) {
  return std::erase_if(entries_, [&](const Entry& entry) { return entry.first == key; }) > 0;
}

bool operator==(const Attributes& a, const Attributes& b) { return a.entries_ == b.entries_; }
bool operator==(const Value& a, const Value& b) { return a.storage_ == b.storage_; }

Value::Value(std::int64_t value) {
  if (value >= 0) {
    storage_ = static_cast<std::uint64_t>(value);
  } else {
    storage_ = value;
  }
}

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

// Builds a Value from nlohmann's events, with bounded depth and without accepting a key twice.
class Builder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  Builder(std::string name, std::uint64_t offset, std::uint64_t text_bytes) : name_(std::move(name)), offset_(offset), values_left_(max_values(text_bytes)) {}

  Value take() { return std::move(root_); }

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
    Level& level = levels_.back();
    if (!level.keys.insert(key).second) fail(fmt::format("the key \"{}\" stands twice in one object", excerpt(key)));
    level.key = key;
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    const std::string text = error.what();
    const auto cut = text.find("] ");
    throw Error(ErrorKind::invalid_file, "JSON: " + excerpt(cut == std::string::npos ? text : text.substr(cut + 2)), name_, offset_ + position);
  }

 private:
  struct Level {
    bool is_object;
    std::string key;
    std::set<std::string> keys;
    std::vector<Attributes::Entry> entries;
    Value::Array items;
  };

  [[noreturn]] void fail(const std::string& message) const { throw Error(ErrorKind::invalid_file, "JSON: " + message, name_, offset_); }

  bool open(bool is_object) {
    if (levels_.size() == kMaxNesting) fail(fmt::format("nested deeper than {}", kMaxNesting));
    levels_.push_back({is_object, {}, {}, {}, {}});
    return true;
  }
  bool close() {
    Level level = std::move(levels_.back());
    levels_.pop_back();
    if (!level.is_object) return put(Value(std::move(level.items)));
    return put(Value(Attributes::from_unique(std::move(level.entries))));
  }
  bool put(Value value) {
    if (values_left_-- == 0) fail("more values than a text of this size may hold");
    if (levels_.empty()) {
      root_ = std::move(value);
    } else if (levels_.back().is_object) {
      levels_.back().entries.emplace_back(std::move(levels_.back().key), std::move(value));
    } else {
      levels_.back().items.push_back(std::move(value));
    }
    return true;
  }

  std::string name_;
  std::uint64_t offset_;
  std::uint64_t values_left_;
  Value root_;
  std::vector<Level> levels_;
};

}  // namespace

Attributes Attributes::from_unique(std::vector<Entry> entries) {
  Attributes attributes;
  attributes.entries_ = std::move(entries);
  return attributes;
}

std::string to_json(const Value& value, int indent) {
  Writer writer(indent);
  writer.write(value);
  return writer.take();
}

Value parse_json(std::string_view text, const std::string& name, std::uint64_t offset) {
  // nlohmann takes a NUL for the end of the text, whatever comes behind it.
  if (const auto nul = text.find('\0'); nul != std::string_view::npos) throw Error(ErrorKind::invalid_file, "JSON: a NUL byte", name, offset + nul);
  Builder builder(name, offset, text.size());
  nlohmann::json::sax_parse(text, &builder);
  return builder.take();
}

}  // namespace poise
