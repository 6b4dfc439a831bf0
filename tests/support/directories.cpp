#include "support/directories.hpp"

#include <random>

namespace poise {

std::filesystem::path source_directory() { return POISE_SOURCE_DIRECTORY; }

std::filesystem::path shared_directory() { return POISE_SHARED_DIRECTORY; }

namespace support {

TemporaryDirectory::TemporaryDirectory() : path_(std::filesystem::temp_directory_path() / ("poise_test_" + std::to_string(std::random_device()()))) {
  std::filesystem::create_directories(path_);
}

}  // namespace support

}  // namespace poise
