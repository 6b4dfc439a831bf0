// Where tests find files: the project itself, and the data shared beside it.
#pragma once

#include <filesystem>

namespace poise {

// The root of the project's tree.
std::filesystem::path source_directory();

// The directory of real files for tests. It may be absent: a test that needs it skips.
std::filesystem::path shared_directory();

}  // namespace poise
