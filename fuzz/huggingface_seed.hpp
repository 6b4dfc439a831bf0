// A Hugging Face model of a few numbers: weights for fuzzing the texts of a directory, and texts that fit them.
#pragma once

#include <filesystem>
#include <string>

#include <poise/model.hpp>

namespace poise::fuzz {

// model.safetensors, or two shards named as Hugging Face names them.
void write_huggingface_weights(const std::filesystem::path& directory, bool sharded);

// The complete model, with a vocabulary.
Model huggingface_model();

std::string huggingface_config();
std::string huggingface_index();
std::string sentencepiece_seed();

}  // namespace poise::fuzz
