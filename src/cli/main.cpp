// Parses the arguments of `poise`, runs a command, and returns its exit code: 0 if it succeeded, 1 if it failed or has
// a negative answer, 2 for wrong usage.
#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <poise/error.hpp>

#include "cli/advice.hpp"
#include "cli/cluster.hpp"
#include "cli/commands.hpp"
#include "cli/help.hpp"
#include "cli/options.hpp"
#include "cli/text.hpp"
#include "io/hub_cache.hpp"

namespace {

using poise::cli::make_printable_message;
using poise::cli::print_message;

constexpr const char* kExamples =
    "Examples:\n"
    "  poise convert model/ -o model.gguf --quantize q4_k_m\n"
    "  poise inspect model.gguf --tensors\n"
    "  poise run model.gguf -p \"Once upon a time\" -n 60\n"
    "  poise help convert\n";

constexpr const char* kBug = "this is a bug in Poise; please report it with the file";

int print_error(const poise::Error& error, std::span<const char* const> arguments) {
  print_message(make_printable_message(poise::cli::add_advice(error, arguments)));
  if (error.kind() == poise::ErrorKind::internal) print_message(kBug);
  return poise::cli::is_wrong_usage(error, arguments) ? 2 : 1;
}

// Removes the type that CLI11 adds to an argument's name in help: "TEXT" in "PATH TEXT".
void remove_argument_types(CLI::App& command) {
  for (CLI::Option* option :
       command.get_options([](const CLI::Option* candidate) { return candidate->get_positional(); }))
    option->type_name("");
}

// Lets arguments and options that take a model also take "ORG/NAME", a model in the cache of the Hugging Face Hub.
void accept_models_in_cache(CLI::App& command) {
  constexpr std::array<std::string_view, 7> kModels = {"PATH", "MODEL", "IN", "A", "B", "--draft", "--against"};
  for (CLI::Option* option : command.get_options()) {
    if (std::ranges::find(kModels, option->get_name()) != kModels.end()) option->transform(poise::find_model_path);
  }
}

// Prints CLI11's help or version through functions that detect write errors.
void print_help(const CLI::App& app, const CLI::Success& request) {
  std::ostringstream out;
  app.exit(request, out, out);
  fmt::print("{}", out.str());
}

// Ends silently by SIGPIPE (exit code 141 in a shell), as tools do that do not ignore the signal.
int end_by_sigpipe() {
  std::signal(SIGPIPE, SIG_DFL);
  std::raise(SIGPIPE);
  return 128 + SIGPIPE;  // reached only if the signal is blocked
}

// Opens /dev/null for each standard stream that is closed, so that no file that Poise opens gets the number of one:
// messages would be written into an output. The streams open in the wrong direction, so that using one is an error.
// Returns false if that fails.
bool reserve_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) >= 0) continue;
    const int opened = ::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    if (opened == stream) continue;
    if (opened >= 0) ::close(opened);
    return false;
  }
  return true;
}

// Raises the limit on open files: a model may have thousands of shards, and all stay open.
void allow_many_files() {
  struct rlimit limit {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

int run(int argc, char** argv) {
  using namespace poise::cli;
  CLI::App app{"Poise opens, checks, converts, quantizes and runs model weight files.", "poise"};
  app.set_version_flag("--version", "poise " POISE_VERSION);
  app.require_subcommand(1);
  app.formatter(make_help_formatter());
  for (auto* const add_command :
       {add_inspect_command, add_stats_command,    add_show_command,  add_verify_command,  add_convert_command,
        add_merge_command,   add_delta_command,    add_lora_command,  add_fetch_command,   add_hash_command,
        add_diff_command,    add_report_command,   add_edit_command,  add_run_command,     add_chat_command,
        add_embed_command,   add_tokenize_command, add_bench_command, add_imatrix_command, add_completion_command,
        add_help_command})
    add_command(app);
  app.footer(fmt::format("{}\n{}", describe_formats(), kExamples));
  for (CLI::App* command : app.get_subcommands({})) {
    remove_argument_types(*command);
    accept_models_in_cache(*command);
  }
  if (argc < 2) {
    print_to_stderr(make_overview(app));
    return 2;
  }
  if (get_cluster().rank() != 0 && !is_run_by_all_ranks(argv[1])) return 0;
  require_known_command(app, argc, argv);
  int code = 0;
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& request) {
    print_help(app, request);
  } catch (const CLI::ParseError& error) {
    require_known_options(app);
    print_message(make_printable_message(make_usage_message(app, error)));
    return 2;
  } catch (const ExitCode& exit) {
    code = exit.code;
  }
  if (std::fflush(stdout) != 0) throw std::system_error(errno, std::generic_category());
  // An earlier write failed; its errno is no longer known.
  if (std::ferror(stdout) != 0) throw poise::Error(poise::ErrorKind::io, "cannot write to standard output");
  return code;
}

// Runs the command, reports all errors, and returns the exit code.
int run_and_report(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const poise::Error& error) {
    return print_error(error, std::span(argv, static_cast<std::size_t>(argc)));
  } catch (const std::system_error& error) {
    // If printing fails, std::fwrite() or std::fflush() has also set the error indicator of the stream. Other errors
    // come from the standard library: the system refuses a thread or a lock.
    const bool is_output = std::ferror(stdout) != 0;
    if (is_output && error.code() == std::errc::broken_pipe) return end_by_sigpipe();
    print_message(is_output ? "cannot write to standard output: " + error.code().message()
                            : "a system call failed: " + make_printable_message(error.what()));
  } catch (const std::bad_alloc&) {
    std::fputs("poise: out of memory\n", stderr);  // does not allocate memory
  } catch (const std::runtime_error& error) {
    // A library could not get a resource, such as a thread.
    print_message(make_printable_message(error.what()));
  } catch (const std::exception& error) {
    print_message(make_printable_message(error.what()));
    print_message(kBug);
  }
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (!reserve_standard_streams()) {
    print_message("cannot open /dev/null in the place of a standard stream that is closed");
    return 1;
  }
  allow_many_files();
  try {
    poise::cli::set_cluster(poise::join_ranks(argc, argv));
  } catch (const std::exception& error) {
    print_message(error.what());
    return 1;
  }
  // A closed pipe or the limit on file sizes becomes a write error, which removes outputs that have a temporary name.
  for (const int signal : {SIGPIPE, SIGXFSZ}) std::signal(signal, SIG_IGN);
  poise::cli::handle_shrinking_files();
  return poise::cli::get_cluster().end(run_and_report(argc, argv));
}

namespace poise::cli {

namespace {

int error_output = STDERR_FILENO;

// Handles SIGBUS, which a read from a mapped file raises after the file shrank; calls only async-signal-safe functions.
// An unfinished output does not have its name yet, so it disappears; only file systems without unnamed files keep a
// hidden temporary file.
void report_shrunk_file(int) {
  constexpr std::string_view kMessage = "poise: a file changed while it was read; --io read reports which one\n";
  [[maybe_unused]] const ssize_t written = ::write(error_output, kMessage.data(), kMessage.size());
  ::_exit(1);
}

}  // namespace

void handle_shrinking_files() {
  error_output = get_cluster().error_output();
  struct sigaction action {};
  action.sa_handler = report_shrunk_file;
  ::sigaction(SIGBUS, &action, nullptr);
}

}  // namespace poise::cli
