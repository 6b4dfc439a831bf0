// A Hugging Face model of a few numbers: weights for fuzzing the texts of a directory, and texts that fit them.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <poise/model.hpp>

namespace poise::fuzz {

// Writes model.safetensors, or two shards with Hugging Face's names.
void write_huggingface_weights(const std::filesystem::path& directory, bool sharded);

// Writes model.safetensors with the tensors of a list, one a line: "NAME TYPE HEX LENGTH..." is a tensor of that type
// (f16) with these dimensions, whose elements repeat the bytes of HEX. "@KEY TEXT" is an entry of the file's metadata.
// Leaves out other lines, and tensors that go beyond 64 KiB.
void write_listed_weights(const std::filesystem::path& directory, std::string_view list);

// Describes a directory of a scheme: config.json or the file that describes the quantization, and a list of tensors.
struct SchemeSeed {
  std::string_view name;
  std::string_view config;
  std::string list;
  std::string_view modelopt = {};  // hf_quant_config.json
  std::string_view older = {};     // quantize_config.json
};
std::vector<SchemeSeed> list_scheme_seeds();

// Returns the model of all seeds, with a vocabulary.
Model make_huggingface_model();

std::string make_huggingface_config();
std::string make_huggingface_index();
std::string make_sentencepiece_seed();

}  // namespace poise::fuzz
