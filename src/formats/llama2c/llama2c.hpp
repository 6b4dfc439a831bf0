// The layout of a file of llama2.c. Version 0 has no magic:
//
//   i32 x 7     dim, hidden_dim, n_layers, n_heads, n_kv_heads, vocab_size (negative: there is an output matrix),
//               seq_len
//   f32         arrays: those of one kind follow each other, layer by layer; two are unused tables of rotary factors
//
// Versions 1 and 2:
//
//   u32         0x616b3432, the letters "ak42" as a number
//   i32         version
//   i32 x 7     the same numbers, vocab_size positive
//   u8          1: the output matrix is the embedding
//   i32         version 2: the number of codes that share a scale
//   zero bytes up to 256, then arrays: norms in f32, matrices in f32 (version 1), or i8 codes followed by f32 scales
//               (version 2)
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include <poise/model.hpp>
#include <poise/source.hpp>

#include "bytes/byte_reader.hpp"
#include "family/family.hpp"
#include "formats/format.hpp"

namespace poise::llama2c {

inline constexpr std::uint32_t kMagic = 0x616b3432;
inline constexpr std::uint64_t kHeaderBytes0 = 28;
inline constexpr std::uint64_t kHeaderBytes = 256;

struct Header {
  std::int32_t version = 0;
  Config config;
  std::uint64_t group_size = 0;  // only in version 2
  std::uint64_t data_begin = 0;
};

// Reads the header, and leaves the reader at its end. Throws invalid_file; unsupported for unknown versions, and for
// rows that are not whole groups.
Header read_header(ByteReader& reader);

// Returns the size of the whole file; std::nullopt for 2^64 bytes and more.
std::optional<std::uint64_t> compute_file_size(const Header& header);

// Returns the size of a file of version 0, as its header describes it; std::nullopt if the seven numbers describe no
// model. Version 0 has no magic, so only a file of exactly this size is certainly one.
std::optional<std::uint64_t> find_version_0_size(const Source& source);

// Describes an array of the file. An array of layers holds the values of all layers, layer by layer.
struct FileArray {
  std::string_view name;       // the tensor's name; for an array of layers, the part after "model.layers.0."
  std::string_view file_name;  // the field of llama2.c's TransformerWeights, for all layers (run.c)
  bool is_of_layers = false;
  bool is_matrix = false;
  bool is_rotated = false;  // the two rows that are rotated together are neighbours; in Hugging Face's order, they are
                            // half a head apart
  std::uint64_t rows = 0;   // 1 for a vector
  std::uint64_t columns = 0;
};
// Returns the arrays in the order of the file.
std::vector<FileArray> list_arrays(const Header& header);

// Reads weights of llama2.c as a Llama with Hugging Face's names. Throws what read_header() and read_tokenizer() throw,
// and invalid_file for a file of another size than the header implies.
Model read(const Input& input, const ReadOptions& options);

// Reads tokenizer.bin of llama2.c, a file next to the weights:
//
//   i32          bytes of the longest token
//   for each token: f32 score, i32 length, its text with spaces in place of U+2581
//
// The file lacks the types of tokens, and their number, which is in the header of the weights. llama2.c assumes that 0
// is <unk>, 1 <s>, 2 </s>, and 3 to 258 single bytes; this function finds bytes by their texts, <0x00> to <0xFF>.
// Throws invalid_file for another number of tokens, for scores that are not finite, and for texts of more than 1024
// bytes. Requires: tokens <= kMaxTokens.
Vocabulary read_tokenizer(const SourcePtr& source, std::uint64_t tokens);

}  // namespace poise::llama2c
