// poise run: continues a prompt, token by token.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <poise/error.hpp>
#include <poise/format.hpp>
#include <poise/verify.hpp>

#include "bytes/short_text.hpp"
#include "cli/advice.hpp"
#include "cli/commands.hpp"
#include "cli/model_options.hpp"
#include "cli/standard_input.hpp"
#include "cli/text.hpp"
#include "cli/values.hpp"
#include "runtime/computation.hpp"
#include "runtime/stop_texts.hpp"
#include "runtime/weights.hpp"

namespace poise::cli {
namespace {

struct RunArguments {
  ModelOptions model;
  std::optional<std::string> prompt;  // the argument TEXT or option -p; "-" for standard input
  std::string prompt_file;            // -f
  std::vector<TokenId> tokens;
  GenerateOptions generate;
  std::vector<const CLI::Option*> generate_options;  // the options that set `generate`
  SessionOptions session;
  ConversationOptions conversation;
  PromptsOptions prompts;
  ProgressOptions progress;
  PerplexityOptions perplexity;
  std::string draft;
  bool verify = false;
  bool logits = false;
  bool json = false;
  bool stats = false;
  std::optional<std::size_t> top_logprobs;
};

class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

struct Speed {
  std::size_t tokens = 0;
  double seconds = 0;

  double compute_rate() const { return tokens == 0 || seconds <= 0 ? 0 : static_cast<double>(tokens) / seconds; }
};

double round_to_thousandths(double value) { return std::round(value * 1000) / 1000; }

class Run {
 public:
  explicit Run(const RunArguments& options) : options_(options), generate_(options.generate) {}

  // Runs the command, from the arguments to the text on standard output.
  void execute() {
    // Contradictory arguments and, with --verify, damaged files are refused before any work.
    check_generate_options(options_.generate);
    require_conversation();
    if (options_.verify) require_verified(options_.model.path);
    if (options_.verify && !options_.draft.empty() && options_.draft != "lookup") require_verified(options_.draft);
    // Open the model: headers, configuration and vocabulary. Its files may set sampling options, and --template may
    // name a built-in template, which sets how an answer ends.
    const Stopwatch loading;
    const bool quiet = options_.progress.quiet;
    const bool has_perplexity = !options_.perplexity.file.empty();
    Model model = options_.model.open_model(quiet);
    opened_ = model.origin.files;
    if (!options_.logits && !has_perplexity) {
      use_sampling_defaults(model, options_.generate_options, generate_.sampling, quiet);
      add_template_end(options_.conversation.template_file, model, generate_, quiet);
    }
    // Load the weights, in their stored form if a kernel reads it, and make the tokenizer. Sessions share both.
    const auto weights = options_.model.load(model);
    if (!options_.prompts.file.empty()) return answer_prompts(weights, loading);
    require_valid_options(*weights, generate_);
    print_unused_options();
    if (has_perplexity) return compute_perplexity(weights, loading);
    // Begin a session: the cache of keys and values, and the draft that guesses tokens.
    SessionOptions session_options = options_.session;
    session_options.draft = open_draft(options_.draft, options_.model, quiet);
    Session session(weights, session_options);
    load_seconds_ = loading.seconds();
    // Tokenize the prompt, and compute it: the session then has scores for the next token.
    const std::vector<TokenId> prompt = encode_prompt(session);
    const Stopwatch prompting;
    feed(session, prompt);
    prompt_speed_ = {prompt.size(), prompting.seconds()};
    // Sample a token by the scores, print it, and compute the next scores, until the text ends (generate() below).
    if (options_.logits) {
      print_logits(session, prompt);
    } else if (options_.json) {
      print_json(session, prompt);
    } else {
      print_text(session, prompt);
    }
    if (is_full_ && !quiet)
      print_message(fmt::format("note: stopped: the context is full ({} tokens)", session.context()));
    if (options_.stats) print_stats(session.draft_counts());
  }

 private:
  // Prints a note about options that have no effect without generation.
  void print_unused_options() const {
    const char* const what = options_.logits ? "--logits" : options_.perplexity.file.empty() ? nullptr : "--perplexity";
    if (what == nullptr || options_.progress.quiet) return;
    std::vector<std::string> names;
    for (const CLI::Option* option : options_.generate_options) {
      if (option->count() > 0) names.push_back(option->get_name());
    }
    if (!names.empty())
      print_message(fmt::format("note: {} generates no text, so {} {} no effect", what, fmt::join(names, ", "),
                                names.size() == 1 ? "has" : "have"));
  }

  // Throws for --template and --parse-special without a conversation or --prompts.
  void require_conversation() const {
    if (options_.conversation.is_given() || !options_.prompts.file.empty()) return;
    if (!options_.conversation.template_file.empty())
      throw CLI::RequiresError("--template", "--messages, --system or --prompts");
    if (options_.conversation.parse_special)
      throw CLI::RequiresError("--parse-special", "--messages, --system or --prompts");
  }

  void answer_prompts(const std::shared_ptr<const Weights>& weights, const Stopwatch& loading) {
    load_seconds_ = loading.seconds();
    const Stopwatch generating;
    PromptsOptions prompts = options_.prompts;
    prompts.split = options_.model.split;
    prompts.inputs = options_.model.list_files();
    prompts.inputs.insert(prompts.inputs.end(), opened_.begin(), opened_.end());
    if (!options_.conversation.template_file.empty()) prompts.inputs.emplace_back(options_.conversation.template_file);
    const PromptsSummary summary = run_prompts(prompts, options_.conversation, weights, options_.session, generate_);
    if (summary.kept > 0 && !options_.progress.quiet)
      print_message(fmt::format(
          "note: {} of {} kept", format_count(summary.kept, "answer"),
          make_printable(make_partial_name(options_.prompts.output)) + (summary.kept == 1 ? " was" : " were")));
    if (!options_.stats) return;
    const Speed speed = {summary.tokens, generating.seconds()};
    print_to_stderr(fmt::format("load {:.1f} ms; {}, {} tokens, {:.1f} tokens/s of all together\n",
                                load_seconds_ * 1000, format_count(summary.texts, "text"), summary.tokens,
                                speed.compute_rate()));
  }

  void compute_perplexity(const std::shared_ptr<const Weights>& weights, const Stopwatch& loading) {
    std::shared_ptr<const Weights> base;
    if (const std::string& path = options_.perplexity.against; !path.empty()) {
      if (options_.verify) require_verified(path);
      add_path_to_errors(path, [&] {
        base = options_.model.load(open_runnable_model(path, options_.model.read, options_.progress.quiet));
      });
    }
    load_seconds_ = loading.seconds();
    const Stopwatch computing;
    const std::size_t tokens =
        print_perplexity(options_.perplexity, weights, base, options_.session, options_.json, options_.progress);
    if (!options_.stats) return;
    const Speed speed = {tokens, computing.seconds()};
    print_to_stderr(fmt::format("load {:.1f} ms; {} tokens, {:.1f} tokens/s\n", load_seconds_ * 1000, speed.tokens,
                                speed.compute_rate()));
  }

  void require_verified(const std::string& path) const {
    const VerifyReport report = verify(path, options_.model.read, make_progress(options_.progress, "verify"));
    if (report.errors() == 0) return;
    for (const Finding& finding : report.faults) {
      if (finding.severity == Severity::error)
        print_message(fmt::format("{}: {}", make_printable(path), format_finding(finding, path)));
    }
    throw ExitCode{1};
  }

  std::vector<TokenId> encode_prompt(const Session& session) const {
    if (!options_.tokens.empty()) return options_.tokens;
    if (options_.conversation.is_given()) {
      auto tokens = session.tokenizer().encode(read_chat_text(options_.conversation, session.tokenizer()));
      if (tokens.empty())
        throw options_.conversation.make_error("the chat template renders the conversation to an empty text");
      return tokens;
    }
    std::vector<TokenId> tokens = session.prompt(options_.prompt.value_or(""));
    if (tokens.empty())
      throw Error(ErrorKind::bad_argument,
                  "the prompt is empty, and the vocabulary has no BOS token to begin with; use -p or --tokens");
    return tokens;
  }

  // Computes the prompt. If a conversation does not fit the context, the error names the conversation's file.
  void feed(Session& session, const std::vector<TokenId>& prompt) const {
    try {
      session.feed(prompt);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::bad_argument || !options_.conversation.is_given()) throw;
      throw options_.conversation.make_error(error.message());
    }
  }

  Generation generate(Session& session, const std::function<void(TokenId)>& use) {
    const std::size_t before = session.position();
    const Stopwatch generating;
    Generation generation = session.generate(generate_, [&](TokenId token) {
      use(token);
      return true;
    });
    decode_speed_ = {session.position() - before, generating.seconds()};
    is_full_ = generation.reason == StopReason::context_full;
    return generation;
  }

  void print_text(Session& session, const std::vector<TokenId>& prompt) {
    if (!session.has_tokenizer()) return print_ids(session, prompt);
    if (!options_.conversation.is_given()) {  // a conversation prints its answer only
      TextStream before(session.tokenizer());
      std::string text;
      for (const TokenId token : prompt) text += before.add(token);
      print_generated(text);
    }
    ContinuationStream stream(session.tokenizer(), prompt, generate_.stop);
    generate(session, [&](TokenId token) { print_generated(stream.add(token)); });
    print_generated(stream.finish() + "\n");
  }

  // Prints the ids of tokens as the option --tokens takes them.
  void print_ids(Session& session, const std::vector<TokenId>& prompt) {
    print_now(fmt::format("{}", fmt::join(prompt, ",")));
    generate(session, [](TokenId token) { print_now(fmt::format(",{}", token)); });
    print_now("\n");
  }

  void print_json(Session& session, const std::vector<TokenId>& prompt) {
    std::optional<ContinuationStream> stream;
    if (session.has_tokenizer()) stream.emplace(session.tokenizer(), prompt, generate_.stop);
    std::string text;
    Value::Array log_probabilities;
    const Generation generation = generate(session, [&](TokenId token) {
      if (stream) text += stream->add(token);
      if (options_.top_logprobs) log_probabilities.emplace_back(list_log_probabilities(session, token));
    });
    if (stream) text += stream->finish();
    const auto make_array = [](const std::vector<TokenId>& tokens) {
      return Value::Array(tokens.begin(), tokens.end());
    };
    Attributes answer = {{"prompt_tokens", make_array(prompt)},
                         {"tokens", make_array(generation.tokens)},
                         {"text", stream ? Value(text) : Value()},
                         {"finish_reason", finish_reason(generation.reason)},
                         {"counts", Attributes{{"prompt", std::uint64_t{prompt.size()}},
                                               {"generated", std::uint64_t{generation.tokens.size()}}}}};
    if (options_.top_logprobs) answer.set("logprobs", std::move(log_probabilities));
    answer.set("load_ms", round_to_thousandths(load_seconds_ * 1000));
    answer.set("prompt_tokens_per_second", round_to_thousandths(prompt_speed_.compute_rate()));
    answer.set("decode_tokens_per_second", round_to_thousandths(decode_speed_.compute_rate()));
    print_now(to_json(answer) + "\n");
  }

  // Returns the log probabilities of the chosen token and of the best ones, before sampling options change the scores.
  Attributes list_log_probabilities(const Session& session, TokenId chosen) const {
    const auto make_entry = [&](TokenId token, double log_probability) {
      Attributes made = {{"id", std::uint64_t{static_cast<std::uint32_t>(token)}}, {"logprob", log_probability}};
      const bool has_piece =
          session.has_tokenizer() && static_cast<std::size_t>(token) < session.tokenizer().vocabulary().size();
      if (has_piece) made.set("piece", session.tokenizer().piece(token));
      return made;
    };
    Value::Array best;
    for (const auto& [token, log_probability] : top_log_probabilities(session.logits(), *options_.top_logprobs))
      best.emplace_back(make_entry(token, log_probability));
    Attributes of_chosen = make_entry(chosen, log_probability(session.logits(), chosen));
    of_chosen.set("top", std::move(best));
    return of_chosen;
  }

  void print_logits(const Session& session, const std::vector<TokenId>& prompt) const {
    const std::span<const float> all = session.logits();
    const auto bad = std::ranges::find_if(all, [](float logit) { return !std::isfinite(logit); });
    if (bad != all.end())
      refuse_non_finite(fmt::format("the score of token {}", bad - all.begin()), static_cast<double>(*bad),
                        options_.model.path);
    std::string logits;
    for (const float logit : all) logits += fmt::format("{}{:.6f}", logits.empty() ? "" : ", ", logit);
    print_now(fmt::format("{{\"tokens\": [{}], \"logits\": [{}]}}\n", fmt::join(prompt, ", "), logits));
  }

  void print_stats(const DraftCounts& draft) const {
    const std::string speed = fmt::format(
        "load {:.1f} ms; prompt {} tokens, {:.1f} tokens/s; decode {} tokens, {:.1f} tokens/s\n", load_seconds_ * 1000,
        prompt_speed_.tokens, prompt_speed_.compute_rate(), decode_speed_.tokens, decode_speed_.compute_rate());
    print_to_stderr(speed);
    if (!options_.draft.empty())
      print_to_stderr(fmt::format("draft {} guesses, {} right\n", draft.guessed, draft.right));
  }

  const RunArguments& options_;
  GenerateOptions generate_;  // options_.generate, with the settings of the model's files
  double load_seconds_ = 0;
  Speed prompt_speed_;
  Speed decode_speed_;
  std::vector<std::filesystem::path> opened_;  // files of the model
  bool is_full_ = false;                       // true: the text ended because the context is full
};

// Reads the prompt from the file of -f, or from standard input for "-". Without another input, reads standard input if
// it is a file or a pipe. With --system, the prompt becomes the user's message of the conversation.
void read_prompt(RunArguments& options) {
  const bool has_other = !options.tokens.empty() || !options.conversation.messages.empty() ||
                         !options.prompts.file.empty() || !options.perplexity.file.empty();
  if (!options.prompt_file.empty()) {
    options.prompt = read_prompt_file(options.prompt_file);
  } else if (options.prompt == "-" || (!options.prompt && !has_other && has_piped_input())) {
    options.prompt = read_prompt_file("-");
  }
  if (!options.conversation.system) return;
  if (!options.prompt) throw CLI::RequiresError("--system", "a prompt: TEXT, -p or -f");
  options.conversation.prompt = *options.prompt;
}

}  // namespace

void add_run_command(CLI::App& app) {
  auto options = std::make_shared<RunArguments>();
  CLI::App* command = app.add_subcommand("run", "Continue a prompt with a model");
  command->add_option("PATH", options->model.path, "A model file or directory")->required();
  auto* text = command->add_option("TEXT", options->prompt,
                                   "The text to continue, after BOS if the vocabulary has one; - is standard input, "
                                   "which is also read without a prompt if it is a file or a pipe (default: \"\")");
  auto* prompt = command->add_option("-p,--prompt", options->prompt, "The same as TEXT")->type_name("TEXT");
  auto* file = command
                   ->add_option("-f,--file", options->prompt_file,
                                "A file with the text, whose last line break is left out; - is standard input")
                   ->check(make_nonempty_check())
                   ->type_name("FILE");
  text->excludes(prompt)->excludes(file);
  prompt->excludes(file);
  auto* system = command
                     ->add_option("--system", options->conversation.system,
                                  "Send this system message (unless it is empty) and the prompt as a conversation, "
                                  "rendered with the model's chat template; print the answer alone")
                     ->type_name("TEXT");
  auto* tokens = add_parsed_list_option(
      *command, "--tokens", "IDS",
      "Token ids to continue, in place of a text: 1,2,3; no special tokens are added. A model without "
      "a vocabulary prints ids",
      [options](const std::string& ids) {
        std::ranges::copy(parse_tokens("--tokens", ids), std::back_inserter(options->tokens));
      });
  auto* messages = add_conversation_options(*command, options->conversation, false);
  auto* prompts = add_prompts_options(*command, options->prompts);
  for (auto* const other : {tokens, messages, prompts}) {
    for (auto* const given : {text, prompt, file, system}) other->excludes(given);
  }
  messages->excludes(tokens);
  prompts->excludes(tokens);
  options->generate_options = add_generate_options(*command, options->generate);
  add_session_options(*command, options->session);
  auto* draft = add_draft_option(*command, options->draft);
  auto* logits =
      command->add_flag("--logits", options->logits,
                        "Print {\"tokens\", \"logits\"}: the prompt and the scores of the token after it, by id");
  draft->excludes(prompts)->excludes(logits);
  auto* perplexity = add_perplexity_options(*command, options->perplexity);
  for (auto* const other : {draft, text, prompt, file, system, tokens, messages, prompts, logits})
    perplexity->excludes(other);
  auto* json =
      command
          ->add_flag("--json", options->json,
                     "Print {\"prompt_tokens\", \"tokens\", \"text\", \"finish_reason\", ...}; \"text\" is the "
                     "continuation alone")
          ->excludes(logits);
  prompts->excludes(json)->excludes(logits)->excludes(messages);
  add_number_option(
      *command, "--top-logprobs", options->top_logprobs,
      "With --json: print the logarithm of each token's probability, and those of the K best tokens in its place",
      {0, 1000})
      ->type_name("K")
      ->needs(json)
      ->excludes(perplexity);
  command->add_flag(
      "--verify", options->verify,
      "Check the files first, as `poise verify` does, and refuse those with errors; without it, they are trusted");
  command->add_flag("--stats", options->stats, "Print load, prompt and decode speed on standard error");
  add_progress_options(*command, options->progress, "No progress and no notes");
  add_model_options(*command, options->model);
  command->callback([options] {
    read_prompt(*options);
    add_path_to_errors(options->model.path, [&] { Run(*options).execute(); });
  });
}

}  // namespace poise::cli
