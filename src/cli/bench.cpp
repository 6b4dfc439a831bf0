// poise bench: measures how many tokens a second a model computes, and the share of the memory's speed that it uses.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <hwy/highway.h>

#include <poise/session.hpp>

#include "cli/commands.hpp"
#include "cli/model_options.hpp"
#include "cli/text.hpp"
#include "cli/values.hpp"
#include "family/decoder_family.hpp"
#include "kernels/tiles.hpp"
#include "runtime/read_rate.hpp"

namespace poise::cli {
namespace {

struct BenchArguments {
  ModelOptions model;
  SessionOptions session;
  std::size_t prompt = 512;
  std::size_t generated = 64;
  std::size_t depth = 0;
  std::size_t rounds = 5;
  bool json = false;
  bool quiet = false;
};

// Holds the size of a model, and the part of it that one token needs.
struct ModelSize {
  std::uint64_t bytes = 0;
  std::uint64_t elements = 0;
  double token_bytes = 0;
  double token_elements = 0;
};

// Returns the share of a layer's experts that compute a token; 1 without experts.
double compute_expert_share(const Model& model) {
  const auto find = [&](std::initializer_list<std::string_view> keys) {
    for (const std::string_view key : keys) {
      const auto* number = model.config_json.get_if<std::uint64_t>(key);
      if (number != nullptr && *number > 0) return static_cast<double>(*number);
    }
    return 0.0;
  };
  const double used = find({"num_experts_per_tok"});
  const double all = find({"num_local_experts", "num_experts", "n_routed_experts"});
  return used > 0 && all >= used ? used / all : 1;
}

// Returns the model's sizes. A token reads only one row of the embedding, so the embedding adds 0 to the sizes for a
// token, unless it is the output matrix, too.
ModelSize measure_size(const Model& model) {
  ModelSize size;
  const bool has_output = model.find("lm_head.weight") != nullptr;
  const double expert_share = compute_expert_share(model);
  for (const Tensor& tensor : model.tensors()) {
    std::uint64_t bytes = 0;
    for (const Part& part : tensor.parts) bytes += part.blob->size();
    double share = tensor.name.find(".experts.") != std::string::npos ? expert_share : 1;
    if (tensor.name == kDecoderEmbedding && has_output) share = 0;
    size.bytes += bytes;
    size.elements += tensor.elements();
    size.token_bytes += share * static_cast<double>(bytes);
    size.token_elements += share * static_cast<double>(tensor.elements());
  }
  return size;
}

constexpr std::string_view kPrompt = "prompt";
constexpr std::string_view kGenerate = "generate";

// Holds the seconds of each round of a job.
struct Timing {
  std::string_view name;  // kPrompt or kGenerate
  std::size_t tokens = 0;
  std::size_t depth = 0;  // the number of tokens in the cache before the job
  std::vector<double> seconds = {};

  // Returns a quantile of the rounds' tokens per second: that of the slowest round if `share` is 0, of the fastest if
  // it is 1.
  double compute_rate(double share) const {
    std::vector<double> sorted = seconds;
    std::ranges::sort(sorted, std::greater());
    const auto last = static_cast<double>(sorted.size() - 1);
    const auto low = static_cast<std::size_t>(std::floor(share * last));
    const auto high = static_cast<std::size_t>(std::ceil(share * last));
    return static_cast<double>(tokens) * 2 / (sorted[low] + sorted[high]);
  }
  double compute_median_rate() const { return compute_rate(0.5); }

  // Returns llama-bench's name: "pp512" for a prompt of 512 tokens, "tg64@d8192" for 64 tokens generated after 8,192.
  std::string make_test_name() const {
    const std::string test = fmt::format("{}{}", name == kPrompt ? "pp" : "tg", tokens);
    return depth == 0 ? test : fmt::format("{}@d{}", test, depth);
  }

  Value::Array list_rates() const {
    Value::Array rates;
    for (const double time : seconds) rates.emplace_back(static_cast<double>(tokens) / time);
    return rates;
  }
};

// Returns the processor's name; empty if the system does not give it.
std::string read_processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return {};
}

// Returns the names of the instructions that the kernels use: "AVX2", or "AVX3_ZEN4 and AMX".
std::string describe_instructions() {
  // On arm64, products with matrices use NEON even if the processor has SVE (CMakeLists.txt).
  constexpr std::int64_t kNotInProducts = HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128;
  const auto best = static_cast<std::uint64_t>(hwy::SupportedTargets() & ~kNotInProducts);
  const char* const name = hwy::TargetName(static_cast<std::int64_t>(best & (~best + 1)));
  return get_tile_unit() == TileUnit::amx ? fmt::format("{} and AMX", name) : name;
}

class Bench {
 public:
  explicit Bench(const BenchArguments& options) : options_(options) {}

  void execute() {
    const Model model = options_.model.open_model(options_.quiet || options_.json);
    size_ = measure_size(model);
    const auto weights = options_.model.load(model);
    SessionOptions session_options = options_.session;
    const std::size_t needed = options_.depth + std::max(options_.prompt, options_.generated);
    if (needed > weights->max_context())
      throw Error(ErrorKind::bad_argument,
                  fmt::format("{} tokens do not fit the model's context of {}; choose a smaller --depth, --prompt or "
                              "--max-tokens",
                              needed, weights->max_context()));
    if (session_options.context == 0) session_options.context = needed;
    threads_ = options_.session.threads != 0 ? options_.session.threads : std::thread::hardware_concurrency();
    threads_ = std::max(1U, threads_);
    Session session(weights, session_options);
    // The buffer is larger than the caches of most processors, and fits the memory of small machines.
    constexpr std::size_t kBuffer = std::size_t{512} << 20;
    read_rate_ = measure_read_rate(threads_, kBuffer);
    // The ids are random: experts that frequent tokens do not choose are measured, too.
    std::mt19937 random(1);  // NOLINT: every run measures the same tokens
    std::uniform_int_distribution<TokenId> choose(0, static_cast<TokenId>(weights->vocabulary_size() - 1));
    std::vector<TokenId> tokens(needed);
    std::ranges::generate(tokens, [&] { return choose(random); });
    const std::span<const TokenId> all(tokens);
    if (options_.depth > 0) session.feed(all.first(options_.depth));
    std::vector<Timing> timings;
    if (options_.prompt > 0)
      timings.push_back(measure(session, kPrompt, all.subspan(options_.depth, options_.prompt), options_.prompt));
    if (options_.generated > 0)
      timings.push_back(measure(session, kGenerate, all.subspan(options_.depth, options_.generated), 1));
    options_.json ? print_json(timings) : print_table(timings);
  }

 private:
  // Feeds the tokens, `step` at a time, once to warm up and then in each round.
  Timing measure(Session& session, std::string_view name, std::span<const TokenId> tokens, std::size_t step) const {
    Timing timing = {.name = name, .tokens = tokens.size(), .depth = options_.depth};
    for (std::size_t round = 0; round <= options_.rounds; ++round) {
      session.truncate(options_.depth);
      const auto start = std::chrono::steady_clock::now();
      for (std::size_t at = 0; at < tokens.size(); at += step) session.feed(tokens.subspan(at, step));
      const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
      if (round > 0) timing.seconds.push_back(passed.count());
    }
    session.truncate(options_.depth);
    return timing;
  }

  double compute_flops(const Timing& timing) const { return 2 * size_.token_elements * timing.compute_median_rate(); }

  // Returns the bytes of weights that are read in a second while a text is generated.
  double compute_byte_rate(const Timing& timing) const { return size_.token_bytes * timing.compute_median_rate(); }

  void print_table(const std::vector<Timing>& timings) const {
    fmt::print("{}: {} parameters in {}\n", make_printable(options_.model.path), group_digits(size_.elements),
               format_bytes(size_.bytes));
    const std::string processor = read_processor_name();
    fmt::print("{}{} thread{}, {}; they read {} of memory\n\n",
               processor.empty() ? "" : make_printable(processor) + ", ", threads_, threads_ == 1 ? "" : "s",
               describe_instructions(), format_rate(static_cast<std::uint64_t>(read_rate_), 1));
    // Smaller models may fit the processor's cache, so the memory's speed does not limit them.
    constexpr double kLeastBytes = 256e6;
    const bool shows_memory = size_.token_bytes >= kLeastBytes;
    Table table({"job", "tokens", "after", "tokens/s", "least", "most", "GFLOP/s", "of memory"},
                {false, true, true, true, true, true, true, true});
    for (const Timing& timing : timings) {
      table.add({std::string(timing.name), std::to_string(timing.tokens), std::to_string(timing.depth),
                 fmt::format("{:.1f}", timing.compute_median_rate()), fmt::format("{:.1f}", timing.compute_rate(0)),
                 fmt::format("{:.1f}", timing.compute_rate(1)), fmt::format("{:.1f}", compute_flops(timing) / 1e9),
                 shows_memory && timing.name == kGenerate
                     ? fmt::format("{:.0f} %", 100 * compute_byte_rate(timing) / read_rate_)
                     : ""});
    }
    fmt::print("{}", table.text());
  }

  void print_json(const std::vector<Timing>& timings) const {
    JsonOutput json;
    json->begin_object();
    json->write_member("model", options_.model.path);
    json->write_member("parameters", size_.elements);
    json->write_member("bytes", size_.bytes);
    json->write_member("bytes_per_token", size_.token_bytes);
    json->write_member("processor", read_processor_name());
    json->write_member("instructions", describe_instructions());
    json->write_member("threads", std::uint64_t{threads_});
    json->write_member("memory_bytes_per_second", read_rate_);
    json.write_list("rows", timings, [&](const Timing& timing) {
      json->begin_object();
      json->write_member("test", timing.make_test_name());
      json->write_member("tokens", std::uint64_t{timing.tokens});
      json->write_member("depth", std::uint64_t{timing.depth});
      json->write_member("tokens_per_second", timing.compute_median_rate());
      json->write_member("least", timing.compute_rate(0));
      json->write_member("most", timing.compute_rate(1));
      json->write_member("samples", timing.list_rates());
      json->write_member("flops_per_second", compute_flops(timing));
      json->end_object();
    });
    json->end_object();
    json.finish();
  }

  const BenchArguments& options_;
  ModelSize size_;
  unsigned threads_ = 1;
  double read_rate_ = 0;
};

}  // namespace

void add_bench_command(CLI::App& app) {
  const auto options = std::make_shared<BenchArguments>();
  CLI::App* command = app.add_subcommand("bench", "Measure how many tokens a second a model computes");
  command->add_option("MODEL", options->model.path, "Model file or directory")->required();
  constexpr std::size_t kMost = 1 << 24;
  add_number_option(*command, "-p,--prompt", options->prompt, "Tokens of the prompt; 0: no prompt", {0, kMost});
  add_number_option(*command, "-n,--max-tokens", options->generated, "Tokens to generate; 0: none", {0, kMost});
  add_number_option(*command, "-d,--depth", options->depth, "Tokens that are in the cache before each round",
                    {0, kMost});
  add_number_option(*command, "-r,--rounds", options->rounds,
                    "Measured rounds, after one to warm up; the median counts", {1, 1000});
  command->add_flag("--json", options->json, "Print the measurements as JSON");
  command->add_flag("--quiet", options->quiet, "No notes");
  add_session_options(*command, options->session);
  add_model_options(*command, options->model);
  command->callback([options] { Bench(*options).execute(); });
}

}  // namespace poise::cli
