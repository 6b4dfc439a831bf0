// Conversations that commands are given: --messages, and the template that makes a text of them.
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
};

// --messages, --template, --parse-special; and where a command shows texts, --no-generation-prompt. Returns the first.
CLI::Option* add_conversation_options(CLI::App& command, ConversationOptions& options, bool shows_texts);
// --template alone.
void add_template_option(CLI::App& command, std::string& file);

// Reads the file, or standard input.
Conversation read_conversation(const ConversationOptions& options);
// The model's, or that of the file. Without one, says what helps.
ChatTemplate read_template(const std::string& file, const Vocabulary& vocabulary, bool has_tools);
// What the template makes of the conversation.
ChatText read_chat_text(const ConversationOptions& options, const Vocabulary& vocabulary);

}  // namespace poise::cli
