// poise inspect: what is inside a file, from its headers alone.
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include <fmt/format.h>

#include <poise/format.hpp>

#include "bytes/checked.hpp"
#include "cli/commands.hpp"
#include "cli/inspect_json.hpp"
#include "cli/options.hpp"
#include "cli/text.hpp"
#include "views/dense.hpp"

namespace poise::cli {
namespace {

struct Options {
  std::string path;
  bool json = false;
  bool tensors = false;
  ReadOptions read;
};

void print_field(std::string_view label, const std::string& value) {
  fmt::print("  {:<14}{}\n", label, printable(value));
}

// Values as people read them: text without quotes, long ones cut.
std::string plain(const Value& value) {
  constexpr std::size_t kLongest = 100;
  const auto* text = value.get_if<std::string>();
  std::string result = text != nullptr ? *text : to_json(value);
  if (result.size() > kLongest) result = result.substr(0, kLongest) + "...";
  return result;
}

void print_map(std::string_view title, const Attributes& map) {
  if (map.empty()) return;
  fmt::print("\n{}\n", title);
  std::size_t width = 0;
  for (const auto& [key, value] : map) width = std::max(width, printable(key).size());
  for (const auto& [key, value] : map) fmt::print("  {:<{}}  {}\n", printable(key), width, printable(plain(value)));
}

// "f32", "u8+f16"
void append_dtypes(std::string& text, const Tensor& tensor) {
  if (tensor.layout.blocks() != nullptr) {
    text += storage_name(tensor);
    return;
  }
  for (const Part& part : tensor.parts) {
    if (&part != tensor.parts.data()) text += "+";
    append_printable(text, part.shown_type());
  }
}

// Nothing where 64 bits do not hold it: what is sparse, compressed or shared may add up to that.
using Total = std::optional<std::uint64_t>;

Total plus(Total a, Total b) { return a && b ? checked_add(*a, *b) : std::nullopt; }

Total bytes_of(const Tensor& tensor) {
  Total sum = 0;
  for (const Part& part : tensor.parts) sum = plus(sum, part.blob->size());
  return sum;
}

void append_grouped(std::string& out, Total total) {
  if (total) {
    cli::append_grouped(out, *total);
  } else {
    out += "2^64 or more";
  }
}

std::string grouped(Total total) {
  std::string out;
  append_grouped(out, total);
  return out;
}

void print_tensors(const Model& model) {
  fmt::print("\n");
  Table({"tensor", "shape", "dtype", "layout", "offset", "bytes"}, {false, false, false, false, true, true})
      .print(model.size(), [&](std::size_t index, Table::Row& row) {
        const Tensor& tensor = model.tensors()[index];
        const auto at = tensor.parts.empty() ? std::nullopt : tensor.parts[0].blob->stored();
        append_printable(row[0], tensor.name);
        row[1] += to_string(tensor.shape);
        append_dtypes(row[2], tensor);
        append_printable(row[3], tensor.layout.name());
        if (at) {
          append_grouped(row[4], at->offset);
        } else {
          row[4] += '-';
        }
        append_grouped(row[5], bytes_of(tensor));
      });
}

// One row per element type: how many tensors, elements and bytes.
void print_summary(const Model& model) {
  struct Sum {
    std::string dtype;
    std::uint64_t tensors = 0;
    Total elements = 0;
    Total bytes = 0;

    void add(const Sum& other) {
      tensors += other.tensors;
      elements = plus(elements, other.elements);
      bytes = plus(bytes, other.bytes);
    }
    std::vector<std::string> row() const {
      return {dtype, cli::grouped(tensors), grouped(elements), grouped(bytes), bytes ? human_bytes(*bytes) : ""};
    }
  };
  std::vector<Sum> sums;
  std::unordered_map<std::string, std::size_t> indices;
  std::string dtype;
  for (const Tensor& tensor : model.tensors()) {
    dtype.clear();
    append_dtypes(dtype, tensor);
    const auto [found, is_new] = indices.try_emplace(dtype, sums.size());
    if (is_new) sums.push_back({dtype});
    sums[found->second].add({dtype, 1, tensor.elements(), bytes_of(tensor)});
  }
  if (sums.empty()) {
    fmt::print("\nno tensors\n");
    return;
  }
  Table table({"dtype", "tensors", "elements", "bytes", ""}, {false, true, true, true, true});
  Sum total{"total"};
  for (const Sum& sum : sums) {
    table.add(sum.row());
    total.add(sum);
  }
  if (sums.size() > 1) table.add(total.row());
  fmt::print("\n{}", table.text());
}

void print_table(const Model& model, const Options& options) {
  fmt::print("{}\n", printable(options.path));
  print_field("format", model.origin.format);
  print_field("size", fmt::format("{} ({} bytes)", human_bytes(model.origin.size), grouped(model.origin.size)));
  if (!model.origin.recipe.empty()) print_field("quantization", model.origin.recipe);
  if (model.card != Card{}) print_map("card", card_to_attributes(model.card));
  print_map("config", whole_config(model));
  if (model.vocabulary) print_map("vocabulary", vocabulary_json(*model.vocabulary));
  print_map("attributes", model.attributes);
  print_summary(model);
  if (options.tensors) print_tensors(model);
  if (!model.warnings.empty()) fmt::print("\nwarnings\n");
  for (const Finding& warning : model.warnings) fmt::print("  {}\n", printable(describe(warning)));
}

void inspect(const Options& options) {
  // Never destroyed: to free 100,000 tensors one by one takes longer than to list them, and the program ends here.
  // (Static, so that this is no leak.)
  static const Model& model = *new Model(open(options.path, options.read));
  if (options.json) {
    print_inspection_json(model, options.path);
  } else {
    print_table(model, options);
  }
}

}  // namespace

void add_inspect(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("inspect", "Show what is inside a model file or directory; reads headers only");
  command->add_option("PATH", options->path, "Model file or directory")->required();
  command->add_flag("--json", options->json, "Everything as JSON, for scripts");
  command->add_flag("--tensors", options->tensors, "List every tensor");
  add_io_option(*command, options->read);
  command->callback([options] { inspect(*options); });
}

}  // namespace poise::cli
