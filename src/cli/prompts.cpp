#include "cli/prompts.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/short_text.hpp"
#include "cli/standard_input.hpp"
#include "cli/text.hpp"
#include "cli/values.hpp"
#include "io/system_error.hpp"
#include "syntax/wide_integers.hpp"

namespace poise::cli {
namespace {

// A line of the input.
struct Prompt {
  std::optional<Value> id = {};
  std::vector<TokenId> tokens = {};
  std::size_t max_tokens = 0;
};

// Reads prompts line by line.
class PromptReader {
 public:
  PromptReader(const std::string& path, const ConversationOptions& conversation, const Weights& weights,
               std::size_t max_tokens)
      : name_(name_of_text_file(path)),
        file_(path == "-" ? nullptr : open_file(path, "rb")),
        input_(file_ ? file_.get() : stdin, name_),
        conversation_(conversation),
        weights_(weights),
        max_tokens_(max_tokens) {}

  // The object of the next line that is not empty; nothing after the last.
  std::optional<Attributes> next() {
    std::string line;
    do {
      if (!input_.line(line)) return std::nullopt;
      ++line_;
    } while (line.find_first_not_of(" \t\r") == std::string::npos);
    Value value;
    try {
      value = parse_exact_json(line, name_);
    } catch (const Error& error) {
      fail(error.message());
    }
    if (const auto* object = value.get_if<Attributes>()) return *object;
    fail("expected an object");
  }

  Prompt prompt(const Attributes& line) {
    constexpr std::array<std::string_view, 7> kKeys = {"id",       "max_tokens", "prompt",   "tokens",
                                                       "messages", "tools",      "documents"};
    for (const auto& [key, value] : line) {
      if (std::ranges::find(kKeys, key) == kKeys.end())
        fail(fmt::format("\"{}\": expected \"prompt\", \"tokens\" or \"messages\", and \"id\" or \"max_tokens\"", key));
    }
    Prompt result = {.max_tokens = max_tokens_};
    if (const Value* id = line.find("id")) result.id = *id;
    if (const Value* most = line.find("max_tokens")) result.max_tokens = whole_number(*most, "max_tokens");
    result.tokens = tokens_of(line);
    return result;
  }

  [[noreturn]] void fail(const std::string& problem) const {
    throw Error(ErrorKind::invalid_file, fmt::format("line {}: {}", line_, problem), name_);
  }

 private:
  std::vector<TokenId> tokens_of(const Attributes& line) {
    const Value* text = line.find("prompt");
    const Value* ids = line.find("tokens");
    const Value* messages = line.find("messages");
    if ((text != nullptr) + (ids != nullptr) + (messages != nullptr) != 1)
      fail("expected one of \"prompt\", \"tokens\" and \"messages\"");
    if (ids != nullptr) return some(ids_of(*ids), "\"tokens\": the list is empty");
    if (messages != nullptr)
      return some(conversation_tokens(line), "the chat template makes an empty text of the conversation");
    const auto* prompt = text->get_if<std::string>();
    if (prompt == nullptr) fail("\"prompt\": expected a text");
    return some(weights_.tokenizer().encode_with_special(*prompt),
                "the prompt is empty, and the vocabulary has no BOS token to begin with");
  }

  std::vector<TokenId> some(std::vector<TokenId> tokens, const char* problem_if_none) const {
    if (tokens.empty()) fail(problem_if_none);
    return tokens;
  }

  std::vector<TokenId> ids_of(const Value& value) const {
    const auto* array = value.get_if<Value::Array>();
    if (array == nullptr) fail("\"tokens\": expected a list of token ids");
    std::vector<TokenId> result;
    for (const Value& item : *array) {
      const std::uint64_t id = whole_number(item, "tokens");
      if (id >= weights_.vocabulary_size())
        fail(fmt::format("\"tokens\": token {}: the model has {} tokens", id, weights_.vocabulary_size()));
      result.push_back(static_cast<TokenId>(id));
    }
    return result;
  }

  std::vector<TokenId> conversation_tokens(const Attributes& line) {
    Attributes talk;
    for (const std::string_view key : {"messages", "tools", "documents"}) {
      if (const Value* value = line.find(key)) talk.set(std::string(key), *value);
    }
    const auto* tools = talk.find("tools");
    const ChatTemplate& chat = chat_template(tools != nullptr && *tools != Value());
    try {
      ChatText text = chat.render(parse_conversation(to_json(talk), ""));
      if (conversation_.parse_special) text.from_messages.clear();
      return weights_.tokenizer().encode(text);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::internal) throw;
      fail(error.what());
    }
  }

  // Read once.
  const ChatTemplate& chat_template(bool has_tools) {
    const bool is_one = !conversation_.template_file.empty();
    std::optional<ChatTemplate>& chat = has_tools && !is_one ? with_tools_ : template_;
    if (!chat) chat.emplace(read_template(conversation_.template_file, weights_.tokenizer(), has_tools));
    return *chat;
  }

  std::uint64_t whole_number(const Value& value, std::string_view key) const {
    if (const auto* number = value.get_if<std::uint64_t>()) return *number;
    if (const auto* number = value.get_if<std::int64_t>(); number != nullptr && *number >= 0)
      return static_cast<std::uint64_t>(*number);
    fail(fmt::format("\"{}\": expected a whole number, found {}", key, shortened(to_json(value), 40)));
  }

  std::string name_;
  File file_;
  Input input_;
  const ConversationOptions& conversation_;
  const Weights& weights_;
  std::size_t max_tokens_;
  std::size_t line_ = 0;
  std::optional<ChatTemplate> template_ = {};
  std::optional<ChatTemplate> with_tools_ = {};
};

// Where answers go, a line each. A file keeps the whole lines that it has.
class AnswerWriter {
 public:
  explicit AnswerWriter(const std::string& path) : path_(path == "-" ? "" : path) {
    std::error_code error;
    if (path_.empty() || !std::filesystem::is_regular_file(path_, error)) return;
    existing_ = open_file(path_, "rb");
    size_ = std::filesystem::file_size(path_);
    lines_.emplace(existing_.get(), path_);
  }

  // The next line that the file has; `is_whole` is false for a last one without an end, which a program that was killed
  // leaves. Nothing after the last one.
  std::optional<std::string> kept(bool& is_whole) {
    std::string line;
    if (!lines_ || !lines_->line(line)) return std::nullopt;
    is_whole = kept_ + line.size() < size_;
    if (is_whole) kept_ += line.size() + 1;
    return line;
  }

  // After the kept lines: cuts off a line that is not whole.
  void open() {
    if (path_.empty()) return;
    if (existing_ && ::truncate(path_.c_str(), static_cast<off_t>(kept_)) != 0) throw_system_error("write", path_);
    file_ = open_file(path_, "ab");
  }

  void write(const std::string& line) {
    if (!file_) return print_now(line + "\n");
    if (std::fprintf(file_.get(), "%s\n", line.c_str()) < 0 || std::fflush(file_.get()) != 0)
      throw_system_error("write", path_);
  }

 private:
  std::string path_;
  File existing_;
  std::optional<Input> lines_;
  std::uint64_t size_ = 0;
  std::uint64_t kept_ = 0;  // bytes of whole lines
  File file_;
};

class PromptsRun {
 public:
  PromptsRun(const PromptsOptions& options, const ConversationOptions& conversation,
             std::shared_ptr<const Weights> weights, const SessionOptions& session, const GenerateOptions& generate)
      : options_(options),
        weights_(std::move(weights)),
        generate_(generate),
        reader_(options.file, conversation, *weights_, generate.max_tokens),
        writer_(options.output),
        batch_(weights_, session) {}

  PromptsSummary run() {
    keep_answers();
    while (take_prompts() || batch_.size() > 0) {
      for (const BatchGenerator::Finished& text : batch_.step()) answer(text);
      write_ready();
    }
    return summary_;
  }

 private:
  // Passes over the prompts that the output has the answers to. Changes no file that has anything else.
  void keep_answers() {
    bool is_whole = false;
    while (const auto line = writer_.kept(is_whole)) {
      if (!is_whole && begins_like_answer(*line)) break;
      const auto prompt = is_whole ? reader_.next() : std::nullopt;
      ++summary_.kept;
      if (!prompt || !is_answer(*line, *prompt)) {
        throw Error(ErrorKind::bad_argument,
                    fmt::format("line {} is not an answer to that of {}: remove the file, or choose another one",
                                summary_.kept, options_.file),
                    options_.output);
      }
    }
    writer_.open();
  }

  // True for the beginning of a line that answer() makes.
  static bool begins_like_answer(std::string_view line) {
    return std::ranges::any_of(
        std::array<std::string_view, 2>{R"({"id":)", R"({"text":)"},
        [&](std::string_view begin) { return line.substr(0, begin.size()) == begin.substr(0, line.size()); });
  }

  static bool is_answer(const std::string& line, const Attributes& prompt) {
    try {
      const Value value = parse_json(line, "");
      const auto* answer = value.get_if<Attributes>();
      if (answer == nullptr || answer->find("finish_reason") == nullptr) return false;
      const Value* id = prompt.find("id");
      const Value* answered = answer->find("id");
      return id == nullptr || answered == nullptr ? id == answered : *id == *answered;
    } catch (const Error&) {
      return false;
    }
  }

  // Fills the batch. False: there are no more prompts.
  bool take_prompts() {
    while (!is_end_ && batch_.size() < options_.parallel) {
      const auto line = reader_.next();
      is_end_ = !line.has_value();
      if (is_end_) break;
      Prompt prompt = reader_.prompt(*line);
      GenerateOptions generate = generate_;
      generate.max_tokens = prompt.max_tokens;
      try {
        ids_.emplace(batch_.add(std::move(prompt.tokens), generate), std::move(prompt.id));
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::bad_argument) throw;
        reader_.fail(error.message());
      }
    }
    return !is_end_;
  }

  void answer(const BatchGenerator::Finished& text) {
    const auto id = ids_.extract(text.id);
    const std::vector<TokenId>& tokens = text.generation.tokens;
    Attributes line;
    if (id.mapped()) line.set("id", *id.mapped());
    line.set("text", weights_->has_tokenizer() ? Value(text.text) : Value());
    line.set("tokens", Value::Array(tokens.begin(), tokens.end()));
    line.set("finish_reason", finish_reason(text.generation.reason));
    ready_.emplace(text.id, to_json(line));
    ++summary_.texts;
    summary_.tokens += tokens.size();
  }

  // Answers are written in the order of their prompts.
  void write_ready() {
    for (auto first = ready_.begin(); first != ready_.end() && first->first == written_; first = ready_.erase(first)) {
      writer_.write(first->second);
      ++written_;
    }
  }

  const PromptsOptions& options_;
  std::shared_ptr<const Weights> weights_;
  const GenerateOptions& generate_;
  PromptReader reader_;
  AnswerWriter writer_;
  BatchGenerator batch_;
  PromptsSummary summary_;
  bool is_end_ = false;
  std::size_t written_ = 0;
  // By number of the text in the batch, which is that of its answer.
  std::map<std::size_t, std::optional<Value>> ids_;
  std::map<std::size_t, std::string> ready_;
};

}  // namespace

CLI::Option* add_prompts_options(CLI::App& command, PromptsOptions& options) {
  auto* prompts =
      command
          .add_option("--prompts", options.file,
                      "Many prompts, several at a time: a JSON object a line, {\"prompt\": TEXT | \"tokens\": "
                      "[..] | \"messages\": [..], \"id\"?, \"max_tokens\"?}; - is standard input")
          ->check(not_empty())
          ->type_name("FILE");
  command
      .add_option("-o,--output", options.output,
                  "With --prompts: the file for the answers, a line each in the prompts' order; lines that it has are "
                  "kept, and the run goes on after them (default: standard output)")
      ->check(not_empty())
      ->type_name("FILE")
      ->needs(prompts);
  add_number(command, "--parallel", options.parallel, "With --prompts: how many at a time", {1, 4096})->needs(prompts);
  return prompts;
}

PromptsSummary run_prompts(const PromptsOptions& options, const ConversationOptions& conversation,
                           std::shared_ptr<const Weights> weights, const SessionOptions& session,
                           const GenerateOptions& generate) {
  return PromptsRun(options, conversation, std::move(weights), session, generate).run();
}

}  // namespace poise::cli
