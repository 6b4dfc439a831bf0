// format: reads files of the known formats into a Model, and writes a Model in the formats that can be written.
//
//   const poise::Model model = poise::open("model.safetensors");
//   poise::save(model, "model.zt");
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <poise/error.hpp>
#include <poise/model.hpp>
#include <poise/progress.hpp>
#include <poise/source.hpp>

namespace poise {

struct ReadOptions {
  IoMode io = IoMode::map;
  // Keeps the tensors of quantized directories (GPTQ, AWQ, ...) as stored. Otherwise the tensors that store one matrix
  // become one tensor, with the same codes.
  bool raw = false;
};

// Holds the options of a writer. Writers throw bad_argument for an option that their format lacks.
struct WriteOptions {
  bool overwrite = false;                        // replace an existing file
  std::optional<std::string> dialect = {};       // a program's form of the format: "alt.c" for alt
  std::optional<int> zstd_level = {};            // compresses parts with zstd; std::nullopt: does not
  std::optional<DigestAlgorithm> digest = {};    // the algorithm for all parts; std::nullopt: the format's usual one
  std::optional<std::uint64_t> align = {};       // alignment of parts in bytes
  std::optional<std::uint64_t> shard_size = {};  // splits the output into files of about this many bytes
  Progress progress = {};
};

// Opens a file or directory, finds its format by content, then by extension, and reads it into a Model. Throws
// not_found, io, invalid_file, unsupported, and bad_argument for a path that is neither a file nor a directory.
Model open(const std::filesystem::path& path, const ReadOptions& options = {});

// Reads a source, such as bytes in memory, into a Model. Errors show its name as the path, and the name's extension may
// help to find the format. Throws invalid_file, unsupported, io.
Model open(SourcePtr source, const ReadOptions& options = {});

struct SaveReport {
  std::string format;               // the format that was written
  std::uint64_t bytes = 0;          // the size of all files
  std::vector<std::string> losses;  // what the format cannot hold of the model, one sentence each
};

// Writes a model as `format` ("alt", "safetensors", ...). The target appears whole or not at all; an existing file is
// an error without options.overwrite. Throws bad_argument, unsupported (the format cannot hold the model), io,
// cancelled, and what reading the model's blobs throws. plan() in <poise/convert.hpp> finds the losses and writes
// no file.
SaveReport save(const Model& model, const std::filesystem::path& path, std::string_view format,
                const WriteOptions& options = {});

// Writes a model in the format of the path's extension, or as a Hugging Face directory if the path ends in a slash or
// is a directory. Throws the errors of the other save(), and bad_argument for an unknown extension.
SaveReport save(const Model& model, const std::filesystem::path& path, const WriteOptions& options = {});

// Describes a format. `poise --help` lists these.
struct FormatInfo {
  std::string_view name;         // "alt"
  std::string_view description;  // one line
  std::string_view extension;    // ".alt"; empty for directories
  bool readable = false;
  bool writable = false;
};
// Returns all formats, in the order in which open() tries them.
std::span<const FormatInfo> formats();

// Returns the writable format with a path's extension, "alt" for "model.alt"; std::nullopt for other extensions.
std::optional<std::string_view> format_from_extension(const std::filesystem::path& path);

}  // namespace poise
