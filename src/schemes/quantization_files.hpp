// Files next to config.json that describe the quantization: quantizing programs wrote them before there was
// quantization_config, or write both.
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

// The first that is there counts.
std::span<const QuantizationFile> quantization_files();

// How two quantization_configs differ about the storage of weights: "bits is 4 and 8". Skips keys that only one of them
// has.
std::vector<std::string> differences(const Attributes& config, const Attributes& other);

}  // namespace poise
