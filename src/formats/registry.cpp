// Has the table of formats, and finds the format of a path: by content first, then by extension.
#include "formats/registry.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <poise/error.hpp>

#include "bytes/short_text.hpp"
#include "bytes/utf8.hpp"
#include "family/check.hpp"
#include "family/families.hpp"
#include "family/tied_output.hpp"
#include "formats/adapter.hpp"
#include "formats/faulty_model.hpp"
#include "formats/fold.hpp"
#include "formats/gguf/gguf.hpp"
#include "formats/huggingface/adapter.hpp"
#include "formats/input.hpp"
#include "formats/metadata.hpp"
#include "formats/safetensors/safetensors.hpp"
#include "formats/ztensor/zt1.hpp"
#include "formats/ztensor/zt2.hpp"
#include "io/directory_output.hpp"
#include "views/computed_blob.hpp"
#include "views/layout_type.hpp"

namespace poise {

const std::array<AdapterForm, 2> kAdapterForms = {AdapterForm{"PEFT", "huggingface", huggingface::make_peft_adapter},
                                                  AdapterForm{"llama.cpp", "gguf", gguf::make_adapter}};

namespace {

// Has one row for each format. If several formats share an extension, Poise writes the first.
constexpr std::array kFormats = std::to_array<const Format*>(
    {&kHuggingFace, &kAltV2, &kAltV1, &kGguf, &kSafetensors, &kZtensor2, &kZtensor1, &kTinyLlamaFormat, &kPytorch,
     &kDistributedCheckpoint, &kLlama2c, &kNpy, &kNpz, &kOnnx, &kFlax});

const auto& list_infos() {
  static const auto table = [] {
    std::array<FormatInfo, kFormats.size()> rows;
    std::transform(kFormats.begin(), kFormats.end(), rows.begin(), [](const Format* format) {
      FormatInfo info = format->info;
      info.readable = format->read != nullptr;
      info.writable = format->prepare != nullptr;
      return info;
    });
    return rows;
  }();
  return table;
}

// Returns true if the format has this extension, in upper or lower case.
bool has_extension(const Format& format, const std::string& found) {
  const std::string extension = to_lower_ascii(found);
  return !extension.empty() && (format.info.extension == extension ||
                                std::ranges::find(format.extensions, extension) != format.extensions.end());
}

// Returns true if the format writes this extension, in upper or lower case.
bool has_usual_extension(const Format& format, const std::string& found) {
  return format.info.extension == to_lower_ascii(found);
}

Model read_with_format(const Format& format, const Input& input, const ReadOptions& options) {
  if (format.read == nullptr)
    throw Error(ErrorKind::unsupported, fmt::format("{} files can be written, not read", format.info.name),
                input.path.string());
  Model model = fold_file(format.read(input, options), input.path, options);
  if (std::optional<Model> resolved = resolve_tied_output(model)) model = *std::move(resolved);
  for (std::string& problem : list_shortcomings(model)) warn(model.warnings, std::move(problem), input.path);
  return model;
}

enum class IfFaulty { fail, open_rest };

// Reads a model. If it has faulty tensors, returns the rest and sets `faults`.
Model read_despite_faults(const Format& format, const Input& input, const ReadOptions& options,
                          std::vector<Finding>& faults) {
  try {
    return read_with_format(format, input, options);
  } catch (FaultyModel& faulty) {
    faults = faulty.faults();
    return faulty.release_valid_part();
  }
}

// Returns the format of a file without a magic, by its extension. If several formats have the extension, returns the
// one whose matches_damaged() accepts the file, or else the first, if it is the usual one for the extension. Null: no
// format is certain.
const Format* find_by_extension(const Input& input, const std::string& extension) {
  const Format* first = nullptr;
  bool is_shared = false;
  for (const Format* format : kFormats) {
    if (format->read == nullptr || !has_extension(*format, extension)) continue;
    if (format->matches_damaged != nullptr && format->matches_damaged(input)) return format;
    is_shared = first != nullptr;
    if (first == nullptr) first = format;
  }
  return is_shared && !has_usual_extension(*first, extension) ? nullptr : first;
}

Opened read_input(Input input, const ReadOptions& options, IfFaulty if_faulty = IfFaulty::fail) {
  std::vector<Finding> faults;
  const auto read = [&](const Format& format) {
    return if_faulty == IfFaulty::fail ? read_with_format(format, input, options)
                                       : read_despite_faults(format, input, options, faults);
  };
  const std::string extension = input.path.extension().string();
  if (const Format* format = recognise_format(input, kFormats)) {
    Model model = read(*format);
    const auto named = format_from_extension(input.path);
    if (named && input.source && !has_extension(*format, extension)) {
      model.warnings.push_back({Severity::warning,
                                fmt::format("the name ends in {}, but this is {}", extension, format->info.description),
                                input.path.string(), 0});
    }
    return {format, std::move(input), std::move(model), std::move(faults)};
  }
  // The content is not recognized. The format of the extension reads the file, or reports the fault.
  if (const Format* format = input.source ? find_by_extension(input, extension) : nullptr) {
    try {
      Model model = read(*format);
      return {format, std::move(input), std::move(model), std::move(faults)};
    } catch (const Error& error) {
      if (format->container && format->container == find_container_kind(input)) throw;
      refuse_non_model(error, {&input.source, 1});
      throw;
    }
  }
  refuse_non_model(input);
  throw Error(ErrorKind::invalid_file, "this is not in a format that Poise reads", input.path.string(), 0);
}

void require_honoured(bool given, bool honoured, std::string_view option, const Format& format) {
  if (given && !honoured)
    throw Error(ErrorKind::bad_argument, fmt::format("{} files have no {}", format.info.name, option));
}

// Throws unsupported for an attribute that only Poise may write, if readers would reject its value.
void check_own_attributes(const Model& model) {
  for (const std::string field : {"card", "config", "vocabulary"}) {
    const std::string key = "poise." + field;
    const Value* value = model.attributes.find(key);
    if (value == nullptr) continue;
    try {
      Model own;
      own.attributes.set(key, *value);
      parse_text_attributes(own);
    } catch (const Error&) {
      throw Error(ErrorKind::unsupported,
                  fmt::format("attribute {}: expected the text that Poise writes there; set the model's {} instead of "
                              "this attribute",
                              key, field));
    }
  }
}

void require_writable(const Model& model, const Format& format, const WriteOptions& options) {
  if (format.prepare == nullptr)
    throw Error(ErrorKind::bad_argument, fmt::format("{} can be read, not written", format.info.name));
  require_honoured(options.dialect.has_value(), format.options.dialect, "dialects", format);
  require_honoured(options.zstd_level.has_value(), format.options.zstd_level, "compression", format);
  require_honoured(options.digest.has_value(), format.options.digest, "digests", format);
  require_honoured(options.align.has_value(), format.options.align.has_value(), "alignment to choose", format);
  require_honoured(options.shard_size.has_value(), format.options.shard_size, "shards", format);
  check_own_attributes(model);
  for (const Tensor& tensor : model.tensors()) check_parts(tensor);
}

// Returns a sentence about parts of dense tensors besides data; std::nullopt if there are none.
std::optional<std::string> describe_lost_parts(const Model& model) {
  const Tensor* first = nullptr;
  std::size_t more = 0;
  for (const Tensor& tensor : model.tensors()) {
    if (tensor.layout != Layout::dense || tensor.parts.size() < 2) continue;
    more += first == nullptr ? 0 : 1;
    first = first == nullptr ? &tensor : first;
  }
  if (first == nullptr) return std::nullopt;
  std::vector<std::string_view> roles;
  for (const Part& part : first->parts) {
    if (part.role != "data") roles.push_back(part.role);
  }
  return fmt::format("tensor {}{}: the part{} {} besides data {} lost", first->name, format_more(more),
                     roles.size() == 1 ? "" : "s", list_names(roles), roles.size() == 1 ? "is" : "are");
}

}  // namespace

std::span<const Format* const> list_all_formats() { return kFormats; }

std::span<const FormatInfo> formats() { return list_infos(); }

std::vector<Finding> find_dangerous_code_in_file(const SourcePtr& source, std::span<const Finding> known) {
  std::vector<Finding> findings;
  const auto add = [&](Finding finding) {
    // A reader's error and a finding about the same step of a pickle differ only in the words before its description.
    const auto is_same = [&](const Finding& other) {
      constexpr std::string_view kContext = "pickle: ";
      std::string_view message = other.message;
      if (message.starts_with(kContext)) message.remove_prefix(kContext.size());
      return other.path == finding.path && finding.message.ends_with(message);
    };
    if (std::ranges::none_of(known, is_same) && std::ranges::none_of(findings, is_same))
      findings.push_back(std::move(finding));
  };
  for (const Format* format : kFormats) {
    if (format->find_dangerous_code == nullptr) continue;
    try {
      std::ranges::for_each(format->find_dangerous_code(source), add);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::invalid_file && error.kind() != ErrorKind::unsupported) throw;
      add({Severity::error, error.message(), error.path().empty() ? source->name() : error.path(), error.offset()});
    }
  }
  return findings;
}

const Format& find_format_by_name(std::string_view name) {
  std::string names;
  const std::string small = to_lower_ascii(name);
  for (const Format* format : kFormats) {
    if (format->info.name == small) return *format;
    if (format->prepare != nullptr) names += fmt::format("{}{}", names.empty() ? "" : ", ", format->info.name);
  }
  throw Error(ErrorKind::bad_argument, fmt::format("there is no format \"{}\"; these can be written: {}", name, names));
}

std::optional<std::string_view> format_from_extension(const std::filesystem::path& path) {
  const std::string extension = path.extension().string();
  for (const Format* format : kFormats) {
    if (format->prepare != nullptr && has_extension(*format, extension)) return format->info.name;
  }
  return std::nullopt;
}

const Format& find_output_format(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!path.has_filename() || std::filesystem::is_directory(path, ignored)) {
    const auto found =
        std::ranges::find_if(kFormats, [](const Format* format) { return format->explain_refusal != nullptr; });
    if (found != kFormats.end()) return **found;
  }
  const auto name = format_from_extension(path);
  if (name) return find_format_by_name(*name);
  const std::string extension = path.extension().string();
  for (const Format* format : kFormats) {
    if (format->prepare == nullptr && has_extension(*format, extension))
      throw Error(ErrorKind::bad_argument,
                  fmt::format("{} files ({}) can only be read, not written", format->info.name, extension),
                  path.string())
          .with({.kind = Remedy::Kind::format});
  }
  const std::string problem =
      extension.empty() ? "cannot tell the format: the name has no extension (for a directory, end it with a slash)"
                        : fmt::format("cannot tell the format: no format has the extension \"{}\"", extension);
  throw Error(ErrorKind::bad_argument, problem, path.string()).with({.kind = Remedy::Kind::format});
}

std::optional<std::string_view> find_other_output_format(const std::filesystem::path& path, const Format& format) {
  const std::string extension = path.extension().string();
  if (!has_extension(format, extension) || has_usual_extension(format, extension)) return std::nullopt;
  for (const Format* other : kFormats) {
    if (other != &format && other->prepare != nullptr && has_extension(*other, extension)) return other->info.name;
  }
  return std::nullopt;
}

std::unique_ptr<SavedOutput> make_saved_output(const Format& format, const std::filesystem::path& path, bool overwrite,
                                               std::vector<std::filesystem::path> inputs) {
  if (format.explain_refusal != nullptr)
    return std::make_unique<DirectoryOutput>(path, overwrite, format.explain_refusal, std::move(inputs));
  return std::make_unique<FileOutput>(path, overwrite, std::move(inputs));
}

std::string require_possible_output(const Format& format, const std::filesystem::path& path, bool overwrite,
                                    const std::vector<std::filesystem::path>& inputs) {
  if (format.explain_refusal != nullptr)
    return DirectoryOutput::check_replaceable(path, overwrite, format.explain_refusal, inputs);
  FileOutput::check_replaceable(path, overwrite, inputs);
  return {};
}

const Format* recognise_format(const Input& input, std::span<const Format* const> among) {
  if (input.source) {
    const auto found = std::ranges::find_if(
        among, [&](const Format* format) { return format->sniff != nullptr && format->sniff(input); });
    if (found != among.end()) return *found;
  }
  const auto container = find_container_kind(input);
  if (!container) return nullptr;
  std::optional<MemberNames> names;
  const auto holds = [&](bool (*test)(const MemberNames& names)) {
    if (!names) names = list_member_names(input, *container);
    return test(*names);
  };
  for (const Format* format : among) {
    if (format->container == container && format->holds != nullptr && holds(format->holds)) return format;
  }
  // Formats without a test for names come after those with one.
  for (const Format* format : among) {
    if (format->container == container && format->holds == nullptr) return format;
  }
  // Directories in archives come last, because an archive of another format may contain a directory's file names, too.
  for (const Format* format : among) {
    if (input.source && format->holds_in_archive != nullptr && holds(format->holds_in_archive)) return format;
  }
  return nullptr;
}

Input open_input(const std::filesystem::path& path, const ReadOptions& options) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return {path, nullptr};
  const bool is_index = std::ranges::any_of(kFormats, [&](const Format* format) {
    return format->weight_files && path.filename() == format->weight_files->index;
  });
  if (is_index && std::filesystem::is_regular_file(path, ignored))
    return {path.has_parent_path() ? path.parent_path() : std::filesystem::path("."), nullptr};
  return {path, Source::open(path, options.io)};
}

Opened open_with_format(Input input, const ReadOptions& options) { return read_input(std::move(input), options); }

Opened open_despite_faults(Input input, const ReadOptions& options) {
  return read_input(std::move(input), options, IfFaulty::open_rest);
}

std::vector<MetadataKey> list_metadata_keys(const Opened& opened) {
  if (opened.format->list_keys != nullptr) return opened.format->list_keys(opened.input);
  std::vector<std::string_view> names;
  for (const Format* format : kFormats) {
    if (format->list_keys != nullptr) names.push_back(format->info.name);
  }
  throw Error(ErrorKind::unsupported,
              fmt::format("{} files have no metadata keys to list; those of these formats have: {}",
                          opened.format->info.name, fmt::join(names, ", ")),
              opened.input.path.string());
}

Model open(const std::filesystem::path& path, const ReadOptions& options) {
  return open_with_format(open_input(path, options), options).model;
}

Model open(SourcePtr source, const ReadOptions& options) {
  const std::filesystem::path path = source->name();
  const bool is_file = source->descriptor() >= 0;
  return read_input({path, std::move(source), is_file}, options).model;
}

bool has_blocks_along_columns(const Model& model, std::string_view tensor) {
  return std::ranges::any_of(kFormats, [&](const Format* format) {
    return format->has_transposed_blocks != nullptr && format->has_transposed_blocks(model, tensor);
  });
}

std::optional<std::string> find_content_digest(const Model& model) {
  for (const Format* format : kFormats) {
    if (format->find_content_digest != nullptr && format->origin == model.origin.format)
      return format->find_content_digest(model);
  }
  return std::nullopt;
}

void complete_card(const Model& model, const Format& target, Card& card) {
  if (!target.has_whole_card) return;
  for (const Format* format : kFormats) {
    if (format->complete_card != nullptr && format->origin == model.origin.format)
      return format->complete_card(model, card);
  }
}

std::string_view name_unknown_type(std::string_view spelled) {
  for (const Format* format : kFormats) {
    if (format->name_unknown_type != nullptr) return format->name_unknown_type(spelled);
  }
  return spelled;
}

bool holds_layout(const Format& format, const LayoutType& type) {
  if (&type == &layouts::dense || &type == &layouts::other) return true;
  return format.holds_layout != nullptr && format.holds_layout(type);
}

PreparedFile prepare_file(const Model& model, const Format& format, const WriteOptions& options) {
  require_writable(model, format, options);
  std::shared_ptr<Model> checked;
  if (std::ranges::any_of(model.tensors(), needs_value_checks)) {
    checked = std::make_shared<Model>(model.header());
    for (const Tensor& tensor : model.tensors()) checked->add(add_value_checks(tensor));
  }
  PreparedFile prepared = format.prepare(checked ? *checked : model, options);
  prepared.checked = std::move(checked);
  if (auto loss = format.holds_more_parts ? std::nullopt : describe_lost_parts(model))
    prepared.losses.insert(prepared.losses.begin(), *std::move(loss));
  return prepared;
}

void write_model(const Model& model, const Format& format, Output& output, const WriteOptions& options) {
  prepare_file(model, format, options).write(output, options.progress);
}

}  // namespace poise
