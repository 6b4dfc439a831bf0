#include "cli/conversations.hpp"

#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "chat/built_in_templates.hpp"
#include "cli/text.hpp"
#include "cli/values.hpp"
#include "tokenizer/gguf/vocabulary.hpp"
#include "tokenizer/tokens/token_types.hpp"

namespace poise::cli {
namespace {

// Returns the names of the built-in templates: "chatml, llama2, ...".
std::string join_built_in_names() {
  std::vector<std::string_view> names;
  for (const BuiltInTemplate& row : get_built_in_templates()) names.push_back(row.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

// Reads a template. If there is no such file, the error lists the built-in templates, because the path may be a
// misspelled name.
std::string read_template_file(const std::string& path) {
  try {
    return read_text_file(path);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::not_found) throw;
    throw Error(ErrorKind::not_found,
                fmt::format("there is no such file and no built-in template of that name; the built-in ones are {}",
                            join_built_in_names()),
                path);
  }
}

std::optional<TokenId> find_token(const Vocabulary& vocabulary, std::string_view text) {
  for (std::size_t id = 0; id < vocabulary.size(); ++id) {
    if (vocabulary.text(id) == text) return static_cast<TokenId>(id);
  }
  return std::nullopt;
}

// Adds an end token to those that the model's generation_config.json names. Changes the attribute, not the file.
void add_end_token(Model& model, TokenId token) {
  Attributes generation = read_generation_config(model);
  Value::Array ends = {Value(std::int64_t{token})};
  if (const Value* given = generation.find("eos_token_id")) {
    if (const auto* list = given->get_if<Value::Array>()) {
      ends.insert(ends.end(), list->begin(), list->end());
    } else {
      ends.push_back(*given);
    }
  }
  generation.set("eos_token_id", std::move(ends));
  model.attributes.set(std::string(kGenerationConfig), std::move(generation));
}

}  // namespace

void add_template_option(CLI::App& command, std::string& given) {
  add_text_option(
      command, "--template", given, "FILE|NAME",
      fmt::format("A chat template in place of the model's own: a file with Jinja, as Hugging Face has it, or the "
                  "name of a built-in one: {}",
                  join_built_in_names()));
}

CLI::Option* add_conversation_options(CLI::App& command, ConversationOptions& options, bool shows_texts) {
  auto* messages =
      add_text_option(command, "--messages", options.messages, "FILE",
                      "A conversation in JSON, [{\"role\", \"content\"}, ...] or {\"messages\", \"tools\", "
                      "...}, rendered with the model's chat template; - is standard input");
  add_template_option(command, options.template_file);
  auto* parse_special =
      command.add_flag("--parse-special", options.parse_special,
                       "Turn special tokens that messages spell into these tokens, as Hugging Face's library does");
  if (shows_texts) {
    command.get_option("--template")->needs(messages);
    parse_special->needs(messages);
    command
        .add_flag("--no-generation-prompt", options.no_generation_prompt,
                  "Leave out the header that opens the model's answer, where the template can")
        ->needs(messages);
  }
  return messages;
}

Attributes make_message(std::string_view role, std::string_view content) {
  return {{"role", role}, {"content", content}};
}

Error ConversationOptions::make_error(const std::string& message) const {
  if (messages.empty()) return Error(ErrorKind::bad_argument, message);
  return Error(ErrorKind::invalid_file, message, get_input_name(messages));
}

Conversation read_conversation(const ConversationOptions& options) {
  if (options.messages.empty()) {
    Conversation talk;
    if (!options.system->empty()) talk.messages.emplace_back(make_message("system", *options.system));
    talk.messages.emplace_back(make_message("user", options.prompt));
    return talk;
  }
  Conversation talk = parse_conversation(read_text_file(options.messages), get_input_name(options.messages));
  if (options.no_generation_prompt) talk.add_generation_prompt = false;
  return talk;
}

ChatTemplate read_template(const std::string& given, const Tokenizer& tokenizer, bool has_tools) {
  const Vocabulary& vocabulary = tokenizer.vocabulary();
  if (find_built_in_template(given) != nullptr) return ChatTemplate::find(given, tokenizer);
  if (!given.empty()) return ChatTemplate(read_template_file(given), vocabulary, get_input_name(given));
  if (!has_chat_template(vocabulary))
    throw Error(
        ErrorKind::unsupported,
        fmt::format("the model has no chat template: pass one with --template, a file or {}", join_built_in_names()));
  return ChatTemplate(vocabulary, has_tools);
}

void add_template_end(const std::string& given, Model& model, GenerateOptions& options, bool quiet) {
  const BuiltInTemplate* const built_in = find_built_in_template(given);
  if (built_in == nullptr) return;
  const std::optional<Vocabulary> vocabulary = make_vocabulary(model);
  if (!vocabulary) return;  // read_template() reports this
  std::vector<std::string_view> missing;
  for (const std::string_view text : built_in->special) {
    if (!find_token(*vocabulary, text)) missing.push_back(text);
  }
  if (!missing.empty() && !quiet)
    print_message(
        fmt::format("note: template {} uses {}, which the vocabulary does not have: the model sees plain text", given,
                    fmt::join(missing, ", ")));
  if (built_in->end.empty() || options.ignore_eos) return;
  if (const auto end = find_token(*vocabulary, built_in->end)) {
    add_end_token(model, *end);
  } else {
    options.stop.emplace_back(built_in->end);
  }
}

ChatText read_chat_text(const ConversationOptions& options, const Tokenizer& tokenizer) {
  const Conversation talk = read_conversation(options);
  const ChatTemplate chat = read_template(options.template_file, tokenizer, talk.tools != Value());
  ChatText text;
  try {
    text = chat.render(talk);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::bad_argument) throw;
    throw options.make_error(error.message());
  }
  if (options.parse_special) text.from_messages.clear();
  return text;
}

}  // namespace poise::cli
