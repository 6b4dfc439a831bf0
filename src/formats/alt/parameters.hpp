// The parameters sections of both versions of ALT.
#pragma once

#include <optional>
#include <string>

#include <poise/model.hpp>

#include "formats/alt/file_reader.hpp"
#include "formats/alt/section_writer.hpp"

namespace poise::alt {

// The section of a model without configuration: zeros.
Config no_config();

// Throws unsupported for a model whose configuration the sections cannot hold: of an unknown family, or with keys of
// config.json that change the model.
void require_held_config(const Model& model);

// Throws unsupported if a reader would take the last four fields of a section of version 2 in another order. `config`:
// the section's values.
void require_order(const SectionWriter& section, const Config& config, ParameterOrder order);

// Nothing when the section holds zeros. Requires: the reader is past section_size. Leaves it past the last field.
std::optional<Config> read_parameters_v2(FileReader& reader);

// Version 1 stores the model type here, and the longest sequence.
struct ParametersV1 {
  std::string model_type;
  std::optional<Config> config;
  std::int32_t context_length = 0;
  std::int32_t data_type = 0;
  std::uint64_t data_type_at = 0;
};
ParametersV1 read_parameters_v1(FileReader& reader);

// The data_type of version 1's section: float16 when most elements are.
std::int32_t prevailing_type(const Model& model);

}  // namespace poise::alt
