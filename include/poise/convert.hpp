// convert: converts a file to another format, and selects, casts and quantizes tensors.
//
//   poise::convert("model/", "model.gguf", {.recipe = "q4_k_m"});
//
// Bytes move once, from the input to the output, in constant memory. Tensors of a layout that the output's format
// cannot hold become dense: sparse ones with the type of their values, quantized ones f32. Only MXFP4 becomes blocks
// where the format has ggml's blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <poise/format.hpp>
#include <poise/lora.hpp>
#include <poise/model.hpp>
#include <poise/stored_type.hpp>
#include <poise/tensor.hpp>
#include <poise/value.hpp>

namespace poise {

// Measures how much a model's predictions for a text change with its tensors.
struct DivergenceMeasure {
  // Returns the mean Kullback-Leibler divergence, in nats, from the model's predictions to those of a changed model, in
  // which these tensors replace those of the same names. Throws what running the changed model throws.
  std::function<double(const std::vector<Tensor>& changed)> measure;
  std::size_t tokens = 0;  // the number of tokens whose predictions count
};

// Makes the measure for a model. Throws what running the model throws.
using MakeDivergenceMeasure = std::function<DivergenceMeasure(const Model& model)>;

// Limits the size of an output whose types Poise chooses. One of the first two fields is set.
struct SizeBudget {
  std::optional<std::uint64_t> bytes = {};     // of all files
  std::optional<double> bits_per_weight = {};  // the bits of all tensors' parts, divided by their elements; more than 0
  // Weighs the errors of matrices by how much they change the model's predictions for a text: measure_on_text() of
  // <poise/divergence.hpp>. Empty: a matrix in one of n layers weighs 1 / (2 n), a matrix outside the layers 1.
  MakeDivergenceMeasure divergence = {};
};

struct ConvertOptions {
  std::string format = {};  // "alt", "safetensors", ...; empty: as save() chooses it by the output's path

  // The type for floating-point tensors: f32, f16 or bf16. std::nullopt: they keep theirs, but bf16 becomes f32 in a
  // format that cannot hold it.
  std::optional<DType> dtype = {};

  // Floating-point tensors become codes of this type, but f32 if they have fewer than two dimensions. Excludes dtype.
  std::optional<StoredType> quantize = {};
  // A recipe of llama-quantize, which gives each matrix a type: "q4_k_m", ... (docs/quantization.md). Excludes dtype
  // and quantize.
  std::string recipe = {};
  // Chooses a type for each matrix, so that the output fits the budget and the sum of the matrices' relative squared
  // errors, with weights, is small (docs/quantize-to-a-size.md). Planning then reads samples of the tensors and, with
  // SizeBudget::divergence, runs the model. Excludes dtype, quantize and recipe.
  std::optional<SizeBudget> budget = {};
  // The importance matrix that weighs the errors of blocks (GGUF, or llama-imatrix's older format). Empty: none.
  std::filesystem::path imatrix = {};

  // Makes dense tensors sparse_csr (matrices only) or sparse_coo if at least min_sparsity of their elements is zero.
  std::optional<Layout> sparse = {};
  double min_sparsity = 0.5;

  // Gives floating-point tensors whose name matches the pattern this type, regardless of dtype and quantize; the first
  // match counts. Tensors of fewer than two dimensions become f32 if the type is quantized.
  struct Keep {
    std::string pattern;
    StoredType type;
  };
  std::vector<Keep> keep = {};

  // The options down to `set` change the whole model, in this order, after lora and before everything else. Other
  // options see the results: new names, and layers by their new numbers (docs/rename-and-cut.md).
  //
  // strip_prefix is removed where a name begins with it, and add_prefix is put in front of every name. Of the patterns
  // of `rename`, the first that matches a name counts. A shell pattern matches the whole name, and the k-th * of the
  // new name stands for the text that the k-th * of the pattern matched. After "re:" the pattern is a regular
  // expression: every match in a name is replaced, and $1 or \1 is a group.
  struct Rename {
    std::string pattern;
    std::string name;
  };
  std::string strip_prefix = {};
  std::vector<Rename> rename = {};
  std::string add_prefix = {};
  // The layers that stay, numbered from 0, in ascending ranges without their ends: "0:12,16:32". "PREFIX=" selects
  // another list than the model's layers: "encoder.block=0:6". Empty: all layers stay.
  std::string layers = {};
  // Keeps the first rows of the embedding and of the output matrix, and the vocabulary's tokens with these ids.
  std::optional<std::uint64_t> vocab_size = {};
  // True: vocab_size is the number of the vocabulary's tokens, without unused ones at its end.
  bool drop_rows = false;
  // New values of "card.FIELD", "config.KEY" and attributes. A name without a prefix is an attribute that the model
  // has, else a field of the card, else a key of the configuration, else a new attribute. Text is converted to the type
  // of the old value.
  std::vector<std::pair<std::string, Value>> set = {};

  // Shell patterns of tensors to write and to leave out, over Poise's names or those in the file: * matches any text,
  // ? one character, [a-z] one of these. `only` empty: all.
  std::vector<std::string> only = {};
  std::vector<std::string> skip = {};

  // A Tiny Llama's tokenizer files, whose vocabulary replaces the input's: both or neither (empty). The output cannot
  // replace them.
  std::filesystem::path vocab = {};
  std::filesystem::path merges = {};

  // A file of make_delta() to apply to the input, its base, before anything else (<poise/delta.hpp>). Empty: none.
  std::filesystem::path delta = {};

  // Adapters to merge into the input, in this order, after the delta and before anything else (<poise/lora.hpp>). Sums
  // are float32 until they get the type that other options ask for. Without such an option, each matrix gets the type
  // that it has in the input, even if that is a type of codes.
  std::vector<LoraAdapter> lora = {};

  // Fields of the card that replace the input's; those left empty stay. `set` makes a field empty.
  Card card = {};

  // Checks the input's digests while the output is written; false trusts the input.
  bool verify = true;
  // Refuses an input with warnings (ConvertReport::warnings), before anything is written.
  bool strict = false;

  ReadOptions read = {};
  WriteOptions write = {};
};

// Describes a tensor of a conversion, before and after it.
struct PlannedTensor {
  std::string name;
  Shape shape;
  // The type of its elements: "bf16", "qint8", "group4:128", "sparse_csr f16", "layout zt.foo/1". If
  // ConvertOptions::sparse may make it sparse, `to` is the type if it stays dense.
  std::string from;
  std::string to;
  std::uint64_t bytes_in = 0;              // the decoded size of its parts
  std::optional<std::uint64_t> bytes_out;  // the size before compression; std::nullopt if it may become sparse
};

// Counts tensors of codes that are decoded to float32 because the output's format lacks their layout.
struct DecodedTensors {
  std::size_t tensors = 0;
  std::uint64_t bytes_in = 0;   // the size of the codes and their scales
  std::uint64_t bytes_out = 0;  // the size of the numbers
};

// Counts the matrices that adapters or merge() changed and that are written as `type`: the type that they have in the
// input, unless an option chooses another.
struct MergedMatrices {
  std::string type;  // "q4_k"
  std::size_t matrices = 0;
};

// Describes the types that a budget chose (ConvertOptions::budget), and the errors that other budgets cost.
//
// With SizeBudget::divergence, an error is the divergence, in nats, that the errors of single matrices predict: a sum
// over matrices. Otherwise an error is a weighted mean over matrices of sum((x - decoded)^2) / sum(x^2); the importance
// matrix weighs the terms of both sums. Each of n matrices whose names differ only in numbers weighs 1 / (2 n), and a
// matrix whose name has no number weighs 1.
struct BudgetChoice {
  std::size_t tokens = 0;  // the tokens whose predictions SizeBudget::divergence compares; 0 without it
  struct Point {
    double bits_per_weight = 0;
    std::optional<std::uint64_t> bytes;  // of all files, within a few bytes; std::nullopt if only writing shows it
    double error = 0;
    bool is_chosen = false;
  };
  std::vector<Point> curve;  // with increasing sizes; one point is the chosen one

  // Counts the matrices of one type whose names differ only in numbers.
  struct Row {
    std::string name;  // "model.layers.*.mlp.down_proj.weight"
    std::string type;
    std::size_t matrices = 0;
    std::uint64_t bytes = 0;  // of their codes
    double error = 0;         // the mean of the matrices' errors; their sum, if it is a divergence
  };
  std::vector<Row> rows;
};

// Describes a conversion before it runs, from headers alone; with a budget, from samples of the tensors and the
// predictions for its text, too.
struct Plan {
  std::string format;                  // the format that will be written
  std::filesystem::path output;        // the path from which open() will read the model; empty without a path
  std::vector<PlannedTensor> tensors;  // the tensors that will be written, in the model's order
  std::vector<std::string> skipped;    // tensors that layers, only and skip leave out, by their names in the input
  std::vector<std::string> changes;    // changes of names, layers, vocabulary and keys, one sentence each
  std::vector<Finding> warnings;       // about the input, and about what the output replaces
  std::vector<std::string> losses;     // what the output's format cannot hold
  // The size of all files. std::nullopt if it depends on the tensors' bytes (compression, sparse layouts) or on where
  // shards end.
  std::optional<std::uint64_t> bytes_out;
  bool exact = true;  // false: bytes_out is an upper bound, since equal parts are stored once
  DecodedTensors decoded;
  std::vector<MergedMatrices> merged;
  std::optional<BudgetChoice> budget;  // set if a budget chose types

  struct Rest;
  std::shared_ptr<Rest> rest;  // internal: what write() needs
};

// Plans to write `model` as `format` with `changes`, which must not name another format. Throws what convert() throws,
// except for faults that show only in tensors' bytes. Requires: the model outlives the plan.
Plan plan(const Model& model, std::string_view format, const ConvertOptions& changes = {});

// Plans convert() with the same arguments. Throws what convert() throws, except for faults that show only in tensors'
// bytes. Opens the input, and writes no file.
Plan plan(const std::filesystem::path& input, const std::filesystem::path& output, const ConvertOptions& options = {});

struct ConvertReport;

// Carries out a plan, once. Throws what convert() throws, and bad_argument for a plan that was carried out before.
// After an error, no output appears.
ConvertReport write(const Plan& plan, const std::filesystem::path& output);

struct ConvertReport {
  std::string format;  // that was written
  // The written files: first the file from which open() reads the model, then the others. For a directory, its path
  // alone.
  std::vector<std::filesystem::path> outputs;
  std::size_t tensors = 0;           // written
  std::size_t skipped = 0;           // the number of tensors that layers, only and skip leave out
  std::uint64_t bytes_in = 0;        // the size of the model's files; of its tensors if it was made in memory
  std::uint64_t bytes_out = 0;       // files written
  std::uint64_t bytes_padding = 0;   // zero bytes among these for alignment; holes if the file system has them
  double seconds = 0;                // the wall time
  std::vector<Finding> warnings;     // about the input, and about what the output replaced
  std::vector<std::string> losses;   // what the output's format cannot hold
  std::vector<std::string> changes;  // the same as Plan::changes

  // Describes all casts from one type to another, such as bf16 -> f16.
  struct Cast {
    DType from;
    DType to;
    std::uint64_t values = 0;
    std::uint64_t to_zero = 0;       // numbers other than zero that became zero
    std::uint64_t to_subnormal = 0;  // results below the target's normal range, without zeros
    std::uint64_t not_finite = 0;    // infinite or NaN; they stay so
    double worst_error = 0;          // max |x - cast(x)|
  };
  std::vector<Cast> casts;

  // Describes a tensor that was quantized.
  struct Quantized {
    std::string tensor;
    StoredType type;
    std::uint64_t bytes_in = 0;
    std::uint64_t bytes_out = 0;
    QuantizationError error;
  };
  std::vector<Quantized> quantized;

  DecodedTensors decoded;
  std::vector<MergedMatrices> merged;
  std::optional<BudgetChoice> budget;  // set if a budget chose types
};

// Plans the conversion and writes the output. Throws what open() and save() throw; bad_argument when the output is one
// of the input's files or exists without options.write.overwrite, when a pattern matches no tensor, or options
// contradict each other; invalid_file, naming the tensor, for a wrong digest in the input, and for a warning if
// `strict`; io when a file with digests changes meanwhile. If it throws, no output appears.
ConvertReport convert(const std::filesystem::path& input, const std::filesystem::path& output,
                      const ConvertOptions& options = {});

}  // namespace poise
