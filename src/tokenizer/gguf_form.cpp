#include "tokenizer/gguf_form.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "model/special_ids.hpp"
#include "tokenizer/gguf_pre_tokenizers.hpp"
#include "tokenizer/pipeline/added_tokens.hpp"
#include "tokenizer/pipeline/base64.hpp"
#include "tokenizer/pipeline/models.hpp"
#include "tokenizer/pipeline/score_merges.hpp"
#include "tokenizer/pipeline/unicode.hpp"
#include "tokenizer/sentencepiece_decoder.hpp"
#include "tokenizer/sentencepiece_normalizer.hpp"
#include "tokenizer/special_around.hpp"
#include "tokenizer/token_types.hpp"

namespace poise {
namespace {

constexpr std::string_view kGpt2Row = "gpt-2";
constexpr std::string_view kFalconRow = "falcon";

std::optional<std::int32_t> id_of(std::int32_t id) { return id < 0 ? std::nullopt : std::optional(id); }

std::string replace_step(std::string_view pattern, std::string_view content) { return fmt::format("Replace \"{}\" \"{}\"", pattern, content); }
std::string strip_step(std::string_view content, std::uint64_t start, std::uint64_t stop) { return fmt::format("Strip \"{}\" {} {}", content, start, stop); }
std::string metaspace_step(std::string_view replacement, bool prefixed) { return fmt::format("Metaspace \"{}\" {}", replacement, prefixed); }
std::string word_piece_step(std::string_view prefix, bool cleanup) { return fmt::format("WordPiece \"{}\" {}", prefix, cleanup); }

// Where Metaspace puts U+2581 in front: "always", "first" (of a text), "never".
std::string prepend_scheme(const Fields& metaspace) {
  return metaspace.text("prepend_scheme", metaspace.boolean("add_prefix_space", true) ? "always" : "never");
}
bool prepends(const Fields& metaspace) { return prepend_scheme(metaspace) != "never"; }

// The steps of a part that may be a Sequence of others, in their order.
void append_steps(const Fields& part, std::string_view list, std::vector<Fields>& steps) {
  if (part.text("type", "") != "Sequence") return steps.push_back(part);
  for (const Fields& step : part.list(list)) append_steps(step, list, steps);
}

std::vector<Fields> steps_of(const Fields& pipeline, std::string_view key, std::string_view list) {
  std::vector<Fields> steps;
  if (const auto part = pipeline.map(key)) append_steps(*part, list, steps);
  return steps;
}

// Rows write characters as \x{4E00}, tokenizer.json as they are.
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

// "a": text of a pattern that is a String, or nothing.
std::optional<std::string> pattern_of(const Fields& step, std::string_view kind) {
  const auto pattern = step.map("pattern");
  return pattern ? pattern->optional_text(kind) : std::nullopt;
}

// What a decoder does, step by step: its type, and the fields that change texts.
std::vector<std::string> decoder_steps(const Fields& pipeline) {
  std::vector<std::string> steps;
  for (const Fields& step : steps_of(pipeline, "decoder", "decoders")) {
    std::string& text = steps.emplace_back(step.text("type", ""));
    if (text == "Replace") {
      text = replace_step(pattern_of(step, "String").value_or(""), step.text("content", ""));
    } else if (text == "Strip") {
      text = strip_step(step.text("content", " "), step.number("start", 0), step.number("stop", 0));
    } else if (text == "Metaspace") {
      text = metaspace_step(step.text("replacement", kSpaceSymbol), prepends(step));
    } else if (text == "WordPiece") {
      text = word_piece_step(step.text("prefix", "##"), step.boolean("cleanup", true));
    }
  }
  return steps;
}

// A few of many names.
std::string listed(const std::vector<std::string_view>& names) {
  constexpr std::size_t kMost = 5;
  const auto shown = std::span(names).first(std::min(names.size(), kMost));
  return fmt::format("{}{}", fmt::join(shown, ", "), shown.size() < names.size() ? ", ..." : "");
}

class Former {
 public:
  Former(const Vocabulary& vocabulary, const std::string& general_name) : vocabulary_(vocabulary), pipeline_(vocabulary.pipeline, "") {
    gguf_.general_name = general_name;
  }

  GgufForm form() {
    switch (vocabulary_.kind) {
      case VocabularyKind::sentencepiece_bpe: sentencepiece(); break;
      case VocabularyKind::sentencepiece_unigram: sentencepiece_unigram(); break;
      case VocabularyKind::pipeline: pipeline(); break;
      case VocabularyKind::byte_pair: return none("of this kind");
    }
    if (!held_) return none(why_not_);
    return {std::move(gguf_), std::move(losses_)};
  }

 private:
  GgufForm none(std::string_view which) const { return {std::nullopt, {fmt::format("gguf cannot hold a vocabulary {}: it is left out", which)}}; }

  void lose(std::string loss) { losses_.push_back(std::move(loss)); }

  void take_tokens() {
    gguf_.bos_token_id = id_of(vocabulary_.bos_id);
    gguf_.eos_token_id = id_of(vocabulary_.eos_id);
    gguf_.unknown_token_id = id_of(vocabulary_.unk_id);
    gguf_.padding_token_id = id_of(vocabulary_.pad_id);
    gguf_.chat_template = vocabulary_.chat_template;
    gguf_.tokens.reserve(vocabulary_.size());
    gguf_.scores.reserve(vocabulary_.size());
    for (std::size_t id = 0; id < vocabulary_.size(); ++id) {
      gguf_.tokens.emplace_back(vocabulary_.text(id));
      gguf_.scores.push_back(vocabulary_.score(id));
      gguf_.token_type.push_back(token_type_number(vocabulary_.type(id)));
    }
  }

  void sentencepiece() {
    gguf_.model = "llama";
    gguf_.pre = "default";
    take_tokens();
    gguf_.add_space_prefix = vocabulary_.add_dummy_prefix;
    if (vocabulary_.remove_extra_whitespaces) {
      gguf_.remove_extra_whitespaces = true;
      lose("llama.cpp does not remove extra white space where tokens merge by scores: texts with it get other tokens");
    }
    take_special_tokens();
    if (vocabulary_.normalizer != Vocabulary().normalizer) lose(fmt::format("gguf does not hold the vocabulary's normalizer {}", vocabulary_.normalizer));
    check_spaces();
    check_added_tokens();
    held_ = true;
  }

  void check_spaces() {
    const NormalizerRules rules = normalizer_of(vocabulary_);
    if (!rules.escape_whitespaces) lose("gguf does not say that tokens have spaces instead of U+2581: texts get other tokens");
    if (rules.treat_whitespace_as_suffix) lose("gguf does not say that the space that is added goes behind a text: texts get other tokens");
    if (rules.prepend_first && rules.add_dummy_prefix) lose_first();
    if (denormalizer_of(vocabulary_)) lose("gguf does not hold the vocabulary's denormalizer");
  }

  void sentencepiece_unigram() {
    gguf_.model = "t5";
    gguf_.pre = "default";
    take_tokens();
    gguf_.add_space_prefix = vocabulary_.add_dummy_prefix;
    gguf_.remove_extra_whitespaces = vocabulary_.remove_extra_whitespaces;
    gguf_.precompiled_charsmap = normalizer_of(vocabulary_).charsmap;
    check_spaces();
    take_special_tokens();
    if (gguf_.precompiled_charsmap.empty() && vocabulary_.normalizer != Vocabulary().normalizer) {
      lose(fmt::format("gguf does not hold the vocabulary's normalizer {}", vocabulary_.normalizer));
    }
    check_unigram();
    check_added_tokens();
    held_ = true;
  }

  // What llama.cpp does in another way than SentencePiece.
  void check_unigram() {
    const auto has = [&](TokenType type) { return std::ranges::find(gguf_.token_type, token_type_number(type)) != gguf_.token_type.end(); };
    if (has(TokenType::byte)) lose("llama.cpp takes no bytes for characters without a token in such a vocabulary: they become the unknown token");
    if (has(TokenType::unused)) lose("llama.cpp takes the unused tokens of such a vocabulary, too: some words get other tokens");
    if (gguf_.remove_extra_whitespaces.value_or(false) && !gguf_.add_space_prefix.value_or(true)) {
      lose("llama.cpp puts a space in front of texts where it removes extra white space");
    }
  }

  // Unigram of tokenizer.json, in the steps that llama.cpp does.
  void t5(const Fields& model) {
    if (model.find("unk_id") == nullptr) {
      why_not_ = "of the model Unigram without an unknown token";
      return;
    }
    gguf_.model = "t5";
    gguf_.pre = "default";
    gguf_.add_space_prefix = false;
    gguf_.remove_extra_whitespaces = false;
    gguf_.unknown_token_id = static_cast<std::int32_t>(std::min<std::uint64_t>(model.number("unk_id", 0), vocabulary_.size()));
    if (static_cast<std::size_t>(*gguf_.unknown_token_id) >= vocabulary_.size()) model.fail("unk_id", "is the id of no token");
    gguf_.token_type[static_cast<std::size_t>(*gguf_.unknown_token_id)] = token_type_number(TokenType::unknown);
    bool stripped = false;
    for (const Fields& step : steps_of(pipeline_, "normalizer", "normalizers")) {
      const std::string type = step.text("type", "");
      if (type == "Precompiled" && gguf_.precompiled_charsmap.empty()) {
        if (const auto rules = base64_decoded(step.required_text("precompiled_charsmap"))) gguf_.precompiled_charsmap = *rules;
      } else if (type == "Strip" && step.boolean("strip_left", true) && step.boolean("strip_right", true)) {
        stripped = true;
      } else if (type == "Replace" && pattern_of(step, "Regex") == " {2,}") {
        gguf_.remove_extra_whitespaces = true;
      } else {
        lose(fmt::format("gguf does not hold the normalizer {}: texts that it changes get other tokens", type));
      }
    }
    bool escaped = false;
    for (const Fields& step : steps_of(pipeline_, "pre_tokenizer", "pretokenizers")) {
      const std::string type = step.text("type", "");
      if (type == "Metaspace" && step.text("replacement", kSpaceSymbol) == kSpaceSymbol) {
        escaped = true;
        take_prefix(step);
      } else if (type == "WhitespaceSplit") {
        gguf_.remove_extra_whitespaces = stripped = true;
      } else {
        lose(fmt::format("gguf does not hold the pre-tokenizer {}: words may get other tokens", type));
      }
    }
    if (!escaped) {
      why_not_ = "of the model Unigram whose steps are not SentencePiece's";
      return;
    }
    if (stripped != *gguf_.remove_extra_whitespaces)
      lose("llama.cpp removes white space at the ends of texts and inside them, or neither: some texts get other tokens");
    check_decoder({metaspace_step(kSpaceSymbol, *gguf_.add_space_prefix)});
    if (model.find("scores") != nullptr) lose("gguf holds scores of 32 bits: those of the vocabulary are rounded");
    if (model.boolean("byte_fallback", false))
      lose("llama.cpp takes no bytes for characters without a token in such a vocabulary: they become the unknown token");
    check_unigram();
    held_ = true;
  }

  // SentencePiece puts a space in front of each text and of each run between added tokens; Metaspace does not where one is there already.
  void take_prefix(const Fields& metaspace) {
    const std::string scheme = prepend_scheme(metaspace);
    gguf_.add_space_prefix = scheme != "never";
    scheme == "first" ? lose_first() : lose_prefix();
  }

  void lose_first() {
    lose("llama.cpp puts a space in front of runs after added tokens, too");
    lose_prefix();
  }
  void lose_prefix() {
    if (gguf_.add_space_prefix.value_or(true) && !gguf_.remove_extra_whitespaces.value_or(false))
      lose("llama.cpp puts a space in front of texts that begin with one, too");
  }

  void check_decoder(const std::vector<std::string>& same) {
    if (decoder_steps(pipeline_) == same) return;
    const auto decoder = pipeline_.map("decoder");
    lose(fmt::format("gguf does not hold {}: tokens may become another text",
                     decoder ? "the decoder " + decoder->text("type", "") : "that there is no decoder"));
  }

  // WordPiece as BERT has it. GGUF marks the tokens that begin a word, tokenizer.json those that do not.
  void bert(const Fields& model, const std::vector<Fields>& cuts) {
    const std::string prefix = model.text("continuing_subword_prefix", "##");
    const auto normalizer = pipeline_.map("normalizer");
    const bool berts =
        normalizer && normalizer->text("type", "") == "BertNormalizer" && cuts.size() == 1 && cuts.front().text("type", "") == "BertPreTokenizer";
    if (prefix.empty() || !berts) {
      why_not_ = "of the model WordPiece whose steps are not BERT's";
      return;
    }
    gguf_.model = "bert";
    gguf_.pre = "default";
    gguf_.scores.clear();
    const bool lowercase = normalizer->boolean("lowercase", true);
    if (!lowercase) gguf_.lowercase = false;
    if (!normalizer->boolean("clean_text", true) || !normalizer->boolean("handle_chinese_chars", true) ||
        normalizer->boolean("strip_accents", lowercase) != lowercase) {
      lose("llama.cpp cleans texts, cuts at Chinese characters, and strips accents where it makes letters lower case: some texts get other tokens");
    }
    for (std::size_t id = 0; id < gguf_.tokens.size(); ++id) {
      std::string& token = gguf_.tokens[id];
      if (vocabulary_.type(id) == TokenType::control) continue;
      token.starts_with(prefix) ? token.erase(0, prefix.size()) : token.insert(0, kSpaceSymbol);
    }
    const TokenIndex ids = tokens_of_model(vocabulary_);
    gguf_.unknown_token_id = token_named(model, "unk_token", model.text("unk_token", "[UNK]"), {vocabulary_, ids});
    constexpr std::uint64_t kLongestWord = 100;
    if (const std::uint64_t longest = model.number("max_input_chars_per_word", kLongestWord); longest != kLongestWord) {
      lose(fmt::format("gguf does not say that words of more than {} characters are unknown", longest));
    }
    check_decoder({word_piece_step(prefix, true)});
    held_ = true;
  }

  void pipeline() {
    const auto model = pipeline_.map("model");
    const std::string type = model ? model->text("type", "") : "";
    if (type == "Unigram" || type == "WordPiece") {
      take_tokens();
      name_unused_tokens();
      type == "Unigram" ? t5(*model) : bert(*model, steps_of(pipeline_, "pre_tokenizer", "pretokenizers"));
      if (!held_) return;
      take_special_tokens();
      if (type == "WordPiece") take_separator();
      check_added_tokens();
      return;
    }
    if (type != "BPE") {
      why_not_ = fmt::format("of the model {}", type.empty() ? "that is missing" : type);
      return;
    }
    if (!model->text("continuing_subword_prefix", "").empty() || !model->text("end_of_word_suffix", "").empty()) {
      why_not_ = "whose tokens have a prefix or a suffix by their place in a word";
      return;
    }
    take_tokens();
    name_unused_tokens();
    const std::vector<Fields> cuts = steps_of(pipeline_, "pre_tokenizer", "pretokenizers");
    const bool byte_level = std::ranges::any_of(cuts, [](const Fields& step) { return step.text("type", "") == "ByteLevel"; });
    byte_level ? gpt2(*model, cuts) : llama(*model, cuts);
    if (!held_) return;
    take_special_tokens();
    check_added_tokens();
  }

  // llama.cpp wants a text for each id.
  void name_unused_tokens() {
    for (std::size_t id = 0; id < gguf_.tokens.size(); ++id) {
      if (gguf_.tokens[id].empty()) gguf_.tokens[id] = fmt::format("[PAD{}]", id);
    }
  }

  void gpt2(const Fields& model, const std::vector<Fields>& cuts) {
    gguf_.model = "gpt2";
    gguf_.scores.clear();
    name_pre_tokenizer(model, cuts);
    take_merges(model);
    if (const auto normalizer = pipeline_.map("normalizer")) {
      lose(fmt::format("gguf does not hold the normalizer {}: texts that it changes get other tokens", normalizer->text("type", "")));
    }
    check_decoder({"ByteLevel"});
    held_ = true;
  }

  // Which expressions the steps cut by; nothing for a step that is none of those that rows have.
  static std::optional<std::vector<std::string>> expressions_of(const std::vector<Fields>& cuts) {
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
        expressions.push_back(with_characters(*expression));
      } else {
        return std::nullopt;
      }
    }
    return expressions;
  }

  void name_pre_tokenizer(const Fields& model, const std::vector<Fields>& cuts) {
    const auto wanted = expressions_of(cuts);
    const bool whole_words = model.boolean("ignore_merges", false);
    const auto cuts_so = [&](const GgufPreTokenizer& row) {
      return wanted && row.byte_level && row.ignore_merges == whole_words &&
             std::ranges::equal(row.expressions, *wanted,
                                [](std::string_view expression, const std::string& other) { return with_characters(expression) == other; });
    };
    const auto row = std::ranges::find_if(gguf_pre_tokenizers(), cuts_so);
    if (row != gguf_pre_tokenizers().end()) {
      gguf_.pre = row->name.empty() ? "default" : row->name;
      return;
    }
    gguf_.pre = "default";
    lose("llama.cpp has no name for how the vocabulary cuts a text into words: with \"default\" texts get other tokens");
  }

  void take_merges(const Fields& model) {
    bool spaces = false;
    const auto add = [&](std::string_view left, std::string_view right) {
      spaces = spaces || left.find(' ') != std::string_view::npos || right.find(' ') != std::string_view::npos;
      gguf_.merges.push_back(fmt::format("{} {}", left, right));
    };
    if (model.boolean("merge_by_score", false)) {
      for (const auto& [left, right] : listed_score_merges(vocabulary_, tokens_of_model(vocabulary_))) add(left, right);
    } else {
      for (const auto& [left, right] : vocabulary_.merges) add(left, right);
    }
    if (spaces) lose("gguf divides merges at a space: those of tokens with spaces are lost");
  }

  // SentencePiece's algorithm merges by scores, and whatever makes a token.
  void llama(const Fields& model, const std::vector<Fields>& cuts) {
    gguf_.model = "llama";
    gguf_.pre = "default";
    if (!model.boolean("byte_fallback", false) || !escapes_spaces(cuts)) {
      why_not_ = "whose steps are neither those of byte-level BPE nor those of SentencePiece";
      return;
    }
    held_ = true;
    if (vocabulary_.unk_id >= 0) gguf_.token_type[static_cast<std::size_t>(vocabulary_.unk_id)] = token_type_number(TokenType::unknown);
    if (model.boolean("merge_by_score", false)) return;
    rank_by_merges();
  }

  // Does U+2581 stand for spaces? Notes what else the steps do.
  bool escapes_spaces(const std::vector<Fields>& cuts) {
    bool escaped = false;
    bool prefix = false;
    for (const Fields& step : steps_of(pipeline_, "normalizer", "normalizers")) {
      const std::string type = step.text("type", "");
      if (type == "Prepend" && step.text("prepend", "") == kSpaceSymbol) {
        prefix = true;
      } else if (type == "Replace" && pattern_of(step, "String") == " " && step.text("content", "") == kSpaceSymbol) {
        escaped = true;
      } else {
        lose(fmt::format("gguf does not hold the normalizer {}: texts that it changes get other tokens", type));
      }
    }
    for (const Fields& step : cuts) {
      const std::string type = step.text("type", "");
      if (type == "Metaspace") {
        escaped = true;
        take_prefix(step);
        prefix = *gguf_.add_space_prefix;
      } else if (type != "Split" || pattern_of(step, "String") != " " || !escaped) {  // once they are replaced there is no space to cut at
        lose(fmt::format("gguf does not hold the pre-tokenizer {}: words may get other tokens", type));
      }
    }
    gguf_.add_space_prefix = prefix;
    std::vector<std::string> same = {replace_step(kSpaceSymbol, " "), "ByteFallback", "Fuse"};
    if (prefix) same.push_back(strip_step(" ", 1, 0));
    if (escaped) check_decoder(same);
    return escaped;
  }

  // A token's score is the rank of the first merge that makes it; other ways to make it merge, too.
  void rank_by_merges() {
    const TokenIndex ids(vocabulary_, {});
    constexpr float kNever = -1e9F;
    std::ranges::fill(gguf_.scores, kNever);
    std::unordered_set<std::uint64_t> pairs;
    pairs.reserve(vocabulary_.merges.size());
    std::int32_t last = -1;
    bool in_order = true;
    for (std::size_t rank = 0; rank < vocabulary_.merges.size(); ++rank) {
      const auto [left, right] = vocabulary_.merges[rank];
      const auto left_id = ids.find(left);
      const auto right_id = ids.find(right);
      const auto merged = ids.find(vocabulary_.merges.joined(rank));
      if (!left_id || !right_id || !merged) continue;
      pairs.insert(static_cast<std::uint64_t>(*left_id) << 32 | static_cast<std::uint32_t>(*right_id));
      float& score = gguf_.scores[static_cast<std::size_t>(*merged)];
      if (score == kNever) {
        score = -static_cast<float>(rank);
      } else if (*merged != last && !is_added(*merged)) {
        in_order = false;
      }
      last = *merged;
    }
    std::size_t more = 0;
    for_each_score_merge(vocabulary_, ids, [&](const ScoreMerge& merge) {
      const bool found_whole = is_added(merge.merged);
      if (!found_whole && !pairs.contains(static_cast<std::uint64_t>(merge.left) << 32 | static_cast<std::uint32_t>(merge.right))) ++more;
    });
    if (more > 0 || !in_order) {
      lose(fmt::format("llama.cpp merges whatever makes a token, the vocabulary only what it lists ({} ways more{}): some words get other tokens", more,
                       in_order ? "" : ", and others in another order"));
    }
  }

  bool is_added(TokenId id) const {
    const TokenType type = vocabulary_.type(static_cast<std::size_t>(id));
    return type == TokenType::control || type == TokenType::user_defined;
  }

  void take_special_tokens() {
    const SpecialAround around = special_around(vocabulary_);
    const auto take = [&](const std::vector<TokenId>& tokens, std::optional<std::int32_t>& id, std::optional<bool>& flag, std::string_view where) {
      flag = !tokens.empty();
      if (tokens.empty()) return;
      if (!id) id = tokens.front();
      if (tokens.size() == 1 && *id == tokens.front()) return;
      flag = false;
      lose(fmt::format("gguf does not hold the special tokens {} texts: {}", where, fmt::join(tokens, ", ")));
    };
    take(around.before, gguf_.bos_token_id, gguf_.add_bos_token, "in front of");
    take(around.after, gguf_.eos_token_id, gguf_.add_eos_token, "after");
  }

  // llama.cpp puts BOS and the separator around the texts of such a vocabulary, whatever else a file says.
  void take_separator() {
    const SpecialAround around = special_around(vocabulary_);
    if (around.after.size() == 1) gguf_.seperator_token_id = around.after.front();
    if (around.before.size() == 1 && around.after.size() == 1) return;
    lose("llama.cpp puts one token in front of texts and one after them in such a vocabulary, which the vocabulary does not");
  }

  // llama.cpp finds tokens in a prompt by their types; which of them take white space the name says, or nothing.
  void check_added_tokens() {
    const auto is_found = [&](std::size_t id) { return gguf_finds(numbered_token_type(static_cast<std::uint64_t>(gguf_.token_type[id]))); };
    const bool normalizes = vocabulary_.kind == VocabularyKind::pipeline && pipeline_.map("normalizer");
    std::vector<bool> is_listed(vocabulary_.size());
    std::vector<std::string_view> more;
    std::vector<std::string_view> fewer;
    std::size_t others = 0;
    const std::vector<AddedToken> added = read_added_tokens(pipeline_, vocabulary_.size());
    for (const AddedToken& token : added) {
      if (token.content.empty()) continue;
      const auto id = static_cast<std::size_t>(token.id);
      is_listed[id] = true;
      if (!is_found(id) || token.content != vocabulary_.text(id)) {
        fewer.push_back(token.content);
      } else if (token.lstrip || token.single_word || (token.normalized && normalizes) || token.rstrip != gguf_takes_space(token.content, gguf_.general_name)) {
        ++others;
      }
    }
    for (std::size_t id = 0; id < vocabulary_.size(); ++id) {
      if (!is_listed[id] && is_found(id) && !vocabulary_.text(id).empty()) more.push_back(vocabulary_.text(id));
    }
    if (!more.empty()) {
      lose(fmt::format("llama.cpp finds the texts of {} special tokens in a prompt, which the vocabulary does not: {}", more.size(), listed(more)));
    }
    if (!fewer.empty()) lose(fmt::format("llama.cpp does not find the texts of {} added tokens in a prompt: {}", fewer.size(), listed(fewer)));
    if (others > 0) lose(fmt::format("gguf does not say of added tokens whether they take white space or stand for whole words: {} differ", others));
  }

  const Vocabulary& vocabulary_;
  Fields pipeline_;
  GgufTokenizer gguf_;
  std::vector<std::string> losses_;
  bool held_ = false;
  std::string why_not_;
};

}  // namespace

GgufForm gguf_form(const Vocabulary& vocabulary, const std::string& general_name) { return Former(vocabulary, general_name).form(); }

std::optional<Vocabulary> sentencepiece_form(const Vocabulary& vocabulary) {
  if (vocabulary.kind != VocabularyKind::pipeline) return std::nullopt;
  const std::optional<GgufTokenizer> form = gguf_form(vocabulary).tokenizer;
  if (!form || form->model != "llama") return std::nullopt;
  Vocabulary result = with_special_ids_of(vocabulary);
  result.add_dummy_prefix = form->add_space_prefix.value_or(true);
  for (std::size_t id = 0; id < vocabulary.size(); ++id) {
    const bool is_unknown = vocabulary.unk_id >= 0 && static_cast<std::size_t>(vocabulary.unk_id) == id;
    result.add(vocabulary.text(id), form->scores[id], is_unknown ? TokenType::unknown : vocabulary.type(id));
  }
  return result;
}

}  // namespace poise
