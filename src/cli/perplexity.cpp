#include "cli/commands.hpp"

#include <cmath>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>
#include <poise/perplexity.hpp>

#include "api/texts.hpp"
#include "bytes/number_text.hpp"
#include "bytes/short_text.hpp"
#include "cli/standard_input.hpp"
#include "cli/text.hpp"
#include "cli/values.hpp"

namespace poise::cli {
namespace {

std::size_t sum_sizes(const std::vector<std::string>& texts) {
  std::size_t sum = 0;
  for (const std::string& text : texts) sum += text.size();
  return sum;
}

// Counts the bytes of all texts for a callback.
struct ByteCount {
  Progress progress;
  std::uint64_t total = 0;
  std::uint64_t done = 0;
};

// Returns a callback that advances the count by the bytes of a text, in proportion to the number of its tokens that are
// computed.
Progress make_byte_progress(ByteCount& count, std::size_t bytes, const std::string& item) {
  return [&count, bytes, item, before = std::make_shared<std::uint64_t>(0)](const ProgressEvent& tokens) {
    const std::uint64_t done = bytes * tokens.done / tokens.total;
    count.done += done - std::exchange(*before, done);
    return !count.progress || count.progress({count.done, count.total, item});
  };
}

// Adds all texts. An error about a text names the file.
void add_texts(Perplexity& perplexity, const std::vector<std::string>& texts, const std::string& file,
               Progress progress) {
  ByteCount count = {std::move(progress), sum_sizes(texts)};
  std::size_t number = 0;
  for (const std::string& text : texts) {
    try {
      perplexity.add(text, make_byte_progress(count, text.size(), fmt::format("text {}", ++number)));
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::bad_argument) throw;
      const bool is_too_long = error.message().find("do not fit the context") != std::string::npos;
      throw Error(ErrorKind::invalid_file,
                  error.message() + (is_too_long ? "; --window computes the file in parts" : ""), file);
    }
  }
}

// Adds the whole file as one text, without the newline at its end, as llama.cpp reads it.
void add_document(Perplexity& perplexity, std::string_view content, const PerplexityOptions& options,
                  Progress progress) {
  if (content.ends_with('\n')) content.remove_suffix(1);
  ByteCount count = {std::move(progress), content.size()};
  const PerplexityWindows windows = {.size = *options.window, .stride = options.stride.value_or(0)};
  perplexity.add_windows(content, windows, make_byte_progress(count, content.size(), "windows"));
}

void append(Attributes& out, const std::string& key, const Estimate& estimate) {
  out.set(key, estimate.value);
  out.set(key + "_error", estimate.standard_error);
}

std::string make_json(const PerplexityResult& result) {
  Attributes answer = {{"texts", std::uint64_t{result.texts}}, {"tokens", std::uint64_t{result.tokens}}};
  if (result.windows > 0) answer.set("windows", std::uint64_t{result.windows});
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

// Returns a number with this many digits, also if the last ones are zeros.
std::string format_digits(double value, int digits) {
  const double rounded = std::abs(parse_double(fmt::format("{:.{}e}", value, digits - 1)).value_or(value));
  const bool has_point = rounded < std::pow(10, digits - 1);  // otherwise "#" would add a point and a zero
  return has_point ? fmt::format("{:#.{}g}", value, digits) : fmt::format("{:.{}g}", value, digits);
}

std::string make_table(const PerplexityResult& result) {
  const std::string computed =
      result.windows > 0 ? format_count(result.windows, "window") : format_count(result.texts, "text");
  Table table({fmt::format("{}, {} tokens", computed, group_digits(result.tokens)), "", "standard error"},
              {false, true, true});
  const auto add = [&](const std::string& what, const Estimate& estimate) {
    const bool has_error = !std::isnan(estimate.standard_error);
    table.add({what, format_digits(estimate.value, 5), has_error ? format_digits(estimate.standard_error, 2) : "-"});
  };
  add("perplexity", result.perplexity);
  if (const auto& against = result.against) {
    add("perplexity of the base", against->base_perplexity);
    add("ratio of both", against->ratio);
    add("mean Kullback-Leibler divergence", against->kl_mean);
    table.add({"largest", format_digits(against->kl_max, 5), ""});
    add("share of equal best tokens", against->same_top);
  }
  return table.text();
}

}  // namespace

CLI::Option* add_perplexity_options(CLI::App& command, PerplexityOptions& options) {
  auto* perplexity = add_text_option(
      command, "--perplexity", options.file, "FILE",
      "Print how well the model predicts the texts in a file, each between BOS and EOS; empty lines separate "
      "texts; - is standard input; --json prints an object");
  add_text_option(
      command, "--against", options.against, "BASE",
      "Compare the predictions with those of another model: divergence, and how often both rank the same token "
      "first")
      ->needs(perplexity);
  auto* window =
      add_number_option(command, "--window", options.window,
                        "With --perplexity: the file is one text, computed in windows of N tokens; the second half "
                        "of each window counts, as in llama-perplexity of llama.cpp")
          ->needs(perplexity);
  add_number_option(
      command, "--stride", options.stride,
      "With --window: a window begins every N tokens, and only tokens that no earlier window had count, as in papers",
      {1})
      ->needs(window);
  return perplexity;
}

std::size_t print_perplexity(const PerplexityOptions& options, std::shared_ptr<const Weights> model,
                             std::shared_ptr<const Weights> base, const SessionOptions& session, bool json,
                             const ProgressOptions& progress) {
  const std::string name = get_input_name(options.file);
  const std::string content = read_text_file(options.file);
  const std::vector<std::string> texts = split_texts(content);
  if (texts.empty()) throw Error(ErrorKind::invalid_file, "there is no text in this file", name);
  Perplexity perplexity(std::move(model), std::move(base), session);
  if (options.window) {
    add_document(perplexity, content, options, make_progress(progress, "perplexity"));
  } else {
    add_texts(perplexity, texts, name, make_progress(progress, "perplexity"));
  }
  const PerplexityResult result = perplexity.result();
  print_now(json ? make_json(result) : make_table(result));
  return result.tokens;
}

}  // namespace poise::cli
