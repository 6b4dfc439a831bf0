#include "syntax/pickle_machine.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include <fmt/format.h>

#include "bytes/utf8.hpp"

namespace poise::pickle {
namespace {

// A list, set or dict, and a call, take these bytes from the memory budget, in addition to their nodes and items.
constexpr std::uint64_t kListBytes = sizeof(std::vector<Id>) + 32;
constexpr std::uint64_t kCallBytes =
    sizeof(Call) + 176;  // includes the object that a reader makes of it, such as a tensor

// Returns true if the text is UTF-8, except that it may contain surrogates, encoded as ED A0 80 to ED BF BF.
bool is_utf8_but_for_surrogates(std::string text) {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  for (std::size_t at = 0; at + 2 < text.size(); ++at) {
    if (byte(at) == 0xed && byte(at + 1) >= 0xa0 && byte(at + 1) <= 0xbf && (byte(at + 2) & 0xc0U) == 0x80)
      text.replace(at, 3, "   ");
  }
  return is_utf8(text);
}

}  // namespace

Builder::Builder(Program& program, std::uint64_t begin, Pickle& result) : program_(program), result_(result) {
  result_.bytes_ = program.bytes();
  result_.begin_ = begin;
  for (const Kind kind : {Kind::none, Kind::boolean, Kind::boolean, Kind::tuple})
    result_.nodes_.push_back({.kind = kind});
  result_.nodes_[kTrue].first = 1;
}

Id Builder::add_node(Kind kind, std::uint64_t first, std::uint64_t second) {
  program_.charge(sizeof(Node));
  result_.nodes_.push_back(
      {first, static_cast<std::uint32_t>(second), static_cast<std::uint32_t>(program_.step_offset()), kind});
  return static_cast<Id>(result_.nodes_.size() - 1);
}

Id Builder::add_integer(std::span<const std::byte> bytes) {
  if (bytes.size() > 8) return add_node(Kind::wide_integer, program_.position() - bytes.size(), bytes.size());
  const bool negative = !bytes.empty() && (bytes.back() & std::byte{0x80}) != std::byte{0};
  std::array<std::byte, 8> all;
  all.fill(negative ? std::byte{0xff} : std::byte{0});
  std::ranges::copy(bytes, all.begin());
  return add_integer(load_le<std::int64_t>(all.data()));
}

Id Builder::add_real(double value) { return add_node(Kind::real, std::bit_cast<std::uint64_t>(value)); }

Id Builder::add_line_integer(std::string_view text, std::string_view what) {
  if (is_ambiguous_integer(text))
    program_.refuse(fmt::format("{}: a number with zeros before it, which Python's versions read differently", what));
  auto number = parse_line_integer(text, 0);
  if (!number) program_.fail(fmt::format("{}: expected an integer", what));
  return number->value ? add_integer(*number->value) : add_text(Kind::wide_integer, std::move(number->bytes));
}

Id Builder::add_line_real(std::string_view text) {
  const auto value = parse_line_real(text);
  if (!value) program_.fail("FLOAT: expected a number");
  return add_real(*value);
}

Id Builder::read_text(Kind kind, std::uint64_t length) {
  const std::span<const std::byte> bytes = program_.read_bytes(length, kind == Kind::text ? "text" : "bytes");
  const std::uint64_t at = program_.position() - bytes.size();
  if (kind != Kind::text || is_utf8(view_as_text(bytes))) return add_node(kind, at, bytes.size());
  if (!is_utf8_but_for_surrogates(std::string(view_as_text(bytes)))) program_.fail("the text is not UTF-8");
  return record_surrogate(add_node(Kind::bytes, at, bytes.size()));
}

Id Builder::record_surrogate(Id id) {
  if (!result_.lone_surrogate_) result_.lone_surrogate_ = id;
  return id;
}

Id Builder::read_string(std::uint64_t length) {
  const std::span<const std::byte> bytes = program_.read_bytes(length, "text");
  return add_node(is_utf8(view_as_text(bytes)) ? Kind::text : Kind::bytes, program_.position() - bytes.size(),
                  bytes.size());
}

Id Builder::add_text(Kind kind, std::string text) {
  program_.charge(sizeof(std::string) + text.size());
  result_.made_texts_.push_back(std::move(text));
  return add_node(kind, Pickle::kMade | (result_.made_texts_.size() - 1));
}

// Adds a text, or bytes if it is not UTF-8.
Id Builder::add_checked_text(std::string text) {
  if (is_utf8(text)) return add_text(Kind::text, std::move(text));
  return add_text(Kind::bytes, std::move(text));
}

Id Builder::add_quoted_line(std::string_view line) {
  if (line.size() < 2 || (line.front() != '\'' && line.front() != '"') || line.back() != line.front())
    program_.fail("STRING: expected text in quotes");
  auto text = decode_line_string(line.substr(1, line.size() - 2));
  if (!text) program_.fail("STRING: an escape is cut off");
  return add_checked_text(*std::move(text));
}

Id Builder::add_unicode_line(std::string_view line) {
  auto text = decode_line_unicode(line);
  if (!text) program_.fail("UNICODE: an escape is cut off, or beyond U+10FFFF");
  const bool is_whole = is_utf8(*text);
  const Id id = add_checked_text(*std::move(text));
  return is_whole ? id : record_surrogate(id);
}

Id Builder::add_list(Kind kind, std::vector<Id> items) {
  program_.charge(kListBytes + items.size() * sizeof(Id));
  result_.lists_.push_back({std::move(items), static_cast<std::uint32_t>(program_.step_offset())});
  return add_node(kind, result_.lists_.size() - 1);
}

Id Builder::add_tuple(const std::vector<Id>& items) {
  program_.charge(items.size() * sizeof(Id));
  if (items.empty()) return kEmptyTuple;
  const std::size_t begin = result_.tuples_.size();
  result_.tuples_.insert(result_.tuples_.end(), items.begin(), items.end());
  return add_node(Kind::tuple, begin, items.size());
}

Id Builder::add_global(std::string_view module, std::string_view name) {
  program_.charge(sizeof(Global));
  result_.globals_.push_back({module, name});
  return add_node(Kind::global, result_.globals_.size() - 1);
}

Id Builder::add_extension(std::uint32_t code) {
  program_.charge(64);
  result_.made_texts_.push_back(fmt::format("extension {}", code));
  return add_global("copyreg", result_.made_texts_.back());
}

Id Builder::add_call(Call::How how, Id function, Id arguments, std::string_view what) {
  const Kind kind = result_.kind(function);
  if (kind != Kind::global && kind != Kind::call && kind != Kind::persistent)
    program_.fail(fmt::format("{}: neither a function nor a class is called", what));
  program_.charge(kCallBytes);
  result_.calls_.push_back({.how = how, .function = function, .arguments = arguments});
  return add_node(Kind::call, result_.calls_.size() - 1);
}

void Builder::set_keywords(Id call, std::vector<Id> pairs) {
  program_.charge(pairs.size() * sizeof(Id));
  result_.calls_[static_cast<std::size_t>(result_.nodes_[call].first)].keywords = std::move(pairs);
}

// Throws because the target is of another kind: unsupported for a function, a class, a persistent object or bytes
// (perhaps a bytearray), which may have the method that the step calls; invalid_file for other objects, which do not.
void Builder::refuse_target(Id target, std::string_view what, std::string_view expected) const {
  const Kind kind = result_.kind(target);
  if (kind == Kind::global || kind == Kind::persistent || kind == Kind::bytes)
    program_.refuse(fmt::format("{}: expected {}", what, expected));
  program_.fail(fmt::format("{}: expected {}", what, expected));
}

// Returns true if BUILD with this state has no effect on objects without a __setstate__.
bool Builder::is_empty_state(Id state) const {
  const auto is_empty = [&](Id part) {
    return part == kNone || (result_.kind(part) == Kind::dict && result_.items(part).empty());
  };
  if (is_empty(state)) return true;
  return result_.kind(state) == Kind::tuple && result_.items(state).size() == 2 &&
         std::ranges::all_of(result_.items(state), is_empty);
}

void Builder::set_state(Id target, Id state) {
  if (result_.kind(target) != Kind::call) {
    if (is_empty_state(state)) return;
    program_.refuse("BUILD: expected an object that a call makes");
  }
  Call& call = result_.calls_[static_cast<std::size_t>(result_.nodes_[target].first)];
  if (call.state) program_.refuse("BUILD: an object gets a second state, which no program writes");
  call.state = state;
}

// Appends items to a list or set, or to a call. If there are no items, does nothing, since Python then accepts any
// target.
void Builder::append_items(Id target, Kind kind, const std::vector<Id>& items, std::string_view what) {
  program_.charge(items.size() * sizeof(Id));
  if (items.empty()) return;
  const Node& node = result_.nodes_[target];
  if (node.kind != kind && node.kind != Kind::call)
    refuse_target(target, what, kind == Kind::list ? "a list" : "a set");
  const auto index = static_cast<std::size_t>(node.first);
  if (node.kind == kind) result_.lists_[index].changed_at = static_cast<std::uint32_t>(program_.step_offset());
  std::vector<Id>& to = node.kind == kind ? result_.lists_[index].items : result_.calls_[index].items;
  to.insert(to.end(), items.begin(), items.end());
}

void Builder::append_to_list(Id target, const std::vector<Id>& items, std::string_view what) {
  append_items(target, Kind::list, items, what);
}

void Builder::add_to_set(Id target, const std::vector<Id>& items) {
  append_items(target, Kind::set, items, "ADDITEMS");
}

// Executes list[key] = value.
void Builder::set_list_item(std::vector<Id>& list, Id key, Id value) const {
  const Kind kind = result_.kind(key);
  if (kind == Kind::call || kind == Kind::global || kind == Kind::persistent)
    program_.refuse("SETITEM: the index of a list is an object that a call makes");
  const auto size = static_cast<std::int64_t>(list.size());
  if (kind != Kind::integer && kind != Kind::boolean) program_.fail("SETITEM: expected an index of a list");
  std::int64_t index = kind == Kind::boolean ? std::int64_t{result_.boolean(key)} : result_.integer(key);
  if (index < -size || index >= size) program_.fail(fmt::format("SETITEM: index {} of a list of {}", index, size));
  if (index < 0) index += size;
  list[static_cast<std::size_t>(index)] = value;
}

void Builder::set_pairs(Id target, const std::vector<Id>& pairs, std::string_view what) {
  program_.charge(pairs.size() * sizeof(Id));
  if (pairs.empty()) return;
  const Node& node = result_.nodes_[target];
  const auto index = static_cast<std::size_t>(node.first);
  if (node.kind == Kind::call) {
    std::vector<Id>& to = result_.calls_[index].pairs;
    to.insert(to.end(), pairs.begin(), pairs.end());
    return;
  }
  if (node.kind != Kind::dict && node.kind != Kind::list) refuse_target(target, what, "a dict");
  Pickle::List& list = result_.lists_[index];
  list.changed_at = static_cast<std::uint32_t>(program_.step_offset());
  if (node.kind == Kind::dict) {
    list.items.insert(list.items.end(), pairs.begin(), pairs.end());
  } else {
    for (std::size_t i = 0; i < pairs.size(); i += 2) set_list_item(list.items, pairs[i], pairs[i + 1]);
  }
}

}  // namespace poise::pickle
