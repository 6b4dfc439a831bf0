// Adds the options of commands that take a conversation, and renders the conversation as text with a chat template.
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
  std::string messages;       // a file, or "-" for standard input; empty for none
  std::string template_file;  // a file, or the name of a built-in template; empty: the model's own
  bool no_generation_prompt = false;
  bool parse_special = false;
  // The value of --system. If it is given, the conversation consists of the system's message, unless that is empty, and
  // of the prompt as the user's message.
  std::optional<std::string> system = {};
  std::string prompt = {};

  bool is_given() const { return !messages.empty() || system.has_value(); }
  // Returns an error of kind invalid_file that names the conversation's file, or of kind bad_argument if the
  // conversation is not from a file.
  Error make_error(const std::string& message) const;
};

// Adds --messages, --template and --parse-special. With `shows_texts`, which `poise tokenize` sets, also adds
// --no-generation-prompt, and the other options need --messages. Returns the option --messages.
CLI::Option* add_conversation_options(CLI::App& command, ConversationOptions& options, bool shows_texts);
// Adds --template alone.
void add_template_option(CLI::App& command, std::string& given);

// Returns a message of a conversation: {"role", "content"}.
Attributes make_message(std::string_view role, std::string_view content);
// Reads the conversation from its file or from standard input, or makes one of the prompt.
Conversation read_conversation(const ConversationOptions& options);
// Returns the model's own template if `given` is empty, the built-in template of that name, or the template in the file
// of that name. Throws an error with advice if there is none.
ChatTemplate read_template(const std::string& given, const Tokenizer& tokenizer, bool has_tools);
// If `given` names a built-in template, makes generated texts end at the text that ends the template's answers. If this
// text is a token, adds it to the model's end tokens, else to the stop texts of `options`. Unless `quiet`, a note on
// standard error names the template's special tokens that the vocabulary lacks. Call this before load_weights().
void add_template_end(const std::string& given, Model& model, GenerateOptions& options, bool quiet);
// Returns the text of the conversation, rendered with the template.
ChatText read_chat_text(const ConversationOptions& options, const Tokenizer& tokenizer);

}  // namespace poise::cli
