#include "cli/conversations.hpp"

#include <poise/error.hpp>

#include "cli/standard_input.hpp"
#include "cli/values.hpp"
#include "io/source_text.hpp"

namespace poise::cli {
namespace {

std::string text_of_file(const std::string& path) {
  const SourcePtr source = Source::open(path, IoMode::read);
  return read_text(*source, source->size());
}

}  // namespace

void add_template_option(CLI::App& command, std::string& file) {
  command.add_option("--template", file, "A chat template in place of the model's own: Jinja, as Hugging Face has it")
      ->check(not_empty())
      ->type_name("FILE");
}

CLI::Option* add_conversation_options(CLI::App& command, ConversationOptions& options, bool shows_texts) {
  auto* messages =
      command
          .add_option(
              "--messages", options.messages,
              "A conversation in JSON, [{\"role\", \"content\"}, ...] or {\"messages\", \"tools\", ...}, of which "
              "the model's chat template makes the text; - is standard input")
          ->check(not_empty())
          ->type_name("FILE");
  add_template_option(command, options.template_file);
  auto* parse_special =
      command.add_flag("--parse-special", options.parse_special,
                       "Special tokens that messages spell are special, as Hugging Face's library has it, too");
  if (shows_texts) {
    command.get_option("--template")->needs(messages);
    parse_special->needs(messages);
    command
        .add_flag("--no-generation-prompt", options.no_generation_prompt,
                  "Leave out what opens the model's answer, where the template can")
        ->needs(messages);
  }
  return messages;
}

Conversation read_conversation(const ConversationOptions& options) {
  const bool is_input = options.messages == "-";
  Conversation talk = parse_conversation(is_input ? Input().all() : text_of_file(options.messages), options.name());
  if (options.no_generation_prompt) talk.add_generation_prompt = false;
  return talk;
}

ChatTemplate read_template(const std::string& file, const Vocabulary& vocabulary, bool has_tools) {
  if (!file.empty()) return ChatTemplate(text_of_file(file), vocabulary, file);
  if (!has_chat_template(vocabulary))
    throw Error(ErrorKind::unsupported, "the model has no chat template; --template FILE gives one");
  return ChatTemplate(vocabulary, has_tools);
}

ChatText read_chat_text(const ConversationOptions& options, const Vocabulary& vocabulary) {
  const Conversation talk = read_conversation(options);
  const ChatTemplate chat = read_template(options.template_file, vocabulary, talk.tools != Value());
  ChatText text;
  try {
    text = chat.render(talk);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::bad_argument) throw;
    throw Error(ErrorKind::invalid_file, error.message(), options.name());  // the conversation comes from a file
  }
  if (options.parse_special) text.from_messages.clear();
  return text;
}

}  // namespace poise::cli
