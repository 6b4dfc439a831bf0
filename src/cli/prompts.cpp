#include "cli/commands.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <map>
#include <set>
#include <span>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/short_text.hpp"
#include "cli/cluster.hpp"
#include "cli/standard_input.hpp"
#include "cli/text.hpp"
#include "cli/values.hpp"
#include "io/atomic_file.hpp"
#include "io/file_descriptor.hpp"
#include "pack/digest.hpp"
#include "runtime/weights.hpp"
#include "syntax/json.hpp"

namespace poise::cli {
namespace {

// Holds a prompt, which is one line of the input.
struct Prompt {
  std::optional<Value> id = {};
  std::vector<TokenId> tokens = {};
  std::size_t max_tokens = 0;

  // Returns 16 hexadecimal digits that identify the prompt.
  std::string compute_key() const {
    const std::string about = fmt::format("{} {} ", id ? to_json(*id) : "", max_tokens);
    const auto hasher = make_xxh3();
    hasher->update(std::as_bytes(std::span(about)));
    hasher->update(std::as_bytes(std::span(tokens)));
    return hasher->finish();
  }
};

// Reads prompts line by line. Rank 0 reads them for all ranks.
class PromptReader {
 public:
  PromptReader(const std::string& path, const ConversationOptions& conversation, const Weights& weights,
               std::size_t max_tokens)
      : name_(get_input_name(path)),
        is_file_(path != "-"),
        file_(is_file_ && get_cluster().rank() == 0 ? open_file(path, "rb") : nullptr),
        input_(file_ ? file_.get() : stdin, name_),
        conversation_(conversation),
        weights_(weights),
        max_tokens_(max_tokens) {}

  // Returns the object of the next line that is not empty; std::nullopt after the last.
  std::optional<Attributes> read_next() {
    std::string line;
    do {
      if (!read_line(line)) return std::nullopt;
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

  Prompt parse_prompt(const Attributes& line) {
    constexpr std::array<std::string_view, 7> kKeys = {"id",       "max_tokens", "prompt",   "tokens",
                                                       "messages", "tools",      "documents"};
    for (const auto& [key, value] : line) {
      if (std::ranges::find(kKeys, key) == kKeys.end())
        fail(fmt::format("unknown key \"{}\": expected {}", key, fmt::join(kKeys, ", ")));
    }
    Prompt result = {.max_tokens = max_tokens_};
    if (const Value* id = line.find("id")) result.id = *id;
    if (const Value* most = line.find("max_tokens")) result.max_tokens = read_whole_number(*most, "max_tokens");
    result.tokens = read_tokens(line);
    return result;
  }

  [[noreturn]] void fail(const std::string& problem) const {
    throw Error(ErrorKind::invalid_file, fmt::format("line {}: {}", line_, problem), name_);
  }

 private:
  // Returns false at the end.
  bool read_line(std::string& line) {
    if (!is_file_) return input_.read_line(line);  // this call shares standard input with all ranks
    constexpr char kIsThere = '+';
    const std::string shared = share_text([&] {
      std::string read;
      return input_.read_line(read) ? kIsThere + read : read;
    });
    if (shared.empty()) return false;
    line = shared.substr(1);
    return true;
  }

  std::vector<TokenId> read_tokens(const Attributes& line) {
    const Value* text = line.find("prompt");
    const Value* ids = line.find("tokens");
    const Value* messages = line.find("messages");
    if ((text != nullptr) + (ids != nullptr) + (messages != nullptr) != 1)
      fail("expected one of \"prompt\", \"tokens\" and \"messages\"");
    if (ids != nullptr) return check_not_empty(read_ids(*ids), "\"tokens\": the list is empty");
    if (messages != nullptr)
      return check_not_empty(encode_conversation(line), "the chat template renders the conversation to an empty text");
    const auto* prompt = text->get_if<std::string>();
    if (prompt == nullptr) fail("\"prompt\": expected a text");
    return check_not_empty(weights_.tokenizer().encode_with_special(*prompt),
                           "the prompt is empty, and the vocabulary has no BOS token to begin with");
  }

  std::vector<TokenId> check_not_empty(std::vector<TokenId> tokens, const char* problem_if_none) const {
    if (tokens.empty()) fail(problem_if_none);
    return tokens;
  }

  std::vector<TokenId> read_ids(const Value& value) const {
    const auto* array = value.get_if<Value::Array>();
    if (array == nullptr) fail("\"tokens\": expected a list of token ids");
    std::vector<TokenId> result;
    for (const Value& item : *array) {
      const std::uint64_t id = read_whole_number(item, "tokens");
      if (id >= weights_.vocabulary_size())
        fail(fmt::format("\"tokens\": token {}: the model has {} tokens", id, weights_.vocabulary_size()));
      result.push_back(static_cast<TokenId>(id));
    }
    return result;
  }

  std::vector<TokenId> encode_conversation(const Attributes& line) {
    Attributes talk;
    for (const std::string_view key : {"messages", "tools", "documents"}) {
      if (const Value* value = line.find(key)) talk.set(std::string(key), *value);
    }
    const auto* tools = talk.find("tools");
    const ChatTemplate& chat = load_template(tools != nullptr && *tools != Value());
    try {
      ChatText text = chat.render(parse_conversation(to_json(talk), ""));
      if (conversation_.parse_special) text.from_messages.clear();
      return weights_.tokenizer().encode(text);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::internal) throw;
      fail(error.what());
    }
  }

  // Returns the template for conversations with tools or without, and reads it on first use.
  const ChatTemplate& load_template(bool has_tools) {
    const bool is_one = !conversation_.template_file.empty();
    std::optional<ChatTemplate>& chat = has_tools && !is_one ? with_tools_ : template_;
    if (!chat) chat.emplace(read_template(conversation_.template_file, weights_.tokenizer(), has_tools));
    return *chat;
  }

  std::uint64_t read_whole_number(const Value& value, std::string_view key) const {
    if (const auto* number = value.get_if<std::uint64_t>()) return *number;
    if (const auto* number = value.get_if<std::int64_t>(); number != nullptr && *number >= 0)
      return static_cast<std::uint64_t>(*number);
    fail(fmt::format("\"{}\": expected a whole number, found {}", key, shorten(to_json(value), 40)));
  }

  std::string name_;
  bool is_file_;
  File file_;  // open on rank 0 alone
  TextInput input_;
  const ConversationOptions& conversation_;
  const Weights& weights_;
  std::size_t max_tokens_;
  std::size_t line_ = 0;
  std::optional<ChatTemplate> template_ = {};
  std::optional<ChatTemplate> with_tools_ = {};
};

bool has_output_file(const PromptsOptions& options) { return !options.output.empty() && options.output != "-"; }

// Writes answers, one per line, to standard output or to a file, which appears when all answers are there. Only rank 0
// has the file. Until all answers are there, they are in OUTPUT.partial, from which the same command continues after an
// interruption:
//
//   {"poise":"run --prompts","version":1,"model":"xxh3:...",...}   all that answers depend on, except their prompts
//   0123456789abcdef {"id":"first","text":...}                     the XXH3 of a prompt, and its answer
//
// The first line identifies such a file; any other file is left as it is.
class AnswerWriter {
 public:
  AnswerWriter(const PromptsOptions& options, const std::vector<std::filesystem::path>& inputs)
      : path_(has_output_file(options) && get_cluster().rank() == 0 ? options.output : ""),
        partial_(make_partial_name(path_)),
        overwrite_(options.force) {
    if (path_.empty()) return;
    FileOutput::check_replaceable(path_, overwrite_, inputs);
    FileOutput::check_replaceable(partial_, true, inputs);
  }

  // Returns true if this rank writes a file.
  bool is_file() const { return !path_.empty(); }

  // Opens the unfinished file, or begins one. Throws bad_argument for a file that another command began or is writing.
  // Requires: is_file().
  void open(const std::string& header) {
    std::error_code ignored;
    if (!std::filesystem::exists(std::filesystem::symlink_status(partial_, ignored))) {
      AtomicFile begun(partial_, false);
      write_line(begun, header);
      begun.commit();
    }
    const FileDescriptor fd(::open(partial_.c_str(), O_RDWR | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (!fd && errno == ELOOP) refuse("this is a link: remove it, or choose another output");
    if (!fd) throw_system_error("open", partial_);
    struct stat status {};
    if (::fstat(fd.get(), &status) != 0) throw_system_error("read", partial_);
    if (!S_ISREG(status.st_mode) || status.st_nlink != 1)
      refuse("this file was not begun by run --prompts: remove it, or choose another output");
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) refuse("another run is writing this file");
    file_ = File(::fdopen(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0), "r+"));  // the copy keeps the lock
    if (!file_) throw_system_error("open", partial_);
    size_ = static_cast<std::uint64_t>(status.st_size);
    lines_.emplace(file_.get(), partial_);
    std::string line;
    if (!lines_->read_line(line) || line.substr(0, kBeginning.size()) != kBeginning)
      refuse("this file was not begun by run --prompts: remove it, or choose another output");
    if (line != header)
      refuse(
          "this file was begun with another model or vocabulary, or with other end tokens or options: remove it to "
          "begin again, or repeat that command");
    kept_ = line.size() + 1;
  }

  // Returns the key of the next answer; std::nullopt after the last whole line. A killed run may leave a part of a
  // line.
  std::optional<std::string> read_next_key() {
    std::string line;
    if (!lines_->read_line(line) || kept_ + line.size() >= size_) return std::nullopt;
    if (line.size() < kKeyDigits + 2 || line[kKeyDigits] != ' ')
      refuse(fmt::format("byte {}: expected the digits of a prompt and its answer", kept_));
    kept_ += line.size() + 1;
    line.resize(kKeyDigits);
    return line;
  }

  // Begins to write. Cuts off a last line that is not whole. Call this after the last read_next_key().
  void begin_writing() {
    if (::ftruncate(::fileno(file_.get()), static_cast<off_t>(kept_)) != 0 || std::fseek(file_.get(), 0, SEEK_END) != 0)
      throw_system_error("write", partial_);
  }

  void write(const std::string& key, const std::string& answer) {
    if (!is_file()) return print_now(answer + "\n");
    if (std::fprintf(file_.get(), "%s %s\n", key.c_str(), answer.c_str()) < 0 || std::fflush(file_.get()) != 0)
      throw_system_error("write", partial_);
  }

  // Makes the output from the unfinished file, and removes the unfinished file.
  void finish() {
    if (!is_file()) return;
    AtomicFile output(path_, overwrite_);
    std::rewind(file_.get());
    TextInput lines(file_.get(), partial_);
    std::string line;
    lines.read_line(line);
    while (lines.read_line(line)) write_line(output, std::string_view(line).substr(kKeyDigits + 1));
    output.commit();
    ::unlink(partial_.c_str());
  }

  [[noreturn]] void refuse(const std::string& problem) const {
    throw Error(ErrorKind::bad_argument, problem, partial_);
  }

 private:
  static void write_line(AtomicFile& file, std::string_view line) {
    file.write(std::as_bytes(std::span(line)));
    file.write(std::as_bytes(std::span("\n", 1)));
  }

  static constexpr std::size_t kKeyDigits = 16;
  static constexpr std::string_view kBeginning = R"({"poise":"run --prompts",)";

  std::string path_;  // empty for standard output, and on ranks other than 0
  std::string partial_;
  bool overwrite_;
  File file_;
  std::optional<TextInput> lines_;
  std::uint64_t size_ = 0;
  std::uint64_t kept_ = 0;  // the number of bytes of the whole lines that were read
};

// Describes everything that answers depend on, except their prompts.
std::string describe_run(const Weights& weights, const PromptsOptions& prompts, const SessionOptions& session,
                         const GenerateOptions& generate) {
  const SamplingOptions& sampling = generate.sampling;
  Value::Array biases;
  for (const auto& [token, bias] : sampling.logit_bias)
    biases.emplace_back(Value::Array{std::int64_t{token}, static_cast<double>(bias)});
  const std::vector<TokenId>& ends = weights.parts().ends;
  Attributes run = {
      {"poise", "run --prompts"},
      {"version", std::uint64_t{1}},
      {"model", find_fingerprint(weights)},
      {"vocabulary",
       weights.has_tokenizer() ? Value(compute_vocabulary_fingerprint(weights.tokenizer().vocabulary())) : Value()},
      {"ends", Value::Array(ends.begin(), ends.end())},
      {"exact", session.exact},
      {"cache", to_string(choose_cache_type(session))},
      {"context", std::uint64_t{find_context(weights, session)}},
      {"temperature", static_cast<double>(sampling.temperature)},
      {"top_k", sampling.top_k},
      {"top_p", static_cast<double>(sampling.top_p)},
      {"min_p", static_cast<double>(sampling.min_p)},
      {"seed", sampling.seed},
      {"repetition_penalty", static_cast<double>(sampling.repetition_penalty)},
      {"presence_penalty", static_cast<double>(sampling.presence_penalty)},
      {"frequency_penalty", static_cast<double>(sampling.frequency_penalty)},
      {"logit_bias", std::move(biases)},
      {"stop", Value::Array(generate.stop.begin(), generate.stop.end())},
      {"ignore_eos", generate.ignore_eos}};
  if (generate.stop_id) run.set("stop_id", std::int64_t{*generate.stop_id});
  // With RankSplit::heads, sums of several ranks round differently from those of one process.
  if (get_cluster().size() > 1 && prompts.split == RankSplit::heads)
    run.set("ranks", std::uint64_t{get_cluster().size()});
  return to_json(run);
}

// Adds to `files` the paths of the files that hold the model's tensors.
void add_tensor_files(const Weights& weights, std::vector<std::filesystem::path>& files) {
  std::set<std::string> names;
  for (const Tensor& tensor : weights.parts().tensors) {
    for (const Part& part : tensor.parts) {
      if (const auto at = part.blob->stored()) names.insert(at->source->name());
    }
  }
  files.insert(files.end(), names.begin(), names.end());
}

// Answers all prompts of a file, several at a time.
class PromptsRun {
 public:
  PromptsRun(const PromptsOptions& options, const ConversationOptions& conversation,
             std::shared_ptr<const Weights> weights, const SessionOptions& session, const GenerateOptions& generate)
      : options_(options),
        weights_(std::move(weights)),
        session_(session),
        generate_(generate),
        writer_(options, list_all_inputs()),
        reader_(options.file, conversation, *weights_, generate.max_tokens),
        batch_(weights_, session) {}

  PromptsSummary run() {
    if (has_output_file(options_)) skip_answered_prompts();
    while (read_prompts() || batch_.size() > 0) {
      for (const BatchGenerator::Finished& text : batch_.step()) add_answer(text);
      write_ready_answers();
    }
    writer_.finish();
    return summary_;
  }

 private:
  std::vector<std::filesystem::path> list_all_inputs() const {
    std::vector<std::filesystem::path> all = options_.inputs;
    all.emplace_back(options_.file);
    add_tensor_files(*weights_, all);
    return all;
  }

  // Skips the prompts that an interrupted run has answered.
  void skip_answered_prompts() {
    if (writer_.is_file()) writer_.open(describe_run(*weights_, options_, session_, generate_));
    while (true) {
      const std::optional<std::string> key = writer_.is_file() ? writer_.read_next_key() : std::nullopt;
      if (share_number(key ? 1 : 0) == 0) break;
      const auto line = reader_.read_next();
      ++summary_.kept;
      if (key && (!line || reader_.parse_prompt(*line).compute_key() != *key)) {
        writer_.refuse(
            fmt::format("answer {0} does not belong to prompt {0} of {1}: remove the file, or choose another output",
                        summary_.kept, options_.file));
      }
    }
    if (writer_.is_file()) writer_.begin_writing();
  }

  // Fills the batch. Returns false if there are no more prompts.
  bool read_prompts() {
    while (!is_end_ && batch_.size() < options_.parallel) {
      const auto line = reader_.read_next();
      is_end_ = !line.has_value();
      if (is_end_) break;
      Prompt prompt = reader_.parse_prompt(*line);
      GenerateOptions generate = generate_;
      generate.max_tokens = prompt.max_tokens;
      Asked asked = {prompt.id, writer_.is_file() ? prompt.compute_key() : std::string()};
      try {
        asked_.emplace(batch_.add(std::move(prompt.tokens), generate), std::move(asked));
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::bad_argument) throw;
        reader_.fail(error.message());
      }
    }
    return !is_end_;
  }

  void add_answer(const BatchGenerator::Finished& text) {
    const auto asked = asked_.extract(text.id);
    const std::vector<TokenId>& tokens = text.generation.tokens;
    Attributes line;
    if (const auto& id = asked.mapped().id) line.set("id", *id);
    line.set("text", weights_->has_tokenizer() ? Value(text.text) : Value());
    line.set("tokens", Value::Array(tokens.begin(), tokens.end()));
    line.set("finish_reason", finish_reason(text.generation.reason));
    ready_.emplace(text.id, Answer{asked.mapped().key, to_json(line)});
    ++summary_.texts;
    summary_.tokens += tokens.size();
  }

  // Writes the answers that are ready, as far as all answers before them are written, so that they keep the order of
  // the prompts.
  void write_ready_answers() {
    for (auto first = ready_.begin(); first != ready_.end() && first->first == written_; first = ready_.erase(first)) {
      writer_.write(first->second.key, first->second.line);
      ++written_;
    }
  }

  struct Asked {
    std::optional<Value> id;
    std::string key;
  };
  struct Answer {
    std::string key;
    std::string line;
  };

  const PromptsOptions& options_;
  std::shared_ptr<const Weights> weights_;
  const SessionOptions& session_;
  const GenerateOptions& generate_;
  AnswerWriter writer_;  // the constructor refuses a wrong output before the prompts are read
  PromptReader reader_;
  BatchGenerator batch_;
  PromptsSummary summary_;
  bool is_end_ = false;
  std::size_t written_ = 0;
  // The key is the id that the batch returned for the prompt: 0, 1, ...
  std::map<std::size_t, Asked> asked_;
  std::map<std::size_t, Answer> ready_;
};

}  // namespace

CLI::Option* add_prompts_options(CLI::App& command, PromptsOptions& options) {
  auto* prompts = add_text_option(
      command, "--prompts", options.file, "FILE",
      "Run many prompts, several at a time: one JSON object per line, {\"prompt\": TEXT | \"tokens\": [..] | "
      "\"messages\": [..], \"id\"?, \"max_tokens\"?}; - is standard input");
  auto* output =
      add_text_option(
          command, "-o,--output", options.output, "FILE",
          "With --prompts: the file for the answers, one per line in the prompts' order. It appears when all are "
          "done; after an interruption, the same command continues FILE.partial (default: -, standard output)")
          ->needs(prompts);
  command.add_flag("--force", options.force, "With --output: replace a file that exists")->needs(output);
  add_number_option(command, "--parallel", options.parallel, "With --prompts: answer this many at a time", {1, 4096})
      ->needs(prompts);
  return prompts;
}

std::string make_partial_name(const std::string& output) { return output + ".partial"; }

PromptsSummary run_prompts(const PromptsOptions& options, const ConversationOptions& conversation,
                           std::shared_ptr<const Weights> weights, const SessionOptions& session,
                           const GenerateOptions& generate) {
  return PromptsRun(options, conversation, std::move(weights), session, generate).run();
}

}  // namespace poise::cli
