#include "formats/pytorch/checkpoint.hpp"

#include <algorithm>
#include <array>
#include <unordered_set>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/checked.hpp"
#include "formats/pytorch/globals.hpp"
#include "formats/pytorch/values.hpp"
#include "model/limits.hpp"
#include "syntax/limits.hpp"
#include "views/byte_swap.hpp"
#include "views/strided.hpp"

namespace poise::pytorch {
namespace {

using pickle::Id;
using pickle::Kind;
using pickle::Pickle;

constexpr std::array<std::string_view, 4> kRoots = {"state_dict", "model", "module", "model_state_dict"};
constexpr std::string_view kRootAttribute = "pytorch.root";
constexpr std::string_view kParameter = "torch.nn.parameter.Parameter";

// A tensor as the pickle would have it built.
struct View {
  Id storage = pickle::kNone;
  DType dtype = DType::unknown;  // unknown: the storage's
  std::uint64_t offset = 0;      // in elements, as strides
  Shape shape;
  std::vector<std::int64_t> strides;
};

class Objects {
 public:
  Objects(const Pickle& pickle, const std::string& path, Storages& storages, FunctionRef<void(Tensor)> take)
      : pickle_(pickle), path_(path), storages_(storages), take_(take), values_(pickle, path) {}

  Rest read() {
    tell_globals();
    tensors_below_.resize(pickle_.root() + 1);
    const Id root = pickle_.root();
    if (!has_tensors(root, 0)) {
      if (const auto name = values_.inert_name(root)) refuse_object(root, *name);
      if (!values_.mapping(root)) fail(root, ErrorKind::invalid_file, "expected a dict of tensors");
    }
    if (is_tensor(root)) {
      add(root, "tensor");
    } else if (const auto pairs = values_.mapping(root)) {
      read_root(*pairs);
    } else {
      walk(root, "", 0);
    }
    return {Attributes::from_unique(std::move(attributes_)), std::move(findings_)};
  }

 private:
  [[noreturn]] void fail(Id id, ErrorKind kind, const std::string& problem) const {
    throw Error(kind, "pytorch: " + problem, path_, pickle_.offset(id));
  }
  void leave_out(Id id, const std::string& problem) {
    findings_.push_back({Severity::warning, problem, path_, pickle_.offset(id)});
  }

  void tell_globals() {
    for (const Id id : pickle_.globals()) {
      const std::string name = full_name(pickle_.global(id));
      if (is_expected(name)) continue;
      const std::string_view danger = danger_of(name);
      const std::string what =
          danger.empty()
              ? fmt::format("it names {}, which no checkpoint needs: Python imports it to load the file", name)
              : fmt::format("it names {}, which {}: the file is malicious, or no checkpoint", name, danger);
      findings_.push_back({Severity::error, what, path_, pickle_.offset(id)});
    }
  }

  // The name of what is called; empty for other objects.
  std::string called(Id id) const {
    if (pickle_.kind(id) != Kind::call) return {};
    const Id function = pickle_.call(id).function;
    return pickle_.kind(function) == Kind::global ? full_name(pickle_.global(function)) : std::string();
  }

  bool is_tensor(Id id) const {
    const std::string name = called(id);
    return name.starts_with("torch._utils._rebuild_") || name == "torch._tensor._rebuild_from_type_v2" ||
           name == "torch.Tensor" || name == kParameter;
  }

  // Somewhere in it. Each object is looked into once.
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
          if (call.state && !values_.mapping(id)) look(*call.state);
          std::ranges::for_each(call.items, look);
          std::ranges::for_each(call.pairs, look);
          break;
        }
        default: break;
      }
    }
    tensors_below_[id] = found ? yes : no;
    return found;
  }

  // Only that entry has tensors, and they are named in it.
  void read_root(const std::vector<Values::Pair>& pairs) {
    const Values::Pair* only = nullptr;
    std::size_t with_tensors = 0;
    for (const Values::Pair& pair : pairs) {
      if (!has_tensors(pair.value, 1)) continue;
      only = &pair;
      ++with_tensors;
    }
    const bool strips = with_tensors == 1 && pickle_.kind(only->key) == Kind::text && values_.mapping(only->value) &&
                        std::ranges::find(kRoots, pickle_.text(only->key)) != kRoots.end();
    for (const Values::Pair& pair : pairs) {
      const bool strip = strips && &pair == only;
      if (strip) set_attribute(pair.key, std::string(kRootAttribute), std::string(pickle_.text(pair.key)));
      walk(pair.value, strip ? std::string() : key_text(pair.key), 1);
    }
  }

  std::string key_text(Id key) {
    if (pickle_.kind(key) == Kind::text) return std::string(pickle_.text(key));
    if (pickle_.kind(key) == Kind::integer) return std::to_string(pickle_.integer(key));
    fail(key, ErrorKind::unsupported, "a key of a dict is neither text nor an integer");
  }

  static std::string joined(const std::string& prefix, const std::string& name) {
    return prefix.empty() ? name : prefix + "." + name;
  }

  void walk(Id id, const std::string& name, std::size_t depth) {
    if (is_tensor(id)) return add(id, name.empty() ? "tensor" : name);
    if (!has_tensors(id, depth)) return take_value(id, name);
    if (depth > kMaxNesting)
      fail(id, ErrorKind::invalid_file, fmt::format("nested deeper than {} levels", kMaxNesting));
    if (const auto pairs = values_.mapping(id)) {
      for (const Values::Pair& pair : *pairs) walk(pair.value, joined(name, key_text(pair.key)), depth + 1);
      return;
    }
    if (const auto inert = values_.inert_name(id)) refuse_object(id, *inert);
    if (pickle_.kind(id) != Kind::list && pickle_.kind(id) != Kind::tuple)
      fail(id, ErrorKind::unsupported, fmt::format("{}: tensors are neither in a dict nor in a list", name));
    std::size_t index = 0;
    for (const Id item : pickle_.items(id)) walk(item, joined(name, std::to_string(index++)), depth + 1);
  }

  [[noreturn]] void refuse_object(Id id, const std::string& name) const {
    fail(
        id, ErrorKind::unsupported,
        fmt::format("this is an object of {}, whose code Poise does not run: in Python, save model.state_dict() in its "
                    "place",
                    name));
  }

  void take_value(Id id, const std::string& name) {
    if (pickle_.kind(id) == Kind::persistent) return leave_out(id, fmt::format("{} is left out: a storage", name));
    std::string why;
    if (auto value = values_.convert(id, why)) {
      set_attribute(id, name, *std::move(value));
    } else {
      leave_out(id, fmt::format("{} is left out: {}", name.empty() ? "an object" : name, why));
    }
  }

  void set_attribute(Id id, std::string name, Value value) {
    if (!names_.insert(name).second) return leave_out(id, fmt::format("another {} is left out", name));
    attributes_.emplace_back(std::move(name), std::move(value));
  }

  // Tensors.
  void add(Id id, const std::string& name) {
    if (name.size() > kMostNameBytes)
      fail(id, ErrorKind::unsupported,
           fmt::format("a tensor's name has {} bytes, at most {} are read", name.size(), kMostNameBytes));
    try {
      take_(make_tensor(name, view_of(id, 0)));
    } catch (const Error& error) {
      if (error.offset()) throw;
      throw Error(error.kind(), fmt::format("pytorch: {}: {}", name, error.message()), path_, pickle_.offset(id));
    }
  }

  std::span<const Id> arguments(Id id, std::size_t least) const {
    const std::span<const Id> items = pickle_.items(pickle_.call(id).arguments);
    if (items.size() < least)
      fail(id, ErrorKind::invalid_file,
           fmt::format("{}: {} arguments, at least {} are needed", called(id), items.size(), least));
    return items;
  }

  View view_of(Id id, std::size_t depth) const {
    const std::string function = called(id);
    if (depth < 8 && (function == "torch._utils._rebuild_parameter" ||
                      function == "torch._utils._rebuild_parameter_with_state" || function == kParameter)) {
      const Id data = arguments(id, 1)[0];
      if (is_tensor(data)) return view_of(data, depth + 1);
      fail(data, ErrorKind::invalid_file, fmt::format("{}: expected a tensor", function));
    }
    if (function == "torch._tensor._rebuild_from_type_v2") return view_of_type(id);
    return built(id, function, arguments(id, 0));
  }

  // A function, the class that its result would be made one of, the function's arguments.
  View view_of_type(Id id) const {
    const auto parts = arguments(id, 3);
    for (const Id part : parts.first(2)) {
      if (pickle_.kind(part) != Kind::global) fail(part, ErrorKind::invalid_file, "expected a function and a class");
    }
    const std::string type = full_name(pickle_.global(parts[1]));
    if (type != kParameter && type != "torch.Tensor" && type != "torch.nn.parameter.Buffer")
      fail(parts[1], ErrorKind::unsupported, fmt::format("tensors of the class {} are not read", type));
    if (pickle_.kind(parts[2]) != Kind::tuple) fail(parts[2], ErrorKind::invalid_file, "expected a tuple of arguments");
    return built(id, full_name(pickle_.global(parts[0])), pickle_.items(parts[2]));
  }

  View built(Id id, const std::string& function, std::span<const Id> arguments) const {
    const bool has_dtype = function == "torch._utils._rebuild_tensor_v3";
    if (!has_dtype && function != "torch._utils._rebuild_tensor_v2" && function != "torch._utils._rebuild_tensor")
      fail(id, ErrorKind::unsupported, fmt::format("tensors that {} makes are not read", function));
    if (arguments.size() < (has_dtype ? 7 : 4))
      fail(id, ErrorKind::invalid_file, fmt::format("{}: {} arguments are too few", function, arguments.size()));
    View view;
    view.storage = arguments[0];
    view.offset = natural(arguments[1], "storage_offset");
    for (const Id length : numbers(arguments[2], "size")) view.shape.push_back(natural(length, "size"));
    for (const Id stride : numbers(arguments[3], "stride")) {
      if (pickle_.kind(stride) != Kind::integer) fail(stride, ErrorKind::invalid_file, "stride: expected integers");
      view.strides.push_back(pickle_.integer(stride));
    }
    if (view.shape.size() != view.strides.size())
      fail(id, ErrorKind::invalid_file, fmt::format("{} sizes and {} strides", view.shape.size(), view.strides.size()));
    if (!has_dtype) return view;
    const Id dtype = arguments[6];
    const std::string name = pickle_.kind(dtype) == Kind::global ? full_name(pickle_.global(dtype)) : std::string();
    const auto known = named_dtype(name);
    if (!known) fail(dtype, ErrorKind::unsupported, fmt::format("the element type \"{}\" is not known", name));
    view.dtype = *known;
    return view;
  }

  std::uint64_t natural(Id id, std::string_view field) const {
    if (pickle_.kind(id) == Kind::integer && pickle_.integer(id) >= 0)
      return static_cast<std::uint64_t>(pickle_.integer(id));
    fail(id, ErrorKind::invalid_file, fmt::format("{}: expected a non-negative integer of 63 bits", field));
  }

  std::span<const Id> numbers(Id id, std::string_view field) const {
    if (called(id) == "torch.Size" && !pickle_.items(pickle_.call(id).arguments).empty())
      id = pickle_.items(pickle_.call(id).arguments)[0];
    if (pickle_.kind(id) != Kind::tuple && pickle_.kind(id) != Kind::list)
      fail(id, ErrorKind::invalid_file, fmt::format("{}: expected a tuple", field));
    const std::span<const Id> items = pickle_.items(id);
    if (items.size() > kMaxRank)
      fail(id, ErrorKind::unsupported, fmt::format("{}: more than {} dimensions", field, kMaxRank));
    return items;
  }

  Tensor make_tensor(const std::string& name, const View& view) const {
    if (pickle_.kind(view.storage) != Kind::persistent)
      fail(view.storage, ErrorKind::invalid_file, "expected a storage");
    const StorageName storage = storage_name(pickle_, view.storage, path_);
    const DType dtype = view.dtype == DType::unknown ? storage.dtype : view.dtype;
    const unsigned item = info(dtype).bits / 8;
    const BlobPtr whole = storages_.find(storage);
    const auto first = checked_add(view.offset, storage.first);
    const auto offset = first ? checked_mul(*first, item) : std::nullopt;
    const auto elements = element_count(view.shape);
    const auto bytes = elements ? checked_mul(*elements, item) : std::nullopt;
    if (!offset || !bytes)
      throw Error(ErrorKind::invalid_file, fmt::format("size {} is more than 2^64 bytes", to_string(view.shape)));
    if (*bytes > kFreeViewBytes && (*bytes - kFreeViewBytes) / kMostRepeats > whole->size())
      throw Error(ErrorKind::unsupported, fmt::format("{} bytes, which are a view of {}, are more than {} repeats",
                                                      *bytes, whole->size(), kMostRepeats));
    Strided strided{.shape = view.shape, .strides = {}, .offset = *offset, .item_bytes = item};
    for (const std::int64_t stride : view.strides) {
      std::int64_t in_bytes = 0;
      if (__builtin_mul_overflow(stride, static_cast<std::int64_t>(item), &in_bytes))
        throw Error(ErrorKind::invalid_file, fmt::format("stride: {} elements are more than 2^63 bytes", stride));
      strided.strides.push_back(in_bytes);
    }
    const unsigned number = number_bytes(dtype);
    strided.swapped = storages_.big_endian() && number > 1 ? number : 0;
    return make_dense(name, view.shape, dtype, make_strided_blob(whole, strided));
  }

  static constexpr std::size_t kMostNameBytes = 4096;
  // What views that repeat elements may claim.
  static constexpr std::uint64_t kFreeViewBytes = 16 << 20;
  static constexpr std::uint64_t kMostRepeats = 1024;

  const Pickle& pickle_;
  const std::string& path_;
  Storages& storages_;
  FunctionRef<void(Tensor)> take_;
  Values values_;
  std::vector<char> tensors_below_;
  std::vector<Attributes::Entry> attributes_;
  std::unordered_set<std::string> names_;
  std::vector<Finding> findings_;
};

}  // namespace

StorageName storage_name(const Pickle& pickle, Id id, const std::string& path) {
  const auto fail = [&](ErrorKind kind, const std::string& problem) {
    return Error(kind, "pytorch: storage: " + problem, path, pickle.offset(id));
  };
  const Id key = pickle.persistent(id);
  if (pickle.kind(key) != Kind::tuple || pickle.items(key).size() < 5)
    throw fail(ErrorKind::invalid_file, "expected a tuple of a kind, a class, a key, a place and a size");
  const std::span<const Id> parts = pickle.items(key);
  if (pickle.kind(parts[0]) != Kind::text || pickle.text(parts[0]) != "storage")
    throw fail(ErrorKind::invalid_file, "expected the kind \"storage\"");
  if (pickle.kind(parts[1]) != Kind::global) throw fail(ErrorKind::invalid_file, "expected a class");
  const std::string type = full_name(pickle.global(parts[1]));
  const auto dtype = storage_dtype(type);
  if (!dtype) throw fail(ErrorKind::unsupported, fmt::format("the class {} is not known", type));
  if (pickle.kind(parts[2]) != Kind::text) throw fail(ErrorKind::invalid_file, "expected a key that is text");
  if (pickle.kind(parts[4]) != Kind::integer || pickle.integer(parts[4]) < 0)
    throw fail(ErrorKind::invalid_file, "expected a size that is not negative");
  StorageName name{pickle.text(parts[2]), *dtype, static_cast<std::uint64_t>(pickle.integer(parts[4])), 0};
  if (parts.size() < 6 || parts[5] == pickle::kNone) return name;
  // A storage that is a part of another one: its key, where it begins, how long it is.
  const bool is_tuple = pickle.kind(parts[5]) == Kind::tuple && pickle.items(parts[5]).size() == 3;
  const Id first = is_tuple ? pickle.items(parts[5])[1] : pickle::kNone;
  if (pickle.kind(first) != Kind::integer || pickle.integer(first) < 0)
    throw fail(ErrorKind::invalid_file, "expected a key, a begin and a size of a part");
  name.first = static_cast<std::uint64_t>(pickle.integer(first));
  return name;
}

Rest read_objects(const Pickle& pickle, const std::string& path, Storages& storages, FunctionRef<void(Tensor)> take) {
  return Objects(pickle, path, storages, take).read();
}

}  // namespace poise::pytorch
