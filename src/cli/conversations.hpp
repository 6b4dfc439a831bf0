// Conversations as arguments of commands: --messages, and the template that renders them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <CLI/CLI.hpp>

#include <poise/chat.hpp>
#include <poise/error.hpp>
#include <poise/session.hpp>

#include "cli/standard_input.hpp"

namespace poise::cli {

struct ConversationOptions {
  std::string messages;       // a file, or "-"; empty: none
  std::string template_file;  // a file, or the name of a built-in template; empty: the model's own
  bool no_generation_prompt = false;
  bool parse_special = false;
  // --system: the conversation is the system's message, unless that is empty, and the prompt as the user's message.
  std::optional<std::string> system = {};
  std::string prompt = {};

  bool is_given() const { return !messages.empty() || system.has_value(); }
  // Returns an error that names the conversation's file: invalid_file. Without a file, bad_argument.
  Error make_error(const std::string& message) const;
};

// Adds --messages, --template, --parse-special; adds --no-generation-prompt if the command shows texts. Returns the
// first.
CLI::Option* add_conversation_options(CLI::App& command, ConversationOptions& options, bool shows_texts);
// Adds --template alone.
void add_template_option(CLI::App& command, std::string& given);

// Returns {"role", "content"}.
Attributes make_message(std::string_view role, std::string_view content);
// Reads the file, or standard input; or makes a conversation of the prompt.
Conversation read_conversation(const ConversationOptions& options);
// Returns the model's template if `given` is empty, else a built-in one by its name, else the file's. Throws with
// advice if there is none.
ChatTemplate read_template(const std::string& given, const Tokenizer& tokenizer, bool has_tools);
// If `given` is a built-in template, ends generated texts where its answers end: at a token, which this adds to the
// model's end tokens, else at a stop text. A note on standard error names special tokens that the vocabulary lacks.
// Call this before load_weights().
void use_built_in_template(const std::string& given, Model& model, GenerateOptions& options, bool quiet);
// Returns the text of the conversation, rendered with the template.
ChatText read_chat_text(const ConversationOptions& options, const Tokenizer& tokenizer);

}  // namespace poise::cli
