#include "syntax/pickle.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/little_endian.hpp"
#include "bytes/number_text.hpp"
#include "bytes/utf8.hpp"
#include "syntax/limits.hpp"
#include "syntax/pickle_steps.hpp"

namespace poise::pickle {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 31;  // places in a pickle have 32 bits
constexpr unsigned kNewestProtocol = 5;
constexpr Id kTrue = 1;
constexpr Id kFalse = 2;
constexpr Id kEmptyTuple = 3;

// What things take of the memory that a pickle may ask for.
constexpr std::uint64_t kListBytes = sizeof(std::vector<Id>) + 32;
constexpr std::uint64_t kCallBytes = sizeof(Call) + 176;  // with what is made of one, such as a tensor
constexpr std::uint64_t kMemoBytes = 48;

// Of Node::first, where a text is not at a place of the pickle.
constexpr std::uint64_t kMade = std::uint64_t{1} << 63;

}  // namespace

class Machine {
 public:
  Machine(std::span<const std::byte> bytes, const std::string& name, std::uint64_t begin)
      : name_(name),
        begin_(begin),
        bytes_(bytes.first(std::min<std::size_t>(bytes.size(), kMostBytes))),
        budget_(max_value_bytes(bytes_.size())) {
    result_.bytes_ = bytes_;
    result_.begin_ = begin;
    for (const Kind kind : {Kind::none, Kind::boolean, Kind::boolean, Kind::tuple})
      result_.nodes_.push_back({.kind = kind});
    result_.nodes_[kTrue].first = 1;
  }

  Pickle run() {
    for (;;) {
      step_at_ = position_;
      const Step step = static_cast<Step>(number<std::uint8_t>("a step"));
      if (step == Step::stop) break;
      do_step(step);
    }
    result_.root_ = pop();
    result_.size_ = position_;
    return std::move(result_);
  }

 private:
  using Node = Pickle::Node;

  void do_step(Step step) {
    switch (step) {
      case Step::mark: return push_mark();
      case Step::stop: return;
      case Step::pop: return drop();
      case Step::pop_mark: return cut_to(top_mark("POP_MARK"));
      case Step::dup: return push(top());
      case Step::none: return push(kNone);
      case Step::new_true: return push(kTrue);
      case Step::new_false: return push(kFalse);
      case Step::empty_tuple: return push(kEmptyTuple);
      case Step::empty_list: return push_list(Kind::list, {});
      case Step::empty_dict: return push_list(Kind::dict, {});
      case Step::empty_set: return push_list(Kind::set, {});
      case Step::list: return push_list(Kind::list, take_marked("LIST"));
      case Step::dict: return push_list(Kind::dict, whole_pairs(take_marked("DICT")));
      case Step::frozen_set: return push_list(Kind::set, take_marked("FROZENSET"));
      case Step::tuple: return push_tuple(take_marked("TUPLE"));
      case Step::tuple1: return push_tuple(take(1));
      case Step::tuple2: return push_tuple(take(2));
      case Step::tuple3: return push_tuple(take(3));
      case Step::append: return append(take(1), "APPEND");
      case Step::appends: return append(take_marked("APPENDS"), "APPENDS");
      case Step::add_items: return append(take_marked("ADDITEMS"), "ADDITEMS");
      case Step::set_item: return set(take(2), "SETITEM");
      case Step::set_items: return set(whole_pairs(take_marked("SETITEMS")), "SETITEMS");
      case Step::int1: return push_integer(number<std::uint8_t>("BININT1"));
      case Step::int2: return push_integer(number<std::uint16_t>("BININT2"));
      case Step::int4: return push_integer(number<std::int32_t>("BININT"));
      case Step::int_line: return push_int_line();
      case Step::long_line: return push_long_line();
      case Step::long1: return push_long(number<std::uint8_t>("LONG1"));
      case Step::long4: return push_long4();
      case Step::float_line: return push_float_line();
      case Step::float8: return push_real(load_be<double>(raw(8, "BINFLOAT").data()));
      case Step::string_line: return push_string_line();
      case Step::unicode_line: return push_unicode_line();
      case Step::string1: return push_string(number<std::uint8_t>("SHORT_BINSTRING"));
      case Step::string4: return push_string(length_from(number<std::int32_t>("BINSTRING"), "BINSTRING"));
      case Step::unicode1: return push_text(Kind::text, number<std::uint8_t>("SHORT_BINUNICODE"));
      case Step::unicode4: return push_text(Kind::text, number<std::uint32_t>("BINUNICODE"));
      case Step::unicode8: return push_text(Kind::text, number<std::uint64_t>("BINUNICODE8"));
      case Step::bytes1: return push_text(Kind::bytes, number<std::uint8_t>("SHORT_BINBYTES"));
      case Step::bytes4: return push_text(Kind::bytes, number<std::uint32_t>("BINBYTES"));
      case Step::bytes8: return push_text(Kind::bytes, number<std::uint64_t>("BINBYTES8"));
      case Step::byte_array8: return push_text(Kind::bytes, number<std::uint64_t>("BYTEARRAY8"));
      case Step::global_lines: return push_global_lines();
      case Step::stack_global: return push_stack_global();
      case Step::extension1: return push_extension(number<std::uint8_t>("EXT1"));
      case Step::extension2: return push_extension(number<std::uint16_t>("EXT2"));
      case Step::extension4: return push_extension(number<std::uint32_t>("EXT4"));
      case Step::reduce: return call(take(2), "REDUCE");
      case Step::new_object: return call(take(2), "NEWOBJ");
      case Step::new_object_with_names: return call_with_names();
      case Step::instance: return call_instance();
      case Step::object: return call_object();
      case Step::build: return build();
      case Step::persistent: return push_persistent(pop());
      case Step::persistent_line: return push_persistent(made_text(Kind::text, std::string(line("PERSID"))));
      case Step::get1: return push_memo(number<std::uint8_t>("BINGET"));
      case Step::get4: return push_memo(number<std::uint32_t>("LONG_BINGET"));
      case Step::get_line: return push_memo(memo_key("GET"));
      case Step::put1: return put(number<std::uint8_t>("BINPUT"));
      case Step::put4: return put(number<std::uint32_t>("LONG_BINPUT"));
      case Step::put_line: return put(memo_key("PUT"));
      case Step::memoize: return put(memo_.size() + far_memo_.size());
      case Step::protocol: return check_protocol();
      case Step::frame: raw(8, "FRAME"); return;  // how many bytes are best read at once
      case Step::next_buffer:
      case Step::read_only_buffer: fail("a buffer that is in no pickle (protocol 5, out of band)");
    }
    fail(fmt::format("there is no step 0x{:02x}", static_cast<unsigned>(step)));
  }

  // The program.
  std::span<const std::byte> raw(std::uint64_t length, std::string_view what) {
    if (length > bytes_.size() - position_)
      fail(fmt::format("{}: {} bytes wanted, {} left", what, length, bytes_.size() - position_));
    const auto bytes = bytes_.subspan(position_, static_cast<std::size_t>(length));
    position_ += bytes.size();
    return bytes;
  }
  template <typename T>
  T number(std::string_view what) {
    return load_le<T>(raw(sizeof(T), what).data());
  }
  static std::string_view as_text(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  // Up to a line feed, which is left out.
  std::string_view line(std::string_view what) {
    const std::string_view rest = as_text(bytes_.subspan(position_));
    const std::size_t end = rest.find('\n');
    if (end == std::string_view::npos) fail(fmt::format("{}: the line has no end", what));
    position_ += end + 1;
    return rest.substr(0, end);
  }
  std::uint64_t length_from(std::int32_t length, std::string_view what) const {
    if (length < 0) fail(fmt::format("{}: {} bytes", what, length));
    return static_cast<std::uint64_t>(length);
  }

  void check_protocol() {
    const unsigned protocol = number<std::uint8_t>("PROTO");
    if (protocol > kNewestProtocol)
      fail(fmt::format("protocol {}; known are those up to {}", protocol, kNewestProtocol));
  }

  // The stack.
  void push(Id id) {
    charge(sizeof(Id));
    stack_.push_back(id);
  }
  std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  Id top() const {
    if (stack_.size() <= floor()) fail("the stack is empty");
    return stack_.back();
  }
  Id pop() {
    const Id id = top();
    stack_.pop_back();
    return id;
  }
  // Of a mark, where nothing is above it.
  void drop() {
    if (stack_.size() == floor() && !marks_.empty()) {
      marks_.pop_back();
    } else {
      pop();
    }
  }
  void push_mark() {
    charge(sizeof(std::size_t));
    marks_.push_back(stack_.size());
  }
  std::size_t top_mark(std::string_view what) const {
    if (marks_.empty()) fail(fmt::format("{}: there is no mark", what));
    return marks_.back();
  }
  void cut_to(std::size_t size) {
    stack_.resize(size);
    marks_.pop_back();
  }
  std::vector<Id> take_marked(std::string_view what) {
    const std::size_t mark = top_mark(what);
    std::vector<Id> items(stack_.begin() + static_cast<std::ptrdiff_t>(mark), stack_.end());
    cut_to(mark);
    return items;
  }
  std::vector<Id> take(std::size_t count) {
    if (stack_.size() - floor() < count)
      fail(fmt::format("{} objects wanted, {} are there", count, stack_.size() - floor()));
    std::vector<Id> items(stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    return items;
  }
  std::vector<Id> whole_pairs(std::vector<Id> items) const {
    if (items.size() % 2 != 0) fail("a key without a value");
    return items;
  }

  // The memo.
  void put(std::uint64_t key) {
    charge(key < memo_.size() ? 0 : kMemoBytes);
    if (key < memo_.size()) {
      memo_[static_cast<std::size_t>(key)] = top();
    } else if (key == memo_.size()) {
      memo_.push_back(top());
    } else {
      far_memo_[key] = top();
    }
  }
  void push_memo(std::uint64_t key) {
    if (key < memo_.size()) return push(memo_[static_cast<std::size_t>(key)]);
    const auto found = far_memo_.find(key);
    if (found == far_memo_.end()) fail(fmt::format("the memo has no object {}", key));
    push(found->second);
  }
  std::uint64_t memo_key(std::string_view what) {
    const std::string_view text = line(what);
    const auto key = number_from<std::uint64_t>(text);
    if (!key) fail(fmt::format("{}: expected a number", what));
    return *key;
  }

  // Objects.
  Id make(Kind kind, std::uint64_t first, std::uint64_t second = 0) {
    charge(sizeof(Node));
    result_.nodes_.push_back({first, static_cast<std::uint32_t>(second), static_cast<std::uint32_t>(step_at_), kind});
    return static_cast<Id>(result_.nodes_.size() - 1);
  }
  void push_integer(std::int64_t value) { push(make(Kind::integer, static_cast<std::uint64_t>(value))); }
  void push_real(double value) { push(make(Kind::real, std::bit_cast<std::uint64_t>(value))); }

  void push_list(Kind kind, std::vector<Id> items) {
    charge(kListBytes + items.size() * sizeof(Id));
    result_.lists_.push_back(std::move(items));
    push(make(kind, result_.lists_.size() - 1));
  }
  void push_tuple(const std::vector<Id>& items) {
    charge(items.size() * sizeof(Id));
    if (items.empty()) return push(kEmptyTuple);
    const std::size_t begin = result_.tuples_.size();
    result_.tuples_.insert(result_.tuples_.end(), items.begin(), items.end());
    push(make(Kind::tuple, begin, items.size()));
  }

  // Bytes of the pickle itself.
  void push_text(Kind kind, std::uint64_t length) {
    const std::span<const std::byte> bytes = raw(length, kind == Kind::text ? "text" : "bytes");
    if (kind == Kind::text && !is_utf8(as_text(bytes))) fail("the text is not UTF-8");
    push(make(kind, position_ - bytes.size(), bytes.size()));
  }
  // Texts of Python 2, which may be bytes.
  void push_string(std::uint64_t length) {
    const std::span<const std::byte> bytes = raw(length, "text");
    push(make(is_utf8(as_text(bytes)) ? Kind::text : Kind::bytes, position_ - bytes.size(), bytes.size()));
  }
  Id made_text(Kind kind, std::string text) {
    charge(sizeof(std::string) + text.size());
    result_.made_texts_.push_back(std::move(text));
    return make(kind, kMade | (result_.made_texts_.size() - 1));
  }

  void push_int_line() {
    const std::string_view text = line("INT");
    if (text == "00" || text == "01") return push(text == "01" ? kTrue : kFalse);
    push_decimal(text, "INT");
  }
  void push_long_line() {
    std::string_view text = line("LONG");
    if (text.ends_with('L')) text.remove_suffix(1);
    push_decimal(text, "LONG");
  }
  void push_decimal(std::string_view text, std::string_view what) {
    const std::string_view digits = text.starts_with('-') ? text.substr(1) : text;
    if (digits.empty() || digits.find_first_not_of("0123456789") != std::string_view::npos)
      fail(fmt::format("{}: expected an integer", what));
    if (const auto value = number_from<std::int64_t>(text)) return push_integer(*value);
    push(made_text(Kind::wide_integer, std::string(text)));
  }
  void push_long4() { push_long(length_from(number<std::int32_t>("LONG4"), "LONG4")); }
  void push_long(std::uint64_t length) {
    const std::span<const std::byte> bytes = raw(length, "integer");
    if (bytes.size() > 8) return push(make(Kind::wide_integer, position_ - bytes.size(), bytes.size()));
    const bool negative = !bytes.empty() && (bytes.back() & std::byte{0x80}) != std::byte{0};
    std::array<std::byte, 8> all;
    all.fill(negative ? std::byte{0xff} : std::byte{0});
    std::ranges::copy(bytes, all.begin());
    push_integer(load_le<std::int64_t>(all.data()));
  }
  void push_float_line() {
    const std::string_view text = line("FLOAT");
    if (text == "nan") return push_real(std::numeric_limits<double>::quiet_NaN());
    if (text == "inf" || text == "-inf")
      return push_real(text == "inf" ? std::numeric_limits<double>::infinity()
                                     : -std::numeric_limits<double>::infinity());
    const auto value = number_from<double>(text);
    if (!value) fail("FLOAT: expected a number");
    push_real(*value);
  }

  // As Python 2 prints a text, in quotes.
  void push_string_line() {
    const std::string_view text = line("STRING");
    if (text.size() < 2 || (text.front() != '\'' && text.front() != '"') || text.back() != text.front())
      fail("STRING: expected text in quotes");
    push_escaped(text.substr(1, text.size() - 2), false);
  }
  // With \u1234 for characters that lines do not have.
  void push_unicode_line() { push_escaped(line("UNICODE"), true); }
  void push_escaped(std::string_view text, bool is_unicode) {
    std::string result;
    for (std::size_t at = 0; at < text.size();) {
      if (text[at] != '\\' || at + 1 == text.size()) {
        append_character(result, text[at++], is_unicode);
        continue;
      }
      const char kind = text[at + 1];
      const std::size_t digits = kind == 'u' && is_unicode ? 4 : kind == 'U' && is_unicode ? 8 : kind == 'x' ? 2 : 0;
      if (digits == 0) {
        static constexpr std::string_view kLetters = "nrt\\'\"";
        static constexpr std::string_view kMeanings = "\n\r\t\\'\"";
        const std::size_t meant = is_unicode ? std::string_view::npos : kLetters.find(kind);
        result += meant == std::string_view::npos ? '\\' : kMeanings[meant];
        at += meant == std::string_view::npos ? 1 : 2;
        continue;
      }
      const auto code = at + 2 + digits <= text.size() ? parse_hex(text.substr(at + 2, digits)) : std::nullopt;
      if (!code || *code > 0x10ffff) fail("an escape in a text is wrong");
      if (is_unicode) {
        append_utf8(result, static_cast<char32_t>(*code));
      } else {
        result += static_cast<char>(*code);
      }
      at += 2 + digits;
    }
    const bool is_text = is_utf8(result);
    if (is_unicode && !is_text) fail("the text is not Unicode");
    push(made_text(is_text ? Kind::text : Kind::bytes, std::move(result)));
  }
  // Lines of UNICODE are in Latin-1.
  static void append_character(std::string& text, char character, bool is_latin1) {
    if (is_latin1) {
      append_utf8(text, static_cast<unsigned char>(character));
    } else {
      text += character;
    }
  }
  static std::optional<std::uint32_t> parse_hex(std::string_view digits) {
    std::uint32_t value = 0;
    for (const char digit : digits) {
      const bool is_digit = digit >= '0' && digit <= '9';
      const char lower = static_cast<char>(digit | 0x20);
      if (!is_digit && (lower < 'a' || lower > 'f')) return std::nullopt;
      value = value << 4 | static_cast<std::uint32_t>(is_digit ? digit - '0' : lower - 'a' + 10);
    }
    return value;
  }

  // Globals and what would be done with them.
  Id make_global(std::string_view module, std::string_view name) {
    charge(sizeof(Global));
    result_.globals_.push_back({module, name});
    return make(Kind::global, result_.globals_.size() - 1);
  }
  Id global_from_lines() {
    const std::string_view module = line("GLOBAL");
    const std::string_view name = line("GLOBAL");
    if (!is_utf8(module) || !is_utf8(name)) fail("GLOBAL: the name is not UTF-8");
    return make_global(module, name);
  }
  void push_global_lines() { push(global_from_lines()); }
  void push_stack_global() {
    const std::vector<Id> names = take(2);
    for (const Id id : names) {
      if (result_.kind(id) != Kind::text) fail("STACK_GLOBAL: expected texts");
    }
    push(make_global(result_.text(names[0]), result_.text(names[1])));
  }
  // A number for a global that both sides have agreed on: nobody has.
  void push_extension(std::uint32_t code) {
    charge(64);
    result_.made_texts_.push_back(fmt::format("extension {}", code));
    push(make_global("copyreg", result_.made_texts_.back()));
  }

  void call(const std::vector<Id>& both, std::string_view what) {
    require_tuple(both[1], what);
    push_call(both[0], both[1], what);
  }
  void call_with_names() {
    const std::vector<Id> parts = take(3);
    require_tuple(parts[1], "NEWOBJ_EX");
    if (result_.kind(parts[2]) != Kind::dict) fail("NEWOBJ_EX: expected a dict of arguments");
    push_call(parts[0], parts[1], "NEWOBJ_EX");
    result_.calls_.back().pairs.assign(result_.items(parts[2]).begin(), result_.items(parts[2]).end());
    charge(result_.calls_.back().pairs.size() * sizeof(Id));
  }
  void call_instance() {
    const Id function = global_from_lines();
    push_tuple(take_marked("INST"));
    push_call(function, pop(), "INST");
  }
  void call_object() {
    const std::vector<Id> parts = take_marked("OBJ");
    if (parts.empty()) fail("OBJ: there is no class");
    push_tuple({parts.begin() + 1, parts.end()});
    push_call(parts[0], pop(), "OBJ");
  }
  void require_tuple(Id id, std::string_view what) const {
    if (result_.kind(id) != Kind::tuple) fail(fmt::format("{}: expected a tuple of arguments", what));
  }
  void push_call(Id function, Id arguments, std::string_view what) {
    const Kind kind = result_.kind(function);
    if (kind != Kind::global && kind != Kind::call && kind != Kind::persistent)
      fail(fmt::format("{}: what is called is neither a function nor a class", what));
    charge(kCallBytes);
    result_.calls_.push_back({function, arguments});
    push(make(Kind::call, result_.calls_.size() - 1));
  }
  void build() {
    const Id state = pop();
    const Id target = top();
    if (result_.kind(target) != Kind::call) fail("BUILD: only what a call makes can be given a state");
    result_.calls_[static_cast<std::size_t>(result_.nodes_[target].first)].state = state;
  }
  void push_persistent(Id key) { push(make(Kind::persistent, key)); }

  void append(const std::vector<Id>& items, std::string_view what) {
    charge(items.size() * sizeof(Id));
    const Node& target = result_.nodes_[top()];
    const auto index = static_cast<std::size_t>(target.first);
    const bool is_list = target.kind == Kind::list || target.kind == Kind::set;
    if (!is_list && target.kind != Kind::call) fail(fmt::format("{}: there is no list", what));
    std::vector<Id>& to = is_list ? result_.lists_[index] : result_.calls_[index].items;
    to.insert(to.end(), items.begin(), items.end());
  }
  void set(const std::vector<Id>& pairs, std::string_view what) {
    charge(pairs.size() * sizeof(Id));
    const Node& target = result_.nodes_[top()];
    const auto index = static_cast<std::size_t>(target.first);
    if (target.kind != Kind::dict && target.kind != Kind::call) fail(fmt::format("{}: there is no dict", what));
    std::vector<Id>& to = target.kind == Kind::dict ? result_.lists_[index] : result_.calls_[index].pairs;
    to.insert(to.end(), pairs.begin(), pairs.end());
  }

  void charge(std::uint64_t bytes) {
    if (bytes > budget_)
      throw Error(ErrorKind::unsupported, "pickle: its objects take more memory than its size justifies", name_,
                  begin_ + step_at_);
    budget_ -= bytes;
  }
  [[noreturn]] void fail(const std::string& problem) const {
    throw Error(ErrorKind::invalid_file, "pickle: " + problem, name_, begin_ + step_at_);
  }

  const std::string& name_;
  std::uint64_t begin_;
  std::span<const std::byte> bytes_;
  std::uint64_t budget_;
  std::size_t position_ = 0;
  std::size_t step_at_ = 0;
  std::vector<Id> stack_;
  std::vector<std::size_t> marks_;  // how high the stack was
  std::vector<Id> memo_;
  std::unordered_map<std::uint64_t, Id> far_memo_;  // keys beyond those that follow each other
  Pickle result_;
};

double Pickle::real(Id id) const { return std::bit_cast<double>(nodes_[id].first); }

std::string_view Pickle::text(Id id) const {
  const Node& node = nodes_[id];
  if ((node.first & kMade) != 0) return made_texts_[static_cast<std::size_t>(node.first & ~kMade)];
  return {reinterpret_cast<const char*>(bytes_.data()) + node.first, node.second};
}

std::span<const Id> Pickle::items(Id id) const {
  const Node& node = nodes_[id];
  const auto first = static_cast<std::size_t>(node.first);
  if (node.kind == Kind::tuple) return std::span(tuples_).subspan(first, node.second);
  return lists_[first];
}

Global Pickle::global(Id id) const { return globals_[static_cast<std::size_t>(nodes_[id].first)]; }

std::vector<Id> Pickle::globals() const {
  std::vector<Id> found;
  std::unordered_set<std::string> names;
  for (Id id = 0; id < nodes_.size(); ++id) {
    if (kind(id) != Kind::global) continue;
    const Global one = global(id);
    if (names.insert(fmt::format("{}\n{}", one.module, one.name)).second) found.push_back(id);
  }
  return found;
}

Pickle run(std::span<const std::byte> bytes, const std::string& name, std::uint64_t begin) {
  return Machine(bytes, name, begin).run();
}

}  // namespace poise::pickle
