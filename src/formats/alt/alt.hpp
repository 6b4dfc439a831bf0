// Reads both versions of ALT (docs/formats/alt.md).
#pragma once

#include <string>
#include <vector>

#include "formats/format.hpp"

namespace poise::alt {

Model read_v2(const Input& input, const ReadOptions& options);
Model read_v1(const Input& input, const ReadOptions& options);

// Sets config.vocab_size, which the files do not store: the embedding's rows or, without an embedding, the number of
// tokens.
void set_vocab_size(Model& model);

// Each function writes one version of ALT.
void write_v2(const Model& model, Output& output, const WriteOptions& options);
void write_v1(const Model& model, Output& output, const WriteOptions& options);

// Each function returns the plan of the file that write_v2() or write_v1() would write, and throws the same errors.
FilePlan plan_v2(const Model& model, const WriteOptions& options);
FilePlan plan_v1(const Model& model, const WriteOptions& options);

// Each function returns what the written file would lose, one sentence each.
std::vector<std::string> list_losses_v2(const Model& model, const WriteOptions& options);
std::vector<std::string> list_losses_v1(const Model& model, const WriteOptions& options);

}  // namespace poise::alt
