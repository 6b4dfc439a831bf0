// Byte-level BPE: GGUF's "gpt2", with the name of an equivalent pre-tokenizer.
#include "tokenizer/gguf/forms/forming.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "tokenizer/gguf/pre_tokenizers.hpp"
#include "tokenizer/pipeline/models.hpp"
#include "tokenizer/pipeline/score_merges.hpp"
#include "tokenizer/tokens/unicode.hpp"

namespace poise::gguf_forms {
namespace {

constexpr std::string_view kGpt2Row = "gpt-2";
constexpr std::string_view kFalconRow = "falcon";

// Rows write characters as \x{4E00}, tokenizer.json literally.
std::string with_characters(std::string_view expression) {
  std::string text;
  while (!expression.empty()) {
    const std::size_t at = expression.find("\\x{");
    const std::size_t end = at == std::string_view::npos ? at : expression.find('}', at);
    if (end == std::string_view::npos) break;
    std::uint32_t code = 0;
    std::from_chars(expression.data() + at + 3, expression.data() + end, code, 16);
    text += expression.substr(0, at);
    unicode::append(text, static_cast<char32_t>(code));
    expression.remove_prefix(end + 1);
  }
  return text += expression;
}

// Equivalent spellings: after a possessive part there is none of its characters, and white space up to the last newline
// ends the same with one newline or several.
constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kSpellings = {{
    {R"(\s*[\r\n]|)", R"(\s*[\r\n]+|)"},
    {R"([^\r\n\p{L}\p{N}]?+\p{L}+)", R"([^\r\n\p{L}\p{N}]?\p{L}+)"},
    {R"([^\s\p{L}\p{N}]++[\r\n]*)", R"([^\s\p{L}\p{N}]+[\r\n]*)"},
}};

// As rows spell it, with literal characters.
std::string spelled(std::string_view expression) {
  std::string text = with_characters(expression);
  for (const auto& [from, to] : kSpellings) {
    if (const std::size_t at = text.find(from); at != std::string::npos) text.replace(at, from.size(), to);
  }
  return text;
}

// The expressions that the steps cut by; nothing if no row has such a step.
std::optional<std::vector<std::string>> expressions_of(const std::vector<Fields>& cuts) {
  const std::string gpt2(find_gguf_pre_tokenizer(kGpt2Row)->expressions.front());
  std::vector<std::string> expressions;
  for (const Fields& step : cuts) {
    const std::string type = step.text("type", "");
    if (type == "ByteLevel") {
      if (step.boolean("add_prefix_space", true)) return std::nullopt;
      if (step.boolean("use_regex", true)) expressions.push_back(gpt2);
    } else if (type == "Digits") {
      expressions.emplace_back(step.boolean("individual_digits", false) ? "\\p{N}" : "\\p{N}+");
    } else if (type == "Punctuation" && step.text("behavior", "Isolated") == "Contiguous") {
      expressions.emplace_back(find_gguf_pre_tokenizer(kFalconRow)->expressions.front());
    } else if (const auto expression = type == "Split" ? pattern_of(step, "Regex") : std::nullopt) {
      const bool inverted = step.boolean("invert", false);
      if (step.text("behavior", "") != (inverted ? "Removed" : "Isolated")) return std::nullopt;
      expressions.push_back(spelled(*expression));
    } else {
      return std::nullopt;
    }
  }
  return expressions;
}

void name_pre_tokenizer(Forming& of, const Fields& model, const std::vector<Fields>& cuts) {
  const auto wanted = expressions_of(cuts);
  const bool whole_words = model.boolean("ignore_merges", false);
  const auto cuts_so = [&](const GgufPreTokenizer& row) {
    return wanted && row.byte_level && row.ignore_merges == whole_words &&
           std::ranges::equal(row.expressions, *wanted, [](std::string_view expression, const std::string& other) {
             return spelled(expression) == other;
           });
  };
  const auto row = std::ranges::find_if(gguf_pre_tokenizers(), cuts_so);
  if (row != gguf_pre_tokenizers().end()) {
    of.gguf.pre = row->name.empty() ? "default" : row->name;
    return;
  }
  of.gguf.pre = "default";
  of.lose(
      "llama.cpp has no name for how the vocabulary cuts a text into words: with \"default\" texts get other tokens");
}

void take_merges(Forming& of, const Fields& model) {
  bool spaces = false;
  const auto add = [&](std::string_view left, std::string_view right) {
    spaces = spaces || left.find(' ') != std::string_view::npos || right.find(' ') != std::string_view::npos;
    of.gguf.merges.push_back(fmt::format("{} {}", left, right));
  };
  if (model.boolean("merge_by_score", false)) {
    for (const auto& [left, right] : listed_score_merges(of.vocabulary, tokens_of_model(of.vocabulary)))
      add(left, right);
  } else {
    for (const auto& [left, right] : of.vocabulary.merges) add(left, right);
  }
  if (spaces) of.lose("gguf divides merges at a space: those of tokens with spaces are lost");
}

}  // namespace

std::string form_gpt2(Forming& of, const Fields& model, const std::vector<Fields>& cuts) {
  of.gguf.model = "gpt2";
  of.gguf.scores.clear();
  name_pre_tokenizer(of, model, cuts);
  take_merges(of, model);
  for (const Fields& normalizer : steps_of(of.pipeline, "normalizer", "normalizers")) {
    of.lose(fmt::format("gguf does not hold the normalizer {}: texts that it changes get other tokens",
                        normalizer.text("type", "")));
  }
  of.check_decoder({"ByteLevel"});
  return {};
}

}  // namespace poise::gguf_forms
