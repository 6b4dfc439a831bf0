// Converts vocabularies to GGUF's algorithms, one section for each. The first section converts SentencePiece's BPE, and
// BPE of tokenizer.json that has byte tokens like <0x00>, to "llama".
#include <algorithm>
#include <array>
#include <charconv>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "bytes/short_text.hpp"
#include "bytes/utf8.hpp"
#include "tokenizer/gguf/form.hpp"
#include "tokenizer/gguf/pre_tokenizers.hpp"
#include "tokenizer/pipeline/merges.hpp"
#include "tokenizer/pipeline/models.hpp"
#include "tokenizer/pipeline/special_around.hpp"
#include "tokenizer/sentencepiece/normalizer.hpp"
#include "tokenizer/tokens/byte_level.hpp"
#include "tokenizer/tokens/token_types.hpp"
#include "tokenizer/tokens/unicode.hpp"

namespace poise::gguf_forms {
namespace {

bool is_added(const FormBuilder& builder, TokenId id) {
  const TokenType type = builder.vocabulary.type(static_cast<std::size_t>(id));
  return type == TokenType::control || type == TokenType::user_defined;
}

// Scores each token by the rank of the first merge that makes it. Adds a loss if llama.cpp also merges other pairs that
// make a token, or merges in another order.
void score_by_merges(FormBuilder& builder) {
  const TokenIndex ids(builder.vocabulary, {});
  constexpr float kNever = -1e9F;
  std::ranges::fill(builder.gguf.scores, kNever);
  std::unordered_set<std::uint64_t> pairs;
  pairs.reserve(builder.vocabulary.merges.size());
  std::int32_t last = -1;
  bool in_order = true;
  for (std::size_t rank = 0; rank < builder.vocabulary.merges.size(); ++rank) {
    const auto [left, right] = builder.vocabulary.merges[rank];
    const auto left_id = ids.find(left);
    const auto right_id = ids.find(right);
    const auto merged = ids.find(builder.vocabulary.merges.joined(rank));
    if (!left_id || !right_id || !merged) continue;
    pairs.insert(static_cast<std::uint64_t>(*left_id) << 32 | static_cast<std::uint32_t>(*right_id));
    float& score = builder.gguf.scores[static_cast<std::size_t>(*merged)];
    if (score == kNever) {
      score = -static_cast<float>(rank);
    } else if (*merged != last && !is_added(builder, *merged)) {
      in_order = false;
    }
    last = *merged;
  }
  std::size_t more = 0;
  for_each_score_merge(builder.vocabulary, ids, [&](const ScoreMerge& merge) {
    const bool found_whole = is_added(builder, merge.merged);
    if (!found_whole &&
        !pairs.contains(static_cast<std::uint64_t>(merge.left) << 32 | static_cast<std::uint32_t>(merge.right)))
      ++more;
  });
  if (more > 0 || !in_order) {
    builder.add_loss(fmt::format(
        "llama.cpp merges any pair that makes a token, the vocabulary only the pairs in its list ({}{}): some "
        "words get other tokens",
        format_count(more, "more pair"), in_order ? "" : ", and others in another order"));
  }
}

// Converts the normalizer and the pre-tokenizer, and adds their losses. Returns true when U+2581 replaces spaces.
bool convert_steps(FormBuilder& builder, const std::vector<Fields>& cuts) {
  bool escaped = false;
  bool prefix = false;
  for (const Fields& step : collect_steps(builder.pipeline, "normalizer", "normalizers")) {
    const std::string type = step.read_text("type", "");
    if (type == "Prepend" && step.read_text("prepend", "") == kSpaceSymbol) {
      prefix = true;
    } else if (type == "Replace" && find_pattern(step, "String") == " " &&
               step.read_text("content", "") == kSpaceSymbol) {
      escaped = true;
    } else {
      builder.add_lost_step(fmt::format("the normalizer {}: texts that it changes get other tokens", type));
    }
  }
  for (const Fields& step : cuts) {
    const std::string type = step.read_text("type", "");
    if (type == "Metaspace") {
      escaped = true;
      builder.convert_prefix(step);
      prefix = *builder.gguf.add_space_prefix;
    } else if (type != "Split" || find_pattern(step, "String") != " " ||
               !escaped) {  // after the replacement there is no space to cut at
      builder.add_lost_step(fmt::format("the pre-tokenizer {}: words may get other tokens", type));
    }
  }
  builder.gguf.add_space_prefix = prefix;
  std::vector<std::string> same = {describe_step("Replace", {std::string(kSpaceSymbol), " "}), "ByteFallback", "Fuse"};
  if (prefix) same.push_back(describe_step("Strip", {" ", "1", "0"}));
  if (escaped) builder.report_decoder(same);
  return escaped;
}

// Adds a loss unless each byte has a token: <0x41>, or the byte itself as text.
void report_missing_bytes(FormBuilder& builder) {
  std::array<bool, 256> found{};
  for (const std::string& token : builder.gguf.tokens) {
    if (token.size() == 1) found[static_cast<unsigned char>(token.front())] = true;
    if (token.size() != 6 || !token.starts_with("<0x") || !token.ends_with('>')) continue;
    std::uint8_t byte = 0;
    if (std::from_chars(token.data() + 3, token.data() + 5, byte, 16).ptr == token.data() + 5) found[byte] = true;
  }
  if (std::ranges::find(found, false) != found.end())
    builder.add_loss(
        "llama.cpp ends with an error at a character without a token, because the vocabulary lacks tokens for bytes");
}

}  // namespace

// Makes a "llama" vocabulary, in which any pair that makes a token merges, the highest score first.
std::string convert_to_llama(FormBuilder& builder, const Fields& model, const std::vector<Fields>& cuts) {
  builder.set_model("llama");
  if (!model.read_boolean("byte_fallback", false) || !convert_steps(builder, cuts)) {
    return "whose steps are neither those of byte-level BPE nor those of SentencePiece";
  }
  if (builder.vocabulary.unk_id >= 0)
    builder.gguf.token_type[static_cast<std::size_t>(builder.vocabulary.unk_id)] =
        find_token_type_number(TokenType::unknown);
  report_missing_bytes(builder);
  if (model.read_boolean("merge_by_score", false)) return {};
  score_by_merges(builder);
  return {};
}

std::string convert_sentencepiece_bpe(FormBuilder& builder) {
  builder.set_model("llama");
  builder.convert_tokens();
  builder.gguf.add_space_prefix = builder.vocabulary.add_dummy_prefix;
  if (builder.vocabulary.remove_extra_whitespaces) {
    builder.gguf.remove_extra_whitespaces = true;
    builder.add_loss(
        "llama.cpp does not remove extra white space where tokens merge by scores: texts with it get other tokens");
  }
  builder.convert_special_tokens();
  if (builder.vocabulary.normalizer != Vocabulary().normalizer)
    builder.add_loss(fmt::format("gguf does not hold the vocabulary's normalizer {}", builder.vocabulary.normalizer));
  builder.report_spaces();
  builder.report_added_tokens();
  report_missing_bytes(builder);
  return {};
}

// These functions convert byte-level BPE to "gpt2", with the name of an equivalent pre-tokenizer.

namespace {

constexpr std::string_view kGpt2Row = "gpt-2";
constexpr std::string_view kFalconRow = "falcon";

// Replaces escapes such as \x{4E00} with their characters: pre_tokenizers.cpp has escapes, tokenizer.json characters.
std::string unescape_characters(std::string_view expression) {
  std::string text;
  while (!expression.empty()) {
    const std::size_t at = expression.find("\\x{");
    const std::size_t end = at == std::string_view::npos ? at : expression.find('}', at);
    if (end == std::string_view::npos) break;
    std::uint32_t code = 0;
    std::from_chars(expression.data() + at + 3, expression.data() + end, code, 16);
    text += expression.substr(0, at);
    append_utf8(text, static_cast<char32_t>(code));
    expression.remove_prefix(end + 1);
  }
  return text += expression;
}

// Each pair has two spellings of a part of an expression, which match the same texts. In the first pair, \s* already
// takes all newlines but the last. In the others, a greedy quantifier matches the same as the possessive one: it could
// give back only characters that the rest of the part does not match.
constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kSpellings = {{
    {R"(\s*[\r\n]|)", R"(\s*[\r\n]+|)"},
    {R"([^\r\n\p{L}\p{N}]?+\p{L}+)", R"([^\r\n\p{L}\p{N}]?\p{L}+)"},
    {R"([^\s\p{L}\p{N}]++[\r\n]*)", R"([^\s\p{L}\p{N}]+[\r\n]*)"},
}};

// Replaces the first spellings of kSpellings with the second ones, and escapes with characters. The results for
// expressions that differ only in these are equal.
std::string unify_spelling(std::string_view expression) {
  std::string text = unescape_characters(expression);
  for (const auto& [from, to] : kSpellings) {
    if (const std::size_t at = text.find(from); at != std::string::npos) text.replace(at, from.size(), to);
  }
  return text;
}

// Returns the expressions that the steps cut by; std::nullopt if no pre-tokenizer of GGUF has such a step.
std::optional<std::vector<std::string>> list_expressions(const std::vector<Fields>& cuts) {
  const std::string gpt2(find_gguf_pre_tokenizer(kGpt2Row)->expressions.front());
  std::vector<std::string> expressions;
  for (const Fields& step : cuts) {
    const std::string type = step.read_text("type", "");
    if (type == "ByteLevel") {
      if (step.read_boolean("add_prefix_space", true)) return std::nullopt;
      if (step.read_boolean("use_regex", true)) expressions.push_back(gpt2);
    } else if (type == "Digits") {
      expressions.emplace_back(step.read_boolean("individual_digits", false) ? "\\p{N}" : "\\p{N}+");
    } else if (type == "Punctuation" && step.read_text("behavior", "Isolated") == "Contiguous") {
      expressions.emplace_back(find_gguf_pre_tokenizer(kFalconRow)->expressions.front());
    } else if (const auto expression = type == "Split" ? find_pattern(step, "Regex") : std::nullopt) {
      const bool inverted = step.read_boolean("invert", false);
      if (step.read_text("behavior", "") != (inverted ? "Removed" : "Isolated")) return std::nullopt;
      expressions.push_back(unify_spelling(*expression));
    } else {
      return std::nullopt;
    }
  }
  return expressions;
}

void set_pre_tokenizer(FormBuilder& builder, const Fields& model, const std::vector<Fields>& cuts) {
  const auto wanted = list_expressions(cuts);
  const bool whole_words = model.read_boolean("ignore_merges", false);
  const auto has_same_cuts = [&](const GgufPreTokenizer& row) {
    return wanted && row.byte_level && row.ignore_merges == whole_words &&
           std::ranges::equal(row.expressions, *wanted, [](std::string_view expression, const std::string& other) {
             return unify_spelling(expression) == other;
           });
  };
  const auto row = std::ranges::find_if(list_gguf_pre_tokenizers(), has_same_cuts);
  if (row != list_gguf_pre_tokenizers().end()) {
    builder.gguf.pre = row->names.front();
    return;
  }
  builder.add_loss(
      "llama.cpp has no name for how the vocabulary cuts a text into words: with \"default\" texts get other tokens");
}

void convert_merges(FormBuilder& builder, const Fields& model) {
  bool spaces = false;
  const auto add = [&](std::string_view left, std::string_view right) {
    spaces = spaces || left.find(' ') != std::string_view::npos || right.find(' ') != std::string_view::npos;
    builder.gguf.merges.push_back(fmt::format("{} {}", left, right));
  };
  if (model.read_boolean("merge_by_score", false)) {
    for (const auto& [left, right] : list_score_merges(builder.vocabulary, index_model_tokens(builder.vocabulary)))
      add(left, right);
  } else {
    for (const auto& [left, right] : builder.vocabulary.merges) add(left, right);
  }
  if (spaces) builder.add_loss("gguf divides merges at a space: those of tokens with spaces are lost");
}

}  // namespace

std::string convert_to_gpt2(FormBuilder& builder, const Fields& model, const std::vector<Fields>& cuts) {
  builder.set_model("gpt2");
  builder.gguf.scores.clear();
  set_pre_tokenizer(builder, model, cuts);
  convert_merges(builder, model);
  for (const Fields& normalizer : collect_steps(builder.pipeline, "normalizer", "normalizers")) {
    builder.add_loss(fmt::format("gguf does not hold the normalizer {}: texts that it changes get other tokens",
                                 normalizer.read_text("type", "")));
  }
  builder.report_decoder({"ByteLevel"});
  return {};
}

// These functions convert BERT's WordPiece to "bert". GGUF marks the tokens that begin a word; tokenizer.json marks the
// other tokens.

namespace {

// Sets the separator. llama.cpp puts BOS and the separator around texts of such a vocabulary, whatever the file
// contains.
void convert_separator(FormBuilder& builder) {
  const SpecialAround around = find_special_around(builder.vocabulary);
  if (around.after.size() == 1) builder.gguf.seperator_token_id = around.after.front();
  if (around.before.size() == 1 && around.after.size() == 1) return;
  builder.add_loss(
      "llama.cpp puts one special token before a text and one after it for such a vocabulary; this vocabulary puts "
      "other numbers of them");
}

}  // namespace

std::string convert_word_piece(FormBuilder& builder) {
  const Fields model = *builder.pipeline.find_map("model");
  const std::vector<Fields> cuts = collect_steps(builder.pipeline, "pre_tokenizer", "pretokenizers");
  const std::string prefix = model.read_text("continuing_subword_prefix", "##");
  const auto normalizer = builder.pipeline.find_map("normalizer");
  const bool berts = normalizer && normalizer->read_text("type", "") == "BertNormalizer" && cuts.size() == 1 &&
                     cuts.front().read_text("type", "") == "BertPreTokenizer";
  if (prefix.empty() || !berts) return "of the model WordPiece whose steps are not BERT's";
  builder.convert_tokens();
  builder.name_unused_tokens();
  builder.set_model("bert");
  builder.gguf.scores.clear();
  const bool lowercase = normalizer->read_boolean("lowercase", true);
  if (!lowercase) builder.gguf.lowercase = false;
  const bool strip_accents = normalizer->read_boolean("strip_accents", lowercase);
  if (strip_accents != lowercase) builder.gguf.strip_accents = strip_accents;
  if (!normalizer->read_boolean("clean_text", true) || !normalizer->read_boolean("handle_chinese_chars", true))
    builder.add_loss("llama.cpp cleans texts and cuts at Chinese characters: some texts get other tokens");
  for (std::size_t id = 0; id < builder.gguf.tokens.size(); ++id) {
    std::string& token = builder.gguf.tokens[id];
    if (builder.vocabulary.type(id) == TokenType::control) continue;
    token.starts_with(prefix) ? token.erase(0, prefix.size()) : token.insert(0, kSpaceSymbol);
  }
  const TokenIndex ids = index_model_tokens(builder.vocabulary);
  builder.gguf.unknown_token_id =
      find_named_token(model, "unk_token", model.read_text("unk_token", "[UNK]"), {builder.vocabulary, ids});
  constexpr std::uint64_t kLongestWord = 100;
  if (const std::uint64_t longest = model.read_unsigned("max_input_chars_per_word", kLongestWord);
      longest != kLongestWord) {
    builder.add_loss(fmt::format("gguf does not record that words of more than {} characters are unknown", longest));
  }
  builder.report_decoder({describe_step("WordPiece", {prefix, "cleanup"})});
  builder.convert_special_tokens();
  convert_separator(builder);
  builder.report_added_tokens();
  return {};
}

// These functions convert Unigram of SentencePiece and tokenizer.json to "t5".

namespace {

// Adds losses where llama.cpp differs from SentencePiece.
void report_unigram_losses(FormBuilder& builder) {
  const auto has = [&](TokenType type) {
    return std::ranges::find(builder.gguf.token_type, find_token_type_number(type)) != builder.gguf.token_type.end();
  };
  if (has(TokenType::byte))
    builder.add_loss(
        "llama.cpp does not use byte tokens for characters without a token in such a vocabulary: they become the "
        "unknown token");
  if (has(TokenType::unused))
    builder.add_loss("llama.cpp uses the unused tokens of such a vocabulary, too: some words get other tokens");
  if (builder.gguf.remove_extra_whitespaces.value_or(false) && !builder.gguf.add_space_prefix.value_or(true)) {
    builder.add_loss("llama.cpp puts a space in front of texts where it removes extra white space");
  }
}

}  // namespace

std::string convert_sentencepiece_unigram(FormBuilder& builder) {
  builder.set_model("t5");
  builder.convert_tokens();
  builder.gguf.add_space_prefix = builder.vocabulary.add_dummy_prefix;
  builder.gguf.remove_extra_whitespaces = builder.vocabulary.remove_extra_whitespaces;
  builder.gguf.precompiled_charsmap = read_normalizer_rules(builder.vocabulary).charsmap;
  builder.report_spaces();
  builder.convert_special_tokens();
  if (builder.gguf.precompiled_charsmap.empty() && builder.vocabulary.normalizer != Vocabulary().normalizer) {
    builder.add_loss(fmt::format("gguf does not hold the vocabulary's normalizer {}", builder.vocabulary.normalizer));
  }
  report_unigram_losses(builder);
  builder.report_added_tokens();
  return {};
}

// Converts Unigram of tokenizer.json. Adds a loss for each step that llama.cpp lacks.
std::string convert_unigram(FormBuilder& builder) {
  const Fields model = *builder.pipeline.find_map("model");
  if (model.find("unk_id") == nullptr) return "of the model Unigram without an unknown token";
  builder.convert_tokens();
  builder.name_unused_tokens();
  builder.set_model("t5");
  builder.gguf.add_space_prefix = false;
  builder.gguf.remove_extra_whitespaces = false;
  builder.gguf.unknown_token_id =
      static_cast<std::int32_t>(std::min<std::uint64_t>(model.read_unsigned("unk_id", 0), builder.vocabulary.size()));
  if (static_cast<std::size_t>(*builder.gguf.unknown_token_id) >= builder.vocabulary.size())
    model.fail("unk_id", "is not the id of a token");
  builder.gguf.token_type[static_cast<std::size_t>(*builder.gguf.unknown_token_id)] =
      find_token_type_number(TokenType::unknown);
  bool stripped = false;
  for (const Fields& step : collect_steps(builder.pipeline, "normalizer", "normalizers")) {
    const std::string type = step.read_text("type", "");
    if (type == "Precompiled" && builder.gguf.precompiled_charsmap.empty()) {
      if (const auto rules = decode_base64(step.require_text("precompiled_charsmap")))
        builder.gguf.precompiled_charsmap = *rules;
    } else if (type == "Strip" && step.read_boolean("strip_left", true) && step.read_boolean("strip_right", true)) {
      stripped = true;
    } else if (type == "Replace" && find_pattern(step, "Regex") == " {2,}") {
      builder.gguf.remove_extra_whitespaces = true;
    } else {
      builder.add_loss(
          fmt::format("gguf does not hold the normalizer {}: texts that it changes get other tokens", type));
    }
  }
  bool escaped = false;
  for (const Fields& step : collect_steps(builder.pipeline, "pre_tokenizer", "pretokenizers")) {
    const std::string type = step.read_text("type", "");
    if (type == "Metaspace" && step.read_text("replacement", kSpaceSymbol) == kSpaceSymbol) {
      escaped = true;
      builder.convert_prefix(step);
    } else if (type == "WhitespaceSplit") {
      builder.gguf.remove_extra_whitespaces = stripped = true;
    } else {
      builder.add_loss(fmt::format("gguf does not hold the pre-tokenizer {}: words may get other tokens", type));
    }
  }
  if (!escaped) return "of the model Unigram whose steps are not SentencePiece's";
  if (stripped != *builder.gguf.remove_extra_whitespaces)
    builder.add_loss(
        "llama.cpp removes white space at the ends of texts and inside them, or neither: some texts get other tokens");
  builder.report_decoder(
      {describe_step("Metaspace", {std::string(kSpaceSymbol), *builder.gguf.add_space_prefix ? "prefix" : ""})});
  if (model.find("scores") != nullptr)
    builder.add_loss("gguf holds scores of 32 bits: those of the vocabulary are rounded");
  report_unigram_losses(builder);
  builder.convert_special_tokens();
  builder.report_added_tokens();
  return {};
}

}  // namespace poise::gguf_forms
