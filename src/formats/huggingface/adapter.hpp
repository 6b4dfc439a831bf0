// Reads and makes PEFT's adapters: directories of adapter_config.json and adapter_model.safetensors. Each adapted
// matrix has two tensors
//
//   base_model.model.NAME.lora_A.weight   [rank, in]       or lora_embedding_A [rank, tokens]
//   base_model.model.NAME.lora_B.weight   [out, rank]      or lora_embedding_B [width, rank]
//
// and any other tensor replaces the model's tensor of the same name.
#pragma once

#include "formats/adapter.hpp"

namespace poise::huggingface {

inline constexpr std::string_view kAdapterWeights = "adapter_model.safetensors";

// Returns the object of adapter_config.json, with null in place of NaN and infinities; std::nullopt if the model has
// none. Throws invalid_file, which names the attribute, if it is not an object.
std::optional<Attributes> find_adapter_config(const Model& model);

// Implements Format::read_adapter for Hugging Face directories. An invalid adapter_config.json becomes a fault of the
// adapter.
std::optional<Adapter> read_peft_adapter(const Model& file, const Model* base);

// Implements AdapterForm::make for PEFT. The result has the attribute adapter_config.
Model make_peft_adapter(const Adapter& adapter, const Model& base);

}  // namespace poise::huggingface
