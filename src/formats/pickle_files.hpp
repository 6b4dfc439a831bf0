// Checks the pickles in any file, because Python programs also load pickles that are not checkpoints.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <poise/blob.hpp>
#include <poise/finding.hpp>

#include "bytes/function_ref.hpp"
#include "pack/zip.hpp"
#include "syntax/pickle.hpp"

namespace poise::pytorch {

inline constexpr std::uint64_t kMaxPickleBytes = std::uint64_t{1} << 30;

// Before version 1.6, torch.save() began a file with five pickles. The first is this number (the lowest byte first).
inline constexpr std::string_view kMagicNumber = "\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";
bool is_magic_number(const pickle::Pickle& pickle);
inline constexpr std::size_t kLegacyPickles = 5;

// Describes bytes that may be pickles, and how findings name them.
struct PickleFile {
  BlobPtr bytes;
  std::string name;         // the name of the file or member; programs decide by its ending whether it is a pickle
  std::string path;         // Finding::path
  std::string prefix = {};  // the beginning of messages, such as "evil.pkl: " in an archive
  std::optional<std::uint64_t> begin;        // offset of `bytes` in the file; std::nullopt if they are stored packed
  std::optional<std::uint64_t> header = {};  // Finding::offset if `begin` is std::nullopt
};

// Checks the pickles at the beginning of a file. Returns an error for each step that does more than make the objects of
// checkpoints (find_unsafe_steps). Also returns an error for each of these: a pickle that Poise cannot follow to its
// end; a 7z or RAR archive; a compressed file whose name promises a pickle; more than 1000 pickles.
//
// A file whose name promises a pickle (.pt, .pkl, .npy, ...) counts as one if it begins like one, or names or calls a
// function. Another file counts as one only if Python can import all names in it, and it has a call, or a whole pickle
// that names a function. So text, images and raw weights have no errors. Throws io.
std::vector<Finding> check_pickles(const PickleFile& file);

// Returns the errors of check_pickles() for bytes that are certainly pickles, such as the data of NumPy's object
// arrays.
std::vector<Finding> check_certain_pickles(const PickleFile& file);

// Returns the errors of check_pickles() for each member of an archive, and of archives in it, except members of the
// outermost archive for which `skip` is true. Follows at most three levels of inner archives.
std::vector<Finding> check_members(const ZipArchive& archive, FunctionRef<bool(std::string_view name)> skip);

// Returns true for a function that pickles of checkpoints may call. `name` is a result of canonicalize_name().
bool is_allowed_function(std::string_view name);

// Returns the full name of the function that a call calls; empty for objects that are not calls, and for a function
// that the pickle makes itself.
std::string find_function_name(const pickle::Pickle& pickle, pickle::Id id);

// Returns an error for each call that ordinary checkpoints do not make, even if they may name its function: a call of
// an object that the pickle makes, or of a type; keyword arguments; a change of a tensor (find_tensor_change); an
// argument that the function would call, except functions that make tensors, plain containers or numbers; items or a
// state that the object's class does not accept; a state of a NumPy type that makes NumPy use bytes as addresses.
std::vector<Finding> find_unsafe_calls(const pickle::Pickle& pickle, const std::string& path);

// Returns the errors of list_unexpected_globals() and of find_unsafe_calls().
std::vector<Finding> find_unsafe_steps(const pickle::Pickle& pickle, const std::string& path);

// Returns how the pickle changes the tensor that a call makes: it sets the tensor's elements, data or hooks, so that
// PyTorch computes with other numbers. Returns std::nullopt if there is no such change. Requires: the function makes
// tensors.
std::optional<std::string> find_tensor_change(const pickle::Pickle& pickle, pickle::Id id);

// Returns true if the call gives a tensor attributes of its own (Megatron's "tensor_model_parallel", say), which are
// not part of its numbers.
bool has_attributes(const pickle::Pickle& pickle, pickle::Id id);

}  // namespace poise::pytorch
