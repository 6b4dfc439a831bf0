// poise hash: prints the SHA-256 of the decoded bytes of every part, in the format of sha256sum, and a hash of the
// model; for zTensor 2 also the content digest.

#include <fmt/format.h>

#include <poise/format.hpp>

#include "cli/cluster.hpp"
#include "cli/commands.hpp"
#include "cli/model_options.hpp"
#include "cli/options.hpp"
#include "cli/text.hpp"
#include "model/same_headers.hpp"
#include "ops/ranks.hpp"

namespace poise::cli {
namespace {

struct HashArguments {
  std::string path;
  ProgressOptions progress;
  ReadOptions read;
  bool json = false;
};

// Prints the hash as docs/json.md describes it.
void print_json(const ModelHash& hash) {
  JsonOutput json;
  json->begin_object();
  json.write_list("parts", hash.parts, [&](const PartHash& part) {
    json->write_value(Attributes{{"tensor", part.tensor}, {"role", part.role}, {"sha256", part.sha256}});
  });
  json->write_member("model", hash.model);
  json->write_member("content", hash.content.empty() ? Value() : Value(hash.content));
  json->end_object();
  json.finish();
}

void print_hashes(const HashArguments& options) {
  const Model model = open_model(options.path, options.read);
  require_same_headers(model, get_cluster());
  const ModelHash result = hash(model, make_progress(options.progress, "hash"), get_cluster());
  if (options.json) return print_json(result);
  for (const PartHash& part : result.parts)
    fmt::print("{}  {}/{}\n", part.sha256, make_printable(part.tensor), make_printable(part.role));
  fmt::print("{}  {}\n", result.model, "model");
  if (!result.content.empty()) fmt::print("{}  {}\n", result.content, "content");
}

}  // namespace

void add_hash_command(CLI::App& app) {
  const auto options = std::make_shared<HashArguments>();
  CLI::App* command = app.add_subcommand("hash",
                                         "Print the SHA-256 of every tensor part over decoded bytes, and one for the "
                                         "model; for zt, its content digest as well");
  command->add_option("PATH", options->path, "Model file or directory; - is standard input")->required();
  command->add_flag("--json", options->json, "Print the hashes as JSON");
  add_progress_options(*command, options->progress, "No progress");
  add_read_options(*command, options->read);
  command->callback([options] { print_hashes(*options); });
}

}  // namespace poise::cli
