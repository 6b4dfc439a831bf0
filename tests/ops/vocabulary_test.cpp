// Text becomes the same tokens after conversion to any format, or the conversion reports the difference first. Each
// kind of vocabulary, with each of its settings for texts.
#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <iterator>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <poise/convert.hpp>
#include <poise/error.hpp>
#include <poise/model.hpp>
#include <poise/tokenizer.hpp>
#include <poise/values.hpp>
#include <poise/verify.hpp>

#include "bytes/utf8.hpp"
#include "family/config_json.hpp"
#include "family/families.hpp"
#include "formats/format.hpp"
#include "support/directories.hpp"
#include "tokenizer/files/files.hpp"
#include "tokenizer/gguf/vocabulary.hpp"
#include "tokenizer/pipeline/special_around.hpp"
#include "tokenizer/sentencepiece/normalizer.hpp"
#include "tokenizer/tokens/byte_level.hpp"

namespace poise {
namespace {

constexpr std::string_view kLlama = "llama";
constexpr std::string_view kTinyLlama = "tiny_llama";

const std::string kTexts[] = {"",
                              "ab",
                              " ab",
                              "ab ",
                              "  ab  ab\n ab",
                              "xaby",
                              "XAB",
                              "a<s>b",
                              "a <s> b",
                              "ab</s>",
                              "<unk>ab",
                              "ab<go>ab",
                              "ab <go>  ab",
                              "AB <GO> AB",
                              "x<go>x <go>",
                              "[UNK] ab",
                              "\u2581ab a\u2581b",
                              "\u00e9 e\u0301 \u4f60\u597d",
                              "12 ab, 345!"};

// Holds the ids of the texts.
struct Answers {
  std::vector<std::vector<TokenId>> ids;
  std::vector<std::string> texts;
};

Answers answers(const Vocabulary& vocabulary) {
  Answers result;
  const Tokenizer tokenizer(vocabulary);
  for (const std::string& text : kTexts) {
    const std::vector<TokenId> ids = tokenizer.encode(text);
    result.ids.push_back(ids);
    result.ids.push_back(tokenizer.encode_with_special(text));
    for (const SpecialTokens special : {SpecialTokens::hidden, SpecialTokens::shown})
      result.texts.push_back(tokenizer.decode(ids, special));
  }
  return result;
}

// Describes a model with a vocabulary, or with attributes that describe one in GGUF's terms.
struct Kind {
  std::optional<Vocabulary> vocabulary = {};
  Attributes attributes = {};

  std::size_t size() const {
    if (vocabulary) return vocabulary->size();
    const Value* tokens = attributes.find("tokenizer.ggml.tokens");
    return tokens == nullptr ? 8 : tokens->get_if<Value::Array>()->size();
  }
};

Model small_model(const Kind& kind, std::string_view model_type) {
  const std::string json = fmt::format(
      R"({{"model_type": "{}", "hidden_size": 8, "intermediate_size": 8, "num_attention_heads": 2, "num_key_value_heads": 2,
      "num_hidden_layers": 1, "vocab_size": {}, "max_position_embeddings": 64}})",
      model_type, kind.size());
  Model model;
  parse_config(model, *parse_json(json, "config.json").get_if<Attributes>(), "config.json");
  for (const ExpectedTensor& tensor : find_family(model_type)->tensors.list_all(make_config_view(model))) {
    model.add(make_tensor(tensor.name, tensor.shape, std::vector<float>(*element_count(tensor.shape), 0.5F)));
  }
  model.vocabulary = kind.vocabulary;
  model.attributes = kind.attributes;
  return model;
}

// Adds a token as version 1 of ALT has it: with a lower score than those before.
void add(Vocabulary& vocabulary, std::string_view text, TokenType type = TokenType::normal) {
  vocabulary.add(text, -static_cast<float>(vocabulary.size()), type);
}

Vocabulary sentencepiece(VocabularyKind kind, bool bytes) {
  Vocabulary vocabulary;
  vocabulary.kind = kind;
  vocabulary.unk_id = 0;
  vocabulary.bos_id = 1;
  vocabulary.eos_id = 2;
  vocabulary.max_length = 64;
  add(vocabulary, "<unk>", TokenType::unknown);
  add(vocabulary, "<s>", TokenType::bos);
  add(vocabulary, "</s>", TokenType::eos);
  for (unsigned byte = 0; byte < 256 && bytes; ++byte)
    add(vocabulary, fmt::format("<0x{:02X}>", byte), TokenType::byte);
  // Merges make this token, sums of scores do not.
  vocabulary.add("\u2581ab",
                 kind == VocabularyKind::sentencepiece_unigram ? -1000.0F : -static_cast<float>(vocabulary.size()),
                 TokenType::normal);
  for (const char* text : {"ab", "\u2581a", "go", "\u2581", "a", "b", "e", "x", "<", ">", "s", "g", "o"})
    add(vocabulary, text);
  return vocabulary;
}

Vocabulary tiny_llama() {
  Vocabulary vocabulary;
  vocabulary.kind = VocabularyKind::byte_pair;
  for (const char* text : {"<unk>", "<pad>", "<bos>", "<eos>", "a", "b", "x", " ", "ab"}) add(vocabulary, text);
  vocabulary.unk_id = 0;
  vocabulary.pad_id = 1;
  vocabulary.bos_id = 2;
  vocabulary.eos_id = 3;
  vocabulary.merges = {{"a", "b"}};
  return vocabulary;
}

// Returns a table that replaces "x" by "y", in SentencePiece's form.
std::string charsmap() {
  std::vector<std::uint32_t> units(256);
  const std::uint32_t x = 'x' ^ 1U;
  units[0] = 1U << 10;
  units[x] = 0x80U << 10 | 1U << 8 | 'x';
  units[x ^ 0x80U] = 1U << 31;
  std::string bytes;
  const auto append = [&](std::uint32_t unit) {
    for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(unit >> shift & 0xFF);
  };
  append(1024);
  for (const std::uint32_t unit : units) append(unit);
  return bytes + "y" + '\0';
}

Attributes added_token(const Vocabulary& vocabulary, std::size_t id) {
  return {{"id", std::uint64_t{id}}, {"content", vocabulary.text(id)},
          {"single_word", false},    {"lstrip", false},
          {"rstrip", false},         {"normalized", false},
          {"special", false}};
}

std::function<void(Vocabulary&)> with_added(const char* flag = nullptr) {
  return [=](Vocabulary& vocabulary) {
    add(vocabulary, "<go>", TokenType::user_defined);
    Attributes token = added_token(vocabulary, vocabulary.size() - 1);
    if (flag != nullptr) token.set(flag, true);
    vocabulary.pipeline.set("added_tokens", Value::Array{token});
  };
}

std::string join(const std::vector<std::string>& items) { return fmt::format("{}", fmt::join(items, ", ")); }

Vocabulary json(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return read_tokenizer_json(*Source::from_memory({bytes.begin(), bytes.end()}, "tokenizer.json"));
}

std::string tokenizer_json(const std::string& parts, const std::string& model, const std::string& added = "") {
  return fmt::format(R"({{"version": "1.0", "added_tokens": [{}], {}, "model": {}}})", added, parts, model);
}

std::string read_listed_tokens(const std::vector<std::string>& texts) {
  std::vector<std::string> items;
  for (const std::string& text : texts) items.push_back(fmt::format("{}: {}", to_json(text), items.size()));
  return join(items);
}

// Returns the alphabet of bytes, and "ab" with a space in front and without.
std::string byte_level_model(const std::string& fields = "") {
  std::vector<std::string> texts;
  for (char32_t code = 0; code < 0x200; ++code) {
    if (byte_level::find_byte(code) >= 0) append_utf8(texts.emplace_back(), code);
  }
  for (const char* text : {"ab", "\u0120ab", "\u0120a", "go"}) texts.emplace_back(text);
  return fmt::format(R"({{"type": "BPE", {}"vocab": {{{}}}, "merges": ["a b", "g o", "\u0120 ab", "\u0120 a"]}})",
                     fields, read_listed_tokens(texts));
}

const std::string kBytes =
    R"("pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true}, "decoder": {"type": "ByteLevel"})";

Kind byte_level(const std::string& parts, const std::string& model = byte_level_model(),
                const std::string& added = "") {
  return {json(tokenizer_json(fmt::format("{}{}{}", kBytes, parts.empty() ? "" : ", ", parts), model, added))};
}

std::string go(const std::string& flags) {
  return fmt::format(R"({{"id": 260, "content": "<go>"{}{}}})", flags.empty() ? "" : ", ", flags);
}

// Returns a tokenizer.json with Gemma's steps.
std::string spaced_model(const std::string& fields = "") {
  std::vector<std::string> texts = {"<unk>", "<s>"};
  for (unsigned byte = 0; byte < 256; ++byte) texts.push_back(fmt::format("<0x{:02X}>", byte));
  for (const char* text : {"\u2581", "a", "b", "x", "ab", "\u2581ab"}) texts.emplace_back(text);
  return fmt::format(
      R"({{"type": "BPE", "unk_token": "<unk>", "fuse_unk": true, "byte_fallback": true, {}"vocab": {{{}}}, "merges": ["a b", "\u2581 ab"]}})",
      fields, read_listed_tokens(texts));
}
const std::string kSpaced = R"("normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"},
    "decoder": {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}, {"type": "ByteFallback"},
    {"type": "Fuse"}]})";

std::string unigram_model(const std::string& score = "-2.5") {
  return fmt::format(
      R"({{"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0], ["\u2581", {}], ["a", -3], ["b", -3], ["x", -4], ["\u2581ab", -4]]}})",
      score);
}
const std::string kMetaspace =
    R"("pre_tokenizer": {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always"},
    "decoder": {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always"})";
const std::string kRemoval =
    R"("normalizer": {"type": "Sequence", "normalizers": [{"type": "Strip", "strip_left": true, "strip_right": true},
    {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}]}, )";

std::string wordpiece_model(const std::string& fields = "") {
  return fmt::format(R"({{"type": "WordPiece", "unk_token": "[UNK]", {}"vocab": {{{}}}}})", fields,
                     read_listed_tokens({"[UNK]", "[CLS]", "[SEP]", "ab", "a", "##b", "x", "##a", ",", "!"}));
}
std::string bert(const std::string& flags) {
  return fmt::format(
      R"("normalizer": {{"type": "BertNormalizer"{}}}, "pre_tokenizer": {{"type": "BertPreTokenizer"}}, "decoder": {{"type": "WordPiece"}},
      "post_processor": {{"type": "BertProcessing", "cls": ["[CLS]", 1], "sep": ["[SEP]", 2]}})",
      flags);
}
constexpr const char* kBertSpecial =
    R"({"id": 0, "content": "[UNK]", "special": true}, {"id": 1, "content": "[CLS]", "special": true}, {"id": 2, "content": "[SEP]", "special": true})";

// Returns a vocabulary as a GGUF file's metadata have it.
Attributes gguf_attributes(const std::string& model, const std::string& pre, const std::vector<std::string>& texts,
                           const std::vector<int>& types, const Attributes& more) {
  Value::Array tokens;
  Value::Array numbers;
  Value::Array scores;
  for (const std::string& text : texts) {
    tokens.emplace_back(text);
    numbers.emplace_back(numbers.size() < types.size() ? types[numbers.size()] : 1);
    scores.emplace_back(-1.0 - static_cast<double>(scores.size()));
  }
  Attributes attributes{{"general.architecture", "llama"}, {"tokenizer.ggml.model", model},
                        {"tokenizer.ggml.pre", pre},       {"tokenizer.ggml.tokens", tokens},
                        {"tokenizer.ggml.scores", scores}, {"tokenizer.ggml.token_type", numbers}};
  for (const auto& [key, value] : more) attributes.set(key, value);
  return attributes;
}

struct Case {
  const char* name;
  const char* beside;  // what this one has more than the case of that name; "": a kind of its own
  std::function<Kind()> make;
};

constexpr const char* kSp = "sentencepiece";
constexpr const char* kUni = "sentencepiece_unigram";
constexpr const char* kByteLevel = "byte_level";
constexpr const char* kUnigram = "unigram";

// Changes a SentencePiece vocabulary.
using Change = std::function<void(Vocabulary&)>;
std::function<Kind()> changed(VocabularyKind kind, bool bytes, const Change& change) {
  return [=] {
    Kind made{sentencepiece(kind, bytes)};
    if (change) change(*made.vocabulary);
    return made;
  };
}
std::function<Kind()> pieces(const Change& change) { return changed(VocabularyKind::sentencepiece_bpe, true, change); }
std::function<Kind()> sums(const Change& change) {
  return changed(VocabularyKind::sentencepiece_unigram, false, change);
}

const Case kCases[] = {
    {kSp, "", pieces({})},
    {"sentencepiece_no_bytes", kSp, changed(VocabularyKind::sentencepiece_bpe, false, {})},
    {"sentencepiece_no_unknown", kSp, pieces([](Vocabulary& v) { v.unk_id = -1; })},
    {"sentencepiece_scores", kSp, pieces([](Vocabulary& v) { v.add("aba", 5, TokenType::normal); })},
    {"sentencepiece_no_prefix", kSp, pieces([](Vocabulary& v) { v.add_dummy_prefix = false; })},
    {"sentencepiece_removal", kSp, pieces([](Vocabulary& v) { v.remove_extra_whitespaces = true; })},
    {"sentencepiece_charsmap", kSp, pieces([](Vocabulary& v) {
       v.normalizer = "user_defined";
       set_normalizer(v, {.charsmap = charsmap(), .remove_extra_whitespaces = false});
     })},
    {"sentencepiece_spaces", kSp, pieces([](Vocabulary& v) {
       set_normalizer(v, {.charsmap = {}, .remove_extra_whitespaces = false, .escape_whitespaces = false});
     })},
    {"sentencepiece_suffix", kSp, pieces([](Vocabulary& v) {
       set_normalizer(v, {.charsmap = {}, .remove_extra_whitespaces = false, .treat_whitespace_as_suffix = true});
     })},
    {"sentencepiece_denormalizer", kSp, pieces([](Vocabulary& v) {
       set_denormalizer(v, {.charsmap = charsmap(), .add_dummy_prefix = false, .remove_extra_whitespaces = false});
     })},
    {"sentencepiece_repeated", kSp, pieces([](Vocabulary& v) { add(v, "ab"); })},
    {"sentencepiece_repeated_control", kSp, pieces([](Vocabulary& v) { add(v, "</s>", TokenType::control); })},
    {"sentencepiece_empty", kSp, pieces([](Vocabulary& v) { add(v, ""); })},
    {"sentencepiece_unused", kSp, pieces([](Vocabulary& v) { add(v, "xa", TokenType::unused); })},
    {"sentencepiece_user_defined", kSp, pieces([](Vocabulary& v) { add(v, "<go>", TokenType::user_defined); })},
    {"sentencepiece_pad", kSp, pieces([](Vocabulary& v) {
       v.pad_id = static_cast<std::int32_t>(v.size());
       add(v, "<pad>", TokenType::pad);
     })},
    {"sentencepiece_control", kSp, pieces([](Vocabulary& v) { add(v, "<go>", TokenType::control); })},
    {"sentencepiece_no_bos", kSp, pieces([](Vocabulary& v) { set_special_around(v, false, false); })},
    {"sentencepiece_eos", kSp, pieces([](Vocabulary& v) { set_special_around(v, true, true); })},
    {"sentencepiece_around", kSp, pieces([](Vocabulary& v) {
       v.pipeline.set("post_processor", make_post_processor(v, {{1, 1}, {2}}));
     })},
    {"sentencepiece_added", kSp, pieces(with_added())},
    {"sentencepiece_added_lstrip", kSp, pieces(with_added("lstrip"))},
    {"sentencepiece_added_rstrip", kSp, pieces(with_added("rstrip"))},
    {"sentencepiece_added_single_word", kSp, pieces(with_added("single_word"))},
    {"sentencepiece_added_normalized", kSp, pieces(with_added("normalized"))},
    {"sentencepiece_added_special", kSp, pieces(with_added("special"))},
    {"sentencepiece_added_bos", kSp,
     pieces([](Vocabulary& v) { v.pipeline.set("added_tokens", Value::Array{added_token(v, 1)}); })},
    {"sentencepiece_prepend_first", kSp, pieces([](Vocabulary& v) { set_prepend_first(v); })},
    {"sentencepiece_added_prepend_first", "sentencepiece_added", pieces([](Vocabulary& v) {
       with_added()(v);
       set_prepend_first(v);
     })},
    {"sentencepiece_added_prepend_first_removal", "sentencepiece_removal", pieces([](Vocabulary& v) {
       with_added()(v);
       set_prepend_first(v);
       v.remove_extra_whitespaces = true;
     })},
    {"sentencepiece_added_piece", kSp,
     pieces([](Vocabulary& v) { v.pipeline.set("added_tokens", Value::Array{added_token(v, v.size() - 14 + 5)}); })},
    {kUni, "", sums({})},
    {"sentencepiece_unigram_bytes", kUni, changed(VocabularyKind::sentencepiece_unigram, true, {})},
    {"sentencepiece_unigram_removal", kUni, sums([](Vocabulary& v) { v.remove_extra_whitespaces = true; })},
    {"sentencepiece_unigram_removal_no_prefix", kUni, sums([](Vocabulary& v) {
       v.remove_extra_whitespaces = true;
       v.add_dummy_prefix = false;
     })},
    {"sentencepiece_unigram_charsmap", kUni, sums([](Vocabulary& v) {
       v.normalizer = "user_defined";
       set_normalizer(v, {.charsmap = charsmap(), .remove_extra_whitespaces = false});
     })},
    {"sentencepiece_unigram_spaces", kUni, sums([](Vocabulary& v) {
       set_normalizer(v, {.charsmap = {}, .remove_extra_whitespaces = false, .escape_whitespaces = false});
     })},
    {"sentencepiece_unigram_suffix", kUni, sums([](Vocabulary& v) {
       set_normalizer(v, {.charsmap = {}, .remove_extra_whitespaces = false, .treat_whitespace_as_suffix = true});
     })},
    {"sentencepiece_unigram_denormalizer", kUni, sums([](Vocabulary& v) {
       set_denormalizer(v, {.charsmap = charsmap(), .add_dummy_prefix = false, .remove_extra_whitespaces = false});
     })},
    {"sentencepiece_unigram_user_defined", kUni, sums([](Vocabulary& v) { add(v, "<go>", TokenType::user_defined); })},
    {"sentencepiece_unigram_repeated", kUni, sums([](Vocabulary& v) { v.add("ab", 5, TokenType::normal); })},
    {"sentencepiece_unigram_unused", kUni, sums([](Vocabulary& v) { v.add("xa", 5, TokenType::unused); })},
    {"sentencepiece_unigram_eos", kUni, sums([](Vocabulary& v) { set_special_around(v, false, true); })},
    {"sentencepiece_unigram_added", kUni, sums(with_added())},
    {"sentencepiece_unigram_added_prepend_first", "sentencepiece_unigram_added", sums([](Vocabulary& v) {
       with_added()(v);
       set_prepend_first(v);
     })},
    {"sentencepiece_unigram_added_lstrip", kUni, sums(with_added("lstrip"))},
    {"tiny_llama", "", [] { return Kind{tiny_llama()}; }},
    {"tiny_llama_repeated", "tiny_llama",
     [] {
       Kind kind{tiny_llama()};
       add(*kind.vocabulary, "ab");
       return kind;
     }},
    {kByteLevel, "", [] { return byte_level(""); }},
    {"byte_level_repeated", kByteLevel,
     [] {
       Kind kind = byte_level("");
       add(*kind.vocabulary, "ab");
       return kind;
     }},
    {"byte_level_prefix", kByteLevel,
     [] {
       return Kind{json(tokenizer_json(
           R"("pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": true, "use_regex": true}, "decoder": {"type": "ByteLevel"})",
           byte_level_model()))};
     }},
    {"byte_level_nfc", kByteLevel, [] { return byte_level(R"("normalizer": {"type": "NFC"})"); }},
    {"byte_level_lowercase", kByteLevel, [] { return byte_level(R"("normalizer": {"type": "Lowercase"})"); }},
    {"byte_level_whole_words", kByteLevel,
     [] { return byte_level("", byte_level_model(R"("ignore_merges": true, )")); }},
    {"byte_level_cuts", kByteLevel,
     [] {
       return Kind{json(tokenizer_json(
           R"("pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": true},
           {"type": "Split", "pattern": {"Regex": "a"}, "behavior": "Isolated", "invert": false},
           {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]}, "decoder": {"type": "ByteLevel"})",
           byte_level_model()))};
     }},
    {"byte_level_decoder", kByteLevel,
     [] {
       return Kind{json(tokenizer_json(
           R"("pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true}, "decoder": {"type": "Fuse"})",
           byte_level_model()))};
     }},
    {"byte_level_added", kByteLevel, [] { return byte_level("", byte_level_model(), go("")); }},
    {"byte_level_added_special", kByteLevel,
     [] { return byte_level("", byte_level_model(), go(R"("special": true)")); }},
    {"byte_level_added_lstrip", kByteLevel,
     [] { return byte_level("", byte_level_model(), go(R"("lstrip": true, "special": true)")); }},
    {"byte_level_added_rstrip", kByteLevel,
     [] { return byte_level("", byte_level_model(), go(R"("rstrip": true, "special": true)")); }},
    {"byte_level_added_single_word", kByteLevel,
     [] { return byte_level("", byte_level_model(), go(R"("single_word": true)")); }},
    {"byte_level_added_normalized", "byte_level_lowercase",
     [] {
       return byte_level(R"("normalizer": {"type": "Lowercase"})", byte_level_model(), go(R"("normalized": true)"));
     }},
    {"byte_level_added_raw", "byte_level_lowercase",
     [] {
       return byte_level(R"("normalizer": {"type": "Lowercase"})", byte_level_model(), go(R"("normalized": false)"));
     }},
    {"byte_level_added_piece", kByteLevel,
     [] { return byte_level("", byte_level_model(), R"({"id": 259, "content": "go", "normalized": false})"); }},
    {"byte_level_template", "byte_level_added_special",
     [] {
       return byte_level(
           R"("post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<go>", "type_id": 0}},
           {"Sequence": {"id": "A", "type_id": 0}}], "special_tokens": {"<go>": {"id": "<go>", "ids": [260], "tokens": ["<go>"]}}})",
           byte_level_model(), go(R"("special": true)"));
     }},
    {"byte_level_template_twice", "byte_level_added_special",
     [] {
       return byte_level(
           R"("post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<go>", "type_id": 0}},
           {"SpecialToken": {"id": "<go>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
           "special_tokens": {"<go>": {"id": "<go>", "ids": [260], "tokens": ["<go>"]}}})",
           byte_level_model(), go(R"("special": true)"));
     }},
    {"spaced", "",
     [] {
       return Kind{json(tokenizer_json(kSpaced, spaced_model(), R"({"id": 0, "content": "<unk>", "special": true})"))};
     }},
    {"spaced_bos", "spaced",
     [] {
       return Kind{json(tokenizer_json(
           kSpaced, spaced_model(),
           R"({"id": 0, "content": "<unk>", "special": true}, {"id": 1, "content": "<s>", "special": true, "rstrip": true})"))};
     }},
    {"spaced_whole_words", "spaced",
     [] { return Kind{json(tokenizer_json(kSpaced, spaced_model(R"("ignore_merges": true, )")))}; }},
    {kUnigram, "", [] { return Kind{json(tokenizer_json(kMetaspace, unigram_model()))}; }},
    {"unigram_repeated", kUnigram,
     [] {
       Kind kind{json(tokenizer_json(kMetaspace, unigram_model()))};
       add(*kind.vocabulary, "a");
       return kind;
     }},
    {"unigram_removal", kUnigram, [] { return Kind{json(tokenizer_json(kRemoval + kMetaspace, unigram_model()))}; }},
    {"unigram_double_scores", kUnigram,
     [] { return Kind{json(tokenizer_json(kMetaspace, unigram_model("-2.4999999999")))}; }},
    {"unigram_nfkc", kUnigram,
     [] { return Kind{json(tokenizer_json(R"("normalizer": {"type": "NFKC"}, )" + kMetaspace, unigram_model()))}; }},
    {"unigram_added", kUnigram,
     [] {
       return Kind{json(tokenizer_json(kMetaspace, unigram_model(),
                                       R"({"id": 6, "content": "<go>", "lstrip": true, "special": true})"))};
     }},
    {"wordpiece", "", [] { return Kind{json(tokenizer_json(bert(""), wordpiece_model(), kBertSpecial))}; }},
    {"wordpiece_repeated", "wordpiece",
     [] {
       Kind kind{json(tokenizer_json(bert(""), wordpiece_model(), kBertSpecial))};
       add(*kind.vocabulary, "ab");
       return kind;
     }},
    {"wordpiece_cased", "wordpiece",
     [] { return Kind{json(tokenizer_json(bert(R"(, "lowercase": false)"), wordpiece_model(), kBertSpecial))}; }},
    {"wordpiece_accents", "wordpiece",
     [] { return Kind{json(tokenizer_json(bert(R"(, "strip_accents": false)"), wordpiece_model(), kBertSpecial))}; }},
    {"wordpiece_short_words", "wordpiece",
     [] {
       return Kind{json(tokenizer_json(bert(""), wordpiece_model(R"("max_input_chars_per_word": 2, )"), kBertSpecial))};
     }},
    {"wordpiece_decoder", "wordpiece",
     [] {
       Kind kind{json(tokenizer_json(bert(""), wordpiece_model(), kBertSpecial))};
       kind.vocabulary->pipeline.set("decoder",
                                     Attributes{{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", false}});
       return kind;
     }},
    {"wordlevel", "",
     [] {
       return Kind{json(
           tokenizer_json(R"("pre_tokenizer": {"type": "Whitespace"})",
                          R"({"type": "WordLevel", "unk_token": "[UNK]", "vocab": {"[UNK]": 0, "ab": 1, "a": 2}})"))};
     }},
    {"gguf_llama_model_of_other_attributes", "",
     [] {
       return Kind{{},
                   gguf_attributes("gpt2", "gpt-2", {"a", "b", "x", "\u0120", "ab", "\u0120ab", "<s>", "</s>", "<go>"},
                                   {1, 1, 1, 1, 1, 1, 3, 3, 4},
                                   {{"tokenizer.ggml.merges", Value::Array{"a b", "\u0120 ab"}},
                                    {"tokenizer.ggml.bos_token_id", std::uint64_t{6}},
                                    {"tokenizer.ggml.add_bos_token", true}})};
     }},
    {"gguf_repeated", "",
     [] {
       return Kind{{},
                   gguf_attributes("gpt2", "gpt-2", {"a", "b", "x", "\u0120", "ab", "\u0120ab", "<s>", "</s>", "ab"},
                                   {1, 1, 1, 1, 1, 1, 3, 3},
                                   {{"tokenizer.ggml.merges", Value::Array{"a b", "\u0120 ab"}},
                                    {"tokenizer.ggml.bos_token_id", std::uint64_t{6}}})};
     }},
    {"gguf_t5", "",
     [] {
       return Kind{
           {},
           gguf_attributes("t5", "default", {"<pad>", "</s>", "<unk>", "\u2581", "a", "b", "x", "\u2581ab"}, {3, 3, 2},
                           {{"tokenizer.ggml.eos_token_id", std::uint64_t{1}},
                            {"tokenizer.ggml.unknown_token_id", std::uint64_t{2}}})};
     }},
    {"gguf_bert", "",
     [] {
       return Kind{{},
                   gguf_attributes("bert", "default",
                                   {"[UNK]", "[CLS]", "[SEP]", "\u2581ab", "\u2581a", "b", "\u2581x"}, {3, 3, 3},
                                   {{"tokenizer.ggml.unknown_token_id", std::uint64_t{0}},
                                    {"tokenizer.ggml.bos_token_id", std::uint64_t{1}},
                                    {"tokenizer.ggml.seperator_token_id", std::uint64_t{2}}})};
     }},
};

const Case* find_case(std::string_view name) {
  const auto* found = std::ranges::find_if(kCases, [&](const Case& test_case) { return name == test_case.name; });
  return found == std::end(kCases) ? nullptr : found;
}

// Returns the texts that another program encodes differently.
std::string difference(const Answers& found, const Answers& expected) {
  std::string difference;
  for (std::size_t i = 0; i < std::size(kTexts); ++i) {
    for (const std::size_t k : {2 * i, 2 * i + 1}) {
      if (found.ids[k] == expected.ids[k] && found.texts[k] == expected.texts[k]) continue;
      difference += fmt::format("\"{}\": [{}] \"{}\", expected [{}] \"{}\"\n", kTexts[i], fmt::join(found.ids[k], " "),
                                found.texts[k], fmt::join(expected.ids[k], " "), expected.texts[k]);
    }
  }
  return difference;
}

struct Outcome {
  bool refused = false;
  std::string fault;  // for which the reader refuses the file, or verify() does
  std::vector<std::string> losses;
  std::string difference;

  bool same() const { return !refused && difference.empty(); }
};

// Writes a model as the format, opens it again, and asks both.
Outcome through(const Kind& kind, const Format& format, const std::filesystem::path& path) {
  Outcome outcome;
  std::filesystem::remove_all(path);
  const Model model = small_model(kind, format.info.name == "tllm" ? kTinyLlama : kLlama);
  try {
    const Plan planned = plan(model, format.info.name);
    outcome.losses = planned.losses;
    write(planned, path);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unsupported) << error.message();
    outcome.refused = true;
    return outcome;
  }
  const Answers expected = answers(make_vocabulary(model).value());
  std::optional<Vocabulary> vocabulary;
  try {
    vocabulary = make_vocabulary(open(path));
    if (vocabulary) (void)Tokenizer(*vocabulary);
    const std::vector<Finding> findings = verify(path).faults;
    const auto wrong = std::ranges::find(findings, Severity::error, &Finding::severity);
    if (wrong != findings.end()) outcome.fault = wrong->message;
  } catch (const Error& error) {
    outcome.fault = error.message();
    return outcome;
  }
  try {
    outcome.difference = vocabulary ? difference(answers(*vocabulary), expected) : "there is no vocabulary";
  } catch (const Error& error) {  // a text without a token
    outcome.difference = error.message();
  }
  return outcome;
}

// Returns the losses that a format reports for similar models, without what is special about this case: those of the
// neighbouring case that it holds, or of a model without a vocabulary.
std::vector<std::string> usual_losses(const Case& test_case, const Format& format, const std::filesystem::path& path) {
  for (const Case* beside = find_case(test_case.beside); beside != nullptr; beside = find_case(beside->beside)) {
    const Outcome outcome = through(beside->make(), format, path);
    if (outcome.same()) return outcome.losses;
  }
  return plan(small_model({}, format.info.name == "tllm" ? kTinyLlama : kLlama), format.info.name).losses;
}

void PrintTo(const Case& test_case, std::ostream* out) { *out << test_case.name; }

class VocabularyThroughFormats : public testing::TestWithParam<Case> {};

TEST_P(VocabularyThroughFormats, MakesTheSameTokensOrReportsIt) {
  const support::TemporaryDirectory directory;
  const Kind kind = GetParam().make();
  std::size_t written = 0;
  for (const Format* format : list_all_formats()) {
    if (format->prepare == nullptr) continue;
    SCOPED_TRACE(format->info.name);
    const std::filesystem::path path = directory / fmt::format("{}{}", format->info.name, format->info.extension);
    const Outcome outcome = through(kind, *format, path);
    if (outcome.refused) continue;
    ++written;
    EXPECT_EQ(outcome.fault, "") << "no writer writes what its reader refuses";
    if (outcome.same()) continue;
    const std::vector<std::string> usual = usual_losses(GetParam(), *format, path);
    // The number of attributes does not describe a vocabulary.
    const auto tells = [&](const std::string& loss) {
      return std::ranges::find(usual, loss) == usual.end() &&
             (kind.vocabulary || loss.find("vocabulary") != std::string::npos);
    };
    const bool is_reported = std::ranges::any_of(outcome.losses, tells);
    EXPECT_TRUE(is_reported) << outcome.difference << "reported:\n"
                             << fmt::format("{}", fmt::join(outcome.losses, "\n"));
  }
  EXPECT_GE(written, 6U);
}

INSTANTIATE_TEST_SUITE_P(Kinds, VocabularyThroughFormats, testing::ValuesIn(kCases),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace poise
