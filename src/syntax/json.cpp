// Reads JSON text, within bounds for hostile input. json_writer.cpp writes it.
//
// simdjson finds the tokens and checks UTF-8. JsonParser walks them in order and so has their positions.
#include "syntax/json.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <new>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <simdjson.h>

#include <poise/error.hpp>

#include "bytes/number_text.hpp"
#include "bytes/short_text.hpp"
#include "bytes/text_table.hpp"
#include "bytes/utf8.hpp"

namespace poise {
namespace {

namespace ondemand = simdjson::ondemand;

// On first use, simdjson chooses its code for this processor, and ends the program if memory runs out meanwhile. This
// constant makes simdjson choose before main().
[[maybe_unused]] const bool kHasChosen = simdjson::validate_utf8("", 0);

// Makes a text from a file safe for an error message: short, and without terminal controls.
std::string make_excerpt(std::string_view text) {
  constexpr std::size_t kLongest = 200;
  std::string result = shorten(text, kLongest);
  for (char& c : result) {
    if (c < ' ' || c > '~') c = '?';
  }
  return result;
}

// A text of more than kLargeTextBytes must have kLeastBytesPerItem bytes or more for each item, on average, because
// simdjson takes four bytes of memory for each token.
constexpr std::uint64_t kLargeTextBytes = 8 << 20;
constexpr std::uint64_t kLeastBytesPerItem = 4;

std::string_view describe_error(simdjson::error_code code) {
  switch (code) {
    case simdjson::CAPACITY: return "the text has more than 4294967295 bytes";
    case simdjson::STRING_ERROR: return "a malformed escape in a string";
    case simdjson::EMPTY: return "an empty text";
    case simdjson::TRAILING_CONTENT: return "something follows the value";
    case simdjson::INCOMPLETE_ARRAY_OR_OBJECT:
      return "the text ends inside an array or object, or something follows it";
    default: return "a comma, colon, bracket or key is missing or superfluous";
  }
}

}  // namespace

// Walks a text, with bounded depth. Rejects repeated keys, except where the caller checks them.
class JsonParser {
 public:
  // Requires: the text outlives this.
  JsonParser(const JsonText& text, std::string name, std::uint64_t offset, ValueBudget budget)
      : text_(text.text()), name_(std::move(name)), offset_(offset), budget_(budget) {
    check_item_count();
  }

  Value parse() {
    ondemand::document document;
    begin_document(document);
    Value root = read_value(document, 0);
    require_end(root.get_if<Attributes>() != nullptr || root.get_if<Value::Array>() != nullptr);
    return root;
  }

  // Makes parse() accept numbers that are not finite, and list in `numbers` those that a Value cannot hold.
  void record_unheld_numbers(UnheldNumbers& numbers) { numbers_ = &numbers; }
  void refuse_wide_integers() { is_exact_ = true; }

  void walk(JsonValue::VisitMember visit) {
    ondemand::document document;
    begin_document(document);
    const std::string_view token = trim(read_token(document));
    if (!token.starts_with('{')) fail("expected an object", token.data());
    walk_members(document, 0, token.data(), false, [&](std::string_view key, JsonValue& value) {
      visit(key, value);
      skip_if_unread(value);
    });
    require_end(true);
  }

 private:
  friend class JsonValue;

  void begin_document(ondemand::document& document) {
    if (text_.starts_with("\xef\xbb\xbf")) fail("a byte order mark", text_.data());  // newer simdjson skips it
    if (const auto nul = text_.find('\0'); nul != std::string_view::npos) fail("a NUL byte", text_.data() + nul);
    if (const auto error = parser_
                               .iterate(simdjson::padded_string_view(text_.data(), text_.size(),
                                                                     text_.size() + simdjson::SIMDJSON_PADDING))
                               .get(document)) {
      fail_early(error);
    }
    document_ = &document;
  }

  const char* end() const { return text_.data() + text_.size(); }

  // Throws if something follows the root value. After a container, simdjson stands at the next token. The token of a
  // scalar extends to the next one, or to the end of the text.
  void require_end(bool container) const {
    const char* place = end();
    if (container) {
      place = find_place();
    } else if (std::string_view token; document_->raw_json_token().get(token) == simdjson::SUCCESS) {
      place = token.data() + token.size();
    }
    if (place < end()) fail(describe_error(simdjson::TRAILING_CONTENT), place);
  }

  [[noreturn]] void fail(std::string_view problem, const char* place) const {
    throw Error(ErrorKind::invalid_file, fmt::format("JSON: {}", problem), name_, find_offset(place));
  }
  std::uint64_t find_offset(const char* place) const {
    return offset_ + static_cast<std::uint64_t>(place - text_.data());
  }

  // Returns the place of the next token.
  const char* find_place() const {
    const char* place = nullptr;
    return document_->current_location().get(place) == simdjson::SUCCESS ? std::min<const char*>(place, end()) : end();
  }

  void check_result(simdjson::error_code error, const char* place) const {
    if (error == simdjson::MEMALLOC) throw std::bad_alloc();
    if (error == simdjson::INCOMPLETE_ARRAY_OR_OBJECT) place = end();
    if (error != simdjson::SUCCESS) fail(describe_error(error), place);
  }
  void check_result(simdjson::error_code error) const {
    if (error != simdjson::SUCCESS) check_result(error, find_place());
  }

  // Throws if a large text has too many items for its size: simdjson takes four bytes for each token of the whole text
  // before the first value is charged.
  void check_item_count() const {
    const std::string_view text = text_;
    if (text.size() <= kLargeTextBytes) return;
    const std::uint64_t most = text.size() / kLeastBytesPerItem;
    const auto is_item = [](char c) { return c == ',' || c == '[' || c == '{'; };
    // The compiler vectorizes the inner loop, because all blocks have the same size.
    constexpr std::size_t kBlock = 128;
    std::uint64_t count = 0;
    for (std::size_t begin = 0; begin + kBlock <= text.size(); begin += kBlock) {
      std::uint8_t items = 0;
      for (std::size_t i = 0; i < kBlock; ++i)
        items = static_cast<std::uint8_t>(items + (is_item(text[begin + i]) ? 1 : 0));
      count += items;
    }
    if (count + text.size() % kBlock <= most) return;
    std::uint64_t items = 0;
    bool quoted = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (quoted && text[i] == '\\') {
        ++i;
      } else if (text[i] == '"') {
        quoted = !quoted;
      } else if (!quoted && is_item(text[i]) && ++items > most) {
        throw Error(ErrorKind::invalid_file, fmt::format("JSON: {}", kTooMany), name_, offset_ + i);
      }
    }
  }

  // Throws simdjson's error, with the place of invalid UTF-8 or of an invalid string, which simdjson does not report.
  [[noreturn]] void fail_early(simdjson::error_code error) const {
    if (error == simdjson::MEMALLOC) throw std::bad_alloc();
    if (error == simdjson::UTF8_ERROR) fail("bytes that are not UTF-8", find_malformed());
    if (error != simdjson::UNESCAPED_CHARS && error != simdjson::UNCLOSED_STRING)
      fail(describe_error(error), text_.data());
    const char* opening = nullptr;
    for (const char* at = text_.data(); at != end(); ++at) {
      if (opening != nullptr && static_cast<unsigned char>(*at) < 0x20) fail("a control character in a string", at);
      if (opening != nullptr && *at == '\\') {
        if (at + 1 == end()) break;
        ++at;
      } else if (*at == '"') {
        opening = opening == nullptr ? at : nullptr;
      }
    }
    fail("a string without an end", opening == nullptr ? text_.data() : opening);
  }

  const char* find_malformed() const {
    std::string_view rest = text_;
    while (!rest.empty()) {
      const std::size_t length = measure_character(rest);
      if (length == 0) break;
      rest.remove_prefix(length);
    }
    return rest.data();
  }

  // Returns the text from a value's first character to the next token.
  static std::string_view read_token(ondemand::value& value) { return value.raw_json_token(); }
  std::string_view read_token(ondemand::document& document) const {
    std::string_view token;
    check_result(document.raw_json_token().get(token));
    return token;
  }

  // `source` is the document for the root, else a value in it. Reads scalars from their token; simdjson skips them.
  template <typename Source>
  Value read_value(Source& source, std::size_t depth) {
    return read_value(source, trim(read_token(source)), depth);
  }

  static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

  static std::string_view trim(std::string_view token) {
    while (!token.empty() && is_space(token.back())) token.remove_suffix(1);
    return token;
  }

  template <typename Source>
  Value read_value(Source& source, std::string_view token, std::size_t depth) {
    if (token.empty()) fail(describe_error(simdjson::TAPE_ERROR), find_place());
    switch (token.front()) {
      case '{': return read_object(source, depth, token.data());
      case '[': return read_array(source, depth, token.data());
      case '"': return read_text(source, token);
      default: break;
    }
    if (token == "null") return {};
    if (token == "true" || token == "false") return token == "true";
    return read_number(token);
  }

  static void record_number(std::string_view number, std::vector<std::string>& numbers) {
    constexpr std::size_t kMost = 5;
    if (numbers.size() < kMost && std::ranges::find(numbers, number) == numbers.end()) numbers.emplace_back(number);
  }

  Value read_number(std::string_view token) const {
    if (numbers_ != nullptr && std::ranges::find(kNonFinite, token) != kNonFinite.end()) {
      record_number(token, numbers_->non_finite);
      return {};
    }
    std::string_view problem;
    auto number = parse_json_number(token, problem);
    if (!number) fail(problem, token.data());
    const bool is_wide =
        number->get_if<double>() != nullptr && token.find_first_not_of("-0123456789") == std::string_view::npos;
    if (is_wide && is_exact_)
      fail(fmt::format("the integer {} has more than 64 bits", shorten_integer(token)), token.data());
    if (is_wide && numbers_ != nullptr) record_number(token, numbers_->wide_integers);
    return *std::move(number);
  }

  // Returns the position of the first quote or escape from `at` on; the text's size if there is none.
  static std::size_t find_plain_end(std::string_view text, std::size_t at) {
    while (at < text.size() && text[at] != '"' && text[at] != '\\') ++at;
    return at;
  }

  template <typename Source>
  std::string_view read_text(Source& source, std::string_view token) const {
    const std::size_t end = find_plain_end(token, 1);
    if (end == token.size() - 1 && token[end] == '"') {
      ondemand::raw_json_string passed;  // moves past the text, which simdjson would take for a key if a colon follows
      check_result(source.get_raw_json_string().get(passed), token.data());
      return token.substr(1, end - 1);
    }
    if (end == token.size() || token[end] == '"' || token.back() != '"')
      fail(describe_error(simdjson::TAPE_ERROR), token.data());
    std::string_view text;
    check_result(source.get_string().get(text), token.data());
    return text;
  }

  void check_depth(std::size_t depth, const char* place) const {
    if (depth == kMaxNesting) fail(fmt::format("nested deeper than {} levels", kMaxNesting), place);
  }

  // Calls visit(item) for the items of an array. Each item must be read or skipped before the next.
  template <typename Source, typename Visit>
  void walk_items(Source& source, std::size_t depth, const char* place, Visit&& visit) {
    check_depth(depth, place);
    ondemand::array array;
    check_result(source.get_array().get(array), place);
    for (auto element : array) {
      ondemand::value item;
      check_result(std::move(element).get(item));
      const std::string_view token = trim(read_token(item));
      JsonValue reached(*this, &item, token, depth + 1, find_offset(token.data()));
      visit(reached);
    }
  }

  template <typename Source, typename Visit>
  void walk_members(Source& source, std::size_t depth, const char* place, bool unique, Visit&& visit) {
    check_depth(depth, place);
    ondemand::object object;
    check_result(source.get_object().get(object), place);
    Level& level = open_level(depth);
    for (auto member : object) {
      ondemand::field field;
      check_result(std::move(member).get(field));
      const char* const begin = field.key().raw() - 1;
      const std::string_view key = read_key(field, begin);
      if (unique) {
        require_affordable(budget_.charge_key(level.keys.size()));
        if (!level.keys.insert(key)) fail_repeated_key(key, name_, find_offset(begin));
      }
      JsonValue reached(*this, &field.value(), trim(read_token(field.value())), depth + 1, find_offset(begin));
      visit(key, reached);
    }
  }

  template <typename Source>
  Value read_array(Source& source, std::size_t depth, const char* place) {
    check_depth(depth, place);
    std::vector<Value>& collected = open_level(depth).items;
    walk_items(source, depth, place, [&](JsonValue& reached) {
      Value item = read_tree(reached);
      require_affordable(budget_.charge_value());
      collected.push_back(std::move(item));
    });
    return Value(release_items(collected));
  }

  template <typename Source>
  Value read_object(Source& source, std::size_t depth, const char* place) {
    check_depth(depth, place);
    std::vector<Attributes::Entry>& collected = open_level(depth).entries;
    walk_members(source, depth, place, true, [&](std::string_view key, JsonValue& reached) {
      Value item = read_tree(reached);
      require_affordable(budget_.charge_value());
      collected.emplace_back(key, std::move(item));
    });
    return Attributes::from_unique(release_items(collected));
  }

  static ondemand::value& release_source(JsonValue& reached) {
    return *static_cast<ondemand::value*>(std::exchange(reached.source_, nullptr));
  }

  Value read_tree(JsonValue& reached) { return read_value(release_source(reached), reached.token_, reached.depth_); }

  // Checks a value that the caller has not read, and discards it.
  void skip_if_unread(JsonValue& reached) {
    if (reached.source_ == nullptr) return;
    const ValueBudget before = budget_;
    read_tree(reached);
    budget_ = before;
  }

  // Holds the keys and items of an open container; there is one for each depth. Later containers reuse its memory.
  struct Level {
    KeySet keys;
    std::vector<Attributes::Entry> entries;
    Value::Array items;
  };

  Level& open_level(std::size_t depth) {
    while (levels_.size() <= depth) levels_.emplace_back();
    levels_[depth].keys.clear();
    return levels_[depth];
  }

  // Returns the key of a member, valid while the text is parsed.
  std::string_view read_key(ondemand::field& field, const char* begin) const {
    const auto rest = text_.substr(static_cast<std::size_t>(begin - text_.data()));
    const std::size_t end = find_plain_end(rest, 1);
    std::string_view key = rest.substr(1, end - 1);
    if (rest[end] != '"') check_result(field.unescaped_key().get(key), begin);
    return key;
  }

  // Moves the items out of a level. Up to 1024 items get no more memory than they need.
  template <typename Item>
  static std::vector<Item> release_items(std::vector<Item>& items) {
    constexpr std::size_t kMany = 1024;
    if (items.size() > kMany) return std::exchange(items, {});
    std::vector<Item> result(std::make_move_iterator(items.begin()), std::make_move_iterator(items.end()));
    items.clear();
    return result;
  }

  void require_affordable(bool affordable) const {
    if (!affordable) fail(kTooMany, find_place());
  }

  static constexpr std::array<std::string_view, 3> kNonFinite = {"NaN", "Infinity", "-Infinity"};
  static constexpr std::string_view kTooMany = "more values than a text of this size may hold";

  std::string_view text_;
  std::string name_;
  std::uint64_t offset_;
  ValueBudget budget_;
  UnheldNumbers* numbers_ = nullptr;
  bool is_exact_ = false;
  ondemand::parser parser_;
  ondemand::document* document_ = nullptr;  // set while the document is walked
  std::deque<Level> levels_;
};

std::optional<std::string_view> JsonValue::read_text() {
  if (!token_.starts_with('"')) return std::nullopt;
  return parser_.read_text(parser_.release_source(*this), token_);
}

std::optional<std::uint64_t> JsonValue::read_unsigned() {
  const std::string_view digits = token_ == "-0" ? "0" : token_;
  if (digits.empty() || digits.front() < '0' || digits.front() > '9') return std::nullopt;
  if (digits.size() > 1 && digits.front() == '0') return std::nullopt;
  const auto number = parse_number_text<std::uint64_t>(digits);
  if (number) source_ = nullptr;  // simdjson skips it
  return number;
}

bool JsonValue::visit_items(VisitItem visit) {
  if (!token_.starts_with('[')) return false;
  parser_.walk_items(parser_.release_source(*this), depth_, token_.data(), [&](JsonValue& reached) {
    visit(reached);
    parser_.skip_if_unread(reached);
  });
  return true;
}

bool JsonValue::visit_members(VisitMember visit) { return walk_members(true, visit); }
bool JsonValue::visit_members_unchecked(VisitMember visit) { return walk_members(false, visit); }

bool JsonValue::walk_members(bool unique, VisitMember visit) {
  if (!token_.starts_with('{')) return false;
  parser_.walk_members(parser_.release_source(*this), depth_, token_.data(), unique,
                       [&](std::string_view key, JsonValue& reached) {
                         visit(key, reached);
                         parser_.skip_if_unread(reached);
                       });
  return true;
}

Value JsonValue::read_tree() { return parser_.read_tree(*this); }

Value parse_json(std::string_view text, const std::string& name, std::uint64_t offset) {
  return JsonParser(JsonText(text), name, offset, ValueBudget(text.size())).parse();
}

Value parse_json(std::string_view text, const std::string& name, ValueBudget budget) {
  return JsonParser(JsonText(text), name, 0, budget).parse();
}

Value parse_json(std::string_view text, const std::string& name, UnheldNumbers& numbers) {
  const JsonText memory(text);
  JsonParser parser(memory, name, 0, ValueBudget(text.size()));
  parser.record_unheld_numbers(numbers);
  return parser.parse();
}

Value parse_exact_json(std::string_view text, const std::string& name) {
  const JsonText memory(text);
  JsonParser parser(memory, name, 0, ValueBudget(text.size()));
  parser.refuse_wide_integers();
  return parser.parse();
}

std::string shorten_integer(std::string_view digits) {
  constexpr std::size_t kMost = 40;
  return shorten(digits, kMost) + (digits.size() > kMost ? fmt::format(" ({} digits)", digits.size()) : "");
}

void walk_json_object(const JsonText& text, const std::string& name, std::uint64_t offset,
                      JsonValue::VisitMember visit) {
  JsonParser(text, name, offset, ValueBudget(text.text().size())).walk(visit);
}

void fail_repeated_key(std::string_view key, const std::string& name, std::uint64_t position) {
  throw Error(ErrorKind::invalid_file,
              fmt::format("JSON: the key \"{}\" appears twice in one object", make_excerpt(key)), name, position);
}

}  // namespace poise
