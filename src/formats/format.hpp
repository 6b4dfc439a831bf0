// Format: what one file format can do. One constant of this type per format folder, one row each in registry.cpp.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <poise/edit.hpp>
#include <poise/finding.hpp>
#include <poise/format.hpp>

#include "bytes/function_ref.hpp"
#include "family/weight_reader.hpp"
#include "formats/importance_matrix.hpp"
#include "formats/input.hpp"

namespace poise {

struct LayoutType;  // views/layout_type.hpp
class Output;       // io/sink.hpp
class SavedOutput;

// Where parts begin in files of a format that lets one choose: at multiples of `usual`, or of another power of two from
// `least` on.
struct Alignments {
  std::uint64_t usual = 0;
  std::uint64_t least = 0;
};

// The write options that a format honours; save() refuses the others.
struct HonouredOptions {
  bool dialect = false;
  bool zstd_level = false;
  bool digest = false;
  std::optional<Alignments> align = {};
  bool shard_size = false;
};

// A key of a file's own metadata, as the file has it: before a reader makes card, configuration and vocabulary of it.
struct MetadataKey {
  std::string key;
  std::string type;  // as the format calls it: "u32", "text[32000]"
  Value value;
};

// What a file will be, as far as headers tell.
struct FilePlan {
  // Of each tensor's parts, as a reader of the file will find them, in the model's order; before compression. Empty
  // where it will hold none of them.
  std::vector<std::uint64_t> tensor_bytes;
  // Of all files. Nothing where it depends on the tensors' bytes.
  std::optional<std::uint64_t> bytes;
  bool exact = true;  // false: `bytes` is the most there can be
};

// Files of weights that stand in a Hugging Face directory, next to its config.json.
struct WeightFiles {
  std::span<const std::string_view> names;  // of the file that holds all tensors, the usual one first
  std::string_view index;                   // of the file that says which tensors each of several files holds
  // Gives a file's tensors; returns what else it says. What `take` throws without an offset gets that of the tensor.
  // Throws what Format::read throws.
  Attributes (*read)(const SourcePtr& source, FunctionRef<void(Tensor)> take, std::vector<Finding>& warnings);
  bool any_name = false;  // a directory's only file of the format holds its tensors, whatever it is called
};

// A model on its way into a file: whatever the questions below and the writing have in common is computed once.
class PreparedFile {
 public:
  virtual ~PreparedFile() = default;
  // What write() will make. Reads no tensor's bytes; throws what write() throws, but for what only these tell.
  virtual FilePlan plan() const = 0;
  // What of the model the written file will not hold beside what Format::holds_more_parts tells, one sentence each.
  virtual std::vector<std::string> losses() const = 0;
  // The name of the file that is opened, of an output called `name`.
  virtual std::string main_name(const std::string& name) const { return name; }
  virtual void write(Output& output, const Progress& progress) const = 0;
};

// For formats whose questions have little in common: a function for each.
template <FilePlan (*kPlan)(const Model&, const WriteOptions&),
          void (*kWrite)(const Model&, Output&, const WriteOptions&),
          std::vector<std::string> (*kLosses)(const Model&, const WriteOptions&)>
std::unique_ptr<PreparedFile> prepare_with(const Model& model, const WriteOptions& options) {
  class Prepared final : public PreparedFile {
   public:
    Prepared(const Model& model, const WriteOptions& options) : model_(model), options_(options) {}
    FilePlan plan() const override { return kPlan(model_, options_); }
    std::vector<std::string> losses() const override { return kLosses(model_, options_); }
    void write(Output& output, const Progress& progress) const override {
      WriteOptions watched = options_;
      watched.progress = progress;
      kWrite(model_, output, watched);
    }

   private:
    const Model& model_;
    const WriteOptions& options_;
  };
  return std::make_unique<Prepared>(model, options);
}

// An edit of attributes on its way into a file.
class PreparedEdit {
 public:
  // `added`: see EditReport.
  explicit PreparedEdit(std::vector<std::string> added) : added_(std::move(added)) {}
  virtual ~PreparedEdit() = default;
  // The file as it will be.
  virtual SourcePtr edited() const = 0;
  const std::vector<std::string>& added() const { return added_; }
  // Throws bad_argument where a change has no effect, or other programs alone would see it: the models of the file as
  // it is and as it will be.
  virtual void require_effect(const Model& before, const Model& after) const {
    (void)before;
    (void)after;
  }
  // Changes the file at that path, which is the input's or what that links to. Requires: a FileLock holds it.
  virtual EditReport commit(const std::filesystem::path& path) = 0;

 private:
  std::vector<std::string> added_;
};

struct Format {
  FormatInfo info;  // formats() fills in what can be read and written
  // Other extensions of its files, each with its dot.
  std::span<const std::string_view> extensions;
  HonouredOptions options;
  // False: bf16 tensors become f16 on the way here, unless bf16 is asked for by name.
  bool holds_bf16;
  // Layouts beside dense that its files hold. Null: none.
  bool (*holds_layout)(const LayoutType& type) = nullptr;
  bool holds_more_parts = false;  // of dense tensors, beside data
  bool ties_by_absence = false;   // an output matrix that is there is multiplied with, even where embeddings are tied
  WeightReader weights = WeightReader::any;  // what reads its files, where weights can be stored in several forms
  // Are the numbers of this tensor float32 in files of such a model, whatever type they have? Asks card and
  // configuration of the model. Null: of none.
  bool (*stores_as_f32)(const Model& model, const Tensor& tensor) = nullptr;

  // How its files are found, in stages. First by magic: is this file certainly meant to be of this format? Looks at a
  // few bytes, never throws for what they say. Null: other formats begin as it does.
  bool (*sniff)(const Input& input) = nullptr;
  // Then by the container that it is in, and the names of its members. Null: those of any names.
  std::optional<Container> container = {};
  bool (*holds)(const MemberNames& names) = nullptr;
  // Of a format of directories that can be written: why one of files with these names is not to be replaced; empty: it
  // may be.
  std::string (*refusal_to_replace)(const MemberNames& names) = nullptr;
  // Null where the format cannot be read or written. Requires of prepare: model and options outlive what it makes, and
  // stay the same.
  Model (*read)(const Input& input, const ReadOptions& options);
  std::unique_ptr<PreparedFile> (*prepare)(const Model& model, const WriteOptions& options) = nullptr;
  // What verify() is to say about the file beyond its tensors: bytes that belong to nothing, files it refers to. Null:
  // nothing. Throws io.
  std::vector<Finding> (*audit)(const Input& input, const Model& model) = nullptr;
  // How many checksums, together of every byte of its tensors, the file has of its own: audit() compares them with the
  // bytes. Null: none.
  std::size_t (*checksums)(const Input& input, const Model& model) = nullptr;
  // Prepares changes of the attributes of a file that has been read; writes nothing. Throws bad_argument for changes
  // that the format does not allow. Null: its files have no attributes.
  std::unique_ptr<PreparedEdit> (*edit)(const Input& input, const AttributeChanges& changes) = nullptr;
  // The metadata of a file that has been read, in its order. Null: the format has no keys of a file's own. Throws
  // unsupported where they take too much memory.
  std::vector<MetadataKey> (*keys)(const Input& input) = nullptr;

  // How its files are found in a Hugging Face directory. Nothing: they stand alone.
  std::optional<WeightFiles> weight_files = {};

  // What the format says of models and tensors in files of any format. Each null: nothing.
  // Do the blocks of this matrix of the model run along its columns?
  bool (*transposes)(const Model& model, std::string_view tensor) = nullptr;
  // The digest that names the content of a model whose Origin::format is `origin`.
  std::string (*content_digest)(const Model& model) = nullptr;
  std::string_view origin = {};
  // What a type that Poise does not know is called, of the ways in which the format's versions spell it.
  std::string_view (*unknown_type_name)(std::string_view spelled) = nullptr;
  // Reads weights for the errors of blocks. Throws what open_importance_matrix() throws.
  std::unique_ptr<const ImportanceMatrix> (*read_importance_matrix)(const std::filesystem::path& path) = nullptr;
};

// An input with the format that is meant and the model it holds.
struct Opened {
  const Format* format = nullptr;
  Input input;
  Model model;
};
Opened open_with_format(const std::filesystem::path& path, const ReadOptions& options);

// Of the file that was opened. Throws unsupported, naming the formats that have some, where its format has none.
std::vector<MetadataKey> metadata_keys(const Opened& opened);

// Format::transposes of any format.
bool runs_along_columns(const Model& model, std::string_view tensor);

// Format::content_digest of the format that the model was read from; nothing where it has none.
std::optional<std::string> content_digest(const Model& model);

// Format::unknown_type_name of any format, else the spelling itself.
std::string_view unknown_type_name(std::string_view spelled);

// Can files of the format hold tensors of that layout? Dense ones and those that are carried only always can.
bool holds_layout(const Format& format, const LayoutType& type);

// All of them, in the order in which they are asked.
std::span<const Format* const> all_formats();

// The one of these formats that an input's content belongs to: by magic; else by the kind of its container and its
// members' names, the first in order. Null: none.
const Format* recognise(const Input& input, std::span<const Format* const> among);

// Capitals are small letters. Throws bad_argument listing the names that exist.
const Format& format_by_name(std::string_view name);

// The format that the name of an output asks for: that of directories where it ends in a slash or is one, else that of
// its extension. Throws bad_argument where there is none.
const Format& output_format(const std::filesystem::path& path);

// Where a file, or a directory, of the format is written. Throws what making one throws, which is in io/.
std::unique_ptr<SavedOutput> output_for(const Format& format, const std::filesystem::path& path, bool overwrite,
                                        std::vector<std::filesystem::path> inputs = {});

// Throws the bad_argument that output_for() would throw. Makes nothing. Returns what SavedOutput::replaces() would.
std::string require_output_possible(const Format& format, const std::filesystem::path& path, bool overwrite,
                                    const std::vector<std::filesystem::path>& inputs);

// Refuses options the format does not honour, and tensors whose parts do not make up what they say they are, then
// prepares. Its losses are all that a file of this format will not hold. Requires: model and options outlive what it
// returns, and stay the same.
std::unique_ptr<PreparedFile> prepare_file(const Model& model, const Format& format, const WriteOptions& options);

// For callers with one question.
void write_model(const Model& model, const Format& format, Output& output, const WriteOptions& options);
std::vector<std::string> losses_of(const Model& model, const Format& format, const WriteOptions& options);

}  // namespace poise
