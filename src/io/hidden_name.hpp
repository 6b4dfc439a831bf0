// Names of what is not finished yet, beside what it will be.
#pragma once

#include <filesystem>

namespace poise {

// "." for a plain name.
std::filesystem::path directory_of(const std::filesystem::path& path);

// One that nobody can guess.
std::filesystem::path temporary_name(const std::filesystem::path& target);

// The same for every save to that target: the next one removes what a killed process left there.
std::filesystem::path finished_name(const std::filesystem::path& target);

// Where the bytes are that a replacement in place takes away: the same for every one of that file.
std::filesystem::path undo_name(const std::filesystem::path& target);

}  // namespace poise
