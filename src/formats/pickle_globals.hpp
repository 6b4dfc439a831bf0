// Lists the functions and classes that checkpoints of PyTorch name, and the effects of others if Python called them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <poise/dtype.hpp>
#include <poise/finding.hpp>

#include "syntax/pickle.hpp"

namespace poise::pytorch {

// Returns module and name: "torch.FloatStorage".
std::string make_full_name(const pickle::Global& global);

// Return the element type of a storage ("torch.FloatStorage") and of a dtype ("torch.float16"); std::nullopt for other
// names, and for types that Poise lacks. Untyped storages are u8.
std::optional<DType> find_storage_dtype(std::string_view name);
std::optional<DType> find_torch_dtype(std::string_view name);
// Returns the storage class that Poise writes for a type; empty for types without such a class (f8, u16, ...).
std::string_view find_storage_name(DType dtype);

// Returns a name with the module "builtins" in place of "__builtin__", which is Python 2's name and the one in pickles
// of protocols 0 to 2.
std::string canonicalize_name(std::string_view name);

// Returns true for the classes of torch.distributed.checkpoint that describe a checkpoint; they only hold fields.
bool is_checkpoint_class(std::string_view name);

// Returns true for names that checkpoints usually need. Importing them is harmless, and so is calling them as far as
// find_unsafe_calls() allows it. SECURITY.md compares them with those of torch.load(weights_only=True).
bool is_expected_global(std::string_view name);

// Returns the effect of a function or class that is_expected_global() rejects, for messages: "runs commands", "imports
// modules", ...; empty if unknown.
std::string_view describe_danger(std::string_view name);

// Returns an error for each name in a pickle that is_expected_global() rejects, up to 100, and one for all further
// names. Accepts getattr where it only gets enumerators of a checkpoint's classes.
std::vector<Finding> list_unexpected_globals(const pickle::Pickle& pickle, const std::string& path);

}  // namespace poise::pytorch
