// Turns the library's remedies for errors into advice: options of the command.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include <poise/error.hpp>

namespace poise::cli {

// Returns "--dtype f32 converts it, --skip 'a' leaves it out"; an empty text without remedies. Tensors' names are not
// escaped.
std::string make_advice(const std::vector<Remedy>& remedies);

// Returns the error's text, followed by the advice. If a command took "-" or a URL for a file, returns another text,
// which states this. `arguments` are those of the command line.
std::string add_advice(const Error& error, std::span<const char* const> arguments);

// Returns true for bad_argument, and if the command line names "-" or a URL where a command takes only files.
bool is_wrong_usage(const Error& error, std::span<const char* const> arguments);

// Runs `work`. If it throws an error about a file (invalid_file, unsupported) that has no path, adds this path to it.
void add_path_to_errors(const std::string& path, const std::function<void()>& work);

}  // namespace poise::cli
