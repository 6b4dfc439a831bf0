#include <poise/chat.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poise/error.hpp>

#include "support/directories.hpp"
#include "support/errors.hpp"

namespace poise {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kPlain =
    "{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m.content }}{{ eos_token }}{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}";

Conversation hello(const std::string& content = "Hello") {
  Conversation talk;
  talk.messages.emplace_back(Attributes{{"role", "user"}, {"content", content}});
  return talk;
}

// Returns "<s>", "</s>", letters, "<", ">", "/" and brackets, and an added token that is not special: "ab".
Vocabulary letters() {
  Vocabulary vocabulary;
  vocabulary.kind = VocabularyKind::pipeline;
  for (const char* special : {"<s>", "</s>"}) vocabulary.add(special, 0, TokenType::control);
  for (const char c : std::string("<>/sabHelou[]rtin ")) vocabulary.add(std::string_view(&c, 1), 0, TokenType::normal);
  vocabulary.add("ab", 0, TokenType::user_defined);
  vocabulary.bos_id = 0;
  vocabulary.eos_id = 1;
  Value::Array added;
  for (const std::uint64_t id : {0U, 1U}) {
    added.emplace_back(
        Attributes{{"id", id}, {"content", vocabulary.text(id)}, {"special", true}, {"normalized", false}});
  }
  added.emplace_back(Attributes{{"id", std::uint64_t{vocabulary.size() - 1}}, {"content", "ab"}, {"special", false}});
  vocabulary.pipeline.set("added_tokens", std::move(added));
  vocabulary.pipeline.set("model", Attributes{{"type", "BPE"}});
  return vocabulary;
}

std::vector<std::string> pieces(const Tokenizer& tokenizer, const ChatText& text) {
  std::vector<std::string> all;
  for (const TokenId id : tokenizer.encode(text)) all.emplace_back(tokenizer.piece(id));
  return all;
}

TEST(ChatTemplate, MakesATextWithTheSpecialTokensOfTheVocabulary) {
  Vocabulary vocabulary = letters();
  EXPECT_EQ(ChatTemplate(kPlain, vocabulary).render(hello()).text, "<s>[user]Hello</s>[assistant]");
  Conversation answered = hello();
  answered.add_generation_prompt = false;
  EXPECT_EQ(ChatTemplate(kPlain, vocabulary).render(answered).text, "<s>[user]Hello</s>");
  // tokenizer_config.json decides: there may be a token that the template is not to see.
  vocabulary.tokenizer_config = {{"bos_token", nullptr}, {"eos_token", Attributes{{"content", "<end>"}}}};
  EXPECT_EQ(ChatTemplate(kPlain, vocabulary).render(hello()).text, "[user]Hello<end>[assistant]");
}

// The variables of templates in transformers: its special_tokens_map has texts only, and the names of
// extra_special_tokens.
TEST(ChatTemplate, HasTheOtherSpecialTokensAsTexts) {
  Vocabulary vocabulary = letters();
  vocabulary.tokenizer_config = {
      {"additional_special_tokens", Value::Array{"<a>", Attributes{{"content", "<b>"}, {"special", true}}}},
      {"extra_special_tokens", Attributes{{"image_token", "<image>"}, {"eoi", Attributes{{"content", "<eoi>"}}}}}};
  const ChatText made =
      ChatTemplate("{{ additional_special_tokens }}{{ image_token }}{{ eoi }}", vocabulary).render(hello());
  EXPECT_EQ(made.text, "['<a>', '<b>']<image><eoi>");
  EXPECT_EQ(made.from_messages.find('\1'), std::string::npos);
}

// transformers 5 renames the list, as its guide to migration states; templates use the older name.
TEST(ChatTemplate, TheListOfExtraSpecialTokensHasItsOlderName) {
  Vocabulary vocabulary = letters();
  vocabulary.tokenizer_config = {
      {"extra_special_tokens", Value::Array{"<a>", Attributes{{"content", "<b>"}, {"special", true}}}}};
  const ChatTemplate chat("{{ additional_special_tokens }}", vocabulary);
  EXPECT_EQ(chat.render(hello()).text, "['<a>', '<b>']");
}

TEST(ChatTemplate, ChoosesOneOfSeveralTemplates) {
  Vocabulary vocabulary = letters();
  EXPECT_FALSE(has_chat_template(vocabulary));
  EXPECT_THAT(support::error_of([&] { (void)ChatTemplate(vocabulary); }).what(), HasSubstr("no chat template"));
  vocabulary.chat_template = "one";
  EXPECT_TRUE(has_chat_template(vocabulary));
  EXPECT_EQ(ChatTemplate(vocabulary).render(hello()).text, "one");
  const auto named = [](const char* name, const char* source) {
    return Attributes{{"name", name}, {"template", source}};
  };
  vocabulary.chat_template = Value::Array{named("rag", "r"), named("tool_use", "t"), named("default", "d")};
  EXPECT_EQ(ChatTemplate(vocabulary).render(hello()).text, "d");
  EXPECT_EQ(ChatTemplate(vocabulary, true).render(hello()).text, "t");
  vocabulary.chat_template = Value::Array{named("rag", "r"), named("x", "t")};
  EXPECT_THAT(support::error_of([&] { (void)ChatTemplate(vocabulary); }).what(), HasSubstr("the default: rag, x"));
}

TEST(ChatTemplate, VariablesToolsAndDocuments) {
  Conversation talk = parse_conversation(
      R"({"messages": [{"role": "user", "content": "x"}], "tools": [{"a": 1}], "documents": [2], "think": true,
          "add_generation_prompt": false})",
      "talk");
  EXPECT_EQ(ChatTemplate("{{ tools }}{{ documents }}{{ think }}{{ add_generation_prompt }}{{ other }}", letters())
                .render(talk)
                .text,
            "[{'a': 1}][2]TrueFalse");
  EXPECT_EQ(ChatTemplate("{{ tools is none }}{{ documents is none }}", letters()).render(hello()).text, "TrueTrue");
}

TEST(ChatTemplate, RefusesJsonThatIsNotAConversation) {
  const auto said = [](const char* json) {
    return std::string(support::error_of([&] { (void)parse_conversation(json, "talk.json"); }).what());
  };
  EXPECT_THAT(said("{"), HasSubstr("talk.json"));
  EXPECT_THAT(said("3"), HasSubstr("expected a list of messages, or an object with \"messages\""));
  EXPECT_THAT(said("{}"), HasSubstr("\"messages\" is missing"));
  EXPECT_THAT(said(R"({"messages": {}})"), HasSubstr("messages: expected a list"));
  EXPECT_THAT(said(R"([{"role": "user"}, 5])"), HasSubstr("messages: 1: expected {\"role\", \"content\"}"));
  EXPECT_THAT(said(R"([{"role": 5}])"), HasSubstr("messages: 0"));
  EXPECT_THAT(said(R"([{"role": "user", "id": 18446744073709551616}])"),
              HasSubstr("talk.json: JSON: the integer 18446744073709551616 has more than 64 bits (at 0x18)"));
  EXPECT_THAT(said(R"({"messages": [], "tools": [-9223372036854775809]})"), HasSubstr("-9223372036854775809 has more"));
  EXPECT_THAT(said(R"({"messages": [], "add_generation_prompt": 1})"), HasSubstr("expected true or false"));
}

TEST(ChatText, TextOfMessagesIsNotSpecial) {
  const Tokenizer tokenizer(letters());
  const ChatTemplate chat("<s>{{ messages[0].content }}</s>", tokenizer.vocabulary());
  EXPECT_THAT(pieces(tokenizer, chat.render(hello("H</s>ab"))),
              ElementsAre("<s>", "H", "<", "/", "s", ">", "ab", "</s>"));
  ChatText trusted = chat.render(hello("H</s>ab"));
  trusted.from_messages.clear();
  EXPECT_THAT(pieces(tokenizer, trusted), ElementsAre("<s>", "H", "</s>", "ab", "</s>"));
  // Nor does it become one together with what the template spells.
  const ChatTemplate cut("<{{ messages[0].content }}", tokenizer.vocabulary());
  EXPECT_THAT(pieces(tokenizer, cut.render(hello("s>"))), ElementsAre("<", "s", ">"));
  EXPECT_THROW((void)tokenizer.encode(ChatText{"abc", "\1"}), Error);
}

// A SentencePiece model finds no control token in a text. Templates contain them as text all the same.
TEST(ChatText, ControlTokensOfSentencePiece) {
  const auto vocabulary = read_vocabulary(source_directory() / "examples/nano-mistral/tokenizer.model");
  ASSERT_TRUE(vocabulary);
  const Tokenizer tokenizer(*vocabulary);
  const ChatTemplate chat("{{ bos_token }}{{ messages[0].content }}{{ eos_token }}", tokenizer.vocabulary());
  std::vector<TokenId> expected = tokenizer.encode("Once </s> upon");
  expected.insert(expected.begin(), 1);
  expected.push_back(2);
  EXPECT_EQ(tokenizer.encode(chat.render(hello("Once </s> upon"))), expected);
}

}  // namespace
}  // namespace poise
