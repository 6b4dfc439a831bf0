// Converts objects of a pickle that are plain data to Values.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <poise/value.hpp>

#include "formats/pickle_calls.hpp"
#include "syntax/pickle.hpp"
#include "syntax/value_budget.hpp"

namespace poise::pytorch {

class Values {
 public:
  // Requires: both outlive this.
  Values(const pickle::Pickle& pickle, const std::string& path);

  struct Pair {
    pickle::Id key;
    pickle::Id value;
  };
  // Of a dict, OrderedDict, defaultdict or Counter; nothing for other objects, and for those that are made in no way
  // that is known here.
  std::optional<std::vector<Pair>> mapping(pickle::Id id) const;

  // What an object without a meaning here is, for people: "an object of a.Class"; nothing for others.
  std::optional<std::string> inert_name(pickle::Id id) const;

  // Numbers, texts, lists, dicts, and sizes, types and scalars of PyTorch and NumPy. Nothing, with the reason, for
  // others. Throws invalid_file if they nest too deeply, unsupported if they take more memory than the pickle
  // justifies.
  std::optional<Value> convert(pickle::Id id, std::string& why);

 private:
  std::string called(pickle::Id id) const { return called_name(pickle_, id); }
  std::optional<std::vector<pickle::Id>> argument_pairs(pickle::Id id, std::size_t place) const;
  std::optional<Value> convert(pickle::Id id, std::size_t depth, std::string& why);
  std::optional<Value> convert_list(std::span<const pickle::Id> items, std::size_t depth, std::string& why);
  std::optional<Value> convert_mapping(const std::vector<Pair>& pairs, std::size_t depth, std::string& why);
  std::optional<Value> convert_call(pickle::Id id, std::size_t depth, std::string& why);
  std::optional<Value> convert_path(std::span<const pickle::Id> parts, std::string& why);
  std::optional<Value> convert_scalar(std::span<const pickle::Id> arguments, std::string& why) const;
  std::optional<std::string> bytes_of(pickle::Id id) const;

  const pickle::Pickle& pickle_;
  const std::string& path_;
  ValueBudget budget_;
};

}  // namespace poise::pytorch
