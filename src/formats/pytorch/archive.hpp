// A zip archive of torch.save(), from version 1.6 on:
//
//   <root>/data.pkl      the pickle; storages are persistent objects in it
//   <root>/data/<key>    the bytes of a storage
//   <root>/byteorder     "little" or "big"; absent: little
//   <root>/version, ...  not needed
#pragma once

#include <poise/source.hpp>

#include "formats/pytorch/checkpoint.hpp"

namespace poise::pytorch {

inline constexpr std::string_view kPickle = "data.pkl";

Rest read_archive(const SourcePtr& source, FunctionRef<void(Tensor)> take);

}  // namespace poise::pytorch
