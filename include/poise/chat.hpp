// Chat templates turn conversations into texts of the form that instruct models were trained with.
//
//   const poise::ChatTemplate chat(session.tokenizer().vocabulary());
//   const poise::Conversation talk = poise::parse_conversation(R"([{"role": "user", "content": "Hello"}])", "talk");
//   session.feed(session.tokenizer().encode(chat.render(talk)));
//
// docs/chat.md lists the features that a template may use. A const ChatTemplate is thread-safe.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <poise/model.hpp>
#include <poise/tokenizer.hpp>
#include <poise/value.hpp>

namespace poise {

struct Conversation {
  Value::Array messages;              // objects with the keys that the template reads: {"role", "content", ...}
  Value tools = {};                   // null: none
  Value documents = {};               // null: none
  Attributes variables = {};          // other variables of the template: "enable_thinking"
  bool add_generation_prompt = true;  // true: the text ends with the opening of the model's answer
};

// Parses JSON: a list of messages, or {"messages", "tools", "documents", "add_generation_prompt", other variables}.
// Throws invalid_file, with `name` as the path, for malformed JSON, for messages that are not a list of objects with a
// role, and for an add_generation_prompt that is not a boolean.
Conversation parse_conversation(std::string_view json, const std::string& name);

// Returns true if the vocabulary has a chat template, which may still be malformed.
bool has_chat_template(const Vocabulary& vocabulary);

// Describes a template that Poise has for models whose files have none (docs/chat.md).
struct BuiltInTemplateInfo {
  std::string_view name;  // "chatml"
  // The text that ends an answer, for GenerateOptions::stop_id if it is a token, else for GenerateOptions::stop. Empty:
  // the vocabulary's EOS ends an answer.
  std::string_view end;
};
// Returns all built-in templates, the most used first.
std::vector<BuiltInTemplateInfo> list_built_in_templates();

class ChatTemplate {
 public:
  // Takes the vocabulary's template: among several, "tool_use" if `has_tools`, else "default". Throws unsupported if
  // there is none, and invalid_file, with the line, for a malformed one.
  explicit ChatTemplate(const Vocabulary& vocabulary, bool has_tools = false);
  // Takes a given template with the vocabulary's special tokens (bos_token, eos_token, ...). `name` begins the messages
  // of errors.
  ChatTemplate(std::string_view source, const Vocabulary& vocabulary, std::string name = "chat template");
  // Returns the built-in template of that name, else the template with that source. Throws what the constructors throw.
  static ChatTemplate find(std::string_view name_or_source, const Tokenizer& tokenizer);
  ~ChatTemplate();
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;

  // Returns the text of a conversation. Throws bad_argument, with the line, if the template rejects the conversation or
  // fails, and unsupported if it takes too many steps or too much memory.
  ChatText render(const Conversation& conversation) const;

 private:
  struct Parts;
  std::unique_ptr<const Parts> parts_;
};

}  // namespace poise
