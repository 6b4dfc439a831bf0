#include "cli/model_options.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <random>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <poise/error.hpp>
#include <poise/remote.hpp>
#include <poise/sampling_defaults.hpp>

#include "cli/advice.hpp"
#include "cli/cluster.hpp"
#include "cli/standard_input.hpp"
#include "cli/text.hpp"
#include "cli/values.hpp"
#include "formats/format.hpp"
#include "formats/input.hpp"
#include "io/file_descriptor.hpp"
#include "io/streams.hpp"
#include "kernels/cache_type.hpp"
#include "model/same_headers.hpp"
#include "runtime/stop_texts.hpp"

namespace poise::cli {

Model open_runnable_model(const std::string& path, const ReadOptions& options, bool quiet) {
  Model model = cli::open_model(path, options);
  if (model.config || is_stream_or_url(path)) return model;
  std::optional<Model> whole = open_with_directory(path, model.origin.format, options);
  if (!whole) return model;
  if (!quiet)
    print_message(fmt::format("note: {} states no configuration: using config.json and the tokenizer next to it",
                              make_printable(std::filesystem::path(path).filename().string())));
  return *std::move(whole);
}

Model ModelOptions::open_model(bool quiet) const {
  Model model = open_runnable_model(path, read, quiet);
  if (!lora.empty()) model = with_lora(model, lora);
  if (auto vocabulary = tokenizer.read()) model.vocabulary = std::move(vocabulary);
  return model;
}

std::shared_ptr<const Weights> ModelOptions::load(const Model& model) const {
  for (const LoraAdapter& adapter : lora) require_same_bytes(adapter.path, get_cluster());
  return load_weights(model, Ranks{&get_cluster(), split});
}

std::vector<std::filesystem::path> ModelOptions::list_files() const {
  std::vector<std::filesystem::path> all = {path};
  for (const LoraAdapter& adapter : lora) all.push_back(adapter.path);
  for (const std::string& file : {tokenizer.vocab, tokenizer.merges}) {
    if (!file.empty()) all.emplace_back(file);
  }
  for (std::size_t i = 0, given = all.size(); i < given; ++i) {
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(all[i], ignored)) all.push_back(entry.path());
  }
  return all;
}

void add_model_options(CLI::App& command, ModelOptions& options) {
  add_tokenizer_options(command, options.tokenizer);
  add_lora_option(command, options.lora);
  add_io_option(command, options.read);
  add_choice_option(
      command, "--split", options.split,
      std::vector<std::pair<std::string_view, RankSplit>>{{"heads", RankSplit::heads}, {"layers", RankSplit::layers}},
      "With several ranks (poise-mpi): each has a share of every matrix (heads), or whole layers, for slow networks")
      ->default_str("heads");
}

namespace {

constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();

// Parses the value of --logit-bias, "ID=X": a token and the number to add to its score.
std::pair<TokenId, float> parse_bias(const std::string& text) {
  const std::size_t equals = text.find('=');
  const auto id = parse_number_text<TokenId>(std::string_view(text).substr(0, equals));
  const auto bias =
      equals == std::string::npos ? std::nullopt : parse_number_text<float>(std::string_view(text).substr(equals + 1));
  if (!id || *id < 0 || !bias) refuse("--logit-bias", text, "a token's id and the number to add to its score: 15=-2.5");
  return {*id, *bias};
}

void add_sampling_options(CLI::App& command, SamplingOptions& sampling) {
  constexpr const char* kGroup = "Sampling";
  add_number_option(
      command, "--temp,--temperature", sampling.temperature,
      "0 picks the best token each time, 1 samples as the model was trained. The model's files may set the "
      "defaults of this and the next four options")
      ->group(kGroup);
  add_number_option(command, "--top-k", sampling.top_k, "Sample among the k best tokens; 0: all", {0})->group(kGroup);
  add_number_option(command, "--top-p", sampling.top_p, "Sample among the fewest tokens with this probability together")
      ->group(kGroup);
  add_number_option(command, "--min-p", sampling.min_p,
                    "Sample among tokens with at least this share of the best one's probability")
      ->group(kGroup);
  add_number_option(command, "--repeat-penalty,--repetition-penalty", sampling.repetition_penalty,
                    "Lower the scores of tokens that the prompt or the text already has; 1: off")
      ->group(kGroup);
  add_number_option(command, "--presence-penalty", sampling.presence_penalty,
                    "Subtract this from the scores of tokens that were already generated")
      ->group(kGroup);
  add_number_option(command, "--frequency-penalty", sampling.frequency_penalty,
                    "Subtract this for each time that a token was generated")
      ->group(kGroup);
  add_parsed_list_option(command, "--logit-bias", "ID=X",
                         "Add a number to a token's score, before all other options; may be repeated",
                         [&sampling](const std::string& text) { sampling.logit_bias.push_back(parse_bias(text)); })
      ->group(kGroup);
  const auto set_seed = [&sampling](const std::string& text) {
    if (text == "random") {
      std::random_device device;
      sampling.seed = share_number((std::uint64_t{device()} << 32) | device());
    } else {
      const auto number = parse_number_text<std::uint64_t>(text);
      if (!number) refuse("--seed", text, "a whole number from 0 to 18446744073709551615, or random");
      sampling.seed = *number;
    }
  };
  add_parsed_option(command, "--seed", "N|random", "The same seed gives the same text; random: a new seed each time",
                    set_seed)
      ->default_str("0")
      ->group(kGroup);
}

}  // namespace

std::vector<const CLI::Option*> add_generate_options(CLI::App& command, GenerateOptions& options) {
  const std::size_t before = command.get_options().size();
  const auto set_max_tokens = [&options](const std::string& text) {
    const auto number = parse_number_text<std::size_t>(text);
    if (!number && text != "-1") refuse("--max-tokens", text, "a whole number, or -1 for no limit");
    options.max_tokens = number.value_or(kNoLimit);
  };
  add_parsed_option(
      command, "-n,--max-tokens", "N",
      "The largest number of tokens to generate; an end token ends the text earlier. -1: no limit but the "
      "context",
      set_max_tokens)
      ->default_str(std::to_string(options.max_tokens));
  add_sampling_options(command, options.sampling);
  command.add_option("--stop", options.stop, "Stop before this text; may be repeated")
      ->check(make_nonempty_check())
      ->type_name("TEXT")
      ->take_all()
      ->allow_extra_args(false);
  auto* stop_id = add_number_option(command, "--stop-id", options.stop_id,
                                    "The token that ends the text, instead of those that the model's files name", {0})
                      ->type_name("ID");
  command
      .add_flag("--ignore-eos", options.ignore_eos,
                "Do not stop at end tokens: go on to --max-tokens, or until the context is full")
      ->excludes(stop_id);
  const std::vector<CLI::Option*> all = command.get_options();
  return {all.begin() + static_cast<std::ptrdiff_t>(before), all.end()};
}

void use_sampling_defaults(const Model& model, const std::vector<const CLI::Option*>& given, SamplingOptions& sampling,
                           bool quiet) {
  const auto is_given = [&](std::string_view name) {
    return std::ranges::any_of(given, [&](const CLI::Option* option) {
      return option->count() > 0 && option->check_lname(std::string(name));
    });
  };
  const SamplingDefaults defaults = read_sampling_defaults(model);
  std::vector<std::string> used;
  const auto use = [&](const char* name, const auto& stated, auto& value) {
    if (!stated || is_given(name) || *stated == value) return;
    value = *stated;
    used.push_back(fmt::format("{} {}", name, value));
  };
  use("temperature", defaults.temperature, sampling.temperature);
  if (sampling.temperature > 0) {
    use("top-k", defaults.top_k, sampling.top_k);
    use("top-p", defaults.top_p, sampling.top_p);
    use("min-p", defaults.min_p, sampling.min_p);
  }
  use("repetition-penalty", defaults.repetition_penalty, sampling.repetition_penalty);
  if (quiet) return;
  if (!used.empty()) {
    const bool is_temperature = used.front().starts_with("temperature");
    print_message(fmt::format("note: sampling settings from {}: {}{}", defaults.source, fmt::join(used, ", "),
                              is_temperature ? "; --temperature 0 picks the best token each time" : ""));
  }
  std::vector<std::string> ignored = defaults.ignored;
  if (sampling.temperature > 0) std::ranges::copy(defaults.ignored_when_sampling, std::back_inserter(ignored));
  if (!ignored.empty())
    print_message(fmt::format("note: Poise ignores {} of {}", fmt::join(ignored, ", "), defaults.source));
}

void add_session_options(CLI::App& command, SessionOptions& options) {
  add_number_option(command, "--threads", options.threads, "The largest number of threads; 0: one per processor");
  add_number_option(
      command, "--context", options.context,
      "Longest text in tokens, which sets the memory of its keys and values; 0: the longest that the model allows");
  command.add_flag("--exact", options.exact,
                   "Multiply in float32, without rounding to integers: slower, for comparisons");
  std::vector<std::pair<std::string_view, CacheType>> caches;
  for (const CacheTypeRow& row : list_cache_types()) caches.emplace_back(row.name, row.type);
  add_choice_option(
      command, "--cache", options.cache, caches,
      "Type of the cached keys and values: 4, 2 or 1.125 bytes per number (default: f16; with --exact f32)");
}

CLI::Option* add_draft_option(CLI::App& command, std::string& draft) {
  return add_text_option(command, "--draft", draft, "MODEL|lookup",
                         "Guess tokens and check several at once: with a faster model of the same vocabulary, or from "
                         "repetitions in the text (lookup)");
}

std::optional<DraftOptions> open_draft(const std::string& draft, const ModelOptions& options, bool quiet) {
  if (draft.empty()) return std::nullopt;
  DraftOptions result;
  if (draft != "lookup")
    add_path_to_errors(draft, [&] { result.model = options.load(open_runnable_model(draft, options.read, quiet)); });
  return result;
}

void check_generate_options(const GenerateOptions& options) {
  (void)Sampler(options.sampling);
  (void)StopTexts(options.stop);
}

namespace {

bool is_pipe(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISFIFO(status.st_mode);
}

SourcePtr read_standard_input() {
  require_one_rank("a model from standard input");
  claim_standard_input();
  if (::isatty(STDIN_FILENO) != 0)
    throw Error(ErrorKind::bad_argument,
                "\"-\" reads a model from standard input, which is a terminal; redirect a file or a pipe to it");
  return read_stream(STDIN_FILENO, "standard input");
}

SourcePtr read_pipe(const std::string& path) {
  require_one_rank("a model from a pipe");
  const FileDescriptor pipe(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!pipe) throw_system_error("open", path);
  return read_stream(pipe.get(), path);
}

}  // namespace

bool is_stream_or_url(const std::string& path) { return path == "-" || is_url(path) || is_pipe(path); }

Input open_input(const std::string& path, const ReadOptions& options) {
  if (!is_stream_or_url(path)) return poise::open_input(path, options);
  SourcePtr source = path == "-" ? read_standard_input() : is_url(path) ? open_url(path) : read_pipe(path);
  const std::filesystem::path name = source->name();
  return {name, std::move(source), false};
}

Model open_model(const std::string& path, const ReadOptions& options) {
  return open_with_format(open_input(path, options), options).model;
}

}  // namespace poise::cli
