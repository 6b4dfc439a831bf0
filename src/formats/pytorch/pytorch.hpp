// Writes the zip archive that torch.load(weights_only=True) loads: an OrderedDict of tensors. Reads the older format.
#pragma once

#include <poise/source.hpp>

#include "formats/format.hpp"
#include "formats/pytorch/checkpoint.hpp"

namespace poise::pytorch {

FilePlan plan(const Model& model, const WriteOptions& options);
void write(const Model& model, Output& output, const WriteOptions& options);
std::vector<std::string> list_losses(const Model& model, const WriteOptions& options);

// Before version 1.6, or with _use_new_zipfile_serialization=False, torch.save() writes the older format:
//
//   five pickles     a magic number; 1001, the version; the machine's byte order and sizes of types; the objects,
//                    in which storages are persistent objects; a list of the storages' keys
//   for each key     i64 count of elements, then their bytes

// Returns true if the first bytes of a file are those of the magic number, in a pickle of any protocol.
bool has_legacy_magic(std::string_view start);
inline constexpr std::size_t kMagicWithin = 32;  // the magic number ends within these first bytes

// Reads a file in the older format. Checks the steps of all five pickles, not only those of the objects. Throws
// invalid_file for a file that is also a tar archive, because torch.load() would read the pickles in the archive.
Rest read_legacy(const SourcePtr& source, FunctionRef<void(Tensor)> add_tensor);

// Checks the pickles of any file, for Format::find_dangerous_code. Adds an error for a checkpoint that is also a tar
// archive.
std::vector<Finding> find_dangers_in_pickles(const SourcePtr& source);

}  // namespace poise::pytorch
