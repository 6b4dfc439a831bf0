// Models that commands read from a path, standard input or a pipe.
#pragma once

#include <string>

#include <poise/format.hpp>

namespace poise::cli {

// True for "-", which is standard input, and for pipes.
bool is_stream(const std::string& path);

// The model at a path, or in a stream. Throws what open() throws, io, and bad_argument for a terminal and for a second
// use of standard input.
Model open_model(const std::string& path, const ReadOptions& options);

}  // namespace poise::cli
