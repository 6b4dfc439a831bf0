// Reads the objects that torch.save() stores in a pickle: tensors with names, and others.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <poise/finding.hpp>
#include <poise/tensor.hpp>
#include <poise/value.hpp>

#include "bytes/function_ref.hpp"
#include "formats/faulty_model.hpp"
#include "formats/pickle_files.hpp"
#include "formats/pytorch/storages.hpp"
#include "syntax/pickle.hpp"
#include "syntax/value_budget.hpp"

namespace poise::pytorch {

inline constexpr std::size_t kMostNameBytes = 4096;  // of a tensor's name, read or written

// Holds the content of a checkpoint besides its tensors.
struct Rest {
  Attributes attributes;
  std::vector<Finding> findings;
  Faults faults;  // faults of the tensors that are left out
};

// Passes the tensors to `add_tensor`, in the pickle's order. A name consists of the keys of nested dicts and lists,
// joined by dots. If the whole pickle is one tensor, the name is "tensor". If all tensors are in a dict under the key
// "state_dict", "model", "module" or "model_state_dict", names do not have this key. Plain data become attributes.
// Findings are errors for functions and classes that no checkpoint needs, and warnings for objects that are left out.
// Continues after a tensor that is faulty or not supported, up to the limit of Rest::faults. Throws invalid_file, and
// unsupported, for example if an object of a class that no checkpoint needs contains tensors (the message names the
// class). Adds name and offset of the tensor to errors of `add_tensor`.
Rest read_objects(const pickle::Pickle& pickle, const std::string& path, Storages& storages,
                  FunctionRef<void(Tensor)> add_tensor);

// Converts objects of a pickle that are plain data to Values.
class Values {
 public:
  // Requires: both outlive this.
  Values(const pickle::Pickle& pickle, const std::string& path);

  struct Pair {
    pickle::Id key;
    pickle::Id value;
  };
  // Returns the pairs of a dict, OrderedDict, defaultdict or Counter; std::nullopt for other objects, and for calls
  // with unknown arguments.
  std::optional<std::vector<Pair>> find_pairs(pickle::Id id) const;

  // Returns a description of an object that Poise cannot interpret, for messages: "an object of a.Class"; std::nullopt
  // for other objects.
  std::optional<std::string> describe_unknown_object(pickle::Id id) const;

  // Converts plain data: None, numbers, texts, bytes, paths, lists, sets, dicts and namespaces, and sizes, types,
  // devices and scalars of PyTorch and NumPy. Returns std::nullopt for other objects, and sets `why` to the reason.
  // Throws invalid_file if they nest too deeply, unsupported if they take more memory than the pickle justifies.
  std::optional<Value> convert(pickle::Id id, std::string& why);

 private:
  std::string find_function_name(pickle::Id id) const { return pytorch::find_function_name(pickle_, id); }
  std::optional<std::vector<pickle::Id>> find_argument_pairs(pickle::Id id, std::size_t place) const;
  std::optional<Value> convert(pickle::Id id, std::size_t depth, std::string& why);
  std::optional<Value> convert_list(std::span<const pickle::Id> items, std::size_t depth, std::string& why);
  std::optional<Value> convert_mapping(const std::vector<Pair>& pairs, std::size_t depth, std::string& why);
  std::optional<Value> convert_call(pickle::Id id, std::size_t depth, std::string& why);
  std::optional<Value> convert_path(std::span<const pickle::Id> parts, std::string& why);
  std::optional<Value> convert_scalar(std::span<const pickle::Id> arguments, std::string& why) const;
  std::optional<std::string> read_bytes(pickle::Id id) const;

  const pickle::Pickle& pickle_;
  const std::string& path_;
  ValueBudget budget_;
};

}  // namespace poise::pytorch
