// Reads the zip archives that torch.save() writes from version 1.6 on:
//
//   <root>/data.pkl      the pickle; storages are persistent objects in it
//   <root>/data/<key>    the bytes of a storage
//   <root>/byteorder     "little" or "big"; absent: little
//   <root>/version, ...  Poise does not need them
#pragma once

#include <poise/source.hpp>

#include "formats/pytorch/checkpoint.hpp"
#include "pack/zip.hpp"

namespace poise::pytorch {

inline constexpr std::string_view kPickle = "data.pkl";

// Returns true if the member's name without its folders is kPickle. Ignores case, as PyTorch does.
bool is_pickle_name(std::string_view member);

// Reads an archive of torch.save(). Throws what read_objects() throws, invalid_file for another archive or one with bad
// members, and unsupported for a program of TorchScript and for too large a pickle.
Rest read_archive(const SourcePtr& source, FunctionRef<void(Tensor)> add_tensor);

// Finds dangers in any zip archive, for Format::find_dangerous_code. Reads the pickles of its members. Programs of
// TorchScript, and pickles that PyTorch reads but Poise cannot, are errors.
std::vector<Finding> find_dangers_in_archive(const SourcePtr& source);

// Finds dangers in all members of a checkpoint except data.pkl, which read_archive() checks.
std::vector<Finding> find_dangers_in_other_members(const ZipArchive& archive);

}  // namespace poise::pytorch
