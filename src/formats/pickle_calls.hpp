// The calls in a pickle: those that Python may make, and those that change a tensor after it was made.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <poise/finding.hpp>

#include "syntax/pickle.hpp"

namespace poise::pytorch {

// The full name of the function that a call calls; empty for other objects, and where a pickle calls what it has made
// itself.
std::string called_name(const pickle::Pickle& pickle, pickle::Id id);

// An error for each call that is not among those of ordinary checkpoints, though its function may be named: an object
// that the pickle makes is called, or a type; a function that calls its argument gets one that torch's weights_only
// does not call; an object gets items or a state that its class does not take; a type of NumPy gets a state under which
// NumPy takes bytes for addresses.
std::vector<Finding> unsafe_calls(const pickle::Pickle& pickle, const std::string& path);

// unexpected_globals() and unsafe_calls().
std::vector<Finding> unsafe_steps(const pickle::Pickle& pickle, const std::string& path);

// Why a tensor that a call makes is another one in PyTorch than its arguments say: steps of the pickle set elements,
// its data or a hook of it afterwards. Nothing if they do not. Requires: the function is expected and makes tensors.
std::optional<std::string> change_of_tensor(const pickle::Pickle& pickle, pickle::Id id);

// True if the call gives a tensor attributes of its own (Megatron's "tensor_model_parallel", say), which are no part of
// its numbers.
bool has_attributes(const pickle::Pickle& pickle, pickle::Id id);

}  // namespace poise::pytorch
