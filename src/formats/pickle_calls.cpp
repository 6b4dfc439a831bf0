#include "formats/pickle_files.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <unordered_set>

#include <fmt/format.h>

#include "formats/pickle_globals.hpp"

namespace poise::pytorch {
namespace {

using pickle::Call;
using pickle::Id;
using pickle::Kind;
using pickle::Pickle;

// Names the kinds of states that the opcode BUILD may give to the result of a function.
enum class State : std::uint8_t {
  none,
  fields,  // a dict of attributes
  record,  // a dict of attributes, or a tuple of their values
  tensor,  // a tuple (requires_grad, volatile, hooks) with empty hooks, as old files have for parameters
  array,   // the state of a numpy.ndarray
  type,    // the state of a numpy.dtype
};

// Pickles of checkpoints may call the functions in the tables below and the classes that is_checkpoint_class() accepts,
// but only name other expected functions. Later steps may not change values and paths; find_tensor_change() has the
// rule for tensors, and kCallRules those for other results.
constexpr std::array kTensorMakers = std::to_array<std::string_view>(
    {"torch._utils._rebuild_tensor", "torch._utils._rebuild_tensor_v2", "torch._utils._rebuild_tensor_v3",
     "torch._utils._rebuild_parameter", "torch._utils._rebuild_parameter_with_state",
     "torch._utils._rebuild_sparse_tensor", "torch._utils._rebuild_sparse_csr_tensor", "torch._utils._rebuild_qtensor",
     "torch._utils._rebuild_meta_tensor_no_storage", "torch._utils._rebuild_device_tensor_from_numpy",
     "torch._utils._rebuild_device_tensor_from_cpu_tensor", "torch._tensor._rebuild_from_type_v2",
     "torch.nn.parameter.Parameter", "torch.nn.parameter.Buffer", "torch.Tensor"});
constexpr std::array kValueMakers = std::to_array<std::string_view>(
    {"torch.serialization._get_layout", "torch.Size", "torch.device", "builtins.frozenset", "builtins.bytes",
     "builtins.bytearray", "builtins.complex", "builtins.slice", "builtins.range", "builtins.xrange", "_codecs.encode",
     "numpy.core.multiarray.scalar", "numpy._core.multiarray.scalar", "numpy.core.numeric._frombuffer",
     "numpy._core.numeric._frombuffer"});
constexpr std::array kPathMakers = std::to_array<std::string_view>(
    {"pathlib.Path", "pathlib.PosixPath", "pathlib.WindowsPath", "pathlib.PurePosixPath", "pathlib.PureWindowsPath"});

struct CallRule {
  std::string_view name;
  State state = State::none;
  bool has_items = false;  // the opcodes APPENDS and ADDITEMS may add to the result
  bool has_pairs = false;  // the opcode SETITEMS may add to the result
};
constexpr std::array kCallRules = std::to_array<CallRule>({
    {"collections.OrderedDict", State::fields, false, true},
    {"collections.defaultdict", State::none, false, true},
    {"collections.Counter", State::none, false, true},
    {"builtins.set", State::none, true},
    {"numpy.core.multiarray._reconstruct", State::array},
    {"numpy._core.multiarray._reconstruct", State::array},
    {"numpy.dtype", State::type},
    {"argparse.Namespace", State::fields},
    {"types.SimpleNamespace", State::fields},
});

// torch._tensor._rebuild_from_type_v2 calls its first argument with its third.
constexpr std::string_view kRebuildType = "torch._tensor._rebuild_from_type_v2";
constexpr std::string_view kRebuilds = "torch._utils._rebuild_";
// A defaultdict calls its first argument, without arguments.
constexpr std::array<std::string_view, 8> kFactories = {"builtins.list",  "builtins.dict",          "builtins.set",
                                                        "builtins.int",   "builtins.str",           "builtins.tuple",
                                                        "builtins.float", "collections.OrderedDict"};

std::optional<CallRule> find_call_rule(std::string_view name) {
  const auto has_name = [&](std::span<const std::string_view> names) {
    return std::ranges::find(names, name) != names.end();
  };
  if (has_name(kTensorMakers)) return CallRule{name, State::tensor};
  if (has_name(kValueMakers) || has_name(kPathMakers)) return CallRule{name};
  if (is_checkpoint_class(name)) return CallRule{name, State::record};
  const auto row = std::ranges::find(kCallRules, name, &CallRule::name);
  return row == kCallRules.end() ? std::nullopt : std::optional(*row);
}

std::string find_canonical_name(const Pickle& pickle, Id id) {
  return pickle.kind(id) == Kind::global ? canonicalize_name(make_full_name(pickle.global(id))) : std::string();
}

bool is_empty_mapping(const Pickle& pickle, Id id) {
  if (id == pickle::kNone) return true;
  if (pickle.kind(id) == Kind::dict) return pickle.items(id).empty();
  if (pickle.kind(id) != Kind::call) return false;
  const Call& call = pickle.call(id);
  return find_function_name(pickle, id) == "collections.OrderedDict" && pickle.items(call.arguments).empty() &&
         call.pairs.empty() && call.items.empty() && call.keywords.empty() && !call.state;
}

// Returns true for numbers, texts, element types, and containers of them with at most 8 levels. No program calls these,
// or computes with them as with tensors.
bool is_plain(const Pickle& pickle, Id id, std::size_t depth = 0) {
  constexpr std::size_t kMostLevels = 8;
  switch (pickle.kind(id)) {
    case Kind::call:
    case Kind::persistent: return false;
    case Kind::global: return find_torch_dtype(make_full_name(pickle.global(id))).has_value();
    case Kind::tuple:
    case Kind::list:
    case Kind::set:
    case Kind::dict:
      return depth < kMostLevels &&
             std::ranges::all_of(pickle.items(id), [&](Id item) { return is_plain(pickle, item, depth + 1); });
    default: return true;
  }
}

// Returns how a state's attributes change a tensor; std::nullopt if they do not. torch sets each of them: for example,
// setattr(tensor, "data", value) gives the tensor other numbers.
std::optional<std::string> find_attribute_change(const Pickle& pickle, Id state) {
  constexpr std::array<std::string_view, 5> kSetters = {"data", "grad", "real", "imag", "names"};
  if (is_empty_mapping(pickle, state)) return std::nullopt;
  if (pickle.kind(state) != Kind::dict) return "its attributes are not a dict";
  const std::span<const Id> items = pickle.items(state);
  for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
    if (pickle.kind(items[i]) != Kind::text) return "the name of an attribute is not text";
    const std::string_view name = pickle.text(items[i]);
    const bool is_setter = std::ranges::find(kSetters, name) != kSetters.end() || name.starts_with("__");
    if (is_setter || !is_plain(pickle, items[i + 1])) return fmt::format("its attribute {} changes it", name);
  }
  return std::nullopt;
}

// Describes a function that makes a tensor: which of its arguments, counted from 0, hold the tensor's attributes and
// hooks. 0: no argument does, because argument 0 never holds them.
struct Extras {
  std::string_view name;
  std::size_t attributes = 0;
  std::size_t hooks = 0;
};
constexpr std::array kExtras = std::to_array<Extras>({
    {"torch._tensor._rebuild_from_type_v2", 3, 0},
    {"torch._utils._rebuild_parameter_with_state", 3, 2},
    {"torch._utils._rebuild_parameter", 0, 2},
    {"torch._utils._rebuild_tensor_v2", 0, 5},
    {"torch._utils._rebuild_tensor_v3", 0, 5},
    {"torch._utils._rebuild_qtensor", 0, 6},
});

// Returns the argument at a place; None for place 0, and if there are fewer arguments.
Id find_argument(std::span<const Id> arguments, std::size_t place) {
  return place > 0 && place < arguments.size() ? arguments[place] : pickle::kNone;
}

std::optional<std::string> find_argument_change(const Pickle& pickle, std::string_view name,
                                                std::span<const Id> arguments) {
  const auto extras = std::ranges::find(kExtras, name, &Extras::name);
  if (extras == kExtras.end()) return std::nullopt;
  if (!is_empty_mapping(pickle, find_argument(arguments, extras->hooks)))
    return "it has hooks, which PyTorch calls when it computes";
  const Id attributes = find_argument(arguments, extras->attributes);
  const bool is_pair = pickle.kind(attributes) == Kind::tuple && pickle.items(attributes).size() == 2;
  if (!is_pair) return find_attribute_change(pickle, attributes);
  for (const Id part : pickle.items(attributes)) {
    if (auto change = find_attribute_change(pickle, part)) return change;
  }
  return std::nullopt;
}

// Returns true for a tuple (requires_grad, volatile, hooks) with empty hooks. Other states set data or storage.
bool is_tensor_state(const Pickle& pickle, Id state) {
  if (pickle.kind(state) != Kind::tuple || pickle.items(state).size() != 3) return false;
  const std::span<const Id> parts = pickle.items(state);
  return pickle.kind(parts[0]) == Kind::boolean && pickle.kind(parts[1]) == Kind::boolean &&
         is_empty_mapping(pickle, parts[2]);
}

// Returns the fault of a call of numpy.dtype, if it has one. The state must not have fields, and must have the flags of
// the type. NumPy trusts these flags: with wrong ones, it uses the bytes of an array as the addresses of objects.
std::optional<std::string> find_type_fault(const Pickle& pickle, const Call& call) {
  constexpr std::string_view kWords = "biufcSUVMm?O";
  constexpr std::int64_t kObjectFlags = 63;  // the flags in the result of numpy.dtype("O").__reduce__()
  constexpr std::int64_t kAddressFlags = 7;
  const std::span<const Id> arguments = pickle.items(call.arguments);
  const std::string_view word =
      !arguments.empty() && pickle.kind(arguments[0]) == Kind::text ? pickle.text(arguments[0]) : std::string_view();
  const bool is_word = !word.empty() && kWords.find(word[0]) != std::string_view::npos &&
                       word.find_first_not_of("0123456789", 1) == std::string_view::npos;
  if (!is_word) return fmt::format("with \"{}\", which is not the name of a plain type", word);
  if (!call.state) return std::nullopt;
  if (pickle.kind(*call.state) != Kind::tuple) return "with a state that is not a tuple";
  const std::span<const Id> state = pickle.items(*call.state);
  constexpr std::size_t kParts = 7;
  if (state.size() < kParts) return "with a state that is too short";
  const bool has_fields = std::ranges::any_of(state.subspan(2, 3), [](Id part) { return part != pickle::kNone; });
  if (has_fields) return "with fields: expected a type of one number, text or object";
  const auto number = [&](std::size_t i) {
    return pickle.kind(state[i]) == Kind::integer ? pickle.integer(state[i]) : 0;
  };
  const std::int64_t flags = state.size() > kParts ? number(kParts) : word[0] == 'O' ? kObjectFlags : 0;
  const bool fits = word[0] == 'O' ? flags == kObjectFlags && number(5) < 0 : (flags & kAddressFlags) == 0;
  if (!fits) return fmt::format("with a state that does not fit the type {}", word);
  return std::nullopt;
}

bool is_numpy_type(const Pickle& pickle, Id id) { return find_function_name(pickle, id) == "numpy.dtype"; }

// Returns true for a tuple (version, shape, type, order, data). The oldest files have no version.
bool is_array_state(const Pickle& pickle, Id state) {
  if (pickle.kind(state) != Kind::tuple) return false;
  const std::span<const Id> parts = pickle.items(state);
  return (parts.size() == 5 && is_numpy_type(pickle, parts[2])) ||
         (parts.size() == 4 && is_numpy_type(pickle, parts[1]));
}

bool is_field_dict(const Pickle& pickle, Id state) {
  return pickle.kind(state) == Kind::dict || find_function_name(pickle, state) == "collections.OrderedDict";
}

class CallCheck {
 public:
  CallCheck(const Pickle& pickle, const std::string& path) : pickle_(pickle), path_(path) {}

  std::vector<Finding> run() {
    for (Id id = 0; id < pickle_.count_objects(); ++id) {
      if (pickle_.kind(id) == Kind::call) check_call(id);
    }
    return std::move(findings_);
  }

 private:
  // Reports each problem once, at its first place, up to a limit.
  void report(Id id, std::string problem) {
    constexpr std::size_t kMostProblems = 100;
    if (problems_.size() < kMostProblems && problems_.insert(problem).second)
      findings_.push_back({Severity::error, std::move(problem), path_, pickle_.offset(id)});
  }

  void check_call(Id id) {
    const Call& call = pickle_.call(id);
    const std::string name = find_canonical_name(pickle_, call.function);
    if (name.empty()) return report(id, "it calls an object that it makes itself, which no checkpoint needs");
    if (!is_expected_global(name)) return;  // list_unexpected_globals() decides whether it is an error
    const auto rule = find_call_rule(name);
    if (!rule) return report(id, fmt::format("it calls {}, which checkpoints only name", name));
    if (rule->state == State::tensor) {
      if (const auto change = find_tensor_change(pickle_, id))
        report(id, fmt::format("it changes a tensor that {} makes: {}", name, *change));
    } else {
      check_changes(id, *rule);
    }
    if (const auto problem = find_argument_fault(name, call)) report(id, fmt::format("it calls {} {}", name, *problem));
  }

  void check_changes(Id id, const CallRule& rule) {
    const Call& call = pickle_.call(id);
    const bool has_state = call.state && *call.state != pickle::kNone;
    const bool is_known = !has_state || (rule.state == State::fields && is_field_dict(pickle_, *call.state)) ||
                          (rule.state == State::record &&
                           (is_field_dict(pickle_, *call.state) || pickle_.kind(*call.state) == Kind::tuple)) ||
                          (rule.state == State::array && is_array_state(pickle_, *call.state)) ||
                          rule.state == State::type;  // find_type_fault() checks it
    if (!is_known)
      report(id, fmt::format("it sets the state of an object of {} to a value of a kind that checkpoints do not have",
                             rule.name));
    const bool is_changed = (!call.items.empty() && !rule.has_items) || (!call.pairs.empty() && !rule.has_pairs);
    if (is_changed) report(id, fmt::format("it sets items of an object of {}, which has no items", rule.name));
    if (!call.keywords.empty())
      report(id, fmt::format("it calls {} with keyword arguments, which no checkpoint needs", rule.name));
  }

  std::optional<std::string> find_argument_fault(std::string_view name, const Call& call) const {
    const std::span<const Id> arguments = pickle_.items(call.arguments);
    const Id first = arguments.empty() ? pickle::kNone : arguments[0];
    const std::string first_name = find_canonical_name(pickle_, first);
    if (name == kRebuildType) {
      // The first argument is a function that PyTorch calls with the items of a tuple. This check does not see that
      // call, so the function must be one that does not call its arguments.
      if (!is_allowed_function(first_name) || !first_name.starts_with(kRebuilds))
        return "with a function that does not rebuild a tensor";
    } else if (name == "collections.defaultdict") {
      if (first != pickle::kNone && std::ranges::find(kFactories, first_name) == kFactories.end())
        return "with a function that does not make a plain container or number";
    } else if (name == "numpy.dtype") {
      return find_type_fault(pickle_, call);
    } else if (name.ends_with("multiarray._reconstruct")) {
      if (first_name != "numpy.ndarray") return "with another class than numpy.ndarray";
    } else if (name.ends_with("multiarray.scalar")) {
      if (!is_numpy_type(pickle_, first)) return "without a type of NumPy";
    } else if (name.ends_with("numeric._frombuffer")) {
      if (arguments.size() < 2 || !is_numpy_type(pickle_, arguments[1])) return "without a type of NumPy";
    }
    return std::nullopt;
  }

  const Pickle& pickle_;
  const std::string& path_;
  std::vector<Finding> findings_;
  std::unordered_set<std::string> problems_;
};

}  // namespace

bool is_allowed_function(std::string_view name) { return find_call_rule(name).has_value(); }

std::string find_function_name(const Pickle& pickle, Id id) {
  if (pickle.kind(id) != Kind::call) return {};
  const Id function = pickle.call(id).function;
  return pickle.kind(function) == Kind::global ? make_full_name(pickle.global(function)) : std::string();
}

std::vector<Finding> find_unsafe_calls(const Pickle& pickle, const std::string& path) {
  return CallCheck(pickle, path).run();
}

std::vector<Finding> find_unsafe_steps(const Pickle& pickle, const std::string& path) {
  std::vector<Finding> findings = list_unexpected_globals(pickle, path);
  std::ranges::move(find_unsafe_calls(pickle, path), std::back_inserter(findings));
  return findings;
}

std::optional<std::string> find_tensor_change(const Pickle& pickle, Id id) {
  const Call& call = pickle.call(id);
  if (!call.pairs.empty() || !call.items.empty()) return "elements of it are set after it was made";
  if (!call.keywords.empty()) return "it is made with keyword arguments";
  if (call.state && !is_empty_mapping(pickle, *call.state) && !is_tensor_state(pickle, *call.state))
    return "it gets a state that changes it";
  const std::string name = find_function_name(pickle, id);
  const std::span<const Id> arguments = pickle.items(call.arguments);
  if (auto change = find_argument_change(pickle, name, arguments)) return change;
  // The first and third argument are the function and the arguments of another call.
  if (name != kRebuildType || arguments.size() < 3 || pickle.kind(arguments[2]) != Kind::tuple) return std::nullopt;
  return find_argument_change(pickle, find_canonical_name(pickle, arguments[0]), pickle.items(arguments[2]));
}

bool has_attributes(const Pickle& pickle, Id id) {
  const auto extras = std::ranges::find(kExtras, find_function_name(pickle, id), &Extras::name);
  if (extras == kExtras.end()) return false;
  const Id attributes = find_argument(pickle.items(pickle.call(id).arguments), extras->attributes);
  const bool is_pair = pickle.kind(attributes) == Kind::tuple;
  return is_pair
             ? !std::ranges::all_of(pickle.items(attributes), [&](Id part) { return is_empty_mapping(pickle, part); })
             : !is_empty_mapping(pickle, attributes);
}

}  // namespace poise::pytorch
