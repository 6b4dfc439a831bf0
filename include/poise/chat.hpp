// Chat templates: conversations as the texts that instruct models were trained with.
//
//   const poise::ChatTemplate chat(session.tokenizer().vocabulary());
//   const poise::Conversation talk = poise::parse_conversation(R"([{"role": "user", "content": "Hello"}])", "talk");
//   session.feed(session.tokenizer().encode(chat.render(talk)));
//
// docs/chat.md lists what a template may use.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <poise/model.hpp>
#include <poise/tokenizer.hpp>
#include <poise/value.hpp>

namespace poise {

struct Conversation {
  Value::Array messages;              // {"role", "content", ...}, as the template wants them
  Value tools = {};                   // null: none
  Value documents = {};               // the same
  Attributes variables = {};          // others that the template may use: "enable_thinking"
  bool add_generation_prompt = true;  // ends with what opens the model's answer
};

// JSON: a list of messages, or {"messages", "tools", "documents", "add_generation_prompt", other variables}. Throws
// invalid_file, naming `name` and the message, for what is no list of objects with a role.
Conversation parse_conversation(std::string_view json, const std::string& name);

bool has_chat_template(const Vocabulary& vocabulary);

class ChatTemplate {
 public:
  // The vocabulary's: of several the one named "tool_use" where `has_tools`, else the one named "default". Throws
  // unsupported where there is none, and invalid_file, with the line, for one that is malformed.
  explicit ChatTemplate(const Vocabulary& vocabulary, bool has_tools = false);
  // That text, with the vocabulary's special tokens (bos_token, eos_token, ...). `name` opens messages.
  ChatTemplate(std::string_view source, const Vocabulary& vocabulary, std::string name = "chat template");
  ~ChatTemplate();
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;

  // Throws bad_argument, with the line, where the template refuses the conversation or cannot go on, and unsupported
  // where it takes more steps or memory than any should.
  ChatText render(const Conversation& conversation) const;

 private:
  struct Parts;
  std::unique_ptr<const Parts> parts_;
};

}  // namespace poise
