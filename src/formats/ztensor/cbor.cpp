// libcbor's streaming decoder takes heads and strings apart; nesting, bounds and the deterministic rules are decided here.
#include "formats/ztensor/cbor.hpp"

#include <cbor.h>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "bytes/limits.hpp"
#include "bytes/utf8.hpp"
#include "formats/ztensor/cbor_encoder.hpp"

namespace poise::cbor {
namespace {

Item& item_of(void* context) { return *static_cast<Item*>(context); }

void put_number(void* context, Kind kind, std::uint64_t argument) {
  item_of(context).kind = kind;
  item_of(context).argument = argument;
}

void put_string(void* context, Kind kind, const unsigned char* data, std::size_t length) {
  Item& item = item_of(context);
  item.kind = kind;
  item.argument = length;
  item.content = {reinterpret_cast<const char*>(data), length};
}

void put_indefinite(void* context, Kind kind) {
  item_of(context).kind = kind;
  item_of(context).indefinite = true;
}

void put_float(void* context, double number) {
  item_of(context).kind = Kind::floating;
  item_of(context).number = number;
}

constexpr cbor_callbacks make_callbacks() {
  cbor_callbacks calls{};
  calls.uint8 = [](void* c, std::uint8_t n) { put_number(c, Kind::unsigned_integer, n); };
  calls.uint16 = [](void* c, std::uint16_t n) { put_number(c, Kind::unsigned_integer, n); };
  calls.uint32 = [](void* c, std::uint32_t n) { put_number(c, Kind::unsigned_integer, n); };
  calls.uint64 = [](void* c, std::uint64_t n) { put_number(c, Kind::unsigned_integer, n); };
  calls.negint8 = [](void* c, std::uint8_t n) { put_number(c, Kind::negative_integer, n); };
  calls.negint16 = [](void* c, std::uint16_t n) { put_number(c, Kind::negative_integer, n); };
  calls.negint32 = [](void* c, std::uint32_t n) { put_number(c, Kind::negative_integer, n); };
  calls.negint64 = [](void* c, std::uint64_t n) { put_number(c, Kind::negative_integer, n); };
  calls.byte_string = [](void* c, cbor_data data, std::size_t n) { put_string(c, Kind::bytes, data, n); };
  calls.byte_string_start = [](void* c) { put_indefinite(c, Kind::bytes); };
  calls.string = [](void* c, cbor_data data, std::size_t n) { put_string(c, Kind::text, data, n); };
  calls.string_start = [](void* c) { put_indefinite(c, Kind::text); };
  calls.array_start = [](void* c, std::size_t n) { put_number(c, Kind::array, n); };
  calls.indef_array_start = [](void* c) { put_indefinite(c, Kind::array); };
  calls.map_start = [](void* c, std::size_t n) { put_number(c, Kind::map, n); };
  calls.indef_map_start = [](void* c) { put_indefinite(c, Kind::map); };
  calls.tag = [](void* c, std::uint64_t n) { put_number(c, Kind::tag, n); };
  calls.float2 = [](void* c, float n) { put_float(c, static_cast<double>(n)); };
  calls.float4 = [](void* c, float n) { put_float(c, static_cast<double>(n)); };
  calls.float8 = [](void* c, double n) { put_float(c, n); };
  calls.undefined = [](void* c) { item_of(c).kind = Kind::undefined; };
  calls.null = [](void* c) { item_of(c).kind = Kind::null; };
  calls.boolean = [](void* c, bool b) { put_number(c, Kind::boolean, b ? 1 : 0); };
  calls.indef_break = [](void* c) { item_of(c).kind = Kind::end; };
  return calls;
}

constexpr cbor_callbacks kCallbacks = make_callbacks();

std::string_view to_string(Kind kind) {
  switch (kind) {
    case Kind::none: break;
    case Kind::unsigned_integer: return "an unsigned integer";
    case Kind::negative_integer: return "a negative integer";
    case Kind::bytes: return "a byte string";
    case Kind::text: return "text";
    case Kind::array: return "an array";
    case Kind::map: return "a map";
    case Kind::boolean: return "a boolean";
    case Kind::null: return "null";
    case Kind::undefined: return "undefined";
    case Kind::floating: return "a floating-point number";
    case Kind::tag: return "a tag";
    case Kind::end: return "a break";
  }
  return "nothing";
}

// A key from the file, fit for a message.
std::string printable(std::string_view key) {
  constexpr std::size_t kLongest = 100;
  std::string text(key.substr(0, kLongest));
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  return key.size() > kLongest ? text + "..." : text;
}

// The bytes that the shortest head for this argument takes.
std::size_t shortest_head(std::uint64_t argument) {
  if (argument < 24) return 1;
  if (argument <= UINT8_MAX) return 2;
  if (argument <= UINT16_MAX) return 3;
  return argument <= UINT32_MAX ? 5 : 9;
}

Value negative_value(std::uint64_t argument) {
  if (argument <= INT64_MAX) return Value(-1 - static_cast<std::int64_t>(argument));
  return Value(-1.0 - static_cast<double>(argument));  // below what 64 bits hold: the nearest number
}

}  // namespace

Cursor::Cursor(std::span<const std::byte> bytes, std::uint64_t offset, std::string path, std::string context, Rules rules)
    : bytes_(bytes),
      offset_(offset),
      path_(std::move(path)),
      context_(std::move(context)),
      rules_(rules),
      max_depth_(rules == Rules::deterministic ? kMaxManifestNesting2 : kMaxNesting),
      budget_(bytes.size()) {}

std::string Cursor::describe(std::string_view problem) const {
  std::string text = context_;
  for (std::size_t i = 0; i < depth_; ++i) {
    const Frame& frame = frames_[i];
    text += frame.is_map ? fmt::format(": {}", printable(frame.key)) : fmt::format(": item {}", frame.index);
  }
  return fmt::format("{}: {}", text, problem);
}

void Cursor::fail(std::string_view problem, std::uint64_t offset, ErrorKind kind) const { throw Error(kind, describe(problem), path_, offset); }

Item Cursor::decode() {
  const auto rest = bytes_.subspan(at_);
  const auto begin = at_;
  Item item;
  const auto* data = reinterpret_cast<const unsigned char*>(rest.data());
  const cbor_decoder_result result = cbor_stream_decode(data, rest.size(), &kCallbacks, &item);
  if (result.status == CBOR_DECODER_NEDATA) fail(fmt::format("CBOR: an item needs more than the {} bytes left", rest.size()), position());
  if (result.status != CBOR_DECODER_FINISHED || item.kind == Kind::none) {
    fail(fmt::format("CBOR: 0x{:02x} begins no item", static_cast<unsigned>(rest[0])), position());
  }
  at_ += result.read;
  if (item.kind == Kind::text && !item.indefinite && !is_utf8(item.content)) fail("CBOR: text is not UTF-8", offset_ + begin);
  if (rules_ == Rules::deterministic) require_deterministic(item, begin);
  return item;
}

void Cursor::require_deterministic(const Item& item, std::size_t begin) const {
  const auto refuse = [&](std::string_view problem) { fail(fmt::format("not in deterministic CBOR encoding: {}", problem), offset_ + begin); };
  if (item.indefinite) refuse("an indefinite length");
  switch (item.kind) {
    case Kind::tag: refuse("a tag"); break;
    case Kind::undefined: refuse("the value undefined"); break;
    case Kind::floating: {
      std::array<std::byte, 9> shortest{};
      const std::size_t length = encode_float(item.number, shortest);
      if (!std::ranges::equal(std::span(shortest).first(length), bytes_.subspan(begin, at_ - begin))) refuse("a float in other than its shortest form");
      break;
    }
    case Kind::boolean:
    case Kind::null:
    case Kind::end:
    case Kind::none: break;
    default:
      if (at_ - begin - item.content.size() != shortest_head(item.argument))
        refuse(fmt::format("the number {} in other than its shortest form", item.argument));
  }
}

Item Cursor::take() {
  const std::uint64_t begin = position();
  if (depth_ > max_depth_) fail(fmt::format("CBOR: nested deeper than {} levels", max_depth_), begin);
  Item item = decode();
  while (item.kind == Kind::tag) item = decode();
  if (item.kind == Kind::end) fail("CBOR: a break where an item is expected", begin);
  return item;
}

Item Cursor::take(Kind expected) {
  const std::uint64_t begin = position();
  Item item = take();
  if (item.kind != expected) fail(fmt::format("expected {}, found {}", to_string(expected), to_string(item.kind)), begin);
  return item;
}

bool Cursor::at_break() {
  if (at_ == bytes_.size() || bytes_[at_] != std::byte{0xff}) return false;
  ++at_;
  return true;
}

std::uint64_t Cursor::checked_count(const Item& item, std::uint64_t least_bytes_each) const {
  const std::uint64_t left = bytes_.size() - at_;
  if (item.argument > left / least_bytes_each) {
    fail(fmt::format("CBOR: {} of {} entries cannot lie in the {} bytes left", to_string(item.kind), item.argument, left), position());
  }
  return item.argument;
}

KeySet& Cursor::empty_key_set() {
  if (depth_ >= key_sets_.size()) key_sets_.resize(depth_ + 1);
  key_sets_[depth_].clear();
  return key_sets_[depth_];
}

// An indefinite string's pieces are definite strings of its kind.
std::string_view Cursor::string_content(const Item& item) {
  if (!item.indefinite) return item.content;
  std::string whole;
  while (!at_break()) whole += take_piece(item.kind);
  charge(budget_.take_text(whole.size()));
  return joined_.emplace_back(std::move(whole));
}

std::string_view Cursor::take_piece(Kind kind) {
  const std::uint64_t begin = position();
  const Item piece = decode();
  if (piece.kind != kind || piece.indefinite) fail(fmt::format("CBOR: a piece of {} is {}", to_string(kind), to_string(piece.kind)), begin);
  return piece.content;
}

std::uint64_t Cursor::u64() { return take(Kind::unsigned_integer).argument; }
std::string_view Cursor::text() { return string_content(take(Kind::text)); }
Map Cursor::map() { return Map(*this, take(Kind::map)); }
Array Cursor::array() { return Array(*this, take(Kind::array)); }
Value Cursor::value() { return to_value(take()); }

Attributes Cursor::attributes() {
  const std::uint64_t begin = position();
  Value map = map_value(take(Kind::map));
  if (map.get_if<Attributes>() == nullptr) fail("expected text keys", begin);
  return std::move(map).take<Attributes>();
}

bool Cursor::null() {
  if (at_ == bytes_.size() || bytes_[at_] != std::byte{0xf6}) return false;
  take();
  return true;
}

Value Cursor::to_value(const Item& item) {
  charge(budget_.take_value());
  switch (item.kind) {
    case Kind::unsigned_integer: return item.argument;
    case Kind::negative_integer: return negative_value(item.argument);
    case Kind::boolean: return item.argument != 0;
    case Kind::floating: return item.number;
    case Kind::text: return string_content(item);
    case Kind::bytes: {
      const auto content = std::as_bytes(std::span(string_content(item)));
      return Value::Bytes(content.begin(), content.end());
    }
    case Kind::array: {
      Value::Array items;
      for (Array array(*this, item); array.next();) items.push_back(value());
      return items;
    }
    case Kind::map: return map_value(item);
    case Kind::null:
    case Kind::undefined:
    case Kind::none:
    case Kind::tag:
    case Kind::end: break;
  }
  return {};
}

Value Cursor::map_value(const Item& item) {
  std::vector<Attributes::Entry> entries;
  Value::Pairs pairs;  // instead, from the first key on that is no text
  for (Map map(*this, item); map.next();) {
    if (map.has_text_key() && pairs.empty()) {
      entries.emplace_back(map.key(), value());
      continue;
    }
    for (auto& [key, entry] : std::exchange(entries, {})) pairs.emplace_back(std::move(key), std::move(entry));
    Value key = map.has_text_key() ? Value(map.key()) : map.other_key();
    pairs.emplace_back(std::move(key), value());
  }
  if (!pairs.empty()) return pairs;
  return Attributes::from_unique(std::move(entries));
}

void Cursor::charge(bool affordable) const {
  if (!affordable) fail("CBOR: more values than a text of this size may hold", position());
}

void Cursor::pass(const Item& item) {
  if (item.indefinite && (item.kind == Kind::text || item.kind == Kind::bytes)) {
    while (!at_break()) take_piece(item.kind);
  } else if (item.kind == Kind::array) {
    for (Array array(*this, item); array.next();) skip();
  } else if (item.kind == Kind::map) {
    for (Map map(*this, item); map.next();) skip();
  }
}

void Cursor::finish() const {
  if (at_ < bytes_.size()) fail(fmt::format("CBOR: {} bytes behind the end", bytes_.size() - at_), position());
}

Array::Array(Cursor& in, const Item& item) : in_(in), indefinite_(item.indefinite), left_(item.indefinite ? 0 : in.checked_count(item, 1)) {
  // One frame beyond the allowed depth exists, so that an empty container may stand at it; take() refuses items below.
  in_.frames_[in_.depth_++] = {{}, UINT64_MAX, false};
}

bool Array::next() {
  if (indefinite_ ? in_.at_break() : left_ == 0) return false;
  if (!indefinite_) --left_;
  ++in_.frames_[in_.depth_ - 1].index;
  return true;
}

Map::Map(Cursor& in, const Item& item)
    : in_(in), indefinite_(item.indefinite), left_(item.indefinite ? 0 : in.checked_count(item, 2)), keys_(in.empty_key_set()) {
  in_.frames_[in_.depth_++] = {{}, 0, true};
}

bool Map::next() {
  Cursor::Frame& frame = in_.frames_[in_.depth_ - 1];
  frame.key = "key";
  if (indefinite_ ? in_.at_break() : left_ == 0) return false;
  if (!indefinite_) --left_;
  const std::size_t begin = in_.at_;
  key_position_ = in_.position();
  const Item item = in_.take();
  text_key_ = item.kind == Kind::text;
  if (text_key_) {
    key_ = in_.string_content(item);
  } else {
    key_ = {};
    other_key_ = in_.to_value(item);
  }
  in_.charge(in_.budget_.take_key(keys_read_++));
  if (in_.rules_ == Rules::deterministic) {
    const auto encoded = in_.bytes_.subspan(begin, in_.at_ - begin);
    require_ascending({reinterpret_cast<const char*>(encoded.data()), encoded.size()});
  } else if (!is_new()) {
    in_.fail(fmt::format("the key \"{}\" stands twice", printable(key_)), key_position_);
  }
  frame.key = text_key_ ? key_ : "key that is no text";
  return true;
}

bool Map::is_new() {
  if (text_key_) return keys_.insert(key_);
  if (!other_keys_) other_keys_ = std::make_unique<KeySet>();
  const std::string encoded = encode(other_key_);
  in_.charge(in_.budget_.take_text(encoded.size()));
  return other_keys_->insert(in_.joined_.emplace_back(encoded));
}

void Map::require_ascending(std::string_view encoded) {
  if (!previous_.empty() && encoded <= previous_) {
    if (encoded == previous_) in_.fail(fmt::format("the key \"{}\" stands twice", printable(key_)), key_position_);
    in_.fail(fmt::format("not in deterministic CBOR encoding: the key \"{}\" is out of order", printable(key_)), key_position_);
  }
  previous_ = encoded;
}

}  // namespace poise::cbor
