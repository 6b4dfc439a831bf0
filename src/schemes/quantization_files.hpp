// Files beside config.json in which quantizing programs describe a directory: older than quantization_config, or
// besides it.
//
// Sources: ModelOpt's export of Hugging Face checkpoints (hf_quant_config.json); BaseQuantizeConfig of AutoGPTQ
// (quantize_config.json); AutoAWQ before it wrote config.json (quant_config.json, with AWQ's own spellings of keys).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <poise/value.hpp>

namespace poise {

struct QuantizationFile {
  std::string_view name;
  // Its object as quantization_config, with quant_method. Nothing: it describes no quantized weights. Throws
  // invalid_file (without path).
  std::optional<Attributes> (*as_config)(const Attributes& file);
};

// In the order in which they are looked for.
std::span<const QuantizationFile> quantization_files();

// What two quantization_configs say otherwise of how weights are stored: "bits is 4 and 8". Keys that only one of them
// has do not differ.
std::vector<std::string> differences(const Attributes& config, const Attributes& other);

}  // namespace poise
