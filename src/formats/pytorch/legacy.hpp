// A file of torch.save() from before version 1.6 (or with _use_new_zipfile_serialization=False):
//
//   five pickles     a magic number; 1001; facts of the machine; the objects, in which storages are persistent objects;
//                    a list of the storages' keys
//   for each key     i64 count of elements, then their bytes
#pragma once

#include <poise/source.hpp>

#include "formats/pytorch/checkpoint.hpp"

namespace poise::pytorch {

// Where the magic number is, after steps that depend on the pickle's protocol.
inline constexpr std::string_view kMagic = "\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.";
inline constexpr std::size_t kMagicWithin = 32;

Rest read_legacy(const SourcePtr& source, FunctionRef<void(Tensor)> take);

}  // namespace poise::pytorch
