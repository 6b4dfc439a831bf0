// Reads the objects in the pickle of a checkpoint: finds tensors by the keys that lead to them, and converts plain data
// to attributes. checkpoint.hpp describes the names.
#include "formats/pytorch/checkpoint.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <unordered_set>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "formats/pytorch/tensor_builder.hpp"
#include "model/limits.hpp"

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
    if (warnings_ > kMostWarnings) return;
    const bool is_last = warnings_++ == kMostWarnings;
    findings_.push_back(
        {Severity::warning, is_last ? "more parts of the file are left out" : problem, path_, pickle_.offset(id)});
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
    if (pickle_.kind(id) == Kind::persistent)
      return add_warning(id, fmt::format("{} is left out: it is a storage without a tensor", name));
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

  static constexpr std::size_t kMostWarnings = 1000;  // each two bytes of a pickle may cause one
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
  std::size_t warnings_ = 0;
  Faults faults_{{ErrorKind::invalid_file, ErrorKind::unsupported}};
};

}  // namespace

Rest read_objects(const Pickle& pickle, const std::string& path, Storages& storages,
                  FunctionRef<void(Tensor)> add_tensor) {
  return Objects(pickle, path, storages, add_tensor).read();
}

}  // namespace poise::pytorch
