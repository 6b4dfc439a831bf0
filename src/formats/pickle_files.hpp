// Pickles in any file: those that Python programs load besides a checkpoint itself.
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

// A file of torch.save() from before version 1.6 begins with a pickle of this number (the lowest byte first), and four
// others.
inline constexpr std::string_view kMagicNumber = "\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";
bool is_magic_number(const pickle::Pickle& pickle);
inline constexpr std::size_t kLegacyPickles = 5;

// Names a place where pickles may be, and the words of its findings.
struct PickleFile {
  BlobPtr bytes;
  std::string name;                          // of the file or member: its ending says if programs take it for a pickle
  std::string path;                          // Finding::path
  std::string prefix = {};                   // of messages: "evil.pkl: " in an archive
  std::optional<std::uint64_t> begin;        // where the bytes are in the file; std::nullopt if they are decoded
  std::optional<std::uint64_t> header = {};  // Finding::offset of those
};

// Reports as errors the steps of the pickles at the beginning of a file that do more than make the objects of
// checkpoints (find_unsafe_steps), and where they cannot be followed to their end.
//
// A file with an extension of PyTorch's or pickle's is treated as a pickle if it begins like one, or names or calls
// anything; other files only if they end as a pickle, or make a call, by names that Python can import. So text, images
// and raw weights are silent. Throws io.
std::vector<Finding> check_pickles(const PickleFile& file);

// Does the same for bytes that certainly are pickles: the data of an object array of NumPy.
std::vector<Finding> check_pickle(const PickleFile& file);

// Returns check_pickles() of each member of an archive, and of archives in it, but for those that `skip` names.
std::vector<Finding> check_members(const ZipArchive& archive, FunctionRef<bool(std::string_view name)> skip);

// Returns true for a function that pickles of checkpoints may call. `name`: of canonicalize_name().
bool is_allowed_function(std::string_view name);

// Returns the full name of the function that a call calls; empty for other objects, and where a pickle calls what it
// has made itself.
std::string name_called_function(const pickle::Pickle& pickle, pickle::Id id);

// Returns an error for each call that is not among those of ordinary checkpoints, though its function may be named: an
// object that the pickle makes is called, or a type; a function that calls its argument gets one that torch's
// weights_only does not call; an object gets items or a state that its class does not take; a type of NumPy gets a
// state under which NumPy takes bytes for addresses.
std::vector<Finding> find_unsafe_calls(const pickle::Pickle& pickle, const std::string& path);

// Returns list_unexpected_globals() and find_unsafe_calls().
std::vector<Finding> find_unsafe_steps(const pickle::Pickle& pickle, const std::string& path);

// Returns why a tensor that a call makes is another one in PyTorch than its arguments say: steps of the pickle set
// elements, its data or a hook of it afterwards. std::nullopt if they do not. Requires: the function is expected and
// makes tensors.
std::optional<std::string> find_tensor_change(const pickle::Pickle& pickle, pickle::Id id);

// Returns true if the call gives a tensor attributes of its own (Megatron's "tensor_model_parallel", say), which are
// not part of its numbers.
bool has_attributes(const pickle::Pickle& pickle, pickle::Id id);

}  // namespace poise::pytorch
