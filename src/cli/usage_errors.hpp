// Messages of the option parser, in the form of all others.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

namespace poise::cli {

// One sentence about arguments that do not fit the command: "--json cannot be used with --logits". Missing and
// superfluous arguments come with the usage line. Without "poise: ". Requires: the error is none that asks for help.
std::string usage_message(const CLI::App& app, const CLI::ParseError& error);

}  // namespace poise::cli
