// poise run: a prompt in, its continuation out, token by token.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <poise/error.hpp>
#include <poise/format.hpp>
#include <poise/session.hpp>
#include <poise/verify.hpp>

#include "cli/advice.hpp"
#include "cli/commands.hpp"
#include "cli/options.hpp"
#include "cli/progress.hpp"
#include "cli/text.hpp"
#include "cli/values.hpp"
#include "io/meter.hpp"
#include "io/source_text.hpp"

namespace poise::cli {
namespace {

struct RunArguments {
  std::string path;
  std::optional<std::string> prompt;
  std::vector<TokenId> tokens;
  GenerateOptions generate;
  SessionOptions session;
  ReadOptions read;
  TokenizerFiles tokenizer;
  ProgressOptions progress;
  std::string perplexity;  // a text file
  bool verify = false;
  bool logits = false;
  bool json = false;
  bool stats = false;
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

  double tokens_per_second() const { return tokens == 0 || seconds <= 0 ? 0 : static_cast<double>(tokens) / seconds; }
};

// Writes and flushes, so that text is seen when it is made. Throws what fmt::print() throws.
void print(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) return;
  throw std::system_error(errno, std::generic_category());
}

// "1,2,3"
std::vector<TokenId> parse_tokens(const std::string& text) {
  std::vector<TokenId> tokens;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const auto token = number_from<TokenId>(std::string_view(text).substr(begin, end - begin));
    if (!token || *token < 0) refuse("--tokens", text, "token ids with commas between them");
    tokens.push_back(*token);
    begin = end + 1;
  }
  return tokens;
}

// JSON has no such numbers.
[[noreturn]] void refuse_what_is_not_finite(const std::string& what, double value, const std::string& path) {
  const char* const name = std::isnan(value) ? "NaN" : value > 0 ? "infinite" : "minus infinity";
  throw Error(ErrorKind::unsupported,
              fmt::format("{} is {}: the weights hold values that are not finite, or overflow", what, name), path);
}

double rounded(double value) { return std::round(value * 1000) / 1000; }

class Run {
 public:
  explicit Run(const RunArguments& options) : options_(options) {}

  void execute() {
    (void)Sampler(options_.generate.sampling);  // refuses what makes no sense before anything takes time
    if (options_.verify) require_verified();
    const Stopwatch loading;
    Model model = open(options_.path, options_.read);
    if (auto vocabulary = options_.tokenizer.read()) model.vocabulary = std::move(vocabulary);
    Session session(model, options_.session);
    load_seconds_ = loading.seconds();
    (void)session.generate({.max_tokens = 0,
                            .sampling = options_.generate.sampling,
                            .stop_id = options_.generate.stop_id});  // refuses a wrong stop id
    if (!options_.perplexity.empty()) return print_perplexity(session);
    const std::vector<TokenId> prompt = prompt_tokens(session);
    const Stopwatch prompting;
    session.feed(prompt);
    prompt_speed_ = {prompt.size(), prompting.seconds()};
    if (options_.logits) {
      print_logits(session, prompt);
    } else if (options_.json) {
      print_json(session, prompt);
    } else {
      print_text(session, prompt);
    }
    if (is_full_ && !options_.progress.quiet)
      complain(fmt::format("note: the text ends here, for the context of {} positions is full", session.context()));
    if (options_.stats) print_stats();
  }

 private:
  void require_verified() const {
    const VerifyReport report = verify(options_.path, options_.read, make_progress(options_.progress, "verify"));
    if (report.errors() == 0) return;
    for (const Finding& finding : report.faults) {
      if (finding.severity == Severity::error)
        complain(fmt::format("{}: {}", printable(options_.path), finding_text(finding, options_.path)));
    }
    throw ExitCode{1};
  }

  std::vector<TokenId> prompt_tokens(const Session& session) const {
    if (!options_.tokens.empty()) return options_.tokens;
    std::vector<TokenId> tokens = session.prompt(options_.prompt.value_or(""));
    if (tokens.empty())
      throw Error(ErrorKind::bad_argument,
                  "the prompt is empty, and the vocabulary has no BOS token to begin with; use -p or --tokens");
    return tokens;
  }

  Generation generate(Session& session, const std::function<void(TokenId)>& use) {
    const std::size_t before = session.position();
    const Stopwatch generating;
    Generation generation = session.generate(options_.generate, [&](TokenId token) {
      use(token);
      return true;
    });
    decode_speed_ = {session.position() - before, generating.seconds()};
    is_full_ = generation.reason == StopReason::context_full;
    return generation;
  }

  void print_text(Session& session, const std::vector<TokenId>& prompt) {
    if (!session.has_tokenizer()) return print_ids(session, prompt);
    TextStream stream(session.tokenizer());
    const bool terminal = ::isatty(STDOUT_FILENO) == 1;
    // A model must not be able to drive the terminal with control characters.
    const auto show = [&](const std::string& text) { print(terminal ? printable_lines(text) : text); };
    std::string text;
    for (const TokenId token : prompt) text += stream.add(token);
    show(text);
    generate(session, [&](TokenId token) { show(stream.add(token)); });
    show(stream.finish() + "\n");
  }

  // In the form that --tokens takes.
  void print_ids(Session& session, const std::vector<TokenId>& prompt) {
    print(fmt::format("{}", fmt::join(prompt, ",")));
    generate(session, [](TokenId token) { print(fmt::format(",{}", token)); });
    print("\n");
  }

  void print_json(Session& session, const std::vector<TokenId>& prompt) {
    std::optional<TextStream> stream;
    if (session.has_tokenizer()) stream.emplace(session.tokenizer());
    for (const TokenId token : prompt) {
      if (stream) stream->add(token);
    }
    std::string text;
    const Generation generation = generate(session, [&](TokenId token) {
      if (stream) text += stream->add(token);
    });
    if (stream) text += stream->finish();
    const auto array = [](const std::vector<TokenId>& tokens) { return Value::Array(tokens.begin(), tokens.end()); };
    print(to_json(Attributes{{"prompt_tokens", array(prompt)},
                             {"tokens", array(generation.tokens)},
                             {"text", stream ? Value(text) : Value()},
                             {"load_ms", rounded(load_seconds_ * 1000)},
                             {"prompt_tokens_per_second", rounded(prompt_speed_.tokens_per_second())},
                             {"decode_tokens_per_second", rounded(decode_speed_.tokens_per_second())}}) +
          "\n");
  }

  void print_logits(const Session& session, const std::vector<TokenId>& prompt) const {
    const std::span<const float> all = session.logits();
    const auto bad = std::ranges::find_if(all, [](float logit) { return !std::isfinite(logit); });
    if (bad != all.end())
      refuse_what_is_not_finite(fmt::format("the score of token {}", bad - all.begin()), static_cast<double>(*bad),
                                options_.path);
    std::string logits;
    for (const float logit : all) logits += fmt::format("{}{:.6f}", logits.empty() ? "" : ", ", logit);
    print(fmt::format("{{\"tokens\": [{}], \"logits\": [{}]}}\n", fmt::join(prompt, ", "), logits));
  }

  // Each text of the file is one sequence: BOS, its tokens, EOS.
  void print_perplexity(Session& session) const {
    const SourcePtr source = Source::open(options_.perplexity, IoMode::read);
    const std::string content = read_text(*source, source->size());
    const TokenId eos = session.tokenizer().vocabulary().eos_id;
    double total = 0;
    std::size_t count = 0;
    std::size_t texts = 0;
    const std::vector<std::string> all = split_texts(content);
    Meter meter(make_progress(options_.progress, "perplexity"), sum_of_sizes(all));
    for (const std::string& text : all) {
      std::vector<TokenId> tokens = session.prompt(text);
      if (eos >= 0) tokens.push_back(eos);
      ++texts;
      const std::vector<double> log_probabilities = session.log_probabilities(tokens);
      for (std::size_t i = 0; i < log_probabilities.size(); ++i) {
        const double one = log_probabilities[i];
        if (!std::isfinite(one)) {
          refuse_what_is_not_finite(fmt::format("text {}: the logarithm of the probability of token {}, which is {},",
                                                texts, i + 1, tokens[i + 1]),
                                    one, options_.path);
        }
        total -= one;
        ++count;
      }
      meter.advance(text.size(), fmt::format("text {}", texts));
    }
    if (count == 0) throw Error(ErrorKind::invalid_file, "there is no text in this file", options_.perplexity);
    const double perplexity = std::exp(total / static_cast<double>(count));
    if (!std::isfinite(perplexity)) refuse_what_is_not_finite("the perplexity", perplexity, options_.path);
    print(to_json(Attributes{
              {"texts", std::uint64_t{texts}}, {"tokens", std::uint64_t{count}}, {"perplexity", perplexity}}) +
          "\n");
  }

  static std::size_t sum_of_sizes(const std::vector<std::string>& texts) {
    std::size_t sum = 0;
    for (const std::string& text : texts) sum += text.size();
    return sum;
  }

  // Texts are separated by empty lines. Lines may end with a carriage return, which belongs to no text.
  static std::vector<std::string> split_texts(std::string_view content) {
    std::vector<std::string> texts;
    bool goes_on = false;
    while (!content.empty()) {
      const std::size_t end = std::min(content.find('\n'), content.size());
      std::string_view line = content.substr(0, end);
      content.remove_prefix(std::min(end + 1, content.size()));
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (line.empty()) {
        goes_on = false;
      } else if (goes_on) {
        (texts.back() += '\n') += line;
      } else {
        texts.emplace_back(line);
        goes_on = true;
      }
    }
    return texts;
  }

  void print_stats() const {
    const std::string speed =
        fmt::format("load {:.1f} ms; prompt {} tokens, {:.1f} tokens/s; decode {} tokens, {:.1f} tokens/s\n",
                    load_seconds_ * 1000, prompt_speed_.tokens, prompt_speed_.tokens_per_second(), decode_speed_.tokens,
                    decode_speed_.tokens_per_second());
    say(speed);
  }

  const RunArguments& options_;
  double load_seconds_ = 0;
  Speed prompt_speed_;
  Speed decode_speed_;
  bool is_full_ = false;  // the context
};

}  // namespace

void add_run(CLI::App& app) {
  auto options = std::make_shared<RunArguments>();
  CLI::App* command = app.add_subcommand("run", "Continue a prompt with a model");
  command->add_option("PATH", options->path, "A model file or directory")->required();
  auto* prompt =
      command->add_option("-p,--prompt", options->prompt,
                          "The text to continue, after BOS where the vocabulary has one; may be empty (default: \"\")");
  const auto set_tokens = [options](const std::vector<std::string>& texts) {
    for (const std::string& text : texts) std::ranges::copy(parse_tokens(text), std::back_inserter(options->tokens));
  };
  auto* tokens = command
                     ->add_option_function<std::vector<std::string>>(
                         "--tokens", set_tokens,
                         "Token ids to continue instead, as they are: 1,2,3. Without a vocabulary, ids are printed")
                     ->type_name("IDS");
  tokens->excludes(prompt);
  add_number(*command, "-n,--max-tokens", options->generate.max_tokens, "Tokens to generate at most; EOS ends earlier");
  SamplingOptions& sampling = options->generate.sampling;
  add_number(*command, "--temperature", sampling.temperature,
             "0 always takes the best token; 1 samples as the model was trained");
  add_number(*command, "--top-p", sampling.top_p, "Sample among the fewest tokens with this probability together");
  add_number(*command, "--top-k", sampling.top_k, "Sample among the k best tokens; 0: all", {0});
  add_number(*command, "--seed", sampling.seed, "The same seed gives the same text");
  auto* stop_id = add_number(*command, "--stop-id", options->generate.stop_id,
                             "The token that ends the text, instead of those that the model's files name", {0})
                      ->type_name("ID");
  command
      ->add_flag("--ignore-eos", options->generate.ignore_eos,
                 "No token ends the text: it goes on to --max-tokens, or to the end of the context")
      ->excludes(stop_id);
  add_number(*command, "--threads", options->session.threads, "Threads at most; 0: one per processor");
  command->add_flag(
      "--exact", options->session.exact,
      "Multiply in float32 however weights are stored, and round nothing to integers: slower, for comparisons");
  auto* logits =
      command->add_flag("--logits", options->logits,
                        "Print {\"tokens\", \"logits\"}: the prompt and the scores of the token after it, by id");
  command
      ->add_option("--perplexity", options->perplexity,
                   "Print {\"texts\", \"tokens\", \"perplexity\"} of the texts in a file, which are separated by empty "
                   "lines, each between BOS and EOS")
      ->check(not_empty())
      ->type_name("FILE")
      ->excludes(prompt)
      ->excludes(tokens)
      ->excludes(logits);
  command
      ->add_flag(
          "--json", options->json,
          "Print {\"prompt_tokens\", \"tokens\", \"text\", \"load_ms\", ...}; \"text\" is the continuation alone")
      ->excludes(logits);
  command->add_flag(
      "--verify", options->verify,
      "Check the files first, as `poise verify` does, and refuse those with errors; without it, they are trusted");
  command->add_flag("--stats", options->stats, "Print load, prompt and decode speed on standard error");
  add_progress_options(*command, options->progress,
                       "No progress of --verify and --perplexity, and no note where the context ends a text");
  add_tokenizer_options(*command, options->tokenizer);
  add_io_option(*command, options->read);
  command->callback([options] { name_file(options->path, [&] { Run(*options).execute(); }); });
}

}  // namespace poise::cli
