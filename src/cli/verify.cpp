// poise verify: is everything in these files as it should be?
#include <memory>

#include <fmt/format.h>

#include <poise/error.hpp>
#include <poise/verify.hpp>

#include "cli/commands.hpp"
#include "cli/options.hpp"
#include "cli/text.hpp"

namespace poise::cli {
namespace {

struct Options {
  std::vector<std::string> paths;
  bool strict = false;
  ReadOptions read;
};

bool verify_one(const std::string& path, const Options& options) {
  const VerifyReport report = verify(path, options.read, terminal_progress("verify"));
  const bool good = report.errors() == 0 && (!options.strict || report.warnings() == 0);
  fmt::print("{}: {}", printable(path), good ? "ok" : "FAILED");
  if (!report.format.empty()) {
    fmt::print(" ({}, {}, {}", report.format, plural(report.tensors, "tensor"), human_bytes(report.bytes));
    fmt::print("{})", report.digests > 0 ? fmt::format(", {} checked", plural(report.digests, "digest")) : "");
  }
  if (report.errors() > 0) fmt::print(": {}", plural(report.errors(), "error"));
  if (report.warnings() > 0) fmt::print("{} {}", report.errors() > 0 ? "," : ":", plural(report.warnings(), "warning"));
  fmt::print("\n");
  for (const Finding& finding : report.faults) fmt::print("  {}\n", finding_text(finding, path));
  return good;
}

void verify_all(const Options& options) {
  bool good = true;
  for (const std::string& path : options.paths) {
    try {
      good = verify_one(path, options) && good;
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::internal) throw;
      complain(printable_message(error.what()));
      good = false;
    }
  }
  if (!good) throw ExitCode{1};
}

}  // namespace

void add_verify(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "verify", "Check structure, digests and every value; list all faults; exit 1 if there are any");
  command->add_option("PATH", options->paths, "Model files or directories")->required();
  command->add_flag("--strict", options->strict, "Warnings fail, too");
  add_io_option(*command, options->read);
  command->callback([options] { verify_all(*options); });
}

}  // namespace poise::cli
