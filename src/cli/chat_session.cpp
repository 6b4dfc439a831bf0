#include "cli/chat_session.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <poise/error.hpp>

#include "cli/conversations.hpp"
#include "cli/help.hpp"
#include "cli/model_options.hpp"
#include "cli/text.hpp"
#include "runtime/stop_texts.hpp"
#include "runtime/weights.hpp"
#include "syntax/fields.hpp"

namespace poise::cli {
namespace {

bool has_role(const Value& message, std::string_view role) {
  const auto* const found = get_member<std::string>(message, "role");
  return found != nullptr && *found == role;
}

}  // namespace

ChatSession::ChatSession(Session session, ChatTemplate chat, const std::string& system)
    : session_(std::move(session)), chat_(std::move(chat)) {
  if (!system.empty()) talk_.messages.emplace_back(make_message("system", system));
}

std::size_t ChatSession::find_first_message() const {
  return !talk_.messages.empty() && has_role(talk_.messages.front(), "system") ? 1 : 0;
}

void ChatSession::reset() { talk_.messages.resize(find_first_message()); }

std::optional<std::size_t> ChatSession::find_last_question() const {
  for (std::size_t last = talk_.messages.size(); last > find_first_message(); --last) {
    if (has_role(talk_.messages[last - 1], "user")) return last - 1;
  }
  return std::nullopt;
}

std::optional<Value> ChatSession::undo() {
  const auto last = find_last_question();
  if (!last) return std::nullopt;
  const Value* const content = talk_.messages[*last].get_if<Attributes>()->find("content");
  Value question = content == nullptr ? Value() : *content;
  talk_.messages.resize(*last);
  return question;
}

std::string ChatSession::system() const {
  if (find_first_message() == 0) return {};
  const auto* const text = get_member<std::string>(talk_.messages.front(), "content");
  return text == nullptr ? std::string() : *text;
}

void ChatSession::set_system(const std::string& text) {
  if (find_first_message() == 1) talk_.messages.erase(talk_.messages.begin());
  if (!text.empty()) talk_.messages.insert(talk_.messages.begin(), Value(make_message("system", text)));
}

std::string ChatSession::to_json() const {
  Attributes talk = {{"messages", talk_.messages}};
  if (talk_.tools != Value()) talk.set("tools", talk_.tools);
  if (talk_.documents != Value()) talk.set("documents", talk_.documents);
  for (const auto& [name, value] : talk_.variables) talk.set(name, value);
  return poise::to_json(talk, 2) + "\n";
}

void ChatSession::load(std::string_view json, const std::string& name) {
  Conversation loaded = parse_conversation(json, name);
  loaded.add_generation_prompt = true;
  talk_ = std::move(loaded);
}

std::vector<TokenId> ChatSession::encode() const { return session_.tokenizer().encode(chat_.render(talk_)); }

std::size_t ChatSession::drop_oldest_messages(std::vector<TokenId>& tokens) {
  std::size_t left_out = 0;
  while (tokens.size() >= session_.context()) {
    // Drops a question together with its answer.
    std::size_t end = find_first_message() + 1;
    while (end < talk_.messages.size() && !has_role(talk_.messages[end], "user")) ++end;
    if (end >= talk_.messages.size()) {
      throw Error(
          ErrorKind::bad_argument,
          fmt::format(
              "the message does not fit the context of {} tokens: it has {} tokens with the template's text around it",
              session_.context(), tokens.size()));
    }
    left_out += end - find_first_message();
    talk_.messages.erase(talk_.messages.begin() + static_cast<std::ptrdiff_t>(find_first_message()),
                         talk_.messages.begin() + static_cast<std::ptrdiff_t>(end));
    tokens = encode();
  }
  return left_out;
}

ChatSession::Answer ChatSession::ask(const std::string& message, const GenerateOptions& options,
                                     const std::stop_token& stop,
                                     const std::function<void(std::string_view)>& on_text) {
  const Conversation before = talk_;
  talk_.messages.emplace_back(make_message("user", message));
  return answer(before, options, stop, on_text);
}

std::optional<ChatSession::Answer> ChatSession::ask_again(const GenerateOptions& options, const std::stop_token& stop,
                                                          const std::function<void(std::string_view)>& on_text) {
  const auto last = find_last_question();
  if (!last) return std::nullopt;
  const Conversation before = talk_;
  talk_.messages.resize(*last + 1);
  return answer(before, options, stop, on_text);
}

ChatSession::Answer ChatSession::answer(const Conversation& before, const GenerateOptions& options,
                                        const std::stop_token& stop,
                                        const std::function<void(std::string_view)>& on_text) {
  Answer answer;
  try {
    std::vector<TokenId> all = encode();
    if (all.empty())
      throw Error(ErrorKind::bad_argument, "the chat template renders the conversation to an empty text");
    answer.left_out = drop_oldest_messages(all);
    const std::span<const TokenId> known = session_.tokens();
    const auto differs = std::mismatch(all.begin(), all.end(), known.begin(), known.end()).first;
    // If all tokens are known, the last one is computed again for its scores.
    const std::size_t same = std::min(static_cast<std::size_t>(differs - all.begin()), all.size() - 1);
    session_.truncate(same);
    answer.fed = all.size() - same;
    session_.feed(std::span<const TokenId>(all).subspan(same), stop);
    ContinuationStream stream(session_.tokenizer(), all, options.stop);
    const auto add = [&](const std::string& piece) {
      answer.text += piece;
      if (!piece.empty()) on_text(piece);
    };
    const Generation generation = session_.generate(options, [&](TokenId token) {
      add(stream.add(token));
      return !stop.stop_requested();
    });
    add(stream.finish());
    answer.reason = generation.reason;
  } catch (const Error& error) {
    talk_ = before;
    if (error.kind() != ErrorKind::cancelled) throw;
    answer.reason = StopReason::callback;
    return answer;
  }
  talk_.messages.emplace_back(make_message("assistant", answer.text));
  return answer;
}

namespace {

[[noreturn]] void refuse_setting(std::string_view name) {
  const std::vector<std::string> names = list_settings();
  const std::string* const near = find_nearest(names, name);
  throw Error(ErrorKind::bad_argument,
              fmt::format("there is no setting \"{}\"{}", make_printable(name),
                          near == nullptr ? "; /help lists them" : fmt::format("; the nearest is \"{}\"", *near)));
}

}  // namespace

std::vector<std::string> list_settings() {
  CLI::App app;
  GenerateOptions options;
  std::vector<std::string> names;
  for (const CLI::Option* option : add_generate_options(app, options)) names.push_back(option->get_lnames().back());
  return names;
}

void change_setting(const std::string& text, const Weights& weights, GenerateOptions& options) {
  const std::size_t name_end = std::min(text.find_first_of(" \t="), text.size());
  std::string name = text.substr(0, name_end);
  std::ranges::replace(name, '_', '-');
  const std::size_t value_begin = text.find_first_not_of(" \t=", name_end);
  GenerateOptions changed = options;
  CLI::App app("", "/set");
  app.set_help_flag();
  add_generate_options(app, changed);
  if (app.get_option_no_throw("--" + name) == nullptr) refuse_setting(name);
  // The arguments go from the last to the first, as CLI11 takes them.
  std::vector<std::string> arguments = {"--" + name};
  if (value_begin != std::string::npos) arguments.insert(arguments.begin(), text.substr(value_begin));
  try {
    app.parse(arguments);
  } catch (const CLI::ParseError& error) {
    throw Error(ErrorKind::bad_argument, make_usage_message(app, error));
  }
  check_generate_options(changed);
  require_valid_options(weights, changed);
  options = changed;
}

std::string format_settings(const GenerateOptions& options) {
  const SamplingOptions& sampling = options.sampling;
  const bool is_unlimited = options.max_tokens == std::numeric_limits<std::size_t>::max();
  return fmt::format(
      "temperature {}, top-k {}, top-p {}, min-p {}, repetition-penalty {}, presence-penalty {}, frequency-penalty {}, "
      "seed {}, max-tokens {}",
      sampling.temperature, sampling.top_k, sampling.top_p, sampling.min_p, sampling.repetition_penalty,
      sampling.presence_penalty, sampling.frequency_penalty, sampling.seed,
      is_unlimited ? "-1" : std::to_string(options.max_tokens));
}

}  // namespace poise::cli
