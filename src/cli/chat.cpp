// poise chat: holds a conversation with a model in the terminal.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>
#include <poise/format.hpp>

#include "bytes/short_text.hpp"
#include "cli/advice.hpp"
#include "cli/chat_session.hpp"
#include "cli/cluster.hpp"
#include "cli/commands.hpp"
#include "cli/help.hpp"
#include "cli/line_reader.hpp"
#include "cli/model_options.hpp"
#include "cli/standard_input.hpp"
#include "cli/text.hpp"
#include "io/atomic_file.hpp"
#include "runtime/weights.hpp"

namespace poise::cli {
namespace {

struct ChatArguments {
  ModelOptions model;
  std::string system;
  std::string template_file;
  GenerateOptions generate = {.max_tokens = 4096};
  std::vector<const CLI::Option*> generate_options;  // the options that set `generate`
  SessionOptions session;
  std::string draft;
  bool quiet = false;
  bool no_history = false;
};

constexpr std::string_view kHelpAfterCommands =
    "Tab completes commands, settings and names of files.\n"
    "A line that ends with \\ goes on in the next one; \"\"\" begins and ends a message of several lines.\n"
    "Ctrl-C ends an answer. //text sends /text.\n";

// Returns the paths that begin with a text; those of directories end with a slash.
std::vector<std::string> list_files_with_prefix(std::string_view begin) {
  namespace fs = std::filesystem;
  const std::string folder(begin.substr(0, begin.rfind('/') + 1));
  const std::string_view name = begin.substr(folder.size());
  std::vector<std::string> paths;
  std::error_code error;
  for (fs::directory_iterator entry(folder.empty() ? "." : folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string found = entry->path().filename().string();
    const bool is_hidden = found.starts_with('.') && !name.starts_with('.');
    if (is_hidden || !found.starts_with(name)) continue;
    std::error_code ignored;
    paths.push_back(folder + found + (entry->is_directory(ignored) ? "/" : ""));
  }
  std::ranges::sort(paths);
  return paths;
}

class Chat {
 public:
  explicit Chat(const ChatArguments& options)
      : options_(options),
        generate_(options.generate),
        session_(begin_session()),
        history_(open_history()),
        reader_([this](std::string_view line) { return complete(line); },
                history_ ? history_->read() : std::vector<std::string>()) {
    if (reader_.is_terminal()) interrupts_.emplace();
  }

  // Runs the conversation. Returns false if a message failed and the input is not a terminal.
  bool run() {
    if (reader_.is_terminal() && !options_.quiet)
      print_to_stderr("Ctrl-D ends the conversation, Ctrl-C an answer; /help has more.\n");
    while (true) {
      auto line = reader_.read_line(kYou);
      if (!line && clear_interrupt()) {
        if (!react_to_interrupt()) break;
        continue;
      }
      if (!line) {
        if (reader_.is_terminal()) print_now("\n");  // Ctrl-D leaves the prompt's line open
        break;
      }
      has_interrupted_ = false;
      if (line->empty()) continue;
      const bool is_command = line->front() == '/' && !line->starts_with("//");
      if (is_command) {
        line->resize(line->find_last_not_of(" \t") + 1);
        remember(*line);
        if (!run_command(*line)) break;
        continue;
      }
      const auto message = read_whole_message(line->starts_with("//") ? line->substr(1) : *std::move(line));
      if (is_over_) break;
      if (!message) continue;
      remember(*message);
      answer([&](const std::stop_token& stop) { return session_.ask(*message, generate_, stop, print_generated); });
    }
    return reader_.is_terminal() || !has_failed_;
  }

 private:
  // These texts begin the lines on a terminal, and show who speaks.
  static constexpr const char* kYou = "you> ";
  static constexpr std::string_view kModel = "model> ";

  // Describes a command that the user may type in place of a message, such as /undo.
  struct Command {
    std::string_view name;
    std::string_view argument;  // as /help shows it: in brackets if it is optional; empty for none
    std::string_view help;
    bool (Chat::*run)(const std::string& argument);  // returns false to end the conversation
  };
  static std::span<const Command> list_chat_commands() {
    static constexpr auto kCommands = std::to_array<Command>({
        {"regenerate", "", "answer the last question again", &Chat::regenerate},
        {"undo", "", "remove the last question and its answer", &Chat::undo},
        {"reset", "", "begin a new conversation; the system's message stays", &Chat::reset},
        {"system", "[TEXT]", "show the system's message, or replace it; \"\" removes it", &Chat::change_system},
        {"set", "[NAME VALUE]", "show how tokens are chosen, or change it: temperature 0.7, top-p 0.9, max-tokens 100",
         &Chat::set},
        {"save", "FILE", "write the conversation as JSON, as `poise run --messages` takes it", &Chat::save},
        {"load", "FILE", "continue a conversation that /save wrote", &Chat::load},
        {"help", "", "show these commands", &Chat::print_help},
        {"exit", "", "end the conversation, as Ctrl-D does", &Chat::end_conversation},
        {"quit", "", "the same as /exit", &Chat::end_conversation},
    });
    return kCommands;
  }

  ChatSession begin_session() {
    check_generate_options(options_.generate);
    Model model = options_.model.open_model(options_.quiet);
    use_sampling_defaults(model, options_.generate_options, generate_.sampling, options_.quiet);
    add_template_end(options_.template_file, model, generate_, options_.quiet);
    const auto weights = options_.model.load(model);
    require_valid_options(*weights, generate_);
    SessionOptions session_options = options_.session;
    session_options.draft = open_draft(options_.draft, options_.model, options_.quiet);
    Session session(weights, session_options);
    ChatTemplate chat = read_template(options_.template_file, session.tokenizer(), false);
    return {std::move(session), std::move(chat), options_.system};
  }

  // Opens the history if a person types at a terminal, unless --no-history is given or there are several ranks. Lines
  // of other inputs are not kept.
  std::optional<HistoryFile> open_history() const {
    if (options_.no_history || get_cluster().size() > 1 || ::isatty(STDIN_FILENO) != 1 || ::isatty(STDOUT_FILENO) != 1)
      return std::nullopt;
    return HistoryFile();
  }

  void remember(const std::string& text) {
    reader_.remember(text);
    if (history_) history_->append(text);
  }

  // Returns completions of a command's last word: commands, settings or files; std::nullopt for other lines.
  std::optional<std::vector<std::string>> complete(std::string_view line) const {
    if (!line.starts_with('/') || line.starts_with("//")) return std::nullopt;
    std::vector<std::string> words;
    const auto add = [&](std::string word, std::string_view begin) {
      if (word.starts_with(begin)) words.push_back(std::move(word));
    };
    const std::size_t space = line.find(' ');
    const std::string_view last = line.substr(line.rfind(' ') + 1);
    if (space == std::string_view::npos) {
      for (const Command& command : list_chat_commands()) add("/" + std::string(command.name), line);
    } else if (line.substr(0, space) == "/set") {
      for (const std::string& name : list_settings()) add(name, last);
    } else if (line.starts_with("/save ") || line.starts_with("/load ")) {
      return list_files_with_prefix(last);
    }
    return words;
  }

  // Reacts to Ctrl-C at the prompt. At an empty prompt, the first Ctrl-C prints how to leave; for a second one in a
  // row, the function returns false, which ends the conversation.
  bool react_to_interrupt() {
    print_now("\n");
    const bool is_second = std::exchange(has_interrupted_, reader_.was_empty());
    if (!has_interrupted_) return true;
    if (is_second) return false;
    print_to_stderr("Ctrl-C again, Ctrl-D or /exit ends the conversation.\n");
    return true;
  }

  // Returns true if Ctrl-C was pressed at the prompt, and forgets it.
  bool clear_interrupt() { return interrupts_ && interrupts_->clear(); }

  // Ends the terminal's line after the user gave up an unfinished message: with Ctrl-C, or with Ctrl-D, which also ends
  // the conversation. Returns false if the input is not a terminal.
  bool end_unfinished_message() {
    if (clear_interrupt()) {
      print_now("\n");
      return true;
    }
    is_over_ = reader_.is_terminal();
    if (is_over_) print_now("\n");
    return is_over_;
  }

  // Returns the whole message that begins with the line `text`. A message continues after a line that ends with a
  // backslash, and between triple quotation marks. Returns std::nullopt if the user gives the message up. If the input
  // is not a terminal, its end also ends the message.
  std::optional<std::string> read_whole_message(std::string text) {
    constexpr std::string_view kQuotes = "\"\"\"";
    if (text.starts_with(kQuotes)) {
      text.erase(0, kQuotes.size());
      while (!text.ends_with(kQuotes)) {
        const auto next = reader_.read_line(". ");
        if (!next && end_unfinished_message()) return std::nullopt;
        if (!next) return text;
        (text += '\n') += *next;
      }
      text.resize(text.size() - kQuotes.size());
      return text.starts_with('\n') ? text.substr(1) : text;
    }
    while (text.ends_with('\\')) {
      text.back() = '\n';
      const auto next = reader_.read_line(". ");
      if (!next && end_unfinished_message()) return std::nullopt;
      if (!next) break;
      text += *next;
    }
    return text;
  }

  // Calls `work`, which answers a question and prints the answer, with a stop token for Ctrl-C.
  template <typename Work>
  void answer(const Work& work) {
    if (reader_.is_terminal()) print_now(kModel);
    try {
      ChatSession::Answer answer;
      bool was_stopped = false;
      if (get_cluster().size() == 1) {
        Interrupts interrupts;
        was_stopped = interrupts.run([&](const std::stop_token& stop) { answer = work(stop); });
      } else {
        answer = work({});  // one rank must not stop alone, so Ctrl-C ends all ranks
      }
      print_now("\n");
      print_answer_notes(answer, was_stopped);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::bad_argument) throw;
      if (reader_.is_terminal()) print_now("\n");
      print_message(make_printable(error.what()));
      has_failed_ = true;
    }
  }

  void print_answer_notes(const ChatSession::Answer& answer, bool was_stopped) const {
    if (options_.quiet) return;
    if (answer.left_out > 0) {
      print_message(fmt::format("note: the context is full: dropped the oldest {}",
                                answer.left_out == 1 ? "message" : format_count(answer.left_out, "message")));
    }
    if (was_stopped) print_message("note: stopped the answer");
    if (answer.reason == StopReason::context_full) print_message("note: stopped: the context is full");
    if (answer.reason == StopReason::max_tokens && generate_.max_tokens > 0)
      print_message(fmt::format("note: stopped after {}; /set max-tokens allows more",
                                format_count(generate_.max_tokens, "token")));
  }

  // Runs a command. Returns false to end the conversation.
  bool run_command(const std::string& line) {
    const std::size_t space = std::min(line.find_first_of(" \t"), line.size());
    const std::string name = line.substr(1, space - 1);
    const std::string argument = line.substr(std::min(line.find_first_not_of(" \t", space), line.size()));
    const auto command = std::ranges::find(list_chat_commands(), name, &Command::name);
    if (command == list_chat_commands().end()) {
      print_unknown_command(name);
    } else if (!command->argument.empty() && command->argument.front() != '[' && argument.empty()) {
      print_message(fmt::format("/{} needs the name of a file", name));
    } else if (command->argument.empty() && !argument.empty()) {
      print_message(fmt::format("/{} takes no argument, found \"{}\"", name, make_printable(argument)));
    } else {
      try {
        return (this->*command->run)(argument);
      } catch (const Error& error) {
        if (error.kind() == ErrorKind::internal) throw;
        print_message(make_printable(error.what()));
      }
    }
    return true;
  }

  static void print_unknown_command(const std::string& name) {
    std::vector<std::string> names;
    for (const Command& command : list_chat_commands()) names.emplace_back(command.name);
    const std::string* const near = find_nearest(names, name);
    print_message(fmt::format("there is no command /{}; {}", make_printable(name),
                              near == nullptr ? "/help lists them" : "the nearest is /" + *near));
  }

  // Prints what a command has changed, unless --quiet is given.
  void print_confirmation(std::string_view text) const {
    if (!options_.quiet) print_to_stderr(fmt::format("{}\n", text));
  }

  bool regenerate(const std::string&) {
    if (session_.count_messages() == 0) return report_missing_question();
    if (generate_.sampling.temperature == 0) {
      print_confirmation("At temperature 0 the answer is the same; /set temperature 1 varies it.");
    } else {
      ++generate_.sampling.seed;  // the same seed gives the same answer
    }
    bool has_question = true;
    answer([&](const std::stop_token& stop) {
      const auto made = session_.ask_again(generate_, stop, print_generated);
      has_question = made.has_value();
      return made.value_or(ChatSession::Answer());
    });
    return has_question || report_missing_question();
  }

  static bool report_missing_question() {
    print_message("there is no question yet");
    return true;
  }

  bool undo(const std::string&) {
    const auto question = session_.undo();
    if (!question) return report_missing_question();
    const auto* const text = question->get_if<std::string>();
    print_confirmation(
        fmt::format("Took back: {}", make_printable(shorten(text == nullptr ? to_json(*question) : *text, 60))));
    return true;
  }

  bool reset(const std::string&) {
    session_.reset();
    print_confirmation("A new conversation begins.");
    return true;
  }

  bool change_system(const std::string& text) {
    if (text.empty()) {
      const std::string system = session_.system();
      print_to_stderr(system.empty() ? "There is no system message.\n" : make_printable_lines(system) + "\n");
      return true;
    }
    session_.set_system(text == "\"\"" ? "" : text);
    print_confirmation(text == "\"\"" ? "The system message is removed." : "The system message is replaced.");
    return true;
  }

  bool set(const std::string& text) {
    if (!text.empty()) change_setting(text, session_.weights(), generate_);
    if (text.empty() || !options_.quiet) print_to_stderr(format_settings(generate_) + "\n");
    return true;
  }

  bool save(const std::string& path) {
    if (get_cluster().rank() != 0) return true;
    AtomicFile file(path, false);
    const std::string text = session_.to_json();
    file.write(std::as_bytes(std::span(text)));
    file.commit();
    print_confirmation(
        fmt::format("Saved {} to {}.", format_count(session_.count_messages(), "message"), make_printable(path)));
    return true;
  }

  bool load(const std::string& path) {
    session_.load(read_text_file(path), path);
    print_confirmation(
        fmt::format("Loaded {} from {}.", format_count(session_.count_messages(), "message"), make_printable(path)));
    return true;
  }

  bool print_help(const std::string&) {
    std::string text;
    for (const Command& command : list_chat_commands())
      text += fmt::format("{:<20} {}\n", fmt::format("/{} {}", command.name, command.argument), command.help);
    print_to_stderr(text + std::string(kHelpAfterCommands));
    return true;
  }

  bool end_conversation(const std::string&) { return false; }

  const ChatArguments& options_;
  GenerateOptions generate_;
  ChatSession session_;
  std::optional<HistoryFile> history_;
  LineReader reader_;
  std::optional<Interrupts> interrupts_ = {};  // only at a terminal; else Ctrl-C ends the program
  bool is_over_ = false;                       // the user has pressed Ctrl-D in a message
  bool has_interrupted_ = false;               // the last line was Ctrl-C at an empty prompt
  bool has_failed_ = false;
};

}  // namespace

void add_chat_command(CLI::App& app) {
  auto options = std::make_shared<ChatArguments>();
  CLI::App* command = app.add_subcommand("chat", "A conversation with an instruct model");
  command->add_option("PATH", options->model.path, "A model file or directory with a chat template")->required();
  command->add_option("--system", options->system, "The system message")->type_name("TEXT");
  add_template_option(*command, options->template_file);
  options->generate_options = add_generate_options(*command, options->generate);
  add_session_options(*command, options->session);
  add_draft_option(*command, options->draft);
  command->add_flag("--no-history", options->no_history, "Do not load or save the history of typed lines");
  command->add_flag("--quiet", options->quiet, "No notes on standard error");
  add_model_options(*command, options->model);
  command->callback([options] {
    add_path_to_errors(options->model.path, [&] {
      if (!Chat(*options).run()) throw ExitCode{1};
    });
  });
}

}  // namespace poise::cli
