// Reads CBOR (RFC 8949): an item is a head, and the content that its major type asks for. The upper three bits of a
// head's first byte are the major type, the lower five the argument, or the length of the argument that follows
// big-endian (24 to 27: 1, 2, 4, 8 bytes; 31: an indefinite length, up to a break).
#include "syntax/cbor.hpp"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "bytes/little_endian.hpp"
#include "bytes/short_text.hpp"
#include "bytes/utf8.hpp"
#include "numeric/float_formats.hpp"

namespace poise::cbor {
namespace {

constexpr std::array<std::string_view, 13> kKindNames = {"nothing",
                                                         "an unsigned integer",
                                                         "a negative integer",
                                                         "a byte string",
                                                         "text",
                                                         "an array",
                                                         "a map",
                                                         "a boolean",
                                                         "null",
                                                         "undefined",
                                                         "a floating-point number",
                                                         "a tag",
                                                         "a break"};

std::string_view to_string(HeadKind kind) { return kKindNames[static_cast<std::size_t>(kind)]; }

// Returns a key of the file in a form that is safe in a message.
std::string make_printable(std::string_view key) {
  constexpr std::size_t kLongest = 100;
  std::string text = shorten(key, kLongest);
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  return text;
}

// Returns how many bytes the shortest head for this argument takes.
std::size_t measure_shortest_head(std::uint64_t argument) {
  if (argument < 24) return 1;
  if (argument <= UINT8_MAX) return 2;
  if (argument <= UINT16_MAX) return 3;
  return argument <= UINT32_MAX ? 5 : 9;
}

// The upper three bits of an item's first byte give its kind (RFC 8949, section 3.1). The last row stands for simple
// values and floats.
constexpr std::array kMajorTypes = {HeadKind::unsigned_integer,
                                    HeadKind::negative_integer,
                                    HeadKind::bytes,
                                    HeadKind::text,
                                    HeadKind::array,
                                    HeadKind::map,
                                    HeadKind::tag,
                                    HeadKind::none};

bool may_be_indefinite(HeadKind kind) {
  return kind == HeadKind::bytes || kind == HeadKind::text || kind == HeadKind::array || kind == HeadKind::map;
}

Value make_negative_value(std::uint64_t argument) {
  if (argument <= INT64_MAX) return Value(-1 - static_cast<std::int64_t>(argument));
  return Value(-1.0 - static_cast<double>(argument));  // below int64: rounded to the nearest double
}

}  // namespace

Cursor::Cursor(std::span<const std::byte> bytes, std::uint64_t offset, std::string path, std::string context,
               Rules rules)
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
    text += frame.is_map ? fmt::format(": {}", make_printable(frame.key)) : fmt::format(": item {}", frame.index);
  }
  return fmt::format("{}: {}", text, problem);
}

void Cursor::fail(std::string_view problem, std::uint64_t offset, ErrorKind kind) const {
  throw Error(kind, describe(problem), path_, offset);
}

inline std::span<const std::byte> Cursor::read_bytes(std::uint64_t count, std::size_t begin) {
  if (count > bytes_.size() - at_) fail_cut_off(begin);
  const auto taken = bytes_.subspan(at_, static_cast<std::size_t>(count));
  at_ += taken.size();
  return taken;
}

template <typename Number>
Number Cursor::read_number(std::size_t begin) {
  return load_be<Number>(read_bytes(sizeof(Number), begin).data());
}

inline std::string_view Cursor::find_last_string(const Head& item) const {
  const auto content = bytes_.first(at_).last(static_cast<std::size_t>(item.argument()));
  return {reinterpret_cast<const char*>(content.data()), content.size()};
}

Head Cursor::decode_head() {
  const std::size_t begin = at_;
  const unsigned first = read_number<std::uint8_t>(begin);
  const unsigned low = first & 0x1fU;
  constexpr unsigned kLeastLong = 24;
  constexpr unsigned kIndefinite = 31;
  const HeadKind kind = kMajorTypes[first >> 5U];
  if (kind == HeadKind::none) return decode_simple(low, begin);
  std::uint64_t argument = low;
  bool indefinite = false;
  if (low >= kLeastLong) {
    switch (low) {
      case 24: argument = read_number<std::uint8_t>(begin); break;
      case 25: argument = read_number<std::uint16_t>(begin); break;
      case 26: argument = read_number<std::uint32_t>(begin); break;
      case 27: argument = read_number<std::uint64_t>(begin); break;
      default:
        if (low != kIndefinite || !may_be_indefinite(kind)) refuse_byte(begin);
        argument = 0;
        indefinite = true;
    }
    if (rules_ == Rules::deterministic) require_shortest(Head(kind, argument, indefinite), begin);
  }
  const Head item(kind, argument, indefinite);
  if (kind == HeadKind::tag && rules_ == Rules::deterministic) refuse_form("a tag", begin);
  if (indefinite || (kind != HeadKind::text && kind != HeadKind::bytes)) return item;
  read_bytes(argument, begin);
  if (kind == HeadKind::text && !is_utf8(find_last_string(item))) fail("CBOR: text is not UTF-8", offset_ + begin);
  return item;
}

Head Cursor::decode_simple(unsigned low, std::size_t begin) {
  switch (low) {
    case 20:
    case 21: return Head(HeadKind::boolean, low - 20);
    case 22: return Head(HeadKind::null);
    case 23:
      if (rules_ == Rules::deterministic) refuse_form("the value undefined", begin);
      return Head(HeadKind::undefined);
    case 25: return make_floating(static_cast<double>(decode_f16(read_number<std::uint16_t>(begin))), begin);
    case 26: return make_floating(static_cast<double>(std::bit_cast<float>(read_number<std::uint32_t>(begin))), begin);
    case 27: return make_floating(std::bit_cast<double>(read_number<std::uint64_t>(begin)), begin);
    case 31: return Head(HeadKind::end);
    default: refuse_byte(begin);
  }
}

Head Cursor::make_floating(double number, std::size_t begin) const {
  if (rules_ == Rules::deterministic) {
    std::array<std::byte, 9> shortest{};
    const std::size_t length = encode_float(number, shortest);
    if (!std::ranges::equal(std::span(shortest).first(length), bytes_.subspan(begin, at_ - begin)))
      refuse_form("a float in other than its shortest form", begin);
  }
  return Head(HeadKind::floating, std::bit_cast<std::uint64_t>(number));
}

void Cursor::fail_cut_off(std::size_t begin) const {
  fail(fmt::format("CBOR: an item needs more than the {} bytes left", bytes_.size() - begin), offset_ + begin);
}

void Cursor::require_shortest(const Head& item, std::size_t begin) const {
  if (item.indefinite()) refuse_form("an indefinite length", begin);
  if (at_ - begin == measure_shortest_head(item.argument())) return;
  refuse_form(fmt::format("the number {} in other than its shortest form", item.argument()), begin);
}

void Cursor::refuse_byte(std::size_t begin) const {
  fail(fmt::format("CBOR: no item begins with 0x{:02x}", std::to_integer<unsigned>(bytes_[begin])), offset_ + begin);
}

void Cursor::refuse_form(std::string_view problem, std::size_t begin) const {
  fail(fmt::format("not in deterministic CBOR encoding: {}", problem), offset_ + begin);
}

inline Head Cursor::read_head() {
  const std::uint64_t begin = position();
  Head item = decode_head();
  while (item.kind() == HeadKind::tag) item = decode_head();
  if (item.kind() == HeadKind::end) fail("CBOR: a break where an item is expected", begin);
  return item;
}

inline Head Cursor::read_head(HeadKind expected) {
  const std::uint64_t begin = position();
  Head item = read_head();
  if (item.kind() != expected)
    fail(fmt::format("expected {}, found {}", to_string(expected), to_string(item.kind())), begin);
  return item;
}

bool Cursor::skip_break() {
  if (at_ == bytes_.size() || bytes_[at_] != std::byte{0xff}) return false;
  ++at_;
  return true;
}

inline std::uint64_t Cursor::check_count(const Head& item, std::uint64_t least_bytes_each) const {
  const std::uint64_t left = bytes_.size() - at_;
  if (item.argument() > left / least_bytes_each) {
    fail(fmt::format("CBOR: {} of {} entries does not fit the {} bytes left", to_string(item.kind()), item.argument(),
                     left),
         position());
  }
  return item.argument();
}

inline void Cursor::require_depth() const {
  if (depth_ == max_depth_) fail(fmt::format("CBOR: nested deeper than {} levels", max_depth_), position());
}

inline KeySet* Cursor::open_key_set(Keys keys) {
  if (rules_ == Rules::deterministic || keys == Keys::checked_by_caller) return nullptr;
  while (depth_ >= key_sets_.size()) key_sets_.push_back(std::make_unique<KeySet>());
  KeySet* const set = key_sets_[depth_].get();
  set->clear();
  return set;
}

inline std::string_view Cursor::read_string(const Head& item) {
  return item.indefinite() ? join_pieces(item) : find_last_string(item);
}

// Joins the pieces of an indefinite string, which are definite strings of its kind.
std::string_view Cursor::join_pieces(const Head& item) {
  std::string whole;
  while (!skip_break()) whole += read_piece(item.kind());
  require_affordable(budget_.charge_text(whole.size()));
  return joined_.emplace_back(std::move(whole));
}

std::string_view Cursor::read_piece(HeadKind kind) {
  const std::uint64_t begin = position();
  const Head piece = decode_head();
  if (piece.kind() != kind || piece.indefinite())
    fail(fmt::format("CBOR: a piece of {} is {}", to_string(kind), to_string(piece.kind())), begin);
  return find_last_string(piece);
}

std::uint64_t Cursor::read_u64() { return read_head(HeadKind::unsigned_integer).argument(); }
std::string_view Cursor::read_text() { return read_string(read_head(HeadKind::text)); }
Map Cursor::read_map(Keys keys) { return Map(*this, read_head(HeadKind::map), keys); }
Array Cursor::read_array() { return Array(*this, read_head(HeadKind::array)); }
Value Cursor::read_value() { return convert_to_value(read_head()); }

Attributes Cursor::read_attributes() {
  const std::uint64_t begin = position();
  Value map = read_map_value(read_head(HeadKind::map));
  if (map.get_if<Attributes>() == nullptr) fail("expected text keys", begin);
  return std::move(map).take<Attributes>();
}

std::byte Cursor::peek_first_byte() {
  constexpr std::byte kNone{0xff};  // the break, with which no item begins
  const std::size_t begin = at_;
  const auto get_byte = [&] { return at_ < bytes_.size() ? bytes_[at_] : kNone; };
  while (rules_ == Rules::lenient && kMajorTypes[std::to_integer<unsigned>(get_byte()) >> 5U] == HeadKind::tag)
    decode_head();
  const std::byte first = get_byte();
  at_ = begin;
  return first;
}

bool Cursor::skip_null() {
  constexpr std::byte kNull{0xf6};
  constexpr std::byte kUndefined{0xf7};
  const std::byte first = peek_first_byte();
  if (first != kNull && (first != kUndefined || rules_ == Rules::deterministic)) return false;
  read_head();
  return true;
}

bool Cursor::is_at_array() {
  return kMajorTypes[std::to_integer<unsigned>(peek_first_byte()) >> 5U] == HeadKind::array;
}

Value Cursor::convert_to_value(const Head& item) {
  require_affordable(budget_.charge_value());
  switch (item.kind()) {
    case HeadKind::unsigned_integer: return item.argument();
    case HeadKind::negative_integer: return make_negative_value(item.argument());
    case HeadKind::boolean: return item.argument() != 0;
    case HeadKind::floating: return std::bit_cast<double>(item.argument());
    case HeadKind::text: return read_string(item);
    case HeadKind::bytes: {
      const auto content = std::as_bytes(std::span(read_string(item)));
      return Value::Bytes(content.begin(), content.end());
    }
    case HeadKind::array: {
      Value::Array items;
      for (Array array(*this, item); array.next();) items.push_back(read_value());
      return items;
    }
    case HeadKind::map: return read_map_value(item);
    case HeadKind::null:
    case HeadKind::undefined:
    case HeadKind::none:
    case HeadKind::tag:
    case HeadKind::end: break;
  }
  return {};
}

Value Cursor::read_map_value(const Head& item) {
  std::vector<Attributes::Entry> entries;
  Value::Pairs pairs;  // used as soon as a key is not text
  for (Map map(*this, item); map.next();) {
    if (map.has_text_key() && pairs.empty()) {
      entries.emplace_back(map.key(), read_value());
      continue;
    }
    for (auto& [key, entry] : std::exchange(entries, {})) pairs.emplace_back(std::move(key), std::move(entry));
    Value key = map.has_text_key() ? Value(map.key()) : map.other_key();
    pairs.emplace_back(std::move(key), read_value());
  }
  if (!pairs.empty()) return pairs;
  return Attributes::from_unique(std::move(entries));
}

void Cursor::require_affordable(bool affordable) const {
  if (!affordable) fail("CBOR: more values than a text of this size may hold", position());
}

void Cursor::skip() { skip_content(read_head()); }

void Cursor::skip_content(const Head& item) {
  if (item.indefinite() && (item.kind() == HeadKind::text || item.kind() == HeadKind::bytes)) {
    while (!skip_break()) read_piece(item.kind());
  } else if (item.kind() == HeadKind::array) {
    for (Array array(*this, item); array.next();) skip();
  } else if (item.kind() == HeadKind::map) {
    for (Map map(*this, item); map.next();) skip();
  }
}

void Cursor::require_end() const {
  if (at_ < bytes_.size()) fail(fmt::format("CBOR: {} bytes after the end", bytes_.size() - at_), position());
}

Array::Array(Cursor& in, const Head& item)
    : in_(in), indefinite_(item.indefinite()), left_(item.indefinite() ? 0 : in.check_count(item, 1)) {
  in_.require_depth();
  in_.frames_[in_.depth_++] = {{}, UINT64_MAX, false};
}

bool Array::next() {
  if (indefinite_ ? in_.skip_break() : left_ == 0) return false;
  if (!indefinite_) --left_;
  ++in_.frames_[in_.depth_ - 1].index;
  return true;
}

Map::Map(Cursor& in, const Head& item, Keys keys)
    : in_(in),
      indefinite_(item.indefinite()),
      left_(item.indefinite() ? 0 : in.check_count(item, 2)),
      keys_(in.open_key_set(keys)) {
  in_.require_depth();
  in_.frames_[in_.depth_++] = {{}, 0, true};
}

bool Map::next() {
  Cursor::Frame& frame = in_.frames_[in_.depth_ - 1];
  frame.key = "key";
  if (indefinite_ ? in_.skip_break() : left_ == 0) return false;
  if (!indefinite_) --left_;
  const std::size_t begin = in_.at_;
  key_position_ = in_.position();
  const Head item = in_.read_head();
  text_key_ = item.kind() == HeadKind::text;
  if (text_key_) {
    key_ = in_.read_string(item);
  } else {
    key_ = {};
    if (!other_) other_ = std::make_unique<OtherKeys>();
    other_->key = in_.convert_to_value(item);
  }
  in_.require_affordable(in_.budget_.charge_key(keys_read_++));
  if (in_.rules_ == Rules::deterministic) {
    const auto encoded = in_.bytes_.subspan(begin, in_.at_ - begin);
    require_ascending({reinterpret_cast<const char*>(encoded.data()), encoded.size()});
  } else if (!is_new_key()) {
    in_.fail(fmt::format("the key {} appears twice", describe_key()), key_position_);
  }
  frame.key = text_key_ ? key_ : "key that is not text";
  return true;
}

std::string Map::describe_key() const {
  return text_key_ ? fmt::format("\"{}\"", make_printable(key_)) : to_json(other_->key);
}

bool Map::is_new_key() {
  if (keys_ == nullptr) return true;
  if (text_key_) return keys_->insert(key_);
  const std::string encoded = encode(other_->key);
  in_.require_affordable(in_.budget_.charge_text(encoded.size()));
  return other_->seen.insert(in_.joined_.emplace_back(encoded));
}

void Map::require_ascending(std::string_view encoded) {
  if (!previous_.empty() && encoded <= previous_) {
    if (encoded == previous_) in_.fail(fmt::format("the key {} appears twice", describe_key()), key_position_);
    in_.fail(fmt::format("not in deterministic CBOR encoding: the key \"{}\" is out of order", make_printable(key_)),
             key_position_);
  }
  previous_ = encoded;
}

}  // namespace poise::cbor
