// Writing both versions of ALT.
#pragma once

#include <string>
#include <vector>

#include "formats/format.hpp"

namespace poise::alt {

void write_v2(const Model& model, Output& output, const WriteOptions& options);
void write_v1(const Model& model, Output& output, const WriteOptions& options);

// What the written file will not hold, one sentence each.
std::vector<std::string> losses_v2(const Model& model, const WriteOptions& options);
std::vector<std::string> losses_v1(const Model& model, const WriteOptions& options);

}  // namespace poise::alt
