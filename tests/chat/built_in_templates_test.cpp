// The texts are written by hand from the pages that src/chat/built_in_templates.cpp names. Those of chatml, llama2,
// llama3, mistral-v3, gemma, phi3, command-r and granite have the form that llama.cpp's tests/test-chat-template.cpp
// expects for these models.
#include "chat/built_in_templates.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poise/chat.hpp>
#include <poise/error.hpp>

#include "support/directories.hpp"
#include "support/errors.hpp"

namespace poise {
namespace {

using support::message_of;
using ::testing::HasSubstr;

Conversation short_talk(bool has_system) {
  Conversation talk;
  const auto add = [&](const char* role, const char* content) {
    talk.messages.emplace_back(Attributes{{"role", role}, {"content", content}});
  };
  if (has_system) add("system", "Be brief");
  add("user", "Hello");
  add("assistant", "Hi there");
  add("user", "Who?");
  return talk;
}

// Returns byte pieces of ASCII after "<s>" and "</s>". `adds_bos`: add_bos_token of tokenizer_config.json.
Vocabulary ascii_vocabulary(bool adds_bos) {
  Vocabulary vocabulary;
  vocabulary.kind = VocabularyKind::sentencepiece_bpe;
  vocabulary.add("<unk>", 0, TokenType::unknown);
  for (const char* special : {"<s>", "</s>"}) vocabulary.add(special, 0, TokenType::control);
  for (int byte = 0; byte < 256; ++byte) {
    constexpr const char* kDigits = "0123456789ABCDEF";
    vocabulary.add(std::string("<0x") + kDigits[byte / 16] + kDigits[byte % 16] + ">", 0, TokenType::byte);
  }
  vocabulary.unk_id = 0;
  vocabulary.bos_id = adds_bos ? 1 : -1;
  vocabulary.eos_id = 2;
  return vocabulary;
}

std::string rendered(const char* name, bool has_system = true, bool adds_bos = true) {
  const Tokenizer tokenizer(ascii_vocabulary(adds_bos));
  const BuiltInTemplate* const found = find_built_in_template(name);
  if (found == nullptr) return "no such template";
  return ChatTemplate(make_built_in_source(*found, tokenizer), tokenizer.vocabulary())
      .render(short_talk(has_system))
      .text;
}

TEST(BuiltInTemplates, MakeTheTextsThatTheModelsWereTrainedWith) {
  EXPECT_EQ(rendered("chatml"),
            "<s><|im_start|>system\nBe brief<|im_end|>\n<|im_start|>user\nHello<|im_end|>\n"
            "<|im_start|>assistant\nHi there<|im_end|>\n<|im_start|>user\nWho?<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(rendered("llama2"),
            "<s>[INST] <<SYS>>\nBe brief\n<</SYS>>\n\nHello [/INST] Hi there </s><s>[INST] Who? [/INST]");
  EXPECT_EQ(rendered("llama3"),
            "<s><|start_header_id|>system<|end_header_id|>\n\nBe brief<|eot_id|>"
            "<|start_header_id|>user<|end_header_id|>\n\nHello<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\nHi there<|eot_id|>"
            "<|start_header_id|>user<|end_header_id|>\n\nWho?<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\n");
  EXPECT_EQ(rendered("mistral"), "<s>[INST] Be brief\n\nHello [/INST] Hi there</s>[INST] Who? [/INST]");
  EXPECT_EQ(rendered("mistral-v3"), "<s>[INST] Be brief\n\nHello[/INST] Hi there</s>[INST] Who?[/INST]");
  EXPECT_EQ(rendered("mistral-tekken"), "<s>[INST]Be brief\n\nHello[/INST]Hi there</s>[INST]Who?[/INST]");
  EXPECT_EQ(rendered("gemma"),
            "<s><start_of_turn>user\nBe brief\n\nHello<end_of_turn>\n<start_of_turn>model\nHi there<end_of_turn>\n"
            "<start_of_turn>user\nWho?<end_of_turn>\n<start_of_turn>model\n");
  EXPECT_EQ(rendered("phi3"),
            "<s><|system|>\nBe brief<|end|>\n<|user|>\nHello<|end|>\n<|assistant|>\nHi there<|end|>\n"
            "<|user|>\nWho?<|end|>\n<|assistant|>\n");
  EXPECT_EQ(rendered("phi4"),
            "<s><|im_start|>system<|im_sep|>Be brief<|im_end|><|im_start|>user<|im_sep|>Hello<|im_end|>"
            "<|im_start|>assistant<|im_sep|>Hi there<|im_end|><|im_start|>user<|im_sep|>Who?<|im_end|>"
            "<|im_start|>assistant<|im_sep|>");
  EXPECT_EQ(rendered("zephyr"),
            "<s><|system|>\nBe brief</s>\n<|user|>\nHello</s>\n<|assistant|>\nHi there</s>\n<|user|>\nWho?</s>\n"
            "<|assistant|>\n");
  EXPECT_EQ(rendered("vicuna"), "<s>Be brief USER: Hello ASSISTANT: Hi there</s>USER: Who? ASSISTANT:");
  EXPECT_EQ(rendered("alpaca"),
            "<s>Be brief\n\n### Instruction:\nHello\n\n### Response:\nHi there</s>\n\n### Instruction:\nWho?\n\n"
            "### Response:\n");
  EXPECT_EQ(rendered("command-r"),
            "<s><|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|>Be brief<|END_OF_TURN_TOKEN|>"
            "<|START_OF_TURN_TOKEN|><|USER_TOKEN|>Hello<|END_OF_TURN_TOKEN|>"
            "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>Hi there<|END_OF_TURN_TOKEN|>"
            "<|START_OF_TURN_TOKEN|><|USER_TOKEN|>Who?<|END_OF_TURN_TOKEN|>"
            "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>");
  EXPECT_EQ(rendered("granite"),
            "<s><|start_of_role|>system<|end_of_role|>Be brief<|end_of_text|>\n"
            "<|start_of_role|>user<|end_of_role|>Hello<|end_of_text|>\n"
            "<|start_of_role|>assistant<|end_of_role|>Hi there<|end_of_text|>\n"
            "<|start_of_role|>user<|end_of_role|>Who?<|end_of_text|>\n<|start_of_role|>assistant<|end_of_role|>");
}

TEST(BuiltInTemplates, WorkWithoutASystemMessage) {
  EXPECT_EQ(rendered("mistral", false), "<s>[INST] Hello [/INST] Hi there</s>[INST] Who? [/INST]");
  EXPECT_EQ(rendered("llama2", false), "<s>[INST] Hello [/INST] Hi there </s><s>[INST] Who? [/INST]");
  EXPECT_THAT(rendered("gemma", false), HasSubstr("<s><start_of_turn>user\nHello<end_of_turn>"));
  EXPECT_THAT(rendered("phi3", false), HasSubstr("<s><|user|>\nHello<|end|>"));
  // These two have a system's message of their own.
  EXPECT_THAT(
      rendered("vicuna", false),
      HasSubstr("<s>A chat between a curious user and an artificial intelligence assistant. The assistant gives "
                "helpful, detailed, and polite answers to the user's questions. USER: Hello"));
  EXPECT_THAT(rendered("alpaca", false),
              HasSubstr("<s>Below is an instruction that describes a task. Write a response that appropriately "
                        "completes the request.\n\n### Instruction:\nHello"));
}

TEST(BuiltInTemplates, BeginWithBosOnlyWhereTheVocabularyAddsIt) {
  EXPECT_EQ(rendered("mistral", false, false), "[INST] Hello [/INST] Hi there</s>[INST] Who? [/INST]");
}

TEST(BuiltInTemplates, RefuseUnknownRoles) {
  const Tokenizer tokenizer(ascii_vocabulary(true));
  Conversation talk = short_talk(false);
  talk.messages.emplace_back(Attributes{{"role", "tool"}, {"content", "42"}});
  for (const BuiltInTemplate& row : get_built_in_templates()) {
    if (row.source.find("in turns") == std::string_view::npos) continue;
    const ChatTemplate chat(make_built_in_source(row, tokenizer), tokenizer.vocabulary());
    EXPECT_THAT(message_of([&] { (void)chat.render(talk); }), HasSubstr("found tool")) << row.name;
  }
}

// The template's text contains the models' special tokens, so that the tokenizer finds them; messages have none.
TEST(BuiltInTemplates, HaveSpecialTokensOnlyInTextOfTheTemplate) {
  const Tokenizer tokenizer(ascii_vocabulary(true));
  for (const BuiltInTemplate& row : get_built_in_templates()) {
    const ChatText chat =
        ChatTemplate(make_built_in_source(row, tokenizer), tokenizer.vocabulary()).render(short_talk(true));
    for (const std::string_view special : row.special) {
      std::size_t count = 0;
      for (std::size_t at = chat.text.find(special); at != std::string::npos; at = chat.text.find(special, at + 1)) {
        EXPECT_EQ(chat.from_messages.substr(at, special.size()), std::string(special.size(), '\0'))
            << row.name << " " << special;
        ++count;
      }
      EXPECT_GT(count, 0U) << row.name << " " << special;
    }
    const bool is_listed = std::ranges::find(row.special, row.end) != row.special.end();
    EXPECT_TRUE(row.end.empty() || is_listed) << row.name;
  }
}

TEST(BuiltInTemplates, AreInTheDocumentsTable) {
  std::ifstream file(source_directory() / "docs" / "chat.md");
  const std::string page((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  for (const BuiltInTemplate& row : get_built_in_templates())
    EXPECT_NE(page.find("\n| `" + std::string(row.name) + "` | "), std::string::npos) << row.name;
}

}  // namespace
}  // namespace poise
