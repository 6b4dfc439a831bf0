// The options of generation that a conversation can change: /set.
#pragma once

#include <string>
#include <vector>

#include <poise/session.hpp>

namespace poise::cli {

// Names as on the command line, without dashes: "temperature", "top-k", ...
std::vector<std::string> setting_names();

// "temperature 0.7", "ignore-eos", or a line of several; a name may have underscores, and an equals sign after it.
// Changes nothing where it throws bad_argument, with what was expected, for an unknown name or a wrong value.
void change_setting(const std::string& text, const Weights& weights, GenerateOptions& options);

// "temperature 0.7, top-k 0, ..."
std::string settings_text(const GenerateOptions& options);

}  // namespace poise::cli
