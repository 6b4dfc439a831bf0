// Reads the files of a Hugging Face directory: opens and records them, and finds those with weights and their
// quantization.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <poise/finding.hpp>
#include <poise/format.hpp>
#include <poise/model.hpp>
#include <poise/source.hpp>

#include "formats/format.hpp"
#include "formats/front_matter.hpp"
#include "pack/container.hpp"

namespace poise::huggingface {

// Opens files of a Hugging Face directory, on the disk or in an archive, and records them for the model's Origin.
class DirectoryReader {
 public:
  // Requires: the container outlives this.
  explicit DirectoryReader(const Container& files) : container_(files) {}

  const Container& container() const { return container_; }
  std::filesystem::path path(std::string_view name = {}) const { return container_.path(name); }
  bool has(std::string_view name) const { return container_.has(name); }

  // Throws what Container::open() throws.
  SourcePtr open(std::string_view name);

  // Returns the files of Origin::other_files; README.md only if read_readme() has opened it. Leaves out files that
  // cannot be decoded, with a warning. Throws io.
  std::vector<DirectoryFile> read_other_files(std::vector<Finding>& warnings);

  // Returns the text of a file. Throws invalid_file for more than 256 MiB.
  std::string read_member_text(std::string_view name);

  // Returns at most 1 MiB of the model card, which may have any content; empty if there is none.
  std::string read_readme();

  // Parses a file. Warns of NaN and infinities, which become null, and of integers that Poise rounds. Throws
  // invalid_file.
  Attributes read_json_object(std::string_view name, std::vector<Finding>& warnings);

  // Returns the origin of a model, with the files that have been opened.
  Origin origin() const { return {container_.locate_file({}), "huggingface", size_, files_}; }
  std::span<const SourcePtr> opened() const { return opened_; }

 private:
  void record_file(std::string_view name, const Source& source);

  const Container& container_;
  std::vector<std::filesystem::path> files_;
  std::vector<SourcePtr> opened_;
  SourcePtr readme_;
  std::uint64_t size_ = 0;
};

// If config.json has no quantization_config, sets it from another file of the directory that describes the quantization
// (schemes/quantization_files.hpp). Returns the name of that file; empty if config.json has one, or no file does. Warns
// of further such files that contradict the chosen description or cannot be read. Throws invalid_file if a file cannot
// be read before a description is chosen.
std::string_view read_quantization_file(Model& model, DirectoryReader& directory);

// Names the file with a directory's tensors, or the index of such files.
struct LocatedWeights {
  const Format* format = nullptr;
  std::string name;  // the name of the only file with tensors, or of the index
  bool is_index = false;

  const WeightFiles& files() const { return *format->weight_files; }
};

// Opens a directory, or the folder of an archive that has a model: the first of find_model_folders(). Warns of other
// such folders. Throws what open_container() throws.
std::unique_ptr<const Container> open_model_folder(const Input& input, IoMode io,
                                                   std::vector<Finding>* warnings = nullptr);

// Returns the folders of an archive that have config.json and files with tensors, the outermost first. "" is the
// archive itself.
std::vector<std::string> find_model_folders(const MemberNames& names);

// Finds a directory's tensors by the names of all formats (Format::weight_files), usual names first; std::nullopt if
// there are none.
std::optional<LocatedWeights> find_weights(const Container& directory);

// Returns the file with the matrices of an adapter (adapter.hpp); std::nullopt if its configuration or its matrices are
// missing.
std::optional<std::string> find_adapter(const Container& directory);

// Returns the result of find_weights(). Throws invalid_file if it finds none: the message has the expected names, and
// advice about a file with other weights if the directory has one.
LocatedWeights require_weights(const Container& directory);

// Adds the tensors of one file, or of the shards that an index lists, to the model. Leaves out tensors that the model's
// family computes, and makes the files' metadata the model's attributes. Returns the weight files. Throws invalid_file
// for an index that does not fit the shards, not_found for missing shards, and what WeightFiles::read throws.
std::vector<std::filesystem::path> read_tensors(Model& model, DirectoryReader& directory,
                                                const LocatedWeights& weights);

// Returns a card with the license, base model and author that config.json and the README's front matter state.
Card read_card(const Attributes& config, const FrontMatter& front_matter);

// Fills in empty fields of a card, for a format that stores all fields: the author from base_model, the id from the
// model's content, and the dates from the environment variable SOURCE_DATE_EPOCH if it is set. Throws io, and
// bad_argument if the variable is not a number of seconds before the year 10000.
void complete_card(const Model& model, Card& card);

// Returns a version 8 UUID (RFC 9562) made from the SHA-256 of configuration, vocabulary and tensors: their names,
// shapes, types, and the first and last 4 KiB of their bytes. The same model gives the same id, however its files are
// split.
std::string make_content_uuid(const Model& model);

inline constexpr std::string_view kConfig = "config.json";
inline constexpr std::string_view kGeneration = "generation_config.json";
inline constexpr std::string_view kSingle = "model.safetensors";
inline constexpr std::string_view kIndex = "model.safetensors.index.json";
inline constexpr std::string_view kReadme = "README.md";

}  // namespace poise::huggingface
