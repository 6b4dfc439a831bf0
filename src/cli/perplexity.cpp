#include "cli/perplexity.hpp"

#include <cmath>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "cli/finite.hpp"
#include "cli/text.hpp"
#include "io/meter.hpp"
#include "io/source_text.hpp"

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

}  // namespace

// Each text of the file is one sequence: BOS, its tokens, EOS.
void print_perplexity(Session& session, const std::string& file, const std::string& path,
                      const ProgressOptions& progress) {
  const SourcePtr source = Source::open(file, IoMode::read);
  const std::string content = read_text(*source, source->size());
  const TokenId eos = session.tokenizer().vocabulary().eos_id;
  double total = 0;
  std::size_t count = 0;
  std::size_t texts = 0;
  const std::vector<std::string> all = split_texts(content);
  Meter meter(make_progress(progress, "perplexity"), sum_of_sizes(all));
  for (const std::string& text : all) {
    std::vector<TokenId> tokens = session.prompt(text);
    if (eos >= 0) tokens.push_back(eos);
    ++texts;
    const std::vector<double> log_probabilities = session.log_probabilities(tokens);
    for (std::size_t i = 0; i < log_probabilities.size(); ++i) {
      const double log_probability = log_probabilities[i];
      if (!std::isfinite(log_probability)) {
        refuse_non_finite(fmt::format("text {}: the logarithm of the probability of token {}, which is {},", texts,
                                      i + 1, tokens[i + 1]),
                          log_probability, path);
      }
      total -= log_probability;
      ++count;
    }
    meter.advance(text.size(), fmt::format("text {}", texts));
  }
  if (count == 0) throw Error(ErrorKind::invalid_file, "there is no text in this file", file);
  const double perplexity = std::exp(total / static_cast<double>(count));
  if (!std::isfinite(perplexity)) refuse_non_finite("the perplexity", perplexity, path);
  print_now(to_json(Attributes{
                {"texts", std::uint64_t{texts}}, {"tokens", std::uint64_t{count}}, {"perplexity", perplexity}}) +
            "\n");
}

}  // namespace poise::cli
