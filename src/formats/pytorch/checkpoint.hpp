// The contents of a pickle of torch.save(): tensors by their names, and everything else.
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

// Holds the content besides the tensors.
struct Rest {
  Attributes attributes;
  std::vector<Finding> findings;
  Faults faults;  // of tensors that were not passed on
};

// Passes on the tensors in the pickle's order, with names of nested dicts and lists joined by dots. If a dict under
// "state_dict", "model" or "module" has all the tensors, its own names are used. Other objects become attributes.
// Reports names of functions and classes that no checkpoint needs as errors, and objects of them that are left out as
// warnings. Goes on after a tensor that is faulty or not supported, until there are enough (Rest::faults). Throws
// unsupported, with the name, if an object of such a class contains tensors, and invalid_file. Adds name and offset of
// the tensor to errors of `add_tensor`.
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
  // Returns the pairs of a dict, OrderedDict, defaultdict or Counter; std::nullopt for other objects, and for those
  // that are made in an unknown way.
  std::optional<std::vector<Pair>> find_pairs(pickle::Id id) const;

  // Returns a description for people of an object that has no meaning here: "an object of a.Class"; std::nullopt for
  // others.
  std::optional<std::string> describe_inert(pickle::Id id) const;

  // Converts numbers, texts, lists, dicts, and sizes, types and scalars of PyTorch and NumPy. std::nullopt, with the
  // reason, for others. Throws invalid_file if they nest too deeply, unsupported if they take more memory than the
  // pickle justifies.
  std::optional<Value> convert(pickle::Id id, std::string& why);

 private:
  std::string name_called(pickle::Id id) const { return name_called_function(pickle_, id); }
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
