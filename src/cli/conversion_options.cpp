#include "cli/conversion_options.hpp"

#include <unistd.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include <poise/divergence.hpp>
#include <poise/error.hpp>

#include "bytes/utf8.hpp"
#include "cli/help.hpp"
#include "cli/options.hpp"
#include "cli/set_option.hpp"
#include "cli/standard_input.hpp"
#include "cli/text.hpp"
#include "cli/values.hpp"
#include "formats/format.hpp"
#include "io/sink.hpp"
#include "io/streams.hpp"
#include "model/card.hpp"
#include "model/limits.hpp"
#include "ops/block_recipe.hpp"
#include "ops/conversion.hpp"
#include "ops/option_words.hpp"
#include "views/layout_type.hpp"

namespace poise::cli {
namespace {

// Throws bad_argument if two options give a type. The library would throw, too, but with its own names of the options.
void require_one_type(const ConvertOptions& options) {
  if (!options.dtype || (!options.quantize && options.recipe.empty() && !options.budget)) return;
  throw Error(ErrorKind::bad_argument,
              "--dtype and --quantize exclude each other; --keep GLOB=DTYPE gives some tensors another type");
}

// Throws bad_argument, naming the extension that the user probably meant, for an unknown extension that is similar to a
// known one. The library reports the others.
void require_known_extension(const ConversionArguments& options) {
  const std::filesystem::path path = options.output;
  const std::string extension = path.extension().string();
  if (!options.convert.format.empty() || extension.empty() || format_from_extension(path)) return;
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return;
  std::vector<std::string> known;
  for (const Format* format : list_all_formats()) {
    if (format->prepare == nullptr) continue;
    if (!format->info.extension.empty()) known.emplace_back(format->info.extension);
    known.insert(known.end(), format->extensions.begin(), format->extensions.end());
  }
  if (const std::string* near = find_nearest(known, extension))
    throw Error(ErrorKind::bad_argument,
                fmt::format("cannot tell the format: no format has the extension \"{}\", the nearest is \"{}\"",
                            extension, *near),
                options.output)
        .with({.kind = Remedy::Kind::format});
}

// Parses "PATTERN=TYPE", divided at the last "=": patterns may contain others.
ConvertOptions::Keep parse_keep(const std::string& text) {
  const auto equals = text.rfind('=');
  const auto type =
      equals == std::string::npos ? std::nullopt : parse_kept_type(std::string_view(text).substr(equals + 1));
  if (!type) refuse("--keep", text, "GLOB=TYPE with a type of " + format_kept_types());
  return {text.substr(0, equals), *type};
}

void parse_quantize(const std::string& text, ConvertOptions& options) {
  if (set_quantization(options, text)) return;
  const std::vector<std::string> names = list_quantization_names();
  const std::string* near = find_nearest(names, text);
  refuse("--quantize", text,
         near == nullptr
             ? format_quantization_choices()
             : fmt::format("one of the types that `poise help convert` lists; the nearest is \"{}\"", *near));
}

// Returns a table of the types of --quantize, with their bits and the formats that hold them.
std::string format_quantize_types() {
  const auto formats_with = [](const LayoutType& layout) {
    return join_format_names([&](const Format& format) { return format.prepare && holds_layout(format, layout); });
  };
  const std::string affine = formats_with(layouts::affine);
  const std::string groups = formats_with(layouts::groups);
  const std::string blocks = formats_with(layouts::blocks);
  const auto format_bits = [](double number) { return fmt::format("{:.2f}", number); };
  Table table({"TYPE", "bits", "in", ""}, {false, true, false, false});
  for (const unsigned width : {8U, 4U}) {
    table.add(
        {fmt::format("qint{}", width), format_bits(width), affine, "one scale per tensor, from its largest magnitude"});
    table.add({fmt::format("qint{}:range", width), format_bits(width), affine, "from its least to its largest value"});
    table.add({fmt::format("qint{}:mse", width), format_bits(width), affine, "with the least squared error"});
  }
  for (const Groups usual : {Groups{8}, Groups{4}}) {
    constexpr double kScaleBits = 32;  // bits of the scale and the zero point of a group
    table.add({fmt::format("group{}", usual.bits),
               format_bits(usual.bits + kScaleBits / static_cast<double>(usual.size)), groups,
               fmt::format("scale and zero point for each {} codes (--group-size)", usual.size)});
  }
  for (const BlockType& type : list_block_types()) {
    if (type.encode == nullptr) continue;
    table.add({std::string(type.name),
               format_bits(8.0 * static_cast<double>(type.bytes) / static_cast<double>(type.elements)), blocks,
               fmt::format("ggml's blocks of {} neighbours", type.elements)});
  }
  for (const std::string_view recipe : list_block_recipes())
    table.add({std::string(recipe), "", blocks, "a type for each matrix, mixed as llama-quantize does"});
  table.add({"auto", "", blocks, "by measured errors, to fit --size or --bpw"});
  return "Types for --quantize, with bits per weight and the formats that hold them:\n" + table.text();
}

std::uint64_t parse_group_size(const std::string& text, const std::optional<StoredType>& type) {
  if (!type || !type->grouped())
    throw CLI::ValidationError("--group-size", "only --quantize group4 and group8 have groups");
  Groups groups = type->groups;
  groups.size = parse_number_text<std::uint64_t>(text).value_or(0);
  if (is_group_size(groups)) return groups.size;
  refuse("--group-size", text, format_group_sizes(groups));
}

void add_quantize_options(CLI::App& command, ConversionArguments& arguments) {
  ConvertOptions& options = arguments.convert;
  auto* quantize = add_parsed_option(command, "--quantize", "TYPE",
                                     "Store matrices as codes of one of the types below; vectors become f32",
                                     [&options](const std::string& text) { parse_quantize(text, options); });
  add_parsed_option(
      command, "--group-size", "N",
      "Codes that share a scale; halved for rows that are not a multiple of it (default: 128)",
      [&options](const std::string& text) { options.quantize->groups.size = parse_group_size(text, options.quantize); })
      ->needs(quantize);
  const auto require_budget = [&options](const std::string& option) {
    if (!options.budget) throw CLI::ValidationError(option, "only --quantize auto chooses types that fit it");
  };
  auto* size =
      add_parsed_option(command, "--size", "SIZE",
                        "With --quantize auto: choose types so that the output has at most this size: 4.2GB, 500MiB",
                        [&options, require_budget](const std::string& text) {
                          require_budget("--size");
                          options.budget->bytes = parse_size(text);
                          if (options.budget->bytes.value_or(0) == 0) refuse("--size", text, kSizeExpected);
                        })
          ->needs(quantize);
  add_parsed_option(command, "--bpw", "N",
                    "With --quantize auto: choose types so that the tensors have at most this many bits per weight",
                    [&options, require_budget](const std::string& text) {
                      require_budget("--bpw");
                      options.budget->bits_per_weight = parse_number_text<double>(text);
                      if (!(options.budget->bits_per_weight.value_or(0) > 0)) refuse("--bpw", text, "a number above 0");
                    })
      ->needs(quantize)
      ->excludes(size);
  add_parsed_option(command, "--text", "FILE",
                    "With --quantize auto: weigh each matrix by how much its errors change the predictions for this "
                    "text, whose first 512 tokens count; - is standard input",
                    [&arguments, &options, require_budget](const std::string& text) {
                      require_budget("--text");
                      arguments.text_file = text;
                      options.budget->divergence = measure_on_text(read_text_beginning(text, kMeasuredBytes + 1));
                    })
      ->check(make_nonempty_check())
      ->needs(quantize);
  command
      .add_option("--imatrix", options.imatrix,
                  "Weigh the errors of blocks by an importance matrix of llama-imatrix (GGUF or its older format)")
      ->type_name("FILE")
      ->needs(quantize);
  add_parsed_list_option(command, "--keep", "GLOB=TYPE",
                         "Type for tensors whose name matches, in place of the type of --dtype or --quantize",
                         [&options](const std::string& text) { options.keep.push_back(parse_keep(text)); });
}

// Parses "PATTERN=NAME", divided at the last "=": regular expressions may contain others.
ConvertOptions::Rename parse_rename(const std::string& text) {
  const auto equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0 || !is_utf8(text)) refuse("--rename", text, "PATTERN=NAME");
  return {text.substr(0, equals), text.substr(equals + 1)};
}

// Adds options that change the model before its tensors are converted.
void add_revision_options(CLI::App& command, ConversionArguments& options) {
  constexpr const char* kGroup = "Names, layers, vocabulary, keys";
  ConvertOptions& convert = options.convert;
  add_parsed_list_option(
      command, "--rename", "PATTERN=NAME",
      "Rename tensors whose name matches PATTERN: the k-th * of NAME is the text that the k-th * of PATTERN matched; "
      "re:REGEX=NAME takes a regular expression, whose groups are $1, $2",
      [&convert](const std::string& text) { convert.rename.push_back(parse_rename(text)); })
      ->allow_extra_args(false)
      ->group(kGroup);
  add_text_option(command, "--strip-prefix", convert.strip_prefix, "TEXT", "Remove this from the beginning of names")
      ->group(kGroup);
  add_text_option(command, "--add-prefix", convert.add_prefix, "TEXT", "Put this in front of all names")->group(kGroup);
  add_text_option(
      command, "--layers", convert.layers, "RANGES",
      "Keep these layers and number them from 0: 0:12,16:32 (ranges exclude their ends); PREFIX=0:6 for another list "
      "of layers than the model's own")
      ->group(kGroup);
  auto* size = add_number_option(command, "--vocab-size", convert.vocab_size,
                                 "Keep the first N tokens, with their rows of the embedding and the output matrix",
                                 {1, kMaxTokens});
  size->group(kGroup);
  command
      .add_flag("--drop-rows", convert.drop_rows,
                "Leave out the rows of the embedding and the output matrix that no token of the vocabulary has")
      ->excludes(size)
      ->group(kGroup);
  add_set_option(
      command, options.set,
      "Set card.FIELD, config.KEY or an attribute to this text, or to that of a file (@@ begins a text with @)")
      ->group(kGroup);
  command.get_option("--set-file")->group(kGroup);
}

void add_sparse_options(CLI::App& command, ConvertOptions& options) {
  auto* sparse = add_choice_option<std::optional<Layout>, Layout>(
      command, "--sparse", options.sparse, {{"csr", Layout::sparse_csr}, {"coo", Layout::sparse_coo}},
      "Store tensors that are mostly zeros as compressed rows (matrices) or coordinates (zt)");
  add_number_option(command, "--min-sparsity", options.min_sparsity, "The least share of zeros for --sparse",
                    {0.0, 1.0})
      ->needs(sparse)
      ->type_name("0..1");
}

void add_card_options(CLI::App& command, Card& card) {
  constexpr const char* kGroup = "Card";
  const auto add = [&](const std::string& name, std::string& field, const std::string& what) {
    command.add_option(name, field, what)->check(make_text_check())->group(kGroup);
  };
  const auto add_date = [&](const std::string& name, std::string& field) {
    const auto set = [name, &field](const std::string& text) {
      auto day = extract_day(text);
      if (!day) refuse(name, text, "a date, YYYY-MM-DD, or a timestamp that begins with one");
      field = *std::move(day);
    };
    add_parsed_option(command, name, "DATE", "YYYY-MM-DD; of a timestamp, the day", set)->group(kGroup);
  };
  add("--model-type", card.model_type, "Architecture, such as mistral");
  add("--base-model", card.base_model, "Name of the base model, such as mistralai/Mistral-7B-v0.1");
  add("--author", card.author, "Who made the model");
  add_date("--created-at", card.created_at);
  add_date("--last-modified", card.last_modified);
  add("--license", card.license, "License of the model");
  add("--uuid", card.uuid, "Identifier of the model");
}

[[noreturn]] void refuse_json_on_standard_output() {
  throw Error(ErrorKind::bad_argument,
              "--json and \"-o -\" both write to standard output; leave out --json, or name an output file");
}

}  // namespace

void add_conversion_options(CLI::App& command, ConversionArguments& options, const std::string& output) {
  ConvertOptions& convert_options = options.convert;
  command
      .add_option(output, options.output,
                  "File to write, or directory if the name ends in a slash; - is standard output, with --to")
      ->required();
  add_text_option(command, "--to", convert_options.format, "FORMAT",
                  "Format to write (default: by the output's extension; huggingface for a directory)");
  const auto set_dtype = [&convert_options](const std::string& text) {
    convert_options.dtype = parse_cast_type(text);
    if (!convert_options.dtype) refuse("--dtype", text, "one of f32, f16, bf16 (or float32, float16, half, bfloat16)");
  };
  add_parsed_option(command, "--dtype", "f32|f16|bf16",
                    "Type for floating-point tensors; without it they keep theirs if the format can hold it",
                    set_dtype);
  add_pattern_options(command, convert_options.only, convert_options.skip, "Write");
  command.add_flag_callback(
      "--no-verify", [&convert_options] { convert_options.verify = false; },
      "Trust the input: do not compare its digests with the bytes that are read");
  command.add_flag("--strict", convert_options.strict, "Refuse an input with warnings; nothing is written");
  auto* dry_run =
      command.add_flag("--dry-run", options.dry_run,
                       "Report what would be written and lost; read headers only (with a budget, samples of "
                       "the tensors, too; with --text, run the model) and write nothing");
  command.add_flag("--json", options.json, "Print the report, with its notes, as JSON");
  command.add_flag("--force", convert_options.write.overwrite, "Replace an existing output");
  command
      .add_flag("--table", options.table,
                "Report the loss of every quantized tensor, not only of each type and of the worst tensors")
      ->excludes(dry_run);
  add_quantize_options(command, options);
  add_revision_options(command, options);
  add_text_option(command, "--dialect", convert_options.write.dialect, "NAME",
                  "Write a program's dialect of the format: alt.c, for alt (without tensors)");
  add_sparse_options(command, convert_options);
  add_storage_options(command, convert_options.write);
  add_card_options(command, convert_options.card);
  add_progress_options(command, options.progress, "No progress, no report and no notes");
  add_read_options(command, convert_options.read);
  command.footer(fmt::format("{}\n{}", format_quantize_types(), describe_formats()));
}

void finish_conversion_options(ConversionArguments& options) {
  options.convert.set = parse_settings(options.set);
  std::vector<std::filesystem::path> inputs = list_value_files(options.set);
  if (!options.text_file.empty() && options.text_file != "-") inputs.emplace_back(options.text_file);
  FileOutput::require_not_input(inputs, options.output);
  require_one_type(options.convert);
  const auto& budget = options.convert.budget;
  if (budget && !budget->bytes && !budget->bits_per_weight)
    throw Error(ErrorKind::bad_argument, "--quantize auto needs --size or --bpw, such as --size 4.2GB or --bpw 4.5");
  require_known_extension(options);
  if (options.json && options.writes_stream() && !options.dry_run) refuse_json_on_standard_output();
}

void require_standard_output(const std::string& format, bool json) {
  if (json) refuse_json_on_standard_output();
  if (format.empty())
    throw Error(ErrorKind::bad_argument, "cannot tell the format of standard output: it has no extension")
        .with({.kind = Remedy::Kind::format});
  if (::isatty(STDOUT_FILENO) != 0)
    throw Error(ErrorKind::bad_argument,
                "\"-o -\" writes the file to standard output, which is a terminal; redirect it to a file or a pipe");
  if (find_format_by_name(format).explain_refusal != nullptr)
    throw Error(ErrorKind::bad_argument, "standard output holds one file, not a directory")
        .with({.kind = Remedy::Kind::format});
}

Destination make_destination(const std::string& path, bool is_dry_run, std::optional<StreamOutput>& stream) {
  if (path != "-") return Destination(std::filesystem::path(path));
  if (is_dry_run) return Destination(std::filesystem::path());
  return Destination(stream.emplace(STDOUT_FILENO, "standard output"));
}

ConvertReport write_to_standard_output(const Plan& planned) {
  require_standard_output(planned.format, false);
  StreamOutput output(STDOUT_FILENO, "standard output");
  return write(planned, output);
}

}  // namespace poise::cli
