// The parameters sections of both versions of ALT.
#pragma once

#include <optional>
#include <string>

#include <poise/model.hpp>

#include "formats/alt/file_reader.hpp"

namespace poise::alt {

// What the section of a model without configuration holds: zeros.
Config no_config();

// Nothing when the section holds zeros. Requires: the reader is behind section_size; it is left behind the last field.
std::optional<Config> read_parameters_v2(FileReader& reader);

// Version 1 keeps the model type here, and the longest sequence.
struct ParametersV1 {
  std::string model_type;
  std::optional<Config> config;
  std::int32_t context_length = 0;
};
ParametersV1 read_parameters_v1(FileReader& reader);

}  // namespace poise::alt
