// What a user of the command may do about an error: the library's remedies in the words of the options.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <poise/error.hpp>

namespace poise::cli {

// "--dtype f32 converts it, --skip 'a' leaves it out"; empty where there is no remedy. As raw as the tensors' names.
std::string advice(const std::vector<Remedy>& remedies);

// The error's text, then the advice.
std::string with_advice(const Error& error);

// Does the work of a command on one path. An error about a file that names none is about that one.
void name_file(const std::string& path, const std::function<void()>& work);

}  // namespace poise::cli
