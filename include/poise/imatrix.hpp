// imatrix: measures and saves importance matrices, which state how much a model's outputs depend on each column of its
// matrices (docs/quantization.md). A conversion weighs the errors of quantizing by them (ConvertOptions::imatrix).
//
//   const poise::Imatrix measured = poise::measure_imatrix(poise::open("model/"), text, {.dataset = "text.txt"});
//   poise::save_imatrix(measured, "imatrix.gguf");
//
// The files are those of llama-imatrix, the program of llama.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include <poise/model.hpp>
#include <poise/progress.hpp>

namespace poise {

// Holds sums over the inputs of a matrix, or of the matrices of a layer's experts.
struct ImatrixEntry {
  std::vector<double> sums;    // sums of the squares of each column's inputs: [matrices, columns]
  std::vector<double> counts;  // numbers of tokens, for each matrix; a single one may count for all of them
};

struct Imatrix {
  std::map<std::string, ImatrixEntry, std::less<>> entries;  // by llama.cpp's name of the tensor, else the model's
  std::vector<std::string> datasets;                         // names of the texts
  std::uint64_t chunk_size = 512;                            // tokens that were computed together

  std::uint64_t stated_chunks = 0;  // the number of chunks that a file states; 0 if it states none

  // Returns the number of chunks that the matrix with the most tokens has seen.
  std::uint64_t count_chunks() const;
};

// Lists those of a layer's experts that got no tokens. All columns of such an expert weigh the same.
struct ImatrixGap {
  std::string entry;                 // "blk.3.ffn_down_exps.weight"
  std::vector<std::size_t> experts;  // the experts without tokens, ascending
  std::size_t count = 0;             // the number of all experts
};

struct ImatrixOptions {
  std::size_t chunk_size = 512;            // tokens; each chunk is computed alone
  std::size_t skipped = 0;                 // chunks at the start of the text that are left out
  std::optional<std::size_t> chunks = {};  // the largest number; std::nullopt: all
  bool output = false;                     // measures the output matrix, too
  std::string dataset = {};                // the name of the text
  unsigned threads = 0;                    // the largest number; 0: one per processor
  bool exact = false;                      // the same as SessionOptions::exact
  // Gets the sums so far after every `save_every` chunks, but not at the end; 0: never.
  std::function<void(const Imatrix&)> save = {};
  std::size_t save_every = 0;
};

// Runs the model on a text, and sums the squares of the inputs of each matrix in the layers. As in llama-imatrix, the
// text is encoded as a whole and cut into chunks; BOS replaces the first token of each chunk if the vocabulary begins
// texts with BOS; tokens at the end that fill no chunk are left out. `progress` counts chunks instead of bytes. Throws
// what load_weights() throws; unsupported without a vocabulary and for inputs that are not finite; bad_argument for a
// text without a chunk, and for a size below 16 or beyond the model's context; cancelled. There are no entries if all
// chunks are left out.
Imatrix measure_imatrix(const Model& model, std::string_view text, const ImatrixOptions& options = {},
                        const Progress& progress = {}, const std::stop_token& stop = {});

// Adds another importance matrix: its sums, its counts and the names of its texts, as llama-imatrix does with
// --in-file. Throws bad_argument, naming the entry, for another number of columns or experts; `to` then stays as it
// was.
void add_imatrix(Imatrix& to, const Imatrix& other);

// Returns the entries in which some experts got no tokens, sorted by name.
std::vector<ImatrixGap> find_imatrix_gaps(const Imatrix& imatrix);

// Reads a file of llama-imatrix, in GGUF or in the older format. The older format does not state its chunk size: Poise
// assumes 512, as llama-imatrix does. Throws not_found, io, and invalid_file for other files, and for numbers that are
// negative or not finite.
Imatrix read_imatrix(const std::filesystem::path& path);

// Writes a file of llama-imatrix: in the older format if the name ends in ".dat", else in GGUF. In the older format the
// columns of an expert without tokens weigh 1, and entries without any tokens are left out. Throws bad_argument for an
// existing file unless `overwrite`, without entries, and for an entry whose sums are not columns of its matrices;
// unsupported for numbers that the format cannot hold, such as sums beyond float32; io.
void save_imatrix(const Imatrix& imatrix, const std::filesystem::path& path, bool overwrite = false);

}  // namespace poise
