// Conversations as arguments of commands: --messages, and the template that renders them.
#pragma once

#include <optional>
#include <string>

#include <CLI/CLI.hpp>

#include <poise/chat.hpp>

namespace poise::cli {

struct ConversationOptions {
  std::string messages;       // a file, or "-"; empty: none
  std::string template_file;  // empty: the model's own
  bool no_generation_prompt = false;
  bool parse_special = false;

  bool is_given() const { return !messages.empty(); }
  // For messages of errors.
  std::string name() const { return messages == "-" ? "standard input" : messages; }
};

// --messages, --template, --parse-special; --no-generation-prompt if the command shows texts. Returns the first.
CLI::Option* add_conversation_options(CLI::App& command, ConversationOptions& options, bool shows_texts);
// --template alone.
void add_template_option(CLI::App& command, std::string& file);

// Reads the file, or standard input.
Conversation read_conversation(const ConversationOptions& options);
// The model's template, or the file's. Throws with advice if there is none.
ChatTemplate read_template(const std::string& file, const Vocabulary& vocabulary, bool has_tools);
// Renders the conversation with the template.
ChatText read_chat_text(const ConversationOptions& options, const Vocabulary& vocabulary);

}  // namespace poise::cli
