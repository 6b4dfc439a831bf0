// poise verify: checks files completely, or only their headers.
#include <algorithm>
#include <filesystem>
#include <iterator>
#include <system_error>

#include <fmt/format.h>
#include <unistd.h>

#include <poise/error.hpp>
#include <poise/verify.hpp>

#include "bytes/short_text.hpp"
#include "bytes/utf8.hpp"
#include "cli/cluster.hpp"
#include "cli/commands.hpp"
#include "cli/model_options.hpp"
#include "cli/options.hpp"
#include "cli/text.hpp"
#include "cli/values.hpp"
#include "formats/format.hpp"
#include "ops/check_headers.hpp"
#include "ops/check_hub.hpp"
#include "ops/ranks.hpp"
#include "ops/verify_input.hpp"
#include "pack/directory_source.hpp"

namespace poise::cli {
namespace {

struct VerifyArguments {
  std::vector<std::string> paths;
  std::string sha256;  // the digest that the user expects, 64 digits in lower case; empty if not given
  bool headers = false;
  bool strict = false;
  bool json = false;
  ProgressOptions progress;
  ReadOptions read;
};

// Runs the checks that read only headers. A file with faulty tensors gets no check_headers(), because its other tensors
// are not a whole model.
VerifyReport verify_headers(const Input& input, const ReadOptions& options) {
  const Opened opened = open_despite_faults(input, options);
  VerifyReport report;
  report.format = opened.model.origin.format;
  report.tensors = opened.model.size();
  report.faults = opened.faults;
  std::ranges::copy(opened.model.warnings, std::back_inserter(report.faults));
  if (opened.faults.empty())
    std::ranges::move(check_headers(opened.model, input.path, !options.raw), std::back_inserter(report.faults));
  return report;
}

std::string describe_digests(const VerifyReport& report) {
  std::string text;
  if (report.digests > 0) text += fmt::format(", {} checked", format_count(report.digests, "digest"));
  if (report.file_digests > 0) text += fmt::format(", {} checked", format_count(report.file_digests, "file digest"));
  if (report.checksums > 0) text += fmt::format(", {} checked", format_count(report.checksums, "checksum"));
  return text;
}

void print_report(const VerifyReport& report, const std::string& path, bool good, bool headers) {
  fmt::print("{}: {}", make_printable(path),
             paint(good ? "ok" : "FAILED", good ? Color::green : Color::red, STDOUT_FILENO));
  if (headers) {
    fmt::print(": headers only; the data was not read");
  } else if (good && !report.has_digests) {
    fmt::print(": structure and values; no digests, so changed bytes would not show");
  }
  if (!report.format.empty()) {
    const std::string tensors = report.format == kHubCache ? "" : format_count(report.tensors, "tensor") + ", ";
    fmt::print(" ({}, {}{}{})", report.format, tensors, format_bytes(report.bytes), describe_digests(report));
  }
  if (report.errors() > 0) fmt::print(": {}", format_count(report.errors(), "error"));
  if (report.warnings() > 0)
    fmt::print("{} {}", report.errors() > 0 ? "," : ":", format_count(report.warnings(), "warning"));
  fmt::print("\n");
  for (const Finding& finding : report.faults) fmt::print("  {}\n", format_finding(finding, path));
}

// Verifies the paths one after the other. Prints the report of a path, as text or JSON (docs/json.md), before it opens
// the next one.
class Verification {
 public:
  explicit Verification(const VerifyArguments& options) : options_(options) {}

  void execute() {
    if (options_.json) {
      json_->begin_object();
      json_.write_list("files", options_.paths, [this](const std::string& path) { verify_path(path); });
      json_->write_member("ok", good_);
      json_->end_object();
      json_.finish();
    } else {
      for (const std::string& path : options_.paths) verify_path(path);
    }
    if (!good_) throw ExitCode{1};
  }

 private:
  void verify_path(const std::string& path) {
    VerifyReport report;
    try {
      const Progress progress = make_progress(options_.progress, "verify");
      const bool has_stream = is_stream_or_url(path);
      if (has_stream) require_one_rank("a model from a pipe or a server");
      if (options_.headers) require_one_rank("--headers");
      const Input stream = has_stream ? open_input(path, options_.read) : Input();
      std::error_code ignored;
      const bool is_directory =
          has_stream ? find_directory_source(stream.source) != nullptr : std::filesystem::is_directory(path, ignored);
      if (!options_.sha256.empty() && is_directory)
        refuse("--sha256", options_.sha256, "a PATH that is one file, not a directory");
      if (options_.headers) {
        report = verify_headers(has_stream ? stream : open_input(path, options_.read), options_.read);
      } else {
        report = has_stream ? verify_input(stream, options_.read, progress)
                            : verify(path, options_.read, progress, get_cluster());
      }
      if (!options_.sha256.empty() && get_cluster().rank() == 0)
        check_known_digest(has_stream ? stream.source : Source::open(path, options_.read.io), report);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::internal) throw;
      good_ = false;
      if (!options_.json) return print_message(make_printable_message(error.what()));
      report.faults = {{Severity::error, error.message(), error.path(), error.offset()}};
    }
    if (get_cluster().rank() != 0) return;  // rank 0 has the findings of all ranks
    const bool good = report.errors() == 0 && (!options_.strict || report.warnings() == 0);
    good_ = good_ && good;
    if (options_.json) {
      write_file_entry(report, path, good);
    } else if (!options_.progress.quiet || !report.faults.empty()) {
      print_report(report, path, good, options_.headers);
    }
  }

  void check_known_digest(const SourcePtr& file, VerifyReport& report) {
    HubCheck check = check_sha256(file, options_.sha256, make_progress(options_.progress, "verify"));
    report.has_digests = true;
    report.file_digests += check.files;
    std::ranges::move(check.findings, std::back_inserter(report.faults));
  }

  void write_file_entry(const VerifyReport& report, const std::string& path, bool good) {
    json_->begin_object();
    json_->write_member("path", path);
    json_->write_member("ok", good);
    json_->write_member("format", report.format.empty() ? Value() : Value(report.format));
    json_->write_member("tensors", report.tensors);
    json_->write_member("bytes", report.bytes);
    json_->write_member("digests", report.has_digests);
    json_->write_member("digests_checked", report.digests + report.file_digests + report.checksums);
    json_.write_list("findings", report.faults, [&](const Finding& finding) { write_finding(finding, path); });
    json_->end_object();
  }

  void write_finding(const Finding& finding, const std::string& path) {
    json_->begin_object();
    json_->write_member("severity", finding.severity == Severity::error ? "error" : "warning");
    json_->write_member("message", finding.message);
    if (!finding.tensor.empty()) json_->write_member("tensor", finding.tensor);
    if (!finding.path.empty() && finding.path != path) json_->write_member("path", finding.path);
    if (finding.offset) json_->write_member("offset", *finding.offset);
    json_->end_object();
  }

  const VerifyArguments& options_;
  JsonOutput json_;
  bool good_ = true;
};

// Returns the 64 hexadecimal digits of a text in lower case, without "sha256:" in front. Throws what refuse() throws if
// the text is another one.
std::string parse_sha256(std::string text) {
  constexpr std::size_t kDigits = 64;
  text = to_lower_ascii(text);
  std::string digits = text.starts_with("sha256:") ? text.substr(7) : text;
  if (digits.size() != kDigits || digits.find_first_not_of("0123456789abcdef") != std::string::npos)
    refuse("--sha256", text, "64 hexadecimal digits");
  return digits;
}

}  // namespace

void add_verify_command(CLI::App& app) {
  const auto options = std::make_shared<VerifyArguments>();
  CLI::App* command = app.add_subcommand(
      "verify", "Check structure, digests and every value; list all faults; exit 1 if there are any");
  command
      ->add_option("PATH", options->paths,
                   "Model files or directories, repositories of the Hugging Face cache (models--ORG--NAME), or the "
                   "whole cache; - "
                   "is standard input")
      ->required();
  add_parsed_option(*command, "--sha256", "HEX", "Expected SHA-256 of the file; for one PATH",
                    [options](const std::string& text) { options->sha256 = parse_sha256(text); });
  command->add_flag("--headers", options->headers, "Check only what the headers show: the data is not read")
      ->excludes("--sha256");
  command->add_flag("--strict", options->strict, "Exit with 1 for warnings, too");
  command->add_flag("--json", options->json, "Print the findings as JSON");
  add_progress_options(*command, options->progress, "Report only files with faults or warnings; no progress");
  add_read_options(*command, options->read);
  command->callback([options] {
    if (!options->sha256.empty() && options->paths.size() > 1)
      refuse("--sha256", options->sha256, "one PATH, the file that it belongs to");
    Verification(*options).execute();
  });
}

}  // namespace poise::cli
