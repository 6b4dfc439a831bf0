#include "cli/chat_session.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "cli/conversations.hpp"
#include "runtime/continuation_stream.hpp"

namespace poise::cli {
namespace {

bool has_role(const Value& message, std::string_view role) {
  const Value* const found = message.get_if<Attributes>()->find("role");
  return found != nullptr && *found == Value(role);
}

}  // namespace

ChatSession::ChatSession(Session session, ChatTemplate chat, const std::string& system)
    : session_(std::move(session)), chat_(std::move(chat)) {
  if (!system.empty()) talk_.messages.emplace_back(make_message("system", system));
}

std::size_t ChatSession::first() const {
  return !talk_.messages.empty() && has_role(talk_.messages.front(), "system") ? 1 : 0;
}

void ChatSession::reset() { talk_.messages.resize(first()); }

std::optional<std::size_t> ChatSession::last_question() const {
  for (std::size_t last = talk_.messages.size(); last > first(); --last) {
    if (has_role(talk_.messages[last - 1], "user")) return last - 1;
  }
  return std::nullopt;
}

std::optional<Value> ChatSession::undo() {
  const auto last = last_question();
  if (!last) return std::nullopt;
  const Value* const content = talk_.messages[*last].get_if<Attributes>()->find("content");
  Value question = content == nullptr ? Value() : *content;
  talk_.messages.resize(*last);
  return question;
}

std::string ChatSession::system() const {
  if (first() == 0) return {};
  const Value* const content = talk_.messages.front().get_if<Attributes>()->find("content");
  const auto* const text = content == nullptr ? nullptr : content->get_if<std::string>();
  return text == nullptr ? std::string() : *text;
}

void ChatSession::set_system(const std::string& text) {
  if (first() == 1) talk_.messages.erase(talk_.messages.begin());
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

std::vector<TokenId> ChatSession::tokens() const { return session_.tokenizer().encode(chat_.render(talk_)); }

std::size_t ChatSession::make_room(std::vector<TokenId>& tokens) {
  std::size_t left_out = 0;
  while (tokens.size() >= session_.context()) {
    // Drops a question together with its answer.
    std::size_t end = first() + 1;
    while (end < talk_.messages.size() && !has_role(talk_.messages[end], "user")) ++end;
    if (end >= talk_.messages.size()) {
      throw Error(ErrorKind::bad_argument,
                  fmt::format("the message does not fit the context of {} positions: it has {} "
                              "tokens with what goes around it",
                              session_.context(), tokens.size()));
    }
    left_out += end - first();
    talk_.messages.erase(talk_.messages.begin() + static_cast<std::ptrdiff_t>(first()),
                         talk_.messages.begin() + static_cast<std::ptrdiff_t>(end));
    tokens = this->tokens();
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
  const auto last = last_question();
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
    std::vector<TokenId> all = tokens();
    if (all.empty()) throw Error(ErrorKind::bad_argument, "the chat template makes an empty text of the conversation");
    answer.left_out = make_room(all);
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

}  // namespace poise::cli
