// Names of unfinished files, next to their targets.
#pragma once

#include <filesystem>

namespace poise {

// "." for a plain name.
std::filesystem::path directory_of(const std::filesystem::path& path);

// A name that nobody can guess.
std::filesystem::path temporary_name(const std::filesystem::path& target);

// The same name for every save to that target: the next save removes what a killed process left.
std::filesystem::path finished_name(const std::filesystem::path& target);

// The file that keeps bytes during a replacement in place: the same name for every replacement in that file.
std::filesystem::path undo_name(const std::filesystem::path& target);

}  // namespace poise
