// Sources of open files.
#pragma once

#include <cstdint>
#include <string>

#include <poise/source.hpp>

#include "io/file_descriptor.hpp"

namespace poise {

// The first `size` bytes of a file, mapped if possible, else read. Requires: the file has them, and they do not change.
// Throws io.
SourcePtr source_of(const FileDescriptor& file, std::string name, std::uint64_t size);

}  // namespace poise
