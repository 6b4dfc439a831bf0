#include "formats/pytorch/values.hpp"

#include <algorithm>
#include <array>
#include <unordered_map>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/little_endian.hpp"
#include "bytes/utf8.hpp"
#include "formats/pickle_globals.hpp"
#include "formats/spellings.hpp"
#include "syntax/element_value.hpp"
#include "syntax/limits.hpp"

namespace poise::pytorch {
namespace {

using pickle::Id;
using pickle::Kind;

constexpr std::array<std::string_view, 4> kMappings = {"collections.OrderedDict", "collections.defaultdict",
                                                       "collections.Counter", "builtins.dict"};
// Classes whose only argument is a list.
constexpr std::array<std::string_view, 7> kLists = {"torch.Size",           "builtins.set",   "builtins.frozenset",
                                                    "builtins.list",        "builtins.tuple", "__builtin__.set",
                                                    "__builtin__.frozenset"};

// Objects with fields, which are a dict.
constexpr std::array<std::string_view, 2> kNamespaces = {"argparse.Namespace", "types.SimpleNamespace"};

bool is_one_of(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

// Latin-1 for text, as pickles of protocol 2 store bytes.
std::optional<std::string> latin1(std::string_view text) {
  std::string bytes;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto lead = static_cast<unsigned char>(text[at]);
    if (lead < 0x80) {
      bytes += text[at];
      continue;
    }
    if ((lead != 0xc2 && lead != 0xc3) || at + 1 == text.size()) return std::nullopt;
    bytes += static_cast<char>((lead & 3U) << 6 | (static_cast<unsigned char>(text[++at]) & 0x3fU));
  }
  return bytes;
}

// Of an integer of 9 bytes, two's complement, that 64 bits without a sign hold.
std::optional<std::uint64_t> unsigned_of(std::string_view bytes) {
  if (bytes.size() != 9 || bytes.back() != '\0') return std::nullopt;
  return load_le<std::uint64_t>(std::as_bytes(std::span(bytes)).data());
}

// Scalars of NumPy, without their byte order.
constexpr std::array kScalars = std::to_array<Spelling<std::string_view>>({
    {DType::f64, "f8"},
    {DType::f32, "f4"},
    {DType::f16, "f2"},
    {DType::complex64, "c8"},
    {DType::complex128, "c16"},
    {DType::i64, "i8"},
    {DType::i32, "i4"},
    {DType::i16, "i2"},
    {DType::i8, "i1"},
    {DType::u64, "u8"},
    {DType::u32, "u4"},
    {DType::u16, "u2"},
    {DType::u8, "u1"},
    {DType::boolean, "b1"},
});

}  // namespace

Values::Values(const pickle::Pickle& pickle, const std::string& path)
    : pickle_(pickle), path_(path), budget_(pickle.size()) {}

// key, value, ... of an argument: a dict, or a list of pairs as Python 2 stores an OrderedDict. Nothing for others, and
// for lists that the pickle changes after the call.
std::optional<std::vector<Id>> Values::argument_pairs(Id id, std::size_t place) const {
  const std::span<const Id> arguments = pickle_.items(pickle_.call(id).arguments);
  if (arguments.size() <= place) return std::vector<Id>();
  const Id argument = arguments[place];
  if (arguments.size() > place + 1 || pickle_.is_changed_after(argument, id)) return std::nullopt;
  const Kind kind = pickle_.kind(argument);
  const std::span<const Id> items =
      kind == Kind::dict || kind == Kind::list ? pickle_.items(argument) : std::span<const Id>();
  if (kind == Kind::dict) return std::vector<Id>(items.begin(), items.end());
  if (kind != Kind::list || called(id) == "collections.Counter") return std::nullopt;
  std::vector<Id> pairs;
  for (const Id pair : items) {
    const bool is_list = pickle_.kind(pair) == Kind::list || pickle_.kind(pair) == Kind::tuple;
    if (!is_list || pickle_.items(pair).size() != 2 || pickle_.is_changed_after(pair, id)) return std::nullopt;
    pairs.insert(pairs.end(), pickle_.items(pair).begin(), pickle_.items(pair).end());
  }
  return pairs;
}

std::optional<std::vector<Values::Pair>> Values::mapping(Id id) const {
  std::vector<Pair> pairs;
  const auto add = [&](std::span<const Id> items) {
    for (std::size_t i = 0; i + 1 < items.size(); i += 2) pairs.push_back({items[i], items[i + 1]});
  };
  if (pickle_.kind(id) == Kind::dict) {
    add(pickle_.items(id));
    return pairs;
  }
  const std::string name = called(id);
  if (!is_one_of(kMappings, name)) return std::nullopt;
  const pickle::Call& call = pickle_.call(id);
  if (!call.keywords.empty()) return std::nullopt;
  if (call.how == pickle::Call::How::called) {  // __new__ of these looks at no arguments
    const auto items = argument_pairs(id, name == "collections.defaultdict" ? 1 : 0);
    if (!items) return std::nullopt;
    add(*items);
  }
  add(call.pairs);
  return pairs;
}

std::optional<std::string> Values::inert_name(Id id) const {
  if (pickle_.kind(id) == Kind::global) {
    const std::string name = full_name(pickle_.global(id));
    return is_expected(name) ? std::nullopt : std::optional("the function or class " + name);
  }
  if (pickle_.kind(id) != Kind::call) return std::nullopt;
  const std::string name = called(id);
  if (name.empty()) return "an object that another object makes";
  return is_expected(name) ? std::nullopt : std::optional("an object of " + name);
}

std::optional<Value> Values::convert(Id id, std::string& why) { return convert(id, 0, why); }

std::optional<Value> Values::convert(Id id, std::size_t depth, std::string& why) {
  const auto fail = [&](ErrorKind kind, std::string_view problem) {
    return Error(kind, fmt::format("pytorch: {}", problem), path_, pickle_.offset(id));
  };
  if (depth > kMaxNesting)
    throw fail(ErrorKind::invalid_file, fmt::format("nested deeper than {} levels", kMaxNesting));
  if (!budget_.take_value()) throw fail(ErrorKind::unsupported, "attributes take more memory than the file justifies");
  switch (pickle_.kind(id)) {
    case Kind::none: return Value();
    case Kind::boolean: return Value(pickle_.boolean(id));
    case Kind::integer: return Value(pickle_.integer(id));
    case Kind::wide_integer:
      if (const auto value = unsigned_of(pickle_.text(id))) return Value(*value);
      why = "an integer of more than 64 bits";
      return std::nullopt;
    case Kind::real: return Value(pickle_.real(id));
    case Kind::text:
    case Kind::bytes: {
      const std::string_view text = pickle_.text(id);
      if (!budget_.take_text(text.size()))
        throw fail(ErrorKind::unsupported, "attributes take more memory than the file justifies");
      if (pickle_.kind(id) == Kind::text) return Value(text);
      const auto bytes = std::as_bytes(std::span(text));
      return Value(Value::Bytes(bytes.begin(), bytes.end()));
    }
    case Kind::tuple:
    case Kind::list:
    case Kind::set: return convert_list(pickle_.items(id), depth, why);
    case Kind::dict: return convert_mapping(*mapping(id), depth, why);
    case Kind::call: return convert_call(id, depth, why);
    case Kind::global: {
      std::string name = full_name(pickle_.global(id));
      if (named_dtype(name)) return Value(std::move(name));
      why = fmt::format("the function or class {}", name);
      return std::nullopt;
    }
    case Kind::persistent: why = "a storage"; return std::nullopt;
  }
  return std::nullopt;
}

std::optional<Value> Values::convert_list(std::span<const Id> items, std::size_t depth, std::string& why) {
  Value::Array list;
  for (const Id item : items) {
    auto value = convert(item, depth + 1, why);
    if (!value) return std::nullopt;
    list.push_back(*std::move(value));
  }
  return Value(std::move(list));
}

// With the last value of a key that comes several times, as in Python.
std::optional<Value> Values::convert_mapping(const std::vector<Pair>& pairs, std::size_t depth, std::string& why) {
  const bool all_texts =
      std::ranges::all_of(pairs, [&](const Pair& pair) { return pickle_.kind(pair.key) == Kind::text; });
  std::vector<Attributes::Entry> entries;
  Value::Pairs others;
  std::unordered_map<std::string_view, std::size_t> places;
  for (const Pair& pair : pairs) {
    auto value = convert(pair.value, depth + 1, why);
    if (!value) return std::nullopt;
    if (!all_texts) {
      auto key = convert(pair.key, depth + 1, why);
      if (!key) return std::nullopt;
      others.emplace_back(*std::move(key), *std::move(value));
      continue;
    }
    const std::string_view key = pickle_.text(pair.key);
    if (!budget_.take_text(key.size()))
      throw Error(ErrorKind::unsupported, "pytorch: attributes take more memory than the file justifies", path_,
                  pickle_.offset(pair.key));
    const auto [place, is_new] = places.emplace(key, entries.size());
    if (is_new) {
      entries.emplace_back(key, *std::move(value));
    } else {
      entries[place->second].second = *std::move(value);
    }
  }
  if (all_texts) return Value(Attributes::from_unique(std::move(entries)));
  return Value(std::move(others));
}

std::optional<Value> Values::convert_call(Id id, std::size_t depth, std::string& why) {
  const std::string name = called(id);
  const pickle::Call& call = pickle_.call(id);
  const std::span<const Id> arguments = pickle_.items(call.arguments);
  if (const auto pairs = mapping(id)) return convert_mapping(*pairs, depth, why);
  if (is_one_of(kLists, name)) {
    if (arguments.empty()) return convert_list(call.items, depth, why);
    const bool is_list = pickle_.kind(arguments[0]) == Kind::list || pickle_.kind(arguments[0]) == Kind::tuple;
    const bool is_made =
        call.how == pickle::Call::How::called && call.items.empty() && !pickle_.is_changed_after(arguments[0], id);
    if (arguments.size() == 1 && is_list && is_made) return convert_list(pickle_.items(arguments[0]), depth, why);
  }
  if (is_one_of(kNamespaces, name) && call.state) return convert(*call.state, depth + 1, why);
  if (name.starts_with("pathlib.") && is_expected(name)) return convert_path(arguments, why);
  if (name == "torch.device" && !arguments.empty() && pickle_.kind(arguments[0]) == Kind::text) {
    std::string device(pickle_.text(arguments[0]));
    if (arguments.size() > 1 && pickle_.kind(arguments[1]) == Kind::integer)
      device += fmt::format(":{}", pickle_.integer(arguments[1]));
    return Value(std::move(device));
  }
  if (name.ends_with("multiarray.scalar")) return convert_scalar(arguments, why);
  if (auto bytes = bytes_of(id)) {
    const auto all = std::as_bytes(std::span(*bytes));
    return Value(Value::Bytes(all.begin(), all.end()));
  }
  why = name.empty() ? "an object that another object makes" : fmt::format("an object of {}", name);
  return std::nullopt;
}

// Its parts, joined.
std::optional<Value> Values::convert_path(std::span<const Id> parts, std::string& why) {
  std::string path;
  for (const Id part : parts) {
    if (pickle_.kind(part) != Kind::text || !budget_.take_text(pickle_.text(part).size() + 1)) {
      why = "a path of other parts than texts";
      return std::nullopt;
    }
    if (!path.empty() && !path.ends_with('/')) path += '/';
    path += pickle_.text(part);
  }
  return Value(std::move(path));
}

// Bytes, or _codecs.encode(text, "latin1").
std::optional<std::string> Values::bytes_of(Id id) const {
  if (pickle_.kind(id) == Kind::bytes) return std::string(pickle_.text(id));
  if (called(id) != "_codecs.encode") return std::nullopt;
  const std::span<const Id> arguments = pickle_.items(pickle_.call(id).arguments);
  if (arguments.size() != 2 || pickle_.kind(arguments[0]) != Kind::text || pickle_.kind(arguments[1]) != Kind::text)
    return std::nullopt;
  const std::string_view encoding = pickle_.text(arguments[1]);
  return encoding == "latin1" || encoding == "latin-1" ? latin1(pickle_.text(arguments[0])) : std::nullopt;
}

// A type, with its byte order in its state, and the bytes of one number.
std::optional<Value> Values::convert_scalar(std::span<const Id> arguments, std::string& why) const {
  why = "a scalar of NumPy that is not a number";
  if (arguments.size() != 2 || called(arguments[0]) != "numpy.dtype") return std::nullopt;
  const pickle::Call& dtype = pickle_.call(arguments[0]);
  const std::span<const Id> words = pickle_.items(dtype.arguments);
  if (words.empty() || pickle_.kind(words[0]) != Kind::text) return std::nullopt;
  auto bytes = bytes_of(arguments[1]);
  const auto element = dtype_spelled(kScalars, pickle_.text(words[0]));
  if (!element || !bytes) return std::nullopt;
  if (dtype.state && pickle_.kind(*dtype.state) == Kind::tuple && pickle_.items(*dtype.state).size() > 1) {
    const Id order = pickle_.items(*dtype.state)[1];
    if (pickle_.kind(order) == Kind::text && pickle_.text(order) == ">") std::ranges::reverse(*bytes);
  }
  return element_value(*element, std::as_bytes(std::span(*bytes)));
}

}  // namespace poise::pytorch
