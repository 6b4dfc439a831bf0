// Reads and writes GGUF, the files of llama.cpp and the programs that use it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <poise/model.hpp>
#include <poise/value.hpp>

#include "formats/adapter.hpp"
#include "formats/format.hpp"
#include "formats/gguf/architectures.hpp"
#include "formats/gguf/hyperparameters.hpp"
#include "formats/gguf/metadata.hpp"

namespace poise::gguf {

// Reads GGUF: versions 1 to 3, either byte order, whole or split into several files.
Model read(const Input& input, const ReadOptions& options);

// Returns the name of one file of a split model, such as "model-00002-of-00003.gguf" for "model", 1 and 3: `number`
// counts from 0.
std::string make_split_name(const std::string& prefix, std::uint64_t number, std::uint64_t count);
// Returns the prefix, "model", of such a name; std::nullopt if the name does not end in this number and count.
std::optional<std::string> find_split_prefix(const std::string& name, std::uint64_t number, std::uint64_t count);

// Returns true if llama.cpp stores this matrix of the model transposed.
bool has_transposed_blocks(const Model& model, std::string_view tensor);

// Returns a function that is true for the tensors that llama.cpp needs as float32: norms, other vectors and biases. The
// function looks only at name and shape; prepare() still writes codes and float64 as they are. It is false for all
// tensors of a model whose names prepare() does not translate.
std::function<bool(const Tensor& tensor)> make_f32_test(const Model& model);

// Returns true for models for which llama.cpp requires an output matrix, even if it equals the embedding.
bool requires_output(const Model& model);

// Prepares a file of GGUF version 3, as llama.cpp loads it. Throws unsupported for a model that GGUF cannot hold or
// that RunnableCheck (write.cpp) refuses, and bad_argument for an alignment that is not allowed.
PreparedFile prepare(const Model& model, const WriteOptions& options);

struct WrittenMetadata {
  KeyValues entries;
  std::vector<std::string> losses;  // what the entries cannot hold, one sentence each
};

// Converts a model's card, configuration, vocabulary and attributes to GGUF's metadata. `hyperparameters` are those of
// make_hyperparameters(), empty if `architecture` is null. `file_type` is the result of find_file_type(). `tensors` are
// all tensors that the writer stores.
WrittenMetadata make_metadata(const Model& model, const Architecture* architecture,
                              const Hyperparameters& hyperparameters, std::optional<std::uint32_t> file_type,
                              const std::vector<CountedTensor>& tensors);

// Converts a user's value to the type. Throws bad_argument if it does not fit.
Value convert_value(const std::string& key, const EntryType& type, const Value& given);

// Converts an attribute's value, which a conversion adds, to the type that llama.cpp requires for the key. Throws
// bad_argument for keys that follow from the model's tensors, configuration or vocabulary, for values of another type,
// and for ids of special tokens outside the vocabulary.
Value make_attribute(const Model& model, const std::string& key, const Value& given);

// Prepares an edit of a GGUF file's metadata. An existing key keeps its type, which the new value must fit. A new key
// gets the type that llama.cpp requires, or that of its value. Other entries keep their bytes. If the new header and
// its padding are as long as the old ones, commit() writes the bytes that differ; else it replaces the file by a new
// one, to which the operating system copies the tensors. Throws bad_argument for keys that place tensors, and for a
// part of a split model other than the first; unsupported for version 1 and big-endian files.
std::unique_ptr<PreparedEdit> edit(const Input& input, const AttributeChanges& changes);

// Returns warnings about every file of a model. Some are about faults that llama.cpp rejects: tensors that share an
// offset or are out of the header's order, and tokens with the same text. Others are about names with control
// characters, bytes that belong to no tensor, padding that is not zero, tensors of unknown types, and faults of an
// adapter. Throws what reading the headers throws. Requires: the files have been read.
std::vector<Finding> audit(const Input& input, const Model& model);

// Reads llama.cpp's adapters: files with general.type "adapter" and adapter.type "lora". For each matrix X of the model
// they have
//
//   X.lora_a   [rank, columns]        of token_embd.weight: [tokens, rank]
//   X.lora_b   [rows, rank]           of token_embd.weight: [width, rank]
//
// with rows in llama.cpp's order. Other tensors replace the model's. The change is alpha / rank * B A, and for
// token_embd.weight alpha / rank * A B^T. If adapter.lora.alpha is 0 or missing, alpha is the rank. Both tensors of
// stacked experts have one more dimension in front.
//
// Source: llama.cpp's convert_lora_to_gguf.py, src/llama-adapter.cpp and llm_graph_context::build_lora_mm(). See
// parse_adapter().
std::optional<Adapter> read_adapter(const Model& file, const Model* base);

// Makes the model of such a file. A file has one alpha: if the adapter has several, the values of B make up for the
// difference. Throws unsupported for changes that llama.cpp does not load from an adapter, such as whole tensors.
Model make_adapter(const Adapter& adapter, const Model& base);

}  // namespace poise::gguf
