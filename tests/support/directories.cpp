#include "support/directories.hpp"

namespace poise {

std::filesystem::path source_directory() { return POISE_SOURCE_DIRECTORY; }

std::filesystem::path shared_directory() { return POISE_SHARED_DIRECTORY; }

}  // namespace poise
