#include "formats/pytorch/checkpoint.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <unordered_set>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "formats/pickle_calls.hpp"
#include "formats/pytorch/tensor_builder.hpp"
#include "formats/pytorch/values.hpp"
#include "model/limits.hpp"
#include "syntax/limits.hpp"

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
  Objects(const Pickle& pickle, const std::string& path, Storages& storages, FunctionRef<void(Tensor)> take)
      : pickle_(pickle), path_(path), take_(take), tensors_(pickle, path, storages), values_(pickle, path) {}

  Rest read() {
    findings_ = unsafe_steps(pickle_, path_);
    if (const auto id = pickle_.lone_surrogate())
      leave_out(*id, "texts with half of a surrogate pair, which are not Unicode, are read as bytes");
    tensors_below_.resize(pickle_.root() + 1);
    const Id root = pickle_.root();
    if (!has_tensors(root, 0)) {
      if (const auto name = values_.inert_name(root)) refuse_object(root, *name);
      if (!values_.mapping(root)) fail(root, ErrorKind::invalid_file, "expected a dict of tensors");
    }
    if (is_tensor(root)) {
      add(root, "tensor");
    } else if (const auto pairs = values_.mapping(root)) {
      take_state(root, "");
      read_root(*pairs);
    } else {
      walk(root, "", 0);
    }
    std::ranges::move(tensors_.findings(), std::back_inserter(findings_));
    return {Attributes::from_unique(std::move(attributes_)), std::move(findings_), std::move(faults_)};
  }

 private:
  [[noreturn]] void fail(Id id, ErrorKind kind, const std::string& problem) const {
    throw Error(kind, "pytorch: " + problem, path_, pickle_.offset(id));
  }
  void leave_out(Id id, const std::string& problem) {
    findings_.push_back({Severity::warning, problem, path_, pickle_.offset(id)});
  }

  bool is_tensor(Id id) const { return tensors_.is_tensor(id); }

  // Anywhere inside. Visits each object once.
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
          std::ranges::for_each(call.keywords, look);
          break;
        }
        default: break;
      }
    }
    tensors_below_[id] = found ? yes : no;
    return found;
  }

  // Only that entry has tensors; it gives their names.
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
      if (strip) {
        root_ = pickle_.text(pair.key);
        walk(pair.value, "", 1);
      } else {
        walk_entry(pair, "", 1);
      }
    }
  }

  // Only tensors need names of their own.
  void walk_entry(const Values::Pair& pair, const std::string& prefix, std::size_t depth) {
    const bool has_name = pickle_.kind(pair.key) == Kind::text || pickle_.kind(pair.key) == Kind::integer;
    if (has_name || has_tensors(pair.value, depth)) return walk(pair.value, joined(prefix, key_text(pair.key)), depth);
    leave_out(pair.key, fmt::format("an entry of {} is left out: its key is neither text nor an integer",
                                    prefix.empty() ? "a dict" : prefix));
  }

  std::string key_text(Id key) {
    if (pickle_.kind(key) == Kind::text) return std::string(pickle_.text(key));
    if (pickle_.kind(key) == Kind::integer) return std::to_string(pickle_.integer(key));
    fail(key, ErrorKind::unsupported, "a key of a dict is neither text nor an integer");
  }

  static std::string joined(const std::string& prefix, const std::string& name) {
    return prefix.empty() ? name : prefix + "." + name;
  }

  // Lists and dicts that several others share give their tensors a name for each way to them, which a small file may
  // have many of.
  void charge(Id id, std::uint64_t bytes) {
    if (bytes > left_)
      fail(id, ErrorKind::unsupported, "the names of the tensors take more memory than the file justifies");
    left_ -= bytes;
  }

  void walk(Id id, const std::string& name, std::size_t depth) {
    if (faults_.are_enough()) return;
    charge(id, kWalkBytes + name.size());
    if (is_tensor(id)) {
      charge(id, kTensorBytes + name.size() + (root_.empty() ? 0 : root_.size() + name.size()));
      return add(id, name.empty() ? "tensor" : name);
    }
    if (!has_tensors(id, depth)) return take_value(id, name);
    if (depth > kMaxNesting)
      fail(id, ErrorKind::invalid_file, fmt::format("nested deeper than {} levels", kMaxNesting));
    if (const auto pairs = values_.mapping(id)) {
      take_state(id, name);
      for (const Values::Pair& pair : *pairs) walk_entry(pair, name, depth + 1);
      return;
    }
    if (const auto inert = values_.inert_name(id)) refuse_object(id, *inert);
    if (pickle_.kind(id) != Kind::list && pickle_.kind(id) != Kind::tuple)
      fail(id, ErrorKind::unsupported, fmt::format("{}: tensors are neither in a dict nor in a list", name));
    std::size_t index = 0;
    for (const Id item : pickle_.items(id)) walk(item, joined(name, std::to_string(index++)), depth + 1);
  }

  [[noreturn]] void refuse_object(Id id, const std::string& name) const {
    fail(id, ErrorKind::unsupported,
         fmt::format("this is {}, whose code Poise does not run: in Python, save model.state_dict() in its place",
                     name));
  }

  void take_value(Id id, const std::string& name) {
    if (pickle_.kind(id) == Kind::persistent) return leave_out(id, fmt::format("{} is left out: a storage", name));
    if (values_.mapping(id)) take_state(id, name);
    keep_value(id, name);
  }

  void keep_value(Id id, const std::string& name) {
    std::string why;
    if (auto value = values_.convert(id, why)) {
      set_attribute(id, name, *std::move(value));
    } else {
      leave_out(id, fmt::format("{} is left out: {}", name.empty() ? "an object" : name, why));
    }
  }

  // The state of a dict besides its entries: for a state dict the versions of its modules, where 1 means the same as
  // none.
  void take_state(Id id, const std::string& name) {
    if (pickle_.kind(id) != Kind::call || !pickle_.call(id).state) return;
    const Id state = *pickle_.call(id).state;
    const auto pairs = values_.mapping(state);
    if (!pairs) return leave_out(state, fmt::format("the state of {} is left out", name.empty() ? "a dict" : name));
    for (const Values::Pair& pair : *pairs) {
      if (pickle_.kind(pair.key) != Kind::text) {
        leave_out(pair.key, "a part of a state is left out: its key is not text");
        continue;
      }
      const std::string key = joined(name, key_text(pair.key));
      const auto versions = key_text(pair.key) == kVersions ? values_.mapping(pair.value) : std::nullopt;
      const bool says_nothing = versions && std::ranges::all_of(*versions, [&](const Values::Pair& version) {
                                  return is_version_1(version.value);
                                });
      if (!says_nothing) keep_value(pair.value, key);
    }
  }

  bool is_version_1(Id id) const {
    const auto pairs = values_.mapping(id);
    return pairs && std::ranges::all_of(*pairs, [&](const Values::Pair& pair) {
             return pickle_.kind(pair.key) == Kind::text && pickle_.text(pair.key) == "version" &&
                    pickle_.kind(pair.value) == Kind::integer && pickle_.integer(pair.value) == 1;
           });
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
    faults_.attempt([&] { make(id, name); }, name);
  }

  // Errors have the tensor's name and a place.
  void make(Id id, const std::string& name) {
    try {
      Tensor tensor = tensors_.make(name, id);
      if (!root_.empty()) tensor.file_name = std::make_shared<const std::string>(joined(root_, name));
      take_(std::move(tensor));
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::invalid_file && error.kind() != ErrorKind::unsupported) throw;
      constexpr std::string_view kFormat = "pytorch: ";
      std::string_view problem = error.message();
      if (problem.starts_with(kFormat)) problem.remove_prefix(kFormat.size());
      throw Error(error.kind(), fmt::format("{}{}: {}", kFormat, name, problem), path_,
                  error.offset().value_or(pickle_.offset(id)));
    }
  }

  static constexpr std::size_t kMostNameBytes = 4096;
  static constexpr std::uint64_t kWalkBytes = 64;
  static constexpr std::uint64_t kTensorBytes = 512;
  // A tensor takes 100 bytes of a pickle or more.
  static constexpr std::uint64_t kFreeBytes = 64 << 20;
  static constexpr std::uint64_t kBytesPerByte = 16;

  const Pickle& pickle_;
  const std::string& path_;
  FunctionRef<void(Tensor)> take_;
  TensorBuilder tensors_;
  Values values_;
  std::uint64_t left_ = kFreeBytes + kBytesPerByte * pickle_.size();  // for names and tensors
  std::vector<char> tensors_below_;
  std::string root_;  // the entry that has all tensors, and is not in their names
  std::vector<Attributes::Entry> attributes_;
  std::unordered_set<std::string> names_;
  std::vector<Finding> findings_;
  Faults faults_{{ErrorKind::invalid_file, ErrorKind::unsupported}};
};

}  // namespace

Rest read_objects(const Pickle& pickle, const std::string& path, Storages& storages, FunctionRef<void(Tensor)> take) {
  return Objects(pickle, path, storages, take).read();
}

}  // namespace poise::pytorch
