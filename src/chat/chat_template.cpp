#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <poise/chat.hpp>
#include <poise/error.hpp>

#include "chat/built_in_templates.hpp"
#include "jinja/template.hpp"
#include "syntax/fields.hpp"
#include "syntax/json.hpp"
#include "tokenizer/tokens/listed_tokens.hpp"

namespace poise {
namespace {

// Returns the template with that name in a list of named ones, or null.
const std::string* find_template(const Value::Array& list, std::string_view name) {
  for (const Value& entry : list) {
    const auto* const its_name = get_member<std::string>(entry, "name");
    const auto* const source = get_member<std::string>(entry, "template");
    if (its_name != nullptr && source != nullptr && *its_name == name) return source;
  }
  return nullptr;
}

std::string join_names(const Value::Array& list) {
  std::vector<std::string> names;
  for (const Value& entry : list) {
    if (const auto* const name = get_member<std::string>(entry, "name")) names.push_back(*name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

const std::string& choose_template(const Vocabulary& vocabulary, bool has_tools) {
  if (const auto* text = vocabulary.chat_template.get_if<std::string>()) return *text;
  const auto* const list = vocabulary.chat_template.get_if<Value::Array>();
  if (list == nullptr || list->empty()) throw Error(ErrorKind::unsupported, "the model has no chat template");
  if (const std::string* found = has_tools ? find_template(*list, "tool_use") : nullptr) return *found;
  if (const std::string* found = find_template(*list, "default")) return *found;
  throw Error(ErrorKind::unsupported,
              fmt::format("none of the model's chat templates is the default: {}", join_names(*list)));
}

// Replaces the tokens of a list with their texts. Returns a value that is not a list unchanged.
Value replace_tokens_by_texts(const Value& value) {
  const auto* const list = value.get_if<Value::Array>();
  if (list == nullptr) return value;
  Value::Array texts;
  for (const Value& token : *list) {
    const std::string* const text = find_named_text(token);
    texts.push_back(text == nullptr ? token : Value(*text));
  }
  return texts;
}

// Returns the special tokens under the names that templates use.
std::vector<jinja::Variable> collect_special_tokens(const Vocabulary& vocabulary) {
  std::vector<std::pair<std::string_view, std::int32_t>> all = {
      {"sep_token", -1}, {"cls_token", -1}, {"mask_token", -1}};
  for (const NamedToken& token : kNamedTokens) all.emplace_back(token.key, vocabulary.*token.id);
  std::vector<jinja::Variable> variables;
  for (const auto& [name, id] : all) {
    const std::string* const text = find_named_text(vocabulary.tokenizer_config, name);
    if (text != nullptr) {
      variables.push_back({std::string(name), *text, false});
    } else if (vocabulary.tokenizer_config.find(name) == nullptr && id >= 0 &&
               static_cast<std::size_t>(id) < vocabulary.size()) {
      variables.push_back({std::string(name), vocabulary.text(static_cast<std::size_t>(id)), false});
    }
  }
  const Value* more = vocabulary.tokenizer_config.find("additional_special_tokens");
  // transformers 5 calls the list extra_special_tokens, or has an object of tokens by name under this key.
  constexpr std::string_view kExtraTokens = "extra_special_tokens";
  if (more == nullptr && vocabulary.tokenizer_config.get_if<Value::Array>(kExtraTokens) != nullptr)
    more = vocabulary.tokenizer_config.find(kExtraTokens);
  if (more != nullptr) variables.push_back({"additional_special_tokens", replace_tokens_by_texts(*more), false});
  if (const auto* const by_name = vocabulary.tokenizer_config.get_if<Attributes>(kExtraTokens)) {
    for (const auto& [name, token] : *by_name) {
      if (const std::string* text = find_named_text(token)) variables.push_back({name, *text, false});
    }
  }
  return variables;
}

[[noreturn]] void refuse_conversation(const std::string& problem, const std::string& name) {
  throw Error(ErrorKind::invalid_file, problem, name);
}

Value::Array read_messages(Value value, const std::string& name) {
  if (value.get_if<Value::Array>() == nullptr) refuse_conversation("messages: expected a list", name);
  Value::Array messages = std::move(value).take<Value::Array>();
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (get_member<std::string>(messages[i], "role") == nullptr)
      refuse_conversation(fmt::format("messages: {}: expected {{\"role\", \"content\"}}, with a text as role", i),
                          name);
  }
  return messages;
}

}  // namespace

struct ChatTemplate::Parts {
  jinja::Template source;
  std::vector<jinja::Variable> special;
};

Conversation parse_conversation(std::string_view json, const std::string& name) {
  Value parsed = parse_exact_json(json, name);
  Conversation talk;
  if (parsed.get_if<Value::Array>() != nullptr) {
    talk.messages = read_messages(std::move(parsed), name);
    return talk;
  }
  if (parsed.get_if<Attributes>() == nullptr)
    refuse_conversation("expected a list of messages, or an object with \"messages\"", name);
  bool has_messages = false;
  for (auto& [key, value] : std::move(parsed).take<Attributes>()) {
    if (key == "messages") {
      talk.messages = read_messages(value, name);
      has_messages = true;
    } else if (key == "tools") {
      talk.tools = value;
    } else if (key == "documents") {
      talk.documents = value;
    } else if (key == "add_generation_prompt") {
      const auto* const truth = value.get_if<bool>();
      if (truth == nullptr) refuse_conversation("add_generation_prompt: expected true or false", name);
      talk.add_generation_prompt = *truth;
    } else {
      talk.variables.set(key, value);
    }
  }
  if (!has_messages) refuse_conversation("\"messages\" is missing", name);
  return talk;
}

bool has_chat_template(const Vocabulary& vocabulary) {
  const auto* const list = vocabulary.chat_template.get_if<Value::Array>();
  return vocabulary.chat_template.get_if<std::string>() != nullptr || (list != nullptr && !list->empty());
}

ChatTemplate::ChatTemplate(const Vocabulary& vocabulary, bool has_tools)
    : ChatTemplate(choose_template(vocabulary, has_tools), vocabulary) {}

ChatTemplate::ChatTemplate(std::string_view source, const Vocabulary& vocabulary, std::string name)
    : parts_(std::make_unique<const Parts>(
          Parts{jinja::Template(source, std::move(name)), collect_special_tokens(vocabulary)})) {}

ChatTemplate ChatTemplate::find(std::string_view name_or_source, const Tokenizer& tokenizer) {
  const BuiltInTemplate* const built_in = find_built_in_template(name_or_source);
  if (built_in == nullptr) return ChatTemplate(name_or_source, tokenizer.vocabulary());
  return ChatTemplate(make_built_in_source(*built_in, tokenizer), tokenizer.vocabulary(),
                      fmt::format("template {}", built_in->name));
}

ChatTemplate::~ChatTemplate() = default;
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;

ChatText ChatTemplate::render(const Conversation& conversation) const {
  std::vector<jinja::Variable> variables = parts_->special;
  for (const auto& [name, value] : conversation.variables) variables.push_back({name, value});
  variables.push_back({"messages", conversation.messages});
  variables.push_back({"tools", conversation.tools});
  variables.push_back({"documents", conversation.documents});
  variables.push_back({"add_generation_prompt", conversation.add_generation_prompt});
  jinja::Text text = parts_->source.render(variables);
  return {std::move(text.bytes), std::move(text.marks)};
}

}  // namespace poise
