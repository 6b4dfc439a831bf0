// Vocabularies in GGUF's form: read again they behave as before, or the losses list the differences.
#include "tokenizer/gguf/form.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "support/real_tokenizers.hpp"
#include "tokenizer/gguf/pre_tokenizers.hpp"
#include "tokenizer/pipeline/special_around.hpp"
#include "tokenizer/tokens/token_types.hpp"

namespace poise {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct RealCase {
  const char* name;
  const char* model;
  const char* pre;
};

class RealForm : public testing::TestWithParam<RealCase> {};

// The expected tokens are those of Hugging Face's library. GGUF does not hold Qwen's normal form, which changes three
// of the texts.
TEST_P(RealForm, BehavesAsBefore) {
  const auto real = support::real_tokenizer(GetParam().name);
  if (!real) GTEST_SKIP() << "the shared data are not there";
  const GgufForm form = make_gguf_form(real->vocabulary);
  ASSERT_TRUE(form.tokenizer);
  EXPECT_EQ(form.tokenizer->model, GetParam().model);
  EXPECT_EQ(form.tokenizer->pre, GetParam().pre);
  const bool normalizes = real->vocabulary.pipeline.find("normalizer") != nullptr &&
                          GetParam().model == std::string("gpt2") && !form.losses.empty();
  EXPECT_EQ(form.losses.size(), normalizes ? 1U : 0U) << testing::PrintToString(form.losses);
  const Tokenizer tokenizer(make_vocabulary(*form.tokenizer));
  std::size_t texts = 0;
  for (const support::ExpectedTokens& sample : real->expected) {
    if (normalizes && sample.decoded != sample.text) continue;
    ++texts;
    EXPECT_EQ(tokenizer.encode(sample.text), sample.ids) << sample.text.substr(0, 200);
    EXPECT_EQ(tokenizer.encode_with_special(sample.text), sample.ids_special) << sample.text.substr(0, 200);
  }
  EXPECT_GE(texts, 35U);
}

INSTANTIATE_TEST_SUITE_P(GgufForm, RealForm,
                         testing::Values(RealCase{"gpt2", "gpt2", "gpt-2"}, RealCase{"qwen2_5", "gpt2", "qwen2"},
                                         RealCase{"mistral_nemo", "gpt2", "tekken"},
                                         RealCase{"gemma2", "llama", "default"}),
                         [](const auto& test) { return std::string(test.param.name); });

GgufTokenizer small(std::string_view pre) {
  GgufTokenizer gguf;
  gguf.model = "gpt2";
  gguf.pre = pre;
  gguf.tokens = {"a", "b", "ab", "<s>"};
  gguf.token_type = {1, 1, 1, 3};
  gguf.merges = {"a b"};
  gguf.bos_token_id = 3;
  gguf.add_bos_token = true;
  return gguf;
}

// The name may differ, but text is cut in the same way.
TEST(GgufForm, FindsEveryPreTokenizerAgain) {
  for (const GgufPreTokenizer& row : list_gguf_pre_tokenizers()) {
    if (!row.byte_level) continue;
    for (const std::string_view name : row.names) {
      if (name.empty()) break;
      SCOPED_TRACE(std::string(name));
      const GgufForm form = make_gguf_form(make_vocabulary(small(name)));
      EXPECT_THAT(form.losses, IsEmpty());
      const GgufPreTokenizer* found = find_gguf_pre_tokenizer(form.tokenizer->pre);
      ASSERT_NE(found, nullptr);
      EXPECT_TRUE(std::ranges::equal(found->expressions, row.expressions));
      EXPECT_EQ(found->ignore_merges, row.ignore_merges);
      EXPECT_EQ(form.tokenizer->add_bos_token, true);
      EXPECT_EQ(form.tokenizer->bos_token_id, 3);
      EXPECT_THAT(form.tokenizer->merges, ElementsAre("a b"));
      EXPECT_THAT(form.tokenizer->token_type, ElementsAre(1, 1, 1, 3));
    }
  }
}

Vocabulary with(const char* key, const Value& part) {
  Vocabulary vocabulary = make_vocabulary(small("gpt-2"));
  vocabulary.pipeline.set(key, part);
  return vocabulary;
}

constexpr const char* kSpace = "\u2581";
const Attributes kBytes{{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};

// These are spellings of Llama 3's expression in other files.
TEST(GgufForm, SpellingsThatMatchTheSameHaveOneName) {
  constexpr std::string_view kBegin = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}])";
  for (const std::string_view rest : {R"(?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
                                      R"(?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)",
                                      R"(?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)"}) {
    for (const auto& [behavior, invert] : {std::pair("Isolated", false), std::pair("Removed", true)}) {
      const Attributes split{{"type", "Split"},
                             {"pattern", Attributes{{"Regex", fmt::format("{}{}", kBegin, rest)}}},
                             {"behavior", behavior},
                             {"invert", invert}};
      const GgufForm form = make_gguf_form(
          with("pre_tokenizer", Attributes{{"type", "Sequence"}, {"pretokenizers", Value::Array{split, kBytes}}}));
      EXPECT_EQ(form.tokenizer->pre, "dbrx") << rest;
      EXPECT_THAT(form.losses, IsEmpty()) << rest;
    }
  }
}

TEST(GgufForm, ReportsLosses) {
  const Attributes strange{
      {"type", "Split"}, {"pattern", Attributes{{"Regex", "[xyz]"}}}, {"behavior", "Isolated"}, {"invert", false}};
  const Value cuts(Attributes{{"type", "Sequence"}, {"pretokenizers", Value::Array{strange, kBytes}}});
  const GgufForm unknown = make_gguf_form(with("pre_tokenizer", cuts));
  EXPECT_EQ(unknown.tokenizer->pre, "default");
  EXPECT_THAT(unknown.losses, ElementsAre(HasSubstr("llama.cpp has no name for how the vocabulary cuts")));
  const Attributes prefix{{"type", "ByteLevel"}, {"add_prefix_space", true}};
  EXPECT_THAT(make_gguf_form(with("pre_tokenizer", prefix)).losses, ElementsAre(HasSubstr("no name for how")));
  EXPECT_THAT(make_gguf_form(with("normalizer", Attributes{{"type", "NFC"}})).losses,
              ElementsAre(HasSubstr("the normalizer NFC")));
  EXPECT_THAT(
      make_gguf_form(with("added_tokens",
                          Value::Array{Attributes{{"id", 3}, {"content", "<s>"}, {"special", true}, {"lstrip", true}}}))
          .losses,
      ElementsAre(HasSubstr("white space")));
  const Attributes roberta{{"type", "RobertaProcessing"}, {"cls", Value::Array{"a", 0}}, {"sep", Value::Array{"b", 1}}};
  const GgufForm around = make_gguf_form(with("post_processor", roberta));
  EXPECT_THAT(around.losses, ElementsAre(HasSubstr("the special tokens in front of texts: 0")));  // BOS has another id
  EXPECT_EQ(around.tokenizer->add_bos_token, false);
  EXPECT_EQ(around.tokenizer->eos_token_id, 1);
  EXPECT_EQ(around.tokenizer->add_eos_token, true);
}

TEST(GgufForm, RefusesOtherModels) {
  const GgufForm words = make_gguf_form(with("model", Attributes{{"type", "WordPiece"}}));
  EXPECT_FALSE(words.tokenizer);
  EXPECT_THAT(
      words.losses,
      ElementsAre("gguf cannot hold a vocabulary of the model WordPiece whose steps are not BERT's: it is left out"));
  const GgufForm sums = make_gguf_form(with("model", Attributes{{"type", "Unigram"}}));
  EXPECT_FALSE(sums.tokenizer);
  EXPECT_THAT(
      sums.losses,
      ElementsAre("gguf cannot hold a vocabulary of the model Unigram without an unknown token: it is left out"));
  const GgufForm level = make_gguf_form(with("model", Attributes{{"type", "WordLevel"}}));
  EXPECT_FALSE(level.tokenizer);
  EXPECT_THAT(level.losses, ElementsAre("gguf cannot hold a vocabulary of the model WordLevel: it is left out"));
  const GgufForm plain = make_gguf_form(with("pre_tokenizer", Attributes{{"type", "Whitespace"}}));
  EXPECT_FALSE(plain.tokenizer);
  EXPECT_THAT(plain.losses, Contains(HasSubstr("neither those of byte-level BPE nor those of SentencePiece")));
  Vocabulary tiny;
  tiny.kind = VocabularyKind::byte_pair;
  EXPECT_FALSE(make_gguf_form(tiny).tokenizer);
}

// SentencePiece's algorithm would also merge "a" and "bc" to "abc"; this list does not.
TEST(GgufForm, CountsMergesThatTheListDoesNotHave) {
  Vocabulary vocabulary;
  vocabulary.kind = VocabularyKind::pipeline;
  for (const char* text : {"a", "b", "c", "ab", "bc", "abc"}) vocabulary.add(text, 0, TokenType::normal);
  const auto replace = [](const char* text, const char* by) {
    return Attributes{{"type", "Replace"}, {"pattern", Attributes{{"String", text}}}, {"content", by}};
  };
  const Value::Array decoders{replace(kSpace, " "), Attributes{{"type", "ByteFallback"}}, Attributes{{"type", "Fuse"}}};
  vocabulary.pipeline = {{"normalizer", replace(" ", kSpace)},
                         {"decoder", Attributes{{"type", "Sequence"}, {"decoders", decoders}}},
                         {"model", Attributes{{"type", "BPE"}, {"byte_fallback", true}}}};
  vocabulary.merges = {{"b", "c"}, {"a", "b"}, {"ab", "c"}, {"a", "bc"}};
  const GgufForm all = make_gguf_form(vocabulary);
  const auto no_bytes = HasSubstr("ends with an error at a character without a token");
  EXPECT_THAT(all.losses, ElementsAre(no_bytes));
  Vocabulary with_bytes = vocabulary;
  for (int byte = 0; byte < 256; ++byte) with_bytes.add(fmt::format("<0x{:02X}>", byte), 0, TokenType::byte);
  EXPECT_THAT(make_gguf_form(with_bytes).losses, IsEmpty());
  EXPECT_EQ(all.tokenizer->model, "llama");
  EXPECT_EQ(all.tokenizer->add_space_prefix, false);
  EXPECT_THAT(all.tokenizer->scores, ElementsAre(-1e9F, -1e9F, -1e9F, -1, 0, -2));
  vocabulary.unk_id = 2;
  const auto form = make_sentencepiece_form(vocabulary);
  ASSERT_TRUE(form);
  EXPECT_EQ(form->kind, VocabularyKind::sentencepiece_bpe);
  EXPECT_FALSE(form->add_dummy_prefix);
  EXPECT_EQ(form->text(5), "abc");
  EXPECT_EQ(form->score(5), -2);
  EXPECT_EQ(form->type(2), TokenType::unknown);
  EXPECT_EQ(form->type(3), TokenType::normal);
  vocabulary.unk_id = -1;
  vocabulary.merges = {{"b", "c"}, {"a", "b"}, {"ab", "c"}};
  EXPECT_THAT(make_gguf_form(vocabulary).losses, ElementsAre(no_bytes, HasSubstr("(1 more pair)")));
}

TEST(GgufForm, OtherVocabulariesDoNotBecomeSentencePiece) {
  Vocabulary vocabulary;
  for (const VocabularyKind kind :
       {VocabularyKind::sentencepiece_bpe, VocabularyKind::byte_pair, VocabularyKind::pipeline}) {
    vocabulary.kind = kind;
    EXPECT_FALSE(make_sentencepiece_form(vocabulary));
  }
}

void add_pieces(Vocabulary& vocabulary) {
  for (const char* text : {"\u2581", "a", "b"}) vocabulary.add(text, -3, TokenType::normal);
  vocabulary.add("\u2581ab", -4, TokenType::normal);
}

// Adds the special tokens that llama.cpp finds in a prompt.
void find_special_tokens(Vocabulary& vocabulary) {
  vocabulary.pipeline.set("added_tokens", find_gguf_added_tokens(vocabulary, {}));
}

Vocabulary sums_of_scores() {
  Vocabulary vocabulary;
  vocabulary.kind = VocabularyKind::sentencepiece_unigram;
  vocabulary.unk_id = 2;
  vocabulary.eos_id = 1;
  vocabulary.pad_id = 0;
  vocabulary.remove_extra_whitespaces = true;
  vocabulary.add("<pad>", 0, TokenType::pad);
  vocabulary.add("</s>", 0, TokenType::eos);
  vocabulary.add("<unk>", 0, TokenType::unknown);
  add_pieces(vocabulary);
  find_special_tokens(vocabulary);
  set_special_around(vocabulary, false, true);
  return vocabulary;
}

// llama.cpp's name for SentencePiece's Unigram is "t5".
TEST(GgufForm, HasSentencePiecesUnigram) {
  const Vocabulary vocabulary = sums_of_scores();
  const GgufForm form = make_gguf_form(vocabulary);
  EXPECT_THAT(form.losses, IsEmpty());
  ASSERT_TRUE(form.tokenizer);
  EXPECT_EQ(form.tokenizer->model, "t5");
  EXPECT_EQ(form.tokenizer->add_bos_token, false);
  EXPECT_EQ(form.tokenizer->add_eos_token, true);
  const Vocabulary reread = make_vocabulary(*form.tokenizer);
  EXPECT_EQ(reread, vocabulary);
  EXPECT_THAT(Tokenizer(reread).encode_with_special(" ab  xa "), ElementsAre(6, 3, 2, 4, 1));
  Vocabulary bytes = sums_of_scores();
  bytes.add("<0x41>", 0, TokenType::byte);
  EXPECT_THAT(make_gguf_form(bytes).losses,
              ElementsAre(HasSubstr("does not use byte tokens for characters without a token")));
  Vocabulary fewer = sums_of_scores();
  fewer.pipeline.erase("added_tokens");
  EXPECT_THAT(make_gguf_form(fewer).losses,
              ElementsAre("llama.cpp finds the texts of 3 special tokens in a prompt, which "
                          "the vocabulary does not: <pad>, </s>, <unk>"));
  Vocabulary more = sums_of_scores();
  Value::Array added = *more.pipeline.get_if<Value::Array>("added_tokens");
  added.emplace_back(Attributes{{"id", 4}, {"content", "a"}});
  more.pipeline.set("added_tokens", added);
  EXPECT_THAT(make_gguf_form(more).losses,
              ElementsAre("llama.cpp does not find the texts of 1 added tokens in a prompt: a"));
}

// This is the same tokenizer, described by steps of tokenizer.json.
TEST(GgufForm, HasUnigramOfTokenizerJson) {
  Vocabulary vocabulary;
  vocabulary.kind = VocabularyKind::pipeline;
  vocabulary.add("<unk>", 0, TokenType::normal);
  add_pieces(vocabulary);
  vocabulary.pipeline = {
      {"pre_tokenizer",
       Attributes{{"type", "Sequence"},
                  {"pretokenizers", Value::Array{Attributes{{"type", "WhitespaceSplit"}},
                                                 Attributes{{"type", "Metaspace"}, {"prepend_scheme", "always"}}}}}},
      {"decoder", Attributes{{"type", "Metaspace"}, {"prepend_scheme", "always"}}},
      {"model", Attributes{{"type", "Unigram"}, {"unk_id", 0}}}};
  vocabulary.pipeline.set("added_tokens", Value::Array{Attributes{{"id", 0}, {"content", "<unk>"}, {"special", true}}});
  const GgufForm form = make_gguf_form(vocabulary);
  EXPECT_THAT(form.losses, IsEmpty());
  ASSERT_TRUE(form.tokenizer);
  EXPECT_EQ(form.tokenizer->remove_extra_whitespaces, true);
  const Tokenizer before(vocabulary);
  const Tokenizer after(make_vocabulary(*form.tokenizer));
  for (const char* text : {"ab", " ab  ba", "xa xx b", "ba ", "a\u00e9b"})
    EXPECT_EQ(after.encode_with_special(text), before.encode_with_special(text)) << text;
  vocabulary.pipeline.set("normalizer", Attributes{{"type", "NFKC"}});
  EXPECT_THAT(make_gguf_form(vocabulary).losses, ElementsAre(HasSubstr("the normalizer NFKC")));
}

TEST(GgufForm, HasWordPiece) {
  Vocabulary vocabulary;
  vocabulary.kind = VocabularyKind::pipeline;
  for (const char* text : {"[UNK]", "<s>", "[SEP]"}) vocabulary.add(text, 0, TokenType::control);
  for (const char* text : {"un", "##able", "!", "[x]"}) vocabulary.add(text, 0, TokenType::normal);
  const Attributes around{
      {"type", "BertProcessing"}, {"cls", Value::Array{"<s>", 1}}, {"sep", Value::Array{"[SEP]", 2}}};
  vocabulary.pipeline = {{"normalizer", Attributes{{"type", "BertNormalizer"}, {"lowercase", false}}},
                         {"pre_tokenizer", Attributes{{"type", "BertPreTokenizer"}}},
                         {"post_processor", around},
                         {"decoder", Attributes{{"type", "WordPiece"}}},
                         {"model", Attributes{{"type", "WordPiece"}, {"unk_token", "[UNK]"}}}};
  find_special_tokens(vocabulary);
  const GgufForm form = make_gguf_form(vocabulary);
  EXPECT_THAT(form.losses, IsEmpty());
  ASSERT_TRUE(form.tokenizer);
  EXPECT_THAT(form.tokenizer->tokens,
              ElementsAre("[UNK]", "<s>", "[SEP]", "\xe2\x96\x81un", "able", "\xe2\x96\x81!", "\xe2\x96\x81[x]"));
  EXPECT_EQ(form.tokenizer->bos_token_id, 1);
  EXPECT_EQ(form.tokenizer->seperator_token_id, 2);
  EXPECT_EQ(form.tokenizer->strip_accents, std::nullopt);
  const Vocabulary reread = make_vocabulary(*form.tokenizer);
  for (std::size_t id = 0; id < vocabulary.size(); ++id) EXPECT_EQ(reread.text(id), vocabulary.text(id));
  Vocabulary stripping = vocabulary;
  stripping.pipeline.set("normalizer",
                         Attributes{{"type", "BertNormalizer"}, {"lowercase", false}, {"strip_accents", true}});
  const GgufForm stripped = make_gguf_form(stripping);
  EXPECT_THAT(stripped.losses, IsEmpty());
  ASSERT_TRUE(stripped.tokenizer);
  EXPECT_EQ(stripped.tokenizer->lowercase, false);
  EXPECT_EQ(stripped.tokenizer->strip_accents, true);
  EXPECT_THAT(Tokenizer(make_vocabulary(*stripped.tokenizer)).encode_with_special("\xc3\xbbnable"),
              ElementsAre(1, 3, 4, 2));
  const Tokenizer tokenizer(reread);
  EXPECT_THAT(tokenizer.encode_with_special("unable! Un"), ElementsAre(1, 3, 4, 5, 0, 2));
  vocabulary.pipeline.set("post_processor", nullptr);
  EXPECT_THAT(make_gguf_form(vocabulary).losses, ElementsAre(HasSubstr("puts one special token before a text")));
  vocabulary.pipeline.set("post_processor", around);
  vocabulary.pipeline.set("decoder", Attributes{{"type", "WordPiece"}, {"cleanup", false}});
  vocabulary.pipeline.set("model",
                          Attributes{{"type", "WordPiece"}, {"unk_token", "[UNK]"}, {"max_input_chars_per_word", 20}});
  EXPECT_THAT(make_gguf_form(vocabulary).losses,
              ElementsAre(HasSubstr("words of more than 20 characters"), HasSubstr("the decoder WordPiece")));
}

TEST(TokenTypes, HaveSentencePiecesNumbers) {
  EXPECT_FALSE(find_token_type(0));
  EXPECT_FALSE(find_token_type(7));
  const TokenType types[] = {TokenType::normal,       TokenType::unknown, TokenType::control,
                             TokenType::user_defined, TokenType::unused,  TokenType::byte};
  for (std::int32_t number = 1; number <= 6; ++number) {
    EXPECT_EQ(find_token_type(static_cast<std::uint64_t>(number)), types[number - 1]);
    EXPECT_EQ(find_token_type_number(types[number - 1]), number);
  }
  for (const TokenType type : {TokenType::bos, TokenType::eos, TokenType::pad})
    EXPECT_EQ(find_token_type_number(type), 3);
}

}  // namespace
}  // namespace poise
