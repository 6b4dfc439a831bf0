// Reads and writes both versions of ALT (docs/formats/alt.md).
#pragma once

#include <string>
#include <vector>

#include "formats/format.hpp"

namespace poise::alt {

Model read_v2(const Input& input, const ReadOptions& options);
Model read_v1(const Input& input, const ReadOptions& options);

// Sets vocab_size of the model's configuration, if there is one, because the parameters section lacks this key. The
// value is the number of rows of the embedding or, without a two-dimensional embedding, the number of tokens.
void set_vocab_size(Model& model);

// Each function writes one version of ALT, and throws unsupported for a model that this version cannot hold. write_v2()
// throws bad_argument for an unknown dialect.
void write_v2(const Model& model, Output& output, const WriteOptions& options);
void write_v1(const Model& model, Output& output, const WriteOptions& options);

// Each function returns the plan of the file that write_v2() or write_v1() would write. It throws the same errors,
// except those about the scales of codes, because it does not compute scales.
FilePlan plan_v2(const Model& model, const WriteOptions& options);
FilePlan plan_v1(const Model& model, const WriteOptions& options);

// Each function returns a sentence for each loss of information in the written file.
std::vector<std::string> list_losses_v2(const Model& model, const WriteOptions& options);
std::vector<std::string> list_losses_v1(const Model& model, const WriteOptions& options);

}  // namespace poise::alt
