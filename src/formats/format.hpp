// A Format has the functions and properties of one file format. Each is a constant in a folder, and a row of
// registry.cpp.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <poise/edit.hpp>
#include <poise/finding.hpp>
#include <poise/format.hpp>
#include <poise/stored_type.hpp>

#include "bytes/function_ref.hpp"
#include "family/family.hpp"
#include "formats/input.hpp"

namespace poise {

struct Adapter;     // formats/adapter.hpp
struct LayoutType;  // views/layout_type.hpp
class Output;       // io/sink.hpp
class SavedOutput;

// Holds the alignments that a format lets users choose: `usual` by default, or another power of two of at least
// `least`.
struct Alignments {
  std::uint64_t usual = 0;
  std::uint64_t least = 0;
};

// Lists the write options a format honours; save() rejects the others.
struct HonouredOptions {
  bool dialect = false;
  bool zstd_level = false;
  bool digest = false;
  std::optional<Alignments> align = {};
  bool shard_size = false;
};

// Describes a key of a file's own metadata, before a reader converts it to card, configuration and vocabulary.
struct MetadataKey {
  std::string key;
  std::string type;  // the format's name of the type: "u32", "text[32000]"
  Value value;
};

// Holds the sizes of a file to be written, computed from headers alone.
struct FilePlan {
  // Has the number of bytes of each tensor's parts before compression, in the model's order, as a reader of the file
  // will find them. It is empty if the file will hold none of the tensors.
  std::vector<std::uint64_t> tensor_bytes;
  // Has the size of all files together; std::nullopt if it depends on the values of the tensors' bytes.
  std::optional<std::uint64_t> bytes;
  bool exact = true;  // false: `bytes` is an upper bound
};

// Describes the files of weights in a Hugging Face directory, next to its config.json.
struct WeightFiles {
  std::span<const std::string_view> names;  // names of the file that holds all tensors, the usual name first
  std::string_view index;  // the name of the file that maps tensors to several files; empty: there is none
  // Calls `add_tensor` with each tensor of a file, and returns the file's other metadata. Errors of `add_tensor`
  // without an offset may get that of the tensor's entry in the file. Throws what Format::read throws.
  Attributes (*read)(const SourcePtr& source, FunctionRef<void(Tensor)> add_tensor, std::vector<Finding>& warnings);
  bool has_any_name = false;  // the directory's only file of the format holds the tensors, whatever its name
};

// Holds a model that is about to be written.
struct PreparedFile {
  // Returns the sizes of the files that write() makes. Reads no tensor's bytes. Throws what write() throws, except for
  // errors that only these bytes show.
  std::function<FilePlan()> plan;
  std::vector<std::string> losses;  // what the file cannot hold, one sentence each
  std::function<void(Output& output, const Progress& progress)> write;
  // Returns the name of the file to open, for an output called `name`. Empty: the output's own name.
  std::function<std::string(const std::string& name)> main_name = {};
  std::vector<std::string> decoded_tensors = {};  // names of tensors whose codes the file holds as float32 numbers
  std::shared_ptr<const Model> checked = {};  // the model that write() reads, if it checks values; see prepare_file()
};

// Prepares a file by three functions that share no work.
template <FilePlan (*kPlan)(const Model&, const WriteOptions&),
          void (*kWrite)(const Model&, Output&, const WriteOptions&),
          std::vector<std::string> (*kLosses)(const Model&, const WriteOptions&)>
PreparedFile prepare_with(const Model& model, const WriteOptions& options) {
  return {.plan = [&model, options] { return kPlan(model, options); },
          .losses = kLosses(model, options),
          .write =
              [&model, options](Output& output, const Progress& progress) {
                WriteOptions watched = options;
                watched.progress = progress;
                kWrite(model, output, watched);
              }};
}

// Holds an edit of attributes that is about to be written.
class PreparedEdit {
 public:
  // `added` has the new keys, as in EditReport.
  explicit PreparedEdit(std::vector<std::string> added) : added_(std::move(added)) {}
  virtual ~PreparedEdit() = default;
  // Returns the bytes that the file will have after commit().
  virtual SourcePtr make_edited_source() const = 0;
  const std::vector<std::string>& added() const { return added_; }
  // Does nothing by default. An override may throw bad_argument for an edit without effect: it gets the models that
  // Poise reads from the file before and after the edit.
  virtual void require_effect(const Model& before, const Model& after) const {
    (void)before;
    (void)after;
  }
  // Returns how commit() changes the file. Leaves EditReport::added empty.
  virtual EditReport report() const = 0;
  // Changes the file at `path`: the input's path, or the target if that is a link. Requires: a FileLock holds it.
  virtual void commit(const std::filesystem::path& path) = 0;

 private:
  std::vector<std::string> added_;
};

struct Format {
  FormatInfo info;  // formats() fills in `readable` and `writable`
  // Lists the extensions of its files besides info.extension, each with its dot.
  std::span<const std::string_view> extensions = {};
  HonouredOptions options = {};
  // If this is false, a conversion makes bf16 tensors f32, unless the user names another type.
  bool holds_bf16;
  bool holds_half = true;  // false: its files hold no floating-point numbers of 16 bits
  // Returns true for a layout that its files hold, besides dense. Null: they hold no others.
  bool (*holds_layout)(const LayoutType& type) = nullptr;
  bool holds_more_parts = false;             // dense tensors in its files may have parts besides data
  bool has_whole_card = false;               // its files have every field of a card, even if it is empty
  WeightReader weights = WeightReader::any;  // the program whose way to store weights it follows
  // Returns true if its readers require the output matrix of this model, even if it equals the embedding. Null: they
  // never do.
  bool (*requires_output)(const Model& model) = nullptr;
  // Returns a function that is true for tensors that readers need as float32, so that a conversion gives them no other
  // type. Looks at card and configuration once for all tensors. Null: there are no such tensors.
  std::function<bool(const Tensor& tensor)> (*make_f32_test)(const Model& model) = nullptr;
  // Returns a function that states why files hold no codes of this type for a tensor, so that a conversion does not
  // quantize it; empty if they hold them. Looks at the model once for all tensors. Null: they hold codes of all
  // tensors.
  std::function<std::string_view(const Tensor& tensor, const StoredType& type)> (*make_codes_test)(const Model& model) =
      nullptr;

  // Recognizes its files by magic, in the first stage: returns true if the file is certainly meant to be of this
  // format. Looks at a few bytes, and never throws for their content. Null: the format has no magic of its own.
  bool (*sniff)(const Input& input) = nullptr;
  // Recognizes damaged files, where several formats share an extension and no sniff() accepts the file: returns true if
  // the rest of the file, such as its end, is characteristic. The format's reader then reports what is wrong. Null: no
  // damaged file is recognized.
  bool (*matches_damaged)(const Input& input) = nullptr;
  // Recognizes its files by their kind of container and, unless `holds` is null, by the names of their members.
  std::optional<ContainerKind> container = {};
  bool (*holds)(const MemberNames& names) = nullptr;
  // For formats of directories: returns true if these are the names of an archive that holds such a directory. Null: no
  // archive does.
  bool (*holds_in_archive)(const MemberNames& names) = nullptr;
  // For formats of directories that can be written: returns why a directory with these file names must not be replaced;
  // an empty text if it may be.
  std::string (*explain_refusal)(const MemberNames& names) = nullptr;
  // `read` is null if the format cannot be read, and `prepare` if it cannot be written. `prepare` requires that the
  // model outlives the result and does not change.
  Model (*read)(const Input& input, const ReadOptions& options);
  PreparedFile (*prepare)(const Model& model, const WriteOptions& options) = nullptr;
  // Returns findings of verify() that neither reading the model nor checking its tensors gives: for example, bytes that
  // belong to no part, and wrong checksums. Null: there are none. Throws what read() throws.
  std::vector<Finding> (*audit)(const Input& input, const Model& model) = nullptr;
  // Returns a finding for each place in a file, of any format, that makes or may make Python run code when a loader of
  // this format reads the file. Null: no loader of the format runs code. Throws what read() throws.
  std::vector<Finding> (*find_dangerous_code)(const SourcePtr& source) = nullptr;
  // Returns the number of checksums in the file if they cover every byte of its tensors, else 0. audit() compares the
  // checksums with the bytes. Null: the format has none.
  std::size_t (*count_checksums)(const Input& input, const Model& model) = nullptr;
  // Converts an attribute's value, which a conversion adds, to the type that readers of the format require. Throws
  // bad_argument for values that do not fit this type, and for keys that the writer derives from the model. Null: a
  // conversion adds values as they are.
  Value (*make_attribute)(const Model& model, const std::string& key, const Value& given) = nullptr;
  // Prepares changes of a file's attributes; writes nothing. Throws bad_argument for changes that the format does not
  // allow. Null: Poise does not edit files of the format.
  std::unique_ptr<PreparedEdit> (*edit)(const Input& input, const AttributeChanges& changes) = nullptr;
  // Returns a file's metadata, in order. Null: the format has no keys of its own. Throws unsupported if they take too
  // much memory.
  std::vector<MetadataKey> (*list_keys)(const Input& input) = nullptr;

  // Describes the format's files in Hugging Face directories; std::nullopt: it has none there.
  std::optional<WeightFiles> weight_files = {};

  // The functions below are about models and tensors of any format. Each may be null.
  // Returns true if the blocks of this matrix of the model run along its columns.
  bool (*has_transposed_blocks)(const Model& model, std::string_view tensor) = nullptr;
  // Returns the digest of a model's content. Requires: the model's Origin::format is `origin`.
  std::string (*find_content_digest)(const Model& model) = nullptr;
  // Fills in empty fields of the card of a model with that origin, for a format with `has_whole_card`. Null: they stay
  // empty.
  void (*complete_card)(const Model& model, Card& card) = nullptr;
  std::string_view origin = {};
  // Returns the name of an element type that Poise does not know, in the spelling of any version of the format.
  std::string_view (*name_unknown_type)(std::string_view spelled) = nullptr;
  // Returns the adapter in a file of this format, or in one converted from it; std::nullopt if it is a model. Null: the
  // format has no adapters. See parse_adapter().
  std::optional<Adapter> (*read_adapter)(const Model& file, const Model* base) = nullptr;
};

// Holds an input with its format and its model. Only open_despite_faults() adds `faults`.
struct Opened {
  const Format* format = nullptr;
  Input input;
  Model model;
  std::vector<Finding> faults = {};
};
// Returns the file or directory at a path; for an index of shards, its directory. Throws what Source::open() throws.
Input open_input(const std::filesystem::path& path, const ReadOptions& options);
Opened open_with_format(Input input, const ReadOptions& options);
// Opens a file with faulty tensors without throwing a FaultyModel: returns the model without them, and the faults.
Opened open_despite_faults(Input input, const ReadOptions& options);

// Returns the metadata of the opened file, key by key. Throws unsupported, naming the formats with keys, if its format
// has none.
std::vector<MetadataKey> list_metadata_keys(const Opened& opened);

// Returns true if Format::has_transposed_blocks returns true for any format.
bool has_blocks_along_columns(const Model& model, std::string_view tensor);

// Returns the result of Format::find_content_digest of the model's original format; std::nullopt if it has none.
std::optional<std::string> find_content_digest(const Model& model);

// Calls Format::complete_card of the model's original format if files of the target have a whole card
// (Format::has_whole_card).
void complete_card(const Model& model, const Format& target, Card& card);

// Returns the result of the first Format::name_unknown_type; the spelling itself if no format has this function.
std::string_view name_unknown_type(std::string_view spelled);

// Returns true if files of the format can hold tensors of that layout. Dense tensors, and unknown layouts, which are
// only copied, always fit.
bool holds_layout(const Format& format, const LayoutType& type);

// Returns the findings of Format::find_dangerous_code of all formats, except those in `known`. An error of a format's
// reader becomes a finding. Throws io.
std::vector<Finding> find_dangerous_code_in_file(const SourcePtr& source, std::span<const Finding> known);

// Returns all formats, in the order in which recognise_format() asks them.
std::span<const Format* const> list_all_formats();

// Returns the first of these formats that recognizes the input: by magic, else by its container and the names of its
// members. Null: none does.
const Format* recognise_format(const Input& input, std::span<const Format* const> among);

// Returns the format with that name, in small or capital letters. Throws bad_argument that lists the formats that can
// be written.
const Format& find_format_by_name(std::string_view name);

// Returns the format for an output's name: the format of directories if the name ends in a slash or is a directory,
// else the format of its extension. Throws bad_argument if there is none.
const Format& find_output_format(const std::filesystem::path& path);

// Returns another format that can be written and has the output's extension; std::nullopt if there is none, or if
// `format` is the usual one for the extension.
std::optional<std::string_view> find_other_output_format(const std::filesystem::path& path, const Format& format);

// Returns the output for a file, or a directory, of the format. Throws what the outputs of io/ throw.
std::unique_ptr<SavedOutput> make_saved_output(const Format& format, const std::filesystem::path& path, bool overwrite,
                                               std::vector<std::filesystem::path> inputs = {});

// Throws the bad_argument that make_saved_output() would throw. Creates nothing. Returns
// SavedOutput::describe_replacements().
std::string require_possible_output(const Format& format, const std::filesystem::path& path, bool overwrite,
                                    const std::vector<std::filesystem::path>& inputs);

// Rejects options that the format does not honour, tensors with inconsistent parts, and attributes that readers would
// reject, then prepares the file.
// PreparedFile::losses is complete. Writing throws invalid_file for values that verify() calls an error
// (views/computed_blob.hpp). Requires: the model outlives the result, and does not change.
PreparedFile prepare_file(const Model& model, const Format& format, const WriteOptions& options);

void write_model(const Model& model, const Format& format, Output& output, const WriteOptions& options);

}  // namespace poise
