#include "cli/perplexity.hpp"

#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <poise/error.hpp>
#include <poise/perplexity.hpp>

#include "cli/standard_input.hpp"
#include "cli/text.hpp"
#include "cli/values.hpp"
#include "io/meter.hpp"

namespace poise::cli {
namespace {

std::size_t sum_of_sizes(const std::vector<std::string>& texts) {
  std::size_t sum = 0;
  for (const std::string& text : texts) sum += text.size();
  return sum;
}

// Empty lines separate texts. Lines may end with a carriage return, which is dropped.
std::vector<std::string> split_texts(std::string_view content) {
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

// Shows progress until it returns.
void add_texts(Perplexity& perplexity, const std::vector<std::string>& texts, const std::string& file,
               Progress progress) {
  Meter meter(std::move(progress), sum_of_sizes(texts));
  std::size_t number = 0;
  for (const std::string& text : texts) {
    const std::string item = fmt::format("text {}", ++number);
    std::uint64_t before = 0;  // bytes of the text
    try {
      perplexity.add(text, [&](const ProgressEvent& tokens) {
        const std::uint64_t done = text.size() * tokens.done / tokens.total;
        meter.advance(done - before, item);
        before = done;
        return true;
      });
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::bad_argument) throw;
      throw Error(ErrorKind::invalid_file, error.message(), file);  // which names the text
    }
  }
}

void append(Attributes& out, const std::string& key, const Estimate& estimate) {
  out.set(key, estimate.value);
  out.set(key + "_error", estimate.standard_error);
}

std::string json_of(const PerplexityResult& result) {
  Attributes answer = {{"texts", std::uint64_t{result.texts}}, {"tokens", std::uint64_t{result.tokens}}};
  append(answer, "perplexity", result.perplexity);
  if (const auto& against = result.against) {
    append(answer, "base_perplexity", against->base_perplexity);
    append(answer, "ratio", against->ratio);
    append(answer, "kl_mean", against->kl_mean);
    answer.set("kl_max", against->kl_max);
    append(answer, "same_top", against->same_top);
  }
  return to_json(answer) + "\n";
}

std::string table_of(const PerplexityResult& result) {
  const PerplexityResult::Comparison& against = *result.against;
  Table table(
      {fmt::format("{}, {} tokens", plural(result.texts, "text"), grouped(result.tokens)), "", "standard error"},
      {false, true, true});
  const auto add = [&](const std::string& what, const Estimate& estimate) {
    const bool has_error = !std::isnan(estimate.standard_error);
    table.add({what, fmt::format("{:.5g}", estimate.value),
               has_error ? fmt::format("{:.2g}", estimate.standard_error) : "-"});
  };
  add("perplexity", result.perplexity);
  add("perplexity of the base", against.base_perplexity);
  add("ratio of both", against.ratio);
  add("mean Kullback-Leibler divergence", against.kl_mean);
  table.add({"largest", fmt::format("{:.5g}", against.kl_max), ""});
  add("share of equal best tokens", against.same_top);
  return table.text();
}

}  // namespace

CLI::Option* add_perplexity_options(CLI::App& command, PerplexityOptions& options) {
  auto* perplexity =
      command
          .add_option("--perplexity", options.file,
                      "Print {\"texts\", \"tokens\", \"perplexity\", ...} of the texts in a file, which are separated "
                      "by empty lines, each between BOS and EOS; - is standard input")
          ->check(not_empty())
          ->type_name("FILE");
  command
      .add_option(
          "--against", options.against,
          "Another model, whose predictions the model's are compared with: their divergence, and how often both "
          "find the same token best; with --json as an object")
      ->check(not_empty())
      ->type_name("BASE")
      ->needs(perplexity);
  return perplexity;
}

std::size_t print_perplexity(const PerplexityOptions& options, std::shared_ptr<const Weights> model,
                             std::shared_ptr<const Weights> base, const SessionOptions& session, bool json,
                             const ProgressOptions& progress) {
  const std::string name = name_of_text_file(options.file);
  const std::vector<std::string> texts = split_texts(read_text_file(options.file));
  if (texts.empty()) throw Error(ErrorKind::invalid_file, "there is no text in this file", name);
  Perplexity perplexity(std::move(model), std::move(base), session);
  add_texts(perplexity, texts, name, make_progress(progress, "perplexity"));
  const PerplexityResult result = perplexity.result();
  print_now(result.against && !json ? table_of(result) : json_of(result));
  return result.tokens;
}

}  // namespace poise::cli
