// poise inspect: shows what is inside a file, from its headers alone.
#include <algorithm>
#include <string_view>
#include <unordered_map>

#include <fmt/format.h>

#include <poise/format.hpp>

#include "bytes/short_text.hpp"
#include "cli/commands.hpp"
#include "cli/model_options.hpp"
#include "cli/options.hpp"
#include "cli/progress.hpp"
#include "cli/text.hpp"
#include "cli/values.hpp"
#include "formats/adapter.hpp"
#include "ops/delta/delta_parts.hpp"
#include "syntax/json_writer.hpp"
#include "views/dense.hpp"

namespace poise::cli {
namespace {

struct InspectArguments {
  std::string path;
  bool json = false;
  bool tensors = false;
  bool keys = false;
  bool names_in_file = false;
  ReadOptions read;
};

void print_field(std::string_view label, const std::string& value) {
  fmt::print("  {:<14}{}\n", label, make_printable(value));
}

constexpr std::size_t kLongestValue = 100;

// Formats a value for people: text has no quotes, long values are cut, and infinities and NaN have their names.
std::string format_plain(const Value& value) {
  if (const auto* text = value.get_if<std::string>()) return shorten(*text, kLongestValue);
  const auto* array = value.get_if<Value::Array>();
  if (array == nullptr || array->size() <= kLongestValue) return shorten(format_python_json(value), kLongestValue);
  const Value::Array first(array->begin(), array->begin() + kLongestValue);  // the rest would be cut
  return shorten(format_python_json(first), kLongestValue);
}

void print_map(std::string_view title, const Attributes& map) {
  if (map.empty()) return;
  fmt::print("\n{}\n", title);
  std::size_t width = 0;
  for (const auto& [key, value] : map) width = std::max(width, make_printable(key).size());
  for (const auto& [key, value] : map)
    fmt::print("  {:<{}}  {}\n", make_printable(key), width, make_printable(format_plain(value)));
}

void print_tensors(const Model& model, bool names_in_file) {
  fmt::print("\n");
  Table({"tensor", "shape", "type", "offset", "bytes"}, {false, false, false, true, true})
      .print(model.size(), [&](std::size_t index, Table::Row& row) {
        const Tensor& tensor = model.tensors()[index];
        const auto at = tensor.parts.empty() ? std::nullopt : tensor.parts[0].blob->stored();
        append_printable(row[0], names_in_file ? tensor.name_in_file() : std::string_view(tensor.name));
        row[1] += poise::to_string(tensor.shape);
        append_printable(row[2], describe_stored_type(tensor));
        if (at) {
          append_grouped(row[3], at->offset);
        } else {
          row[3] += '-';
        }
        if (are_bytes_known(tensor)) {
          append_grouped(row[4], count_bytes(tensor));
        } else {
          row[4] += '?';
        }
      });
}

// Prints one row for each stored type, with its numbers of tensors, elements and bytes, and their total if there are
// several.
void print_summary(const Model& model) {
  struct Sum {
    std::string type;
    Totals totals;

    std::vector<std::string> make_row() const {
      const bool has_size = totals.are_bytes_known && totals.bytes;
      return {make_printable(type), group_digits(totals.tensors), group_digits(totals.elements),
              totals.are_bytes_known ? group_digits(totals.bytes) : "?", has_size ? format_bytes(*totals.bytes) : ""};
    }
  };
  std::vector<Sum> sums;
  std::unordered_map<std::string, std::size_t> indices;
  for (const Tensor& tensor : model.tensors()) {
    const auto [found, is_new] = indices.try_emplace(describe_stored_type(tensor), sums.size());
    if (is_new) sums.push_back({found->first, {}});
    sums[found->second].totals.add(tensor);
  }
  if (sums.empty()) {
    fmt::print("\nno tensors\n");
    return;
  }
  Table table({"type", "tensors", "elements", "bytes", ""}, {false, true, true, true, true});
  Sum total{"total", {}};
  for (const Sum& sum : sums) {
    table.add(sum.make_row());
    total.totals.add(sum.totals);
  }
  if (sums.size() > 1) table.add(total.make_row());
  fmt::print("\n{}", table.text());
}

void print_heading(const Model& model, const InspectArguments& options) {
  fmt::print("{}\n", make_printable(options.path));
  print_field("format", model.origin.format);
  const std::string size = format_bytes(model.origin.size);
  const std::string exact = group_digits(model.origin.size) + " bytes";
  print_field("size", model.origin.size < 1000 ? size : fmt::format("{} ({})", size, exact));
  if (!model.origin.recipe.empty()) print_field("quantization", model.origin.recipe);
}

// Prints the file's own metadata keys, not Poise's interpretation of them.
void print_keys(const std::vector<MetadataKey>& keys) {
  fmt::print("\n");
  Table({"key", "type", "value"}, {false, false, false}).print(keys.size(), [&](std::size_t index, Table::Row& row) {
    append_printable(row[0], keys[index].key);
    append_printable(row[1], keys[index].type);
    append_printable(row[2], format_plain(keys[index].value));
  });
}

void print_metadata(const Model& model) {
  if (model.card != Card{}) print_map("card", card_to_attributes(model.card));
  print_map("config", whole_config(model));
  if (model.vocabulary) print_map("vocabulary", describe_vocabulary(*model.vocabulary));
  if (const auto adapter = parse_adapter(model, nullptr)) print_map("adapter", summarize_adapter(*adapter));
  print_map("delta", summarize_delta(model));
  Attributes attributes = model.attributes;
  attributes.erase(kDeltaKey);  // the summary shows the fields of this attribute; its text may be long
  print_map("attributes", attributes);
  print_summary(model);
}

void print_text(const Model& model, const InspectArguments& options,
                const std::optional<std::vector<MetadataKey>>& keys) {
  print_heading(model, options);
  keys ? print_keys(*keys) : print_metadata(model);
  if (options.tensors) print_tensors(model, options.names_in_file);
  if (!model.warnings.empty()) fmt::print("\nwarnings\n");
  for (const Finding& warning : model.warnings) fmt::print("  {}\n", make_printable(describe_with_offset(warning)));
}

void inspect(const InspectArguments& options) {
  // The model is never destroyed: freeing 100,000 tensors takes longer than listing them, and the program ends here.
  // The reference is static, so that leak checkers accept this.
  static const Opened& opened = *new Opened(open_with_format(open_input(options.path, options.read), options.read));
  std::optional<std::vector<MetadataKey>> keys;
  if (options.keys) keys = list_metadata_keys(opened);
  if (options.json) {
    print_inspection_json(opened.model, options.path, keys);
  } else {
    print_text(opened.model, options, keys);
  }
}

}  // namespace

void add_inspect_command(CLI::App& app) {
  const auto options = std::make_shared<InspectArguments>();
  CLI::App* command =
      app.add_subcommand("inspect", "Show what is inside a model file or directory; reads headers only");
  command->add_option("PATH", options->path, "Model file or directory; - is standard input")->required();
  command->add_flag("--json", options->json, "Print everything as JSON");
  command->add_flag("--tensors", options->tensors, "List every tensor");
  const auto choose_names = [options](const std::string& names) {
    if (names != "poise" && names != "file") refuse("--names", names, "poise or file");
    options->names_in_file = names == "file";
    options->tensors = true;
  };
  add_parsed_option(*command, "--names", "file|poise",
                    "List every tensor by its name in the file, such as GGUF's, or in Poise", choose_names);
  command->add_flag("--keys", options->keys,
                    fmt::format("List the file's own metadata keys with their types ({})",
                                join_format_names([](const Format& format) { return format.list_keys != nullptr; })));
  add_read_options(*command, options->read);
  command->callback([options] { inspect(*options); });
}

}  // namespace poise::cli
