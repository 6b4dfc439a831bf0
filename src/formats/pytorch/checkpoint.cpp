// Reads the objects in the pickle of a checkpoint: finds tensors by the keys that lead to them, and converts plain data
// to attributes. checkpoint.hpp describes the names.
#include "formats/pytorch/checkpoint.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/little_endian.hpp"
#include "bytes/utf8.hpp"
#include "formats/pickle_globals.hpp"
#include "formats/pytorch/tensor_builder.hpp"
#include "formats/spellings.hpp"
#include "model/limits.hpp"
#include "syntax/element_value.hpp"
#include "views/integer_blobs.hpp"

namespace poise::pytorch {
namespace {

using pickle::Id;
using pickle::Kind;
using pickle::Pickle;

constexpr std::array<std::string_view, 4> kRoots = {"state_dict", "model", "module", "model_state_dict"};
constexpr std::string_view kVersions = "_metadata";
constexpr std::string_view kRootAttribute = "pytorch.root";

class Objects {
 public:
  Objects(const Pickle& pickle, const std::string& path, Storages& storages, FunctionRef<void(Tensor)> add_tensor)
      : pickle_(pickle),
        path_(path),
        add_tensor_(add_tensor),
        tensors_(pickle, path, storages),
        values_(pickle, path) {}

  Rest read() {
    findings_ = find_unsafe_steps(pickle_, path_);
    if (const auto id = pickle_.lone_surrogate())
      add_warning(*id, "texts with half of a surrogate pair, which are not Unicode, are read as bytes");
    tensors_below_.resize(pickle_.root() + 1);
    const Id root = pickle_.root();
    if (!has_tensors(root, 0)) {
      if (const auto name = values_.describe_unknown_object(root)) refuse_object(root, *name);
      if (!values_.find_pairs(root)) fail(root, ErrorKind::invalid_file, "expected a dict of tensors");
    }
    if (is_tensor(root)) {
      read_tensor(root, "tensor");
    } else if (const auto pairs = values_.find_pairs(root)) {
      read_state(root, "");
      read_root(*pairs);
    } else {
      walk(root, "", 0);
    }
    std::ranges::move(tensors_.list_findings(), std::back_inserter(findings_));
    return {Attributes::from_unique(std::move(attributes_)), std::move(findings_), std::move(faults_)};
  }

 private:
  [[noreturn]] void fail(Id id, ErrorKind kind, const std::string& problem) const {
    throw Error(kind, "pytorch: " + problem, path_, pickle_.offset(id));
  }
  void add_warning(Id id, const std::string& problem) {
    findings_.push_back({Severity::warning, problem, path_, pickle_.offset(id)});
  }

  bool is_tensor(Id id) const { return tensors_.is_tensor(id); }

  // Returns true if an object is a tensor or contains one. Visits each object once.
  bool has_tensors(Id id, std::size_t depth) {
    enum : char { unknown, looking, no, yes };
    if (id >= tensors_below_.size()) tensors_below_.resize(std::max<std::size_t>(id + 1, tensors_below_.size() * 2));
    if (tensors_below_[id] != unknown) return tensors_below_[id] == yes;
    tensors_below_[id] = looking;
    bool found = is_tensor(id);
    const auto look = [&](Id child) { found = found || has_tensors(child, depth + 1); };
    if (!found) {
      if (depth > kMaxNesting)
        fail(id, ErrorKind::invalid_file, fmt::format("nested deeper than {} levels", kMaxNesting));
      switch (pickle_.kind(id)) {
        case Kind::tuple:
        case Kind::list:
        case Kind::set:
        case Kind::dict: std::ranges::for_each(pickle_.items(id), look); break;
        case Kind::call: {
          const pickle::Call& call = pickle_.call(id);
          look(call.arguments);
          if (call.state && !values_.find_pairs(id)) look(*call.state);
          std::ranges::for_each(call.items, look);
          std::ranges::for_each(call.pairs, look);
          std::ranges::for_each(call.keywords, look);
          break;
        }
        default: break;
      }
    }
    tensors_below_[id] = found ? yes : no;
    return found;
  }

  // Walks the entries of the outermost dict. If only one has tensors, under a key of kRoots, that key does not become a
  // part of their names.
  void read_root(const std::vector<Values::Pair>& pairs) {
    const Values::Pair* only = nullptr;
    std::size_t with_tensors = 0;
    for (const Values::Pair& pair : pairs) {
      if (!has_tensors(pair.value, 1)) continue;
      only = &pair;
      ++with_tensors;
    }
    const bool strips = with_tensors == 1 && pickle_.kind(only->key) == Kind::text && values_.find_pairs(only->value) &&
                        std::ranges::find(kRoots, pickle_.text(only->key)) != kRoots.end();
    for (const Values::Pair& pair : pairs) {
      const bool strip = strips && &pair == only;
      if (strip) set_attribute(pair.key, std::string(kRootAttribute), std::string(pickle_.text(pair.key)));
      if (strip) {
        root_ = pickle_.text(pair.key);
        walk(pair.value, "", 1);
      } else {
        walk_entry(pair, "", 1);
      }
    }
  }

  // Adds the tensors and the plain data of an entry. Leaves the entry out if it has no tensors and its key is neither
  // text nor an integer.
  void walk_entry(const Values::Pair& pair, const std::string& prefix, std::size_t depth) {
    const bool has_name = pickle_.kind(pair.key) == Kind::text || pickle_.kind(pair.key) == Kind::integer;
    if (has_name || has_tensors(pair.value, depth))
      return walk(pair.value, join_names(prefix, format_key(pair.key)), depth);
    add_warning(pair.key, fmt::format("an entry of {} is left out: its key is neither text nor an integer",
                                      prefix.empty() ? "a dict" : prefix));
  }

  std::string format_key(Id key) {
    if (pickle_.kind(key) == Kind::text) return std::string(pickle_.text(key));
    if (pickle_.kind(key) == Kind::integer) return std::to_string(pickle_.integer(key));
    fail(key, ErrorKind::unsupported, "a key of a dict is neither text nor an integer");
  }

  static std::string join_names(const std::string& prefix, const std::string& name) {
    return prefix.empty() ? name : prefix + "." + name;
  }

  // Limits the memory for names. Tensors in a list or dict that several others contain have a name for each path, and a
  // small file may have very many paths.
  void charge(Id id, std::uint64_t bytes) {
    if (bytes > left_)
      fail(id, ErrorKind::unsupported, "the names of the tensors take more memory than the file justifies");
    left_ -= bytes;
  }

  void walk(Id id, const std::string& name, std::size_t depth) {
    if (faults_.has_reached_limit()) return;
    charge(id, kWalkBytes + name.size());
    if (is_tensor(id)) {
      charge(id, kTensorBytes + name.size() + (root_.empty() ? 0 : root_.size() + name.size()));
      return read_tensor(id, name);
    }
    if (!has_tensors(id, depth)) return read_value(id, name);
    if (depth > kMaxNesting)
      fail(id, ErrorKind::invalid_file, fmt::format("nested deeper than {} levels", kMaxNesting));
    if (const auto pairs = values_.find_pairs(id)) {
      read_state(id, name);
      for (const Values::Pair& pair : *pairs) walk_entry(pair, name, depth + 1);
      return;
    }
    if (const auto inert = values_.describe_unknown_object(id)) refuse_object(id, *inert);
    if (pickle_.kind(id) != Kind::list && pickle_.kind(id) != Kind::tuple)
      fail(id, ErrorKind::unsupported, fmt::format("{}: tensors are neither in a dict nor in a list", name));
    std::size_t index = 0;
    for (const Id item : pickle_.items(id)) walk(item, join_names(name, std::to_string(index++)), depth + 1);
  }

  [[noreturn]] void refuse_object(Id id, const std::string& name) const {
    fail(id, ErrorKind::unsupported,
         fmt::format("this is {}, whose code Poise does not run: in Python, save model.state_dict() in its place",
                     name));
  }

  void read_value(Id id, const std::string& name) {
    if (pickle_.kind(id) == Kind::persistent) return add_warning(id, fmt::format("{} is left out: a storage", name));
    if (values_.find_pairs(id)) read_state(id, name);
    keep_value(id, name);
  }

  void keep_value(Id id, const std::string& name) {
    std::string why;
    if (auto value = values_.convert(id, why)) {
      set_attribute(id, name, *std::move(value));
    } else {
      add_warning(id, fmt::format("{} is left out: {}", name.empty() ? "an object" : name, why));
    }
  }

  // Reads the attributes that a pickle sets on a dict object, besides the dict's entries. A state dict has the versions
  // of its modules there; they are left out if all are 1, which is the default.
  void read_state(Id id, const std::string& name) {
    if (pickle_.kind(id) != Kind::call || !pickle_.call(id).state) return;
    const Id state = *pickle_.call(id).state;
    const auto pairs = values_.find_pairs(state);
    if (!pairs) return add_warning(state, fmt::format("the state of {} is left out", name.empty() ? "a dict" : name));
    for (const Values::Pair& pair : *pairs) {
      if (pickle_.kind(pair.key) != Kind::text) {
        add_warning(pair.key, fmt::format("an entry of the state of {} is left out: its key is not text",
                                          name.empty() ? "a dict" : name));
        continue;
      }
      const std::string key = join_names(name, format_key(pair.key));
      const auto versions = format_key(pair.key) == kVersions ? values_.find_pairs(pair.value) : std::nullopt;
      const bool says_nothing = versions && std::ranges::all_of(*versions, [&](const Values::Pair& version) {
                                  return is_version_1(version.value);
                                });
      if (!says_nothing) keep_value(pair.value, key);
    }
  }

  bool is_version_1(Id id) const {
    const auto pairs = values_.find_pairs(id);
    return pairs && std::ranges::all_of(*pairs, [&](const Values::Pair& pair) {
             return pickle_.kind(pair.key) == Kind::text && pickle_.text(pair.key) == "version" &&
                    pickle_.kind(pair.value) == Kind::integer && pickle_.integer(pair.value) == 1;
           });
  }

  void set_attribute(Id id, std::string name, Value value) {
    if (!names_.insert(name).second) return add_warning(id, fmt::format("a second value of {} is left out", name));
    attributes_.emplace_back(std::move(name), std::move(value));
  }

  void read_tensor(Id id, const std::string& name) {
    if (name.size() > kMostNameBytes)
      fail(id, ErrorKind::unsupported,
           fmt::format("a tensor's name has {} bytes, at most {} are read", name.size(), kMostNameBytes));
    faults_.attempt([&] { make_tensor(id, name); }, name);
  }

  // Makes a tensor and passes it on. Adds its name and an offset to errors.
  void make_tensor(Id id, const std::string& name) {
    try {
      Tensor tensor = tensors_.make_tensor(name, id);
      if (!root_.empty()) tensor.file_name = std::make_shared<const std::string>(join_names(root_, name));
      add_tensor_(std::move(tensor));
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::invalid_file && error.kind() != ErrorKind::unsupported) throw;
      constexpr std::string_view kFormat = "pytorch: ";
      std::string_view problem = error.message();
      if (problem.starts_with(kFormat)) problem.remove_prefix(kFormat.size());
      throw Error(error.kind(), fmt::format("{}{}: {}", kFormat, name, problem), path_,
                  error.offset().value_or(pickle_.offset(id)));
    }
  }

  static constexpr std::uint64_t kWalkBytes = 64;
  static constexpr std::uint64_t kTensorBytes = 512;
  // Names and tensors may use kFreeBytes, and kBytesPerByte more for each byte of the pickle. A tensor takes at least
  // 100 bytes of a pickle, so files with ordinary names stay below this limit.
  static constexpr std::uint64_t kFreeBytes = 64 << 20;
  static constexpr std::uint64_t kBytesPerByte = 16;

  const Pickle& pickle_;
  const std::string& path_;
  FunctionRef<void(Tensor)> add_tensor_;
  TensorBuilder tensors_;
  Values values_;
  std::uint64_t left_ = kFreeBytes + kBytesPerByte * pickle_.size();  // bytes that names and tensors may still use
  std::vector<char> tensors_below_;
  std::string root_;  // the key of the entry that has all tensors; names leave it out
  std::vector<Attributes::Entry> attributes_;
  std::unordered_set<std::string> names_;
  std::vector<Finding> findings_;
  Faults faults_{{ErrorKind::invalid_file, ErrorKind::unsupported}};
};

}  // namespace

Rest read_objects(const Pickle& pickle, const std::string& path, Storages& storages,
                  FunctionRef<void(Tensor)> add_tensor) {
  return Objects(pickle, path, storages, add_tensor).read();
}

namespace {

constexpr std::array<std::string_view, 4> kMappings = {"collections.OrderedDict", "collections.defaultdict",
                                                       "collections.Counter", "builtins.dict"};
// These classes take one argument, a list or a tuple.
constexpr std::array<std::string_view, 7> kLists = {"torch.Size",           "builtins.set",   "builtins.frozenset",
                                                    "builtins.list",        "builtins.tuple", "__builtin__.set",
                                                    "__builtin__.frozenset"};

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
      if (find_dtype(name)) return Value(std::move(name));
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

// Converts a mapping. If all keys are texts, the last value of a repeated key counts, as in Python.
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
    if (!budget_.charge_text(key.size()))
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
  const std::string name = find_function_name(id);
  const pickle::Call& call = pickle_.call(id);
  const std::span<const Id> arguments = pickle_.items(call.arguments);
  if (const auto pairs = find_pairs(id)) return convert_mapping(*pairs, depth, why);
  if (is_one_of(kLists, name)) {
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

// Reads bytes, stored as such or as _codecs.encode(text, "latin1").
std::optional<std::string> Values::read_bytes(Id id) const {
  if (pickle_.kind(id) == Kind::bytes) return std::string(pickle_.text(id));
  if (find_function_name(id) != "_codecs.encode") return std::nullopt;
  const std::span<const Id> arguments = pickle_.items(pickle_.call(id).arguments);
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
