// convert: a file in one format becomes a file in another; tensors are selected and cast on the way.
//
// Bytes move once, from the input to the output, in constant memory. Tensors of a layout that the output's format
// cannot hold become dense: sparse ones with the type of their values, quantized ones f32.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <poise/format.hpp>
#include <poise/lora.hpp>
#include <poise/stored_type.hpp>

namespace poise {

struct ConvertOptions {
  std::string format = {};  // "alt", "safetensors", ...; empty: by the output's extension, or that it is a directory

  // Floating-point tensors become this type: f32, f16 or bf16. Without it they keep theirs where the format can hold
  // them; bf16 becomes f16 where it cannot.
  std::optional<DType> dtype = {};

  // Floating-point tensors become codes; those of fewer than two dimensions become f32. Excludes dtype.
  std::optional<StoredType> quantize = {};
  // Or each matrix becomes the type that a recipe of llama-quantize's gives it: "q4_k_m", ... (docs/quantization.md).
  // Excludes both.
  std::string recipe = {};
  // Weights for the errors of blocks, as llama-imatrix measured them (GGUF, or its older format). Empty: none.
  std::filesystem::path imatrix = {};

  // Dense tensors become sparse_csr (matrices only) or sparse_coo when at least this part of their elements is zero.
  std::optional<Layout> sparse = {};
  double min_sparsity = 0.5;

  // Floating-point tensors whose name matches the pattern become this type instead, whatever dtype and quantize say;
  // the first pattern that matches counts. Tensors of fewer than two dimensions become f32 where the type is quantized.
  struct Keep {
    std::string pattern;
    StoredType type;
  };
  std::vector<Keep> keep = {};

  // Shell patterns over tensor names: * any run, ? one character, [a-z] one of. `only` empty: all.
  std::vector<std::string> only = {};
  std::vector<std::string> skip = {};

  // A Tiny Llama's tokenizer files, whose vocabulary replaces the input's: both, or none of them (empty). They are
  // inputs, too.
  std::filesystem::path vocab = {};
  std::filesystem::path merges = {};

  // Adapters that are merged into the input, in this order, before anything else (<poise/lora.hpp>).
  std::vector<LoraAdapter> lora = {};

  // Fields of the card that replace the input's; those left empty stay.
  Card card = {};

  // Every digest that the input has for what is taken of it is compared with the bytes, while they are written; false:
  // they are trusted.
  bool verify = true;

  ReadOptions read = {};
  WriteOptions write = {};
};

// A tensor of a conversion, before and after it.
struct PlannedTensor {
  std::string name;
  Shape shape;
  // How its elements are stored: "bf16", "qint8", "group4:128", "sparse_csr f16", "layout zt.foo/1". Where
  // ConvertOptions::sparse may make it sparse, `to` is how it is stored if it stays dense.
  std::string from;
  std::string to;
  std::uint64_t bytes_in = 0;              // of its parts, decoded
  std::optional<std::uint64_t> bytes_out;  // of its parts, before compression; nothing where it may become sparse
};

// Codes that become float32 numbers, because nothing else is asked for and the output's format does not have them.
struct DecodedTensors {
  std::size_t tensors = 0;
  std::uint64_t bytes_in = 0;   // of the codes, with their scales
  std::uint64_t bytes_out = 0;  // of the numbers
};

// What a conversion will do: known from headers alone, before any tensor's bytes are read or written.
struct Plan {
  std::string format;                  // to be written
  std::filesystem::path output;        // the file that will open the model, or the directory; empty: no path was given
  std::vector<PlannedTensor> tensors;  // to be written, in the model's order
  std::vector<std::string> skipped;    // names of those left out by only and skip
  std::vector<Finding> warnings;       // about the input
  std::vector<std::string> losses;     // what the output's format cannot hold
  // Of all files. Nothing where it depends on the tensors' bytes (compression, sparse layouts) or on where shards end.
  std::optional<std::uint64_t> bytes_out;
  bool exact = true;  // false: bytes_out is the most there can be; equal parts are stored once
  DecodedTensors decoded;

  struct Work;
  std::shared_ptr<Work> work;  // what write() goes on with
};

// Plans to write `model` as `format` with `changes`, which name no other format. Throws bad_argument and unsupported as
// convert() does, for everything that can be known without the tensors' bytes. Requires: the model outlives the plan.
Plan plan(const Model& model, std::string_view format, const ConvertOptions& changes = {});

// Plans convert() with the same arguments, and throws what it throws. Opens the input, writes nothing.
Plan plan(const std::filesystem::path& input, const std::filesystem::path& output, const ConvertOptions& options = {});

struct ConvertReport;

// Carries a plan out, which can be done once. Throws what convert() throws; then there is no output.
ConvertReport write(const Plan& plan, const std::filesystem::path& output);

struct ConvertReport {
  std::string format;  // that was written
  // What was written: first the file that opens the model, by the name that it got, then the others of its model. Or
  // the directory.
  std::vector<std::filesystem::path> outputs;
  std::size_t tensors = 0;      // written
  std::size_t skipped = 0;      // by only and skip
  std::uint64_t bytes_in = 0;   // files read
  std::uint64_t bytes_out = 0;  // files written
  std::uint64_t bytes_padding =
      0;               // zero bytes of these that only align what follows; holes where the file system has them
  double seconds = 0;  // of wall time
  std::vector<Finding> warnings;    // about the input
  std::vector<std::string> losses;  // what the output's format cannot hold

  // One entry per pair of types that was cast, such as bf16 -> f16.
  struct Cast {
    DType from;
    DType to;
    std::uint64_t values = 0;
    std::uint64_t to_zero = 0;       // were not zero, are now
    std::uint64_t to_subnormal = 0;  // fell below the target's normal range
    std::uint64_t not_finite = 0;    // were infinite or NaN, and still are
    double worst_error = 0;          // max |x - cast(x)|
  };
  std::vector<Cast> casts;

  // One entry per tensor that was quantized.
  struct Quantized {
    std::string tensor;
    StoredType type;
    std::uint64_t bytes_in = 0;
    std::uint64_t bytes_out = 0;
    QuantizationError error;
  };
  std::vector<Quantized> quantized;

  DecodedTensors decoded;
};

// plan() and write() in one. Throws what open() and save() throw; bad_argument when the output is one of the input's
// files, exists without options.write.overwrite, a pattern matches no tensor, or options contradict each other;
// invalid_file, naming the tensor, when its bytes do not have the digest that the input says, and io when a file with
// digests changes meanwhile. Then there is no output.
ConvertReport convert(const std::filesystem::path& input, const std::filesystem::path& output,
                      const ConvertOptions& options = {});

}  // namespace poise
