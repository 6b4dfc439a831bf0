// Writes a Hugging Face directory (docs/formats/huggingface.md).
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/format.hpp"

namespace poise::huggingface {

PreparedFile prepare(const Model& model, const WriteOptions& options);

// See Format::make_codes_test.
std::function<std::string_view(const Tensor& tensor, const StoredType& type)> make_codes_test(const Model& model);

// Returns why a model must not replace a directory with files of these names; empty if it may.
std::string explain_refusal_to_replace(const MemberNames& names);

// Returns the keys of config.json, generation_config.json, tokenizer_config.json and adapter_config.json, such as
// "config.json: hidden_size", and those in the metadata of the directory's first safetensors file. Requires: the
// directory has been read. Throws what reading its files throws.
std::vector<MetadataKey> list_keys(const Input& input);

}  // namespace poise::huggingface
