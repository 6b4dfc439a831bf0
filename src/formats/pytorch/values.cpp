// Converts plain data in the pickle of a checkpoint, such as dicts, lists, numbers and texts, to Values.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/little_endian.hpp"
#include "formats/pickle_globals.hpp"
#include "formats/pytorch/checkpoint.hpp"
#include "formats/spellings.hpp"
#include "model/limits.hpp"
#include "syntax/element_value.hpp"
#include "views/integer_blobs.hpp"

namespace poise::pytorch {

using pickle::Id;
using pickle::Kind;
using pickle::Pickle;

namespace {

constexpr std::array<std::string_view, 4> kMappings = {"collections.OrderedDict", "collections.defaultdict",
                                                       "collections.Counter", "builtins.dict"};
// These classes take one argument, a list or a tuple.
constexpr std::array<std::string_view, 5> kLists = {"torch.Size", "builtins.set", "builtins.frozenset", "builtins.list",
                                                    "builtins.tuple"};

// Objects of these classes have only fields, stored as a dict.
constexpr std::array<std::string_view, 2> kNamespaces = {"argparse.Namespace", "types.SimpleNamespace"};

bool is_one_of(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

// Converts UTF-8 to Latin-1. In pickles of protocol 2, a text of such characters stands for bytes. Returns std::nullopt
// for other characters.
std::optional<std::string> encode_latin1(std::string_view text) {
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

// Converts a wide_integer. Pickles store 2^63 to 2^64 - 1 in 9 bytes, the lowest first and the last one 0. Returns
// std::nullopt for others.
std::optional<std::uint64_t> read_unsigned(std::string_view bytes) {
  if (bytes.size() != 9 || bytes.back() != '\0') return std::nullopt;
  return load_le<std::uint64_t>(std::as_bytes(std::span(bytes)).data());
}

// Has NumPy's names of the types of scalars, without the byte order.
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

// As in Python, a key that comes again keeps its place and gets the later value. Sorts hashes with indices, because a
// hash table would take several times the memory of a large dict.
void merge_equal_keys(const Pickle& pickle, std::vector<Values::Pair>& pairs) {
  const auto get_key = [&](std::uint64_t entry) {
    const Id key = pairs[entry & UINT32_MAX].key;
    const bool is_text = pickle.kind(key) == Kind::text;
    return std::tuple(is_text, is_text ? pickle.text(key) : std::string_view(), is_text ? 0 : pickle.integer(key));
  };
  std::vector<std::uint64_t> entries;  // the hash of a key above its index
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const Id key = pairs[i].key;
    const bool is_text = pickle.kind(key) == Kind::text;
    if (!is_text && pickle.kind(key) != Kind::integer) continue;
    const std::size_t hash = is_text ? std::hash<std::string_view>()(pickle.text(key))
                                     : std::hash<std::int64_t>()(pickle.integer(key)) * 0x9e3779b97f4a7c15;
    entries.push_back((hash & ~std::uint64_t{UINT32_MAX}) | i);
  }
  std::ranges::sort(entries);
  std::vector<bool> is_repeated(pairs.size());
  for (std::size_t begin = 0, end = 0; begin < entries.size(); begin = end) {
    while (end < entries.size() && entries[end] >> 32 == entries[begin] >> 32) ++end;
    if (end - begin == 1) continue;
    const std::span same_hash = std::span(entries).subspan(begin, end - begin);
    std::ranges::sort(same_hash, {}, [&](std::uint64_t entry) { return std::tuple(get_key(entry), entry); });
    std::uint64_t first = same_hash.front();
    for (const std::uint64_t entry : same_hash.subspan(1)) {
      if (get_key(entry) != get_key(first)) {
        first = entry;
        continue;
      }
      pairs[first & UINT32_MAX].value = pairs[entry & UINT32_MAX].value;
      is_repeated[entry & UINT32_MAX] = true;
    }
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (!is_repeated[i]) pairs[kept++] = pairs[i];
  }
  pairs.resize(kept);
}

}  // namespace

Values::Values(const pickle::Pickle& pickle, const std::string& path)
    : pickle_(pickle), path_(path), budget_(pickle.size()) {}

// Returns the keys and values, in turn, in argument `place` of the call `id`: a dict, or a list of pairs, which Python
// 2 stores for an OrderedDict. Returns an empty list if the call has fewer arguments. Returns std::nullopt for other
// arguments, for the list of a Counter, if more arguments follow, and if the pickle changes the dict, the list or a
// pair after the call.
std::optional<std::vector<Id>> Values::find_argument_pairs(Id id, std::size_t place) const {
  const std::span<const Id> arguments = pickle_.items(pickle_.call(id).arguments);
  if (arguments.size() <= place) return std::vector<Id>();
  const Id argument = arguments[place];
  if (arguments.size() > place + 1 || pickle_.is_changed_after(argument, id)) return std::nullopt;
  const Kind kind = pickle_.kind(argument);
  const std::span<const Id> items =
      kind == Kind::dict || kind == Kind::list ? pickle_.items(argument) : std::span<const Id>();
  if (kind == Kind::dict) return std::vector<Id>(items.begin(), items.end());
  if (kind != Kind::list || find_function_name(id) == "collections.Counter") return std::nullopt;
  std::vector<Id> pairs;
  for (const Id pair : items) {
    const bool is_list = pickle_.kind(pair) == Kind::list || pickle_.kind(pair) == Kind::tuple;
    if (!is_list || pickle_.items(pair).size() != 2 || pickle_.is_changed_after(pair, id)) return std::nullopt;
    pairs.insert(pairs.end(), pickle_.items(pair).begin(), pickle_.items(pair).end());
  }
  return pairs;
}

std::optional<std::vector<Values::Pair>> Values::find_pairs(Id id) const {
  std::vector<Pair> pairs;
  const auto add = [&](std::span<const Id> items) {
    for (std::size_t i = 0; i + 1 < items.size(); i += 2) pairs.push_back({items[i], items[i + 1]});
  };
  if (pickle_.kind(id) == Kind::dict) {
    add(pickle_.items(id));
    merge_equal_keys(pickle_, pairs);
    return pairs;
  }
  const std::string name = find_function_name(id);
  if (!is_one_of(kMappings, name)) return std::nullopt;
  const pickle::Call& call = pickle_.call(id);
  if (!call.keywords.empty()) return std::nullopt;
  if (call.how == pickle::Call::How::called) {  // __new__ of these classes ignores its arguments
    const auto items = find_argument_pairs(id, name == "collections.defaultdict" ? 1 : 0);
    if (!items) return std::nullopt;
    add(*items);
  }
  add(call.pairs);
  merge_equal_keys(pickle_, pairs);
  return pairs;
}

std::optional<std::string> Values::describe_unknown_object(Id id) const {
  if (pickle_.kind(id) == Kind::global) {
    const std::string name = make_full_name(pickle_.global(id));
    return is_expected_global(name) ? std::nullopt : std::optional("the function or class " + name);
  }
  if (pickle_.kind(id) != Kind::call) return std::nullopt;
  const std::string name = find_function_name(id);
  if (name.empty()) return "an object that another object makes";
  return is_expected_global(name) ? std::nullopt : std::optional("an object of " + name);
}

std::optional<Value> Values::convert(Id id, std::string& why) { return convert(id, 0, why); }

std::optional<Value> Values::convert(Id id, std::size_t depth, std::string& why) {
  const auto fail = [&](ErrorKind kind, std::string_view problem) {
    return Error(kind, fmt::format("pytorch: {}", problem), path_, pickle_.offset(id));
  };
  if (depth > kMaxNesting)
    throw fail(ErrorKind::invalid_file, fmt::format("nested deeper than {} levels", kMaxNesting));
  if (!budget_.charge_value())
    throw fail(ErrorKind::unsupported, "attributes take more memory than the file justifies");
  switch (pickle_.kind(id)) {
    case Kind::none: return Value();
    case Kind::boolean: return Value(pickle_.boolean(id));
    case Kind::integer: return Value(pickle_.integer(id));
    case Kind::wide_integer:
      if (const auto value = read_unsigned(pickle_.text(id))) return Value(*value);
      why = "an integer of more than 64 bits";
      return std::nullopt;
    case Kind::real: return Value(pickle_.real(id));
    case Kind::text:
    case Kind::bytes: {
      const std::string_view text = pickle_.text(id);
      if (!budget_.charge_text(text.size()))
        throw fail(ErrorKind::unsupported, "attributes take more memory than the file justifies");
      if (pickle_.kind(id) == Kind::text) return Value(text);
      const auto bytes = std::as_bytes(std::span(text));
      return Value(Value::Bytes(bytes.begin(), bytes.end()));
    }
    case Kind::tuple:
    case Kind::list:
    case Kind::set: return convert_list(pickle_.items(id), depth, why);
    case Kind::dict: return convert_mapping(*find_pairs(id), depth, why);
    case Kind::call: return convert_call(id, depth, why);
    case Kind::global: {
      std::string name = make_full_name(pickle_.global(id));
      if (find_torch_dtype(name)) return Value(std::move(name));
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

// Converts a mapping. Requires: no key comes twice.
std::optional<Value> Values::convert_mapping(const std::vector<Pair>& pairs, std::size_t depth, std::string& why) {
  const bool all_texts =
      std::ranges::all_of(pairs, [&](const Pair& pair) { return pickle_.kind(pair.key) == Kind::text; });
  std::vector<Attributes::Entry> entries;
  Value::Pairs others;
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
    if (!budget_.charge_text(key.size()))
      throw Error(ErrorKind::unsupported, "pytorch: attributes take more memory than the file justifies", path_,
                  pickle_.offset(pair.key));
    entries.emplace_back(key, *std::move(value));
  }
  if (all_texts) return Value(Attributes::from_unique(std::move(entries)));
  return Value(std::move(others));
}

std::optional<Value> Values::convert_call(Id id, std::size_t depth, std::string& why) {
  const std::string name = find_function_name(id);
  const pickle::Call& call = pickle_.call(id);
  const std::span<const Id> arguments = pickle_.items(call.arguments);
  if (const auto pairs = find_pairs(id)) return convert_mapping(*pairs, depth, why);
  if (is_one_of(kLists, canonicalize_name(name))) {
    if (arguments.empty()) return convert_list(call.items, depth, why);
    const bool is_list = pickle_.kind(arguments[0]) == Kind::list || pickle_.kind(arguments[0]) == Kind::tuple;
    const bool is_made =
        call.how == pickle::Call::How::called && call.items.empty() && !pickle_.is_changed_after(arguments[0], id);
    if (arguments.size() == 1 && is_list && is_made) return convert_list(pickle_.items(arguments[0]), depth, why);
  }
  if (is_one_of(kNamespaces, name) && call.state) return convert(*call.state, depth + 1, why);
  if (name.starts_with("pathlib.") && is_expected_global(name)) return convert_path(arguments, why);
  if (name == "torch.device" && !arguments.empty() && pickle_.kind(arguments[0]) == Kind::text) {
    std::string device(pickle_.text(arguments[0]));
    if (arguments.size() > 1 && pickle_.kind(arguments[1]) == Kind::integer)
      device += fmt::format(":{}", pickle_.integer(arguments[1]));
    return Value(std::move(device));
  }
  if (name.ends_with("multiarray.scalar")) return convert_scalar(arguments, why);
  if (auto bytes = read_bytes(id)) {
    const auto all = std::as_bytes(std::span(*bytes));
    return Value(Value::Bytes(all.begin(), all.end()));
  }
  why = name.empty() ? "an object that another object makes" : fmt::format("an object of {}", name);
  return std::nullopt;
}

// Joins the parts of a path with slashes, also for Windows.
std::optional<Value> Values::convert_path(std::span<const Id> parts, std::string& why) {
  std::string path;
  for (const Id part : parts) {
    if (pickle_.kind(part) != Kind::text || !budget_.charge_text(pickle_.text(part).size() + 1)) {
      why = "a path whose parts are not all texts";
      return std::nullopt;
    }
    if (!path.empty() && !path.ends_with('/')) path += '/';
    path += pickle_.text(part);
  }
  return Value(std::move(path));
}

// Reads bytes. Protocol 2 stores them as _codecs.encode(text, "latin1"), and empty bytes as bytes().
std::optional<std::string> Values::read_bytes(Id id) const {
  if (pickle_.kind(id) == Kind::bytes) return std::string(pickle_.text(id));
  const std::string name = canonicalize_name(find_function_name(id));
  const bool is_class = name == "builtins.bytes";
  if (name != "_codecs.encode" && !is_class) return std::nullopt;
  const std::span<const Id> arguments = pickle_.items(pickle_.call(id).arguments);
  if (is_class) return arguments.empty() ? std::optional<std::string>("") : std::nullopt;
  if (arguments.size() != 2 || pickle_.kind(arguments[0]) != Kind::text || pickle_.kind(arguments[1]) != Kind::text)
    return std::nullopt;
  const std::string_view encoding = pickle_.text(arguments[1]);
  return encoding == "latin1" || encoding == "latin-1" ? encode_latin1(pickle_.text(arguments[0])) : std::nullopt;
}

// Converts a scalar of NumPy. The arguments are a type, whose state has the byte order, and the bytes of the number.
std::optional<Value> Values::convert_scalar(std::span<const Id> arguments, std::string& why) const {
  why = "a scalar of NumPy that is not a number";
  if (arguments.size() != 2 || find_function_name(arguments[0]) != "numpy.dtype") return std::nullopt;
  const pickle::Call& dtype = pickle_.call(arguments[0]);
  const std::span<const Id> words = pickle_.items(dtype.arguments);
  if (words.empty() || pickle_.kind(words[0]) != Kind::text) return std::nullopt;
  auto bytes = read_bytes(arguments[1]);
  const auto element = find_spelled_dtype(kScalars, pickle_.text(words[0]));
  if (!element || !bytes) return std::nullopt;
  if (dtype.state && pickle_.kind(*dtype.state) == Kind::tuple && pickle_.items(*dtype.state).size() > 1) {
    const Id order = pickle_.items(*dtype.state)[1];
    const bool is_whole = bytes->size() == info(*element).bits / 8;
    if (is_whole && pickle_.kind(order) == Kind::text && pickle_.text(order) == ">")
      reverse_each_number(std::as_writable_bytes(std::span(*bytes)), get_number_bytes(*element));
  }
  return read_element(*element, std::as_bytes(std::span(*bytes)));
}

}  // namespace poise::pytorch
