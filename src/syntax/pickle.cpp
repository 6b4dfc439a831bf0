// Runs the steps of a pickle without Python: each step is a byte (pickle_steps.hpp) with an argument, and works on a
// stack and a memo. Source: Lib/pickletools.py of CPython, and Modules/_pickle.c where both differ.
#include "syntax/pickle.hpp"

#include <algorithm>
#include <bit>
#include <unordered_set>

#include <fmt/format.h>

#include "bytes/utf8.hpp"
#include "syntax/pickle_machine.hpp"

namespace poise::pickle {
namespace {

constexpr unsigned kNewestProtocol = 5;

}  // namespace

// Runs each step: reads its argument from the program, changes the stack, and lets the builder make objects.
class Machine {
 public:
  Machine(std::span<const std::byte> bytes, const std::string& name, std::uint64_t begin)
      : program_(bytes, name, begin), stack_(program_), builder_(program_, begin, result_) {}

  // Throws what pickle::run() throws.
  Pickle run() {
    for (PickleStep step = program_.read_step(); step != PickleStep::stop; step = program_.read_step()) run_step(step);
    result_.root_ = stack_.pop();
    result_.size_ = program_.position();
    return std::move(result_);
  }

  Partial run_until_error() {
    try {
      return {run(), std::nullopt, false};
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::io) throw;
      return {std::move(result_), error, program_.has_run_out()};
    }
  }

 private:
  void run_step(PickleStep step) {
    switch (step) {
      case PickleStep::mark: return stack_.push_mark();
      case PickleStep::stop: return;
      case PickleStep::pop: return stack_.drop();
      case PickleStep::pop_mark: return stack_.drop_marked("POP_MARK");
      case PickleStep::dup: return stack_.push(stack_.top());
      case PickleStep::none: return stack_.push(kNone);
      case PickleStep::new_true: return stack_.push(kTrue);
      case PickleStep::new_false: return stack_.push(kFalse);
      case PickleStep::empty_tuple: return stack_.push(kEmptyTuple);
      case PickleStep::empty_list: return push_list(Kind::list, {});
      case PickleStep::empty_dict: return push_list(Kind::dict, {});
      case PickleStep::empty_set: return push_list(Kind::set, {});
      case PickleStep::list: return push_list(Kind::list, stack_.pop_marked("LIST"));
      case PickleStep::dict: return push_list(Kind::dict, check_pairs(stack_.pop_marked("DICT")));
      case PickleStep::frozen_set: return push_list(Kind::set, stack_.pop_marked("FROZENSET"));
      case PickleStep::tuple: return push_tuple(stack_.pop_marked("TUPLE"));
      case PickleStep::tuple1: return push_tuple(stack_.pop_many(1));
      case PickleStep::tuple2: return push_tuple(stack_.pop_many(2));
      case PickleStep::tuple3: return push_tuple(stack_.pop_many(3));
      case PickleStep::append: return append_to_list(stack_.pop_many(1), "APPEND");
      case PickleStep::appends: return append_to_list(stack_.pop_marked("APPENDS"), "APPENDS");
      case PickleStep::add_items: return add_to_set(stack_.pop_marked("ADDITEMS"));
      case PickleStep::set_item: return set_pairs(stack_.pop_many(2), "SETITEM");
      case PickleStep::set_items: return set_pairs(check_pairs(stack_.pop_marked("SETITEMS")), "SETITEMS");
      case PickleStep::int1: return push(builder_.add_integer(program_.read_number<std::uint8_t>("BININT1")));
      case PickleStep::int2: return push(builder_.add_integer(program_.read_number<std::uint16_t>("BININT2")));
      case PickleStep::int4: return push(builder_.add_integer(program_.read_number<std::int32_t>("BININT")));
      case PickleStep::int_line: return push_int_line();
      case PickleStep::long_line: return push_long_line();
      case PickleStep::long1: return push_long(program_.read_number<std::uint8_t>("LONG1"));
      case PickleStep::long4: return push_long(program_.read_length("LONG4"));
      case PickleStep::float_line: return push(builder_.add_line_real(program_.read_line("FLOAT")));
      case PickleStep::float8:
        return push(builder_.add_real(load_be<double>(program_.read_bytes(8, "BINFLOAT").data())));
      case PickleStep::string_line: return push(builder_.add_quoted_line(program_.read_line("STRING")));
      case PickleStep::unicode_line: return push(builder_.add_unicode_line(program_.read_line("UNICODE")));
      case PickleStep::string1:
        return push(builder_.read_string(program_.read_number<std::uint8_t>("SHORT_BINSTRING")));
      case PickleStep::string4: return push(builder_.read_string(program_.read_length("BINSTRING")));
      case PickleStep::unicode1:
        return push(builder_.read_text(Kind::text, program_.read_number<std::uint8_t>("SHORT_BINUNICODE")));
      case PickleStep::unicode4:
        return push(builder_.read_text(Kind::text, program_.read_number<std::uint32_t>("BINUNICODE")));
      case PickleStep::unicode8:
        return push(builder_.read_text(Kind::text, program_.read_number<std::uint64_t>("BINUNICODE8")));
      case PickleStep::bytes1:
        return push(builder_.read_text(Kind::bytes, program_.read_number<std::uint8_t>("SHORT_BINBYTES")));
      case PickleStep::bytes4:
        return push(builder_.read_text(Kind::bytes, program_.read_number<std::uint32_t>("BINBYTES")));
      case PickleStep::bytes8:
        return push(builder_.read_text(Kind::bytes, program_.read_number<std::uint64_t>("BINBYTES8")));
      case PickleStep::byte_array8:
        return push(builder_.read_text(Kind::bytes, program_.read_number<std::uint64_t>("BYTEARRAY8")));
      case PickleStep::global_lines: return push(read_global());
      case PickleStep::stack_global: return push_stack_global();
      case PickleStep::extension1: return push(builder_.add_extension(program_.read_number<std::uint8_t>("EXT1")));
      case PickleStep::extension2: return push(builder_.add_extension(program_.read_number<std::uint16_t>("EXT2")));
      case PickleStep::extension4: return push(builder_.add_extension(program_.read_number<std::uint32_t>("EXT4")));
      case PickleStep::reduce: return push_call(Call::How::called, stack_.pop_many(2), "REDUCE");
      case PickleStep::new_object: return push_call(Call::How::made_new, stack_.pop_many(2), "NEWOBJ");
      case PickleStep::new_object_with_names: return push_call_with_names();
      case PickleStep::instance: return push_instance();
      case PickleStep::object: return push_object();
      case PickleStep::build: return set_state();
      case PickleStep::persistent: return push(builder_.add_persistent(stack_.pop()));
      case PickleStep::persistent_line:
        return push(builder_.add_persistent(builder_.add_text(Kind::text, read_ascii_line("PERSID"))));
      case PickleStep::get1: return stack_.push_from_memo(program_.read_number<std::uint8_t>("BINGET"));
      case PickleStep::get4: return stack_.push_from_memo(program_.read_number<std::uint32_t>("LONG_BINGET"));
      case PickleStep::get_line: return stack_.push_from_memo(read_memo_key("GET"));
      case PickleStep::put1: return stack_.store_in_memo(program_.read_number<std::uint8_t>("BINPUT"));
      case PickleStep::put4: return stack_.store_in_memo(program_.read_number<std::uint32_t>("LONG_BINPUT"));
      case PickleStep::put_line: return stack_.store_in_memo(read_memo_key("PUT"));
      case PickleStep::memoize: return stack_.store_in_memo(stack_.count_memo_keys());
      case PickleStep::protocol: return check_protocol();
      case PickleStep::frame: return program_.begin_frame(program_.read_number<std::uint64_t>("FRAME"));
      case PickleStep::next_buffer:
        program_.fail("the step needs a buffer that is outside the pickle (protocol 5, out of band)");
      case PickleStep::read_only_buffer: return require_buffer();
    }
    program_.fail(fmt::format("there is no step 0x{:02x}", static_cast<unsigned>(step)));
  }

  void push(Id id) { stack_.push(id); }
  void push_list(Kind kind, std::vector<Id> items) { push(builder_.add_list(kind, std::move(items))); }
  void push_tuple(const std::vector<Id>& items) { push(builder_.add_tuple(items)); }
  void push_long(std::uint64_t length) { push(builder_.add_integer(program_.read_bytes(length, "integer"))); }
  void append_to_list(const std::vector<Id>& items, std::string_view what) {
    builder_.append_to_list(stack_.top(), items, what);
  }
  void add_to_set(const std::vector<Id>& items) { builder_.add_to_set(stack_.top(), items); }
  void set_pairs(const std::vector<Id>& pairs, std::string_view what) { builder_.set_pairs(stack_.top(), pairs, what); }

  std::vector<Id> check_pairs(std::vector<Id> items) const {
    if (items.size() % 2 != 0) program_.fail("a key without a value");
    return items;
  }

  void check_protocol() {
    const unsigned protocol = program_.read_number<std::uint8_t>("PROTO");
    if (protocol > kNewestProtocol)
      program_.fail(fmt::format("protocol {}; known are those up to {}", protocol, kNewestProtocol));
  }

  std::uint64_t read_memo_key(std::string_view what) {
    const auto key = parse_line_integer(program_.read_line(what), 10);
    if (!key) program_.fail(fmt::format("{}: expected a number", what));
    if (!key->value) program_.refuse(fmt::format("{}: a number of more than 64 bits", what));
    if (*key->value < 0) program_.fail(fmt::format("{}: {} is negative", what, *key->value));
    return static_cast<std::uint64_t>(*key->value);
  }

  std::string read_ascii_line(std::string_view what) {
    const std::string_view line = program_.read_line(what);
    if (std::ranges::any_of(line, [](char c) { return static_cast<unsigned char>(c) > 0x7f; }))
      program_.fail(fmt::format("{}: expected ASCII", what));
    return std::string(line);
  }

  // Throws unless the object on top is bytes. The step makes a view that nobody may write to; here it is the bytes
  // themselves.
  void require_buffer() const {
    const Kind kind = result_.kind(stack_.top());
    if (kind == Kind::call || kind == Kind::persistent) program_.refuse("READONLY_BUFFER: expected bytes");
    if (kind != Kind::bytes) program_.fail("READONLY_BUFFER: expected bytes");
  }

  void push_int_line() {
    const std::string_view text = program_.read_line("INT");
    constexpr std::size_t kBooleanSize = 2;  // 00 and 01; the C code takes -0, +1 and " 1" for truth values, too
    const auto value = parse_line_integer(text, 10);
    const bool is_boolean = text.size() == kBooleanSize && value && value->value && (*value->value >> 1) == 0;
    if (is_boolean && (text[1] == '0' || text[1] == '1')) return push(*value->value == 1 ? kTrue : kFalse);
    push(builder_.add_line_integer(text, "INT"));
  }
  void push_long_line() {
    std::string_view text = program_.read_line("LONG");
    if (text.ends_with('L')) text.remove_suffix(1);
    push(builder_.add_line_integer(text, "LONG"));
  }

  // These functions read globals and record calls of them.
  Id read_global() {
    if (!program_.has_lines(2)) program_.refuse("GLOBAL: the line has no end");  // Lib/pickle.py imports it
    const std::string_view module = program_.read_line("GLOBAL");
    const std::string_view name = program_.read_line("GLOBAL");
    if (!is_utf8(module) || !is_utf8(name)) program_.fail("GLOBAL: the name is not UTF-8");
    return builder_.add_global(module, name);
  }
  void push_stack_global() {
    const std::vector<Id> names = stack_.pop_many(2);
    for (const Id id : names) {
      const Kind kind = result_.kind(id);
      if (kind == Kind::call || kind == Kind::bytes || kind == Kind::persistent)
        program_.refuse("STACK_GLOBAL: the name is computed");
      if (kind != Kind::text) program_.fail("STACK_GLOBAL: expected texts");
    }
    push(builder_.add_global(result_.text(names[0]), result_.text(names[1])));
  }

  void push_call(Call::How how, const std::vector<Id>& both, std::string_view what) {
    require_tuple(both[1], what);
    push(builder_.add_call(how, both[0], both[1], what));
  }
  void push_call_with_names() {
    const std::vector<Id> parts = stack_.pop_many(3);
    require_tuple(parts[1], "NEWOBJ_EX");
    if (result_.kind(parts[2]) != Kind::dict) program_.fail("NEWOBJ_EX: expected a dict of arguments");
    const Id made = builder_.add_call(Call::How::made_new, parts[0], parts[1], "NEWOBJ_EX");
    const std::span<const Id> pairs = result_.items(parts[2]);
    builder_.set_keywords(made, {pairs.begin(), pairs.end()});
    push(made);
  }
  void push_instance() {
    const Id function = read_global();
    const Id arguments = builder_.add_tuple(stack_.pop_marked("INST"));
    push(builder_.add_call(Call::How::called, function, arguments, "INST"));
  }
  void push_object() {
    const std::vector<Id> parts = stack_.pop_marked("OBJ");
    if (parts.empty()) program_.fail("OBJ: there is no class");
    const Id arguments = builder_.add_tuple({parts.begin() + 1, parts.end()});
    push(builder_.add_call(Call::How::called, parts[0], arguments, "OBJ"));
  }
  void require_tuple(Id id, std::string_view what) const {
    const Kind kind = result_.kind(id);
    if (kind == Kind::tuple) return;
    const std::string problem = fmt::format("{}: expected a tuple of arguments", what);
    if (kind == Kind::none || kind == Kind::boolean || kind == Kind::integer || kind == Kind::real)
      program_.fail(problem);
    program_.refuse(problem);  // Lib/pickle.py takes any iterable object
  }
  void set_state() {
    const Id state = stack_.pop();
    builder_.set_state(stack_.top(), state);
  }

  Program program_;
  Stack stack_;
  Pickle result_;
  Builder builder_;
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
  return lists_[first].items;
}

bool Pickle::is_changed_after(Id container, Id call) const {
  const Kind kind = nodes_[container].kind;
  return (kind == Kind::list || kind == Kind::set || kind == Kind::dict) &&
         lists_[static_cast<std::size_t>(nodes_[container].first)].changed_at > nodes_[call].at;
}

Global Pickle::global(Id id) const { return globals_[static_cast<std::size_t>(nodes_[id].first)]; }

std::vector<Id> Pickle::list_globals() const {
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

Partial run_until_error(std::span<const std::byte> bytes, const std::string& name, std::uint64_t begin) {
  return Machine(bytes, name, begin).run_until_error();
}

}  // namespace poise::pickle
