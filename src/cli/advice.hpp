// Turns the library's remedies for errors into advice: options of the command.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <poise/error.hpp>

namespace poise::cli {

// Returns "--dtype f32 converts it, --skip 'a' leaves it out"; an empty text without remedies. Tensors' names are not
// escaped.
std::string make_advice(const std::vector<Remedy>& remedies);

// Returns the error's text, followed by the advice.
std::string add_advice(const Error& error);

// Runs `work`, and adds the path to its errors about files that have no path.
void add_path_to_errors(const std::string& path, const std::function<void()>& work);

}  // namespace poise::cli
