// poise chat: a conversation in the terminal.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include <poise/error.hpp>
#include <poise/format.hpp>

#include "cli/advice.hpp"
#include "cli/chat_session.hpp"
#include "cli/commands.hpp"
#include "cli/conversations.hpp"
#include "cli/interrupts.hpp"
#include "cli/line_reader.hpp"
#include "cli/model_options.hpp"
#include "cli/sampling_options.hpp"
#include "cli/text.hpp"
#include "io/atomic_file.hpp"
#include "io/source_text.hpp"
#include "runtime/weights.hpp"

namespace poise::cli {
namespace {

struct ChatArguments {
  ModelOptions model;
  std::string system;
  std::string template_file;
  GenerateOptions generate = {.max_tokens = 4096};
  SessionOptions session;
  std::string draft;
  bool quiet = false;
};

constexpr std::string_view kHelp =
    "/reset       begin a new conversation; the system's message stays\n"
    "/undo        take the last question and its answer back\n"
    "/save FILE   write the conversation as JSON, as `poise run --messages` takes it\n"
    "/load FILE   go on with such a conversation\n"
    "/help        this\n"
    "/exit        leave, as Ctrl-D does\n"
    "A line that ends with \\ goes on in the next one; \"\"\" begins and ends a message of several lines.\n"
    "Ctrl-C ends an answer. //text sends /text.\n";

class Chat {
 public:
  explicit Chat(const ChatArguments& options) : options_(options), session_(begin()) {
    if (reader_.is_terminal()) interrupts_.emplace();
  }

  // False if a message that no person typed has no answer.
  bool run() {
    if (reader_.is_terminal() && !options_.quiet)
      say("Ctrl-D ends the conversation, Ctrl-C an answer; /help has more.\n");
    while (true) {
      auto line = reader_.line("> ");
      if (!line && !is_interrupted()) {
        if (reader_.is_terminal()) print_now("\n");  // Ctrl-D leaves the prompt's line open
        break;
      }
      if (!line || line->empty()) continue;  // Ctrl-C empties the line
      const bool is_command = line->front() == '/' && !line->starts_with("//");
      if (is_command) {
        reader_.remember(*line);
        if (!run_command(*line)) break;
        continue;
      }
      const auto message = whole_message(line->starts_with("//") ? line->substr(1) : *std::move(line));
      if (is_over_) break;
      if (!message) continue;
      reader_.remember(*message);
      answer(*message);
    }
    return reader_.is_terminal() || !has_failed_;
  }

 private:
  ChatSession begin() const {
    check_generate_options(options_.generate);
    const auto weights = options_.model.load();
    require_tokens(*weights, options_.generate);
    SessionOptions session_options = options_.session;
    session_options.draft = open_draft(options_.draft, options_.model.read);
    Session session(weights, session_options);
    ChatTemplate chat = read_template(options_.template_file, session.tokenizer().vocabulary(), false);
    return {std::move(session), std::move(chat), options_.system};
  }

  // Ctrl-C was pressed at the prompt.
  bool is_interrupted() { return interrupts_ && interrupts_->take(); }

  // Where a message has no next line: true after Ctrl-C, and after Ctrl-D, which ends the conversation.
  bool is_given_up() {
    if (is_interrupted()) return true;
    is_over_ = reader_.is_terminal();
    if (is_over_) print_now("\n");
    return is_over_;
  }

  // A message continues after a line that ends with a backslash, and between triple quotation marks. Nothing if it is
  // given up; the end of an input without a terminal ends it.
  std::optional<std::string> whole_message(std::string text) {
    constexpr std::string_view kQuotes = "\"\"\"";
    if (text.starts_with(kQuotes)) {
      text.erase(0, kQuotes.size());
      while (!text.ends_with(kQuotes)) {
        const auto next = reader_.line(". ");
        if (!next && is_given_up()) return std::nullopt;
        if (!next) return text;
        (text += '\n') += *next;
      }
      text.resize(text.size() - kQuotes.size());
      return text.starts_with('\n') ? text.substr(1) : text;
    }
    while (text.ends_with('\\')) {
      text.back() = '\n';
      const auto next = reader_.line(". ");
      if (!next && is_given_up()) return std::nullopt;
      if (!next) break;
      text += *next;
    }
    return text;
  }

  void answer(const std::string& message) {
    const bool terminal = ::isatty(STDOUT_FILENO) == 1;
    // Escapes control characters: a model must not control the terminal.
    const auto show = [&](std::string_view text) { print_now(terminal ? printable_lines(text) : std::string(text)); };
    try {
      ChatSession::Answer answer;
      Interrupts interrupts;
      const bool was_stopped = interrupts.run(
          [&](const std::stop_token& stop) { answer = session_.ask(message, options_.generate, stop, show); });
      print_now("\n");
      note(answer, was_stopped);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::bad_argument) throw;
      complain(error.what());
      has_failed_ = true;
    }
  }

  void note(const ChatSession::Answer& answer, bool was_stopped) const {
    if (options_.quiet) return;
    if (answer.left_out > 0) {
      complain(fmt::format("note: the context is full: the oldest {} left out, and the model no longer knows of them",
                           answer.left_out == 1 ? "message was" : fmt::format("{} messages were", answer.left_out)));
    }
    if (was_stopped) complain("note: the answer was ended");
    if (answer.reason == StopReason::context_full) complain("note: the answer ends here, for the context is full");
    if (answer.reason == StopReason::max_tokens && options_.generate.max_tokens > 0)
      complain(fmt::format("note: the answer ends here, after {} tokens; --max-tokens allows more",
                           options_.generate.max_tokens));
  }

  // False ends the conversation.
  bool run_command(const std::string& line) {
    const std::size_t space = std::min(line.find(' '), line.size());
    const std::string command = line.substr(1, space - 1);
    std::string argument = line.substr(std::min(line.find_first_not_of(" \t", space), line.size()));
    argument.resize(argument.find_last_not_of(" \t") + 1);
    const bool needs_file = command == "save" || command == "load";
    if (command == "exit" || command == "quit") return false;
    if (needs_file && argument.empty()) {
      complain(fmt::format("/{} needs the name of a file", command));
    } else if (command == "reset") {
      session_.reset();
    } else if (command == "undo") {
      if (!session_.undo()) complain("there is no question to take back");
    } else if (command == "help") {
      say(std::string(kHelp));
    } else if (needs_file) {
      with_file(command == "save", argument);
    } else {
      complain(fmt::format("there is no command /{}; /help lists them", command));
    }
    return true;
  }

  void with_file(bool saves, const std::string& path) {
    try {
      if (saves) {
        AtomicFile file(path, false);
        const std::string text = session_.to_json();
        file.write(std::as_bytes(std::span(text)));
        file.commit();
      } else {
        const SourcePtr source = Source::open(path, IoMode::read);
        session_.load(read_text(*source, source->size()), path);
      }
    } catch (const Error& error) {
      complain(printable(error.what()));
    }
  }

  const ChatArguments& options_;
  ChatSession session_;
  LineReader reader_;
  std::optional<Interrupts> interrupts_ = {};  // at the prompt of a terminal: Ctrl-C ends a program that reads a pipe
  bool is_over_ = false;                       // Ctrl-D in a message
  bool has_failed_ = false;
};

}  // namespace

void add_chat(CLI::App& app) {
  auto options = std::make_shared<ChatArguments>();
  CLI::App* command = app.add_subcommand("chat", "A conversation with an instruct model");
  command->add_option("PATH", options->model.path, "A model file or directory with a chat template")->required();
  command->add_option("--system", options->system, "The system message")->type_name("TEXT");
  add_template_option(*command, options->template_file);
  add_generate_options(*command, options->generate);
  add_session_options(*command, options->session);
  add_draft_option(*command, options->draft);
  command->add_flag("--quiet", options->quiet, "No notes on standard error");
  add_tokenizer_options(*command, options->model.tokenizer);
  add_lora_option(*command, options->model.lora);
  add_io_option(*command, options->model.read);
  command->callback([options] {
    name_file(options->model.path, [&] {
      if (!Chat(*options).run()) throw ExitCode{1};
    });
  });
}

}  // namespace poise::cli
