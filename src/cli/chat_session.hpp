// Holds a conversation with a model. The Session keeps the keys and values of earlier turns, so a turn computes only
// its own tokens.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include <poise/chat.hpp>
#include <poise/session.hpp>

namespace poise::cli {

// Holds a conversation and the session that computes it. Only one thread at a time may use it.
class ChatSession {
 public:
  ChatSession(Session session, ChatTemplate chat, const std::string& system);

  struct Answer {
    std::string text;
    StopReason reason = StopReason::end_of_text;
    std::size_t left_out = 0;  // messages that were dropped, since they no longer fit the context
    std::size_t fed = 0;       // tokens that had to be computed
  };
  // Asks a question, and passes the answer to on_text in pieces. The conversation stays as it was if this function
  // throws, or if `stop` is requested before the first token. Throws bad_argument if the message alone does not fit the
  // context, and what ChatTemplate::render(), Session::feed() and Session::generate() throw.
  Answer ask(const std::string& message, const GenerateOptions& options, const std::stop_token& stop,
             const std::function<void(std::string_view)>& on_text);

  // Asks the last question again, and replaces its answer. Returns std::nullopt if there is no question.
  std::optional<Answer> ask_again(const GenerateOptions& options, const std::stop_token& stop,
                                  const std::function<void(std::string_view)>& on_text);

  // Drops all messages except the system's.
  void reset();
  // Drops the last question and its answer, and returns the question's content, which is null if it has none. Returns
  // std::nullopt if there is no question.
  std::optional<Value> undo();
  // Returns the system's message; empty if there is none, or if it is not a text.
  std::string system() const;
  // Replaces the system's message; an empty text removes it.
  void set_system(const std::string& text);
  // Returns the conversation as JSON that load() reads.
  std::string to_json() const;
  // Replaces the conversation; errors show `name` as the path. Throws what parse_conversation() throws.
  void load(std::string_view json, const std::string& name);
  std::size_t count_messages() const { return talk_.messages.size(); }
  const Weights& weights() const { return session_.weights(); }

 private:
  std::size_t find_first_message() const;  // the index of the first message after the system's
  std::vector<TokenId> encode() const;
  // Answers the conversation, which ends with a question. Restores the conversation `before` if it throws, or if `stop`
  // is requested before the first token.
  Answer answer(const Conversation& before, const GenerateOptions& options, const std::stop_token& stop,
                const std::function<void(std::string_view)>& on_text);
  std::optional<std::size_t> find_last_question() const;  // its index among the messages
  // Drops the oldest questions with their answers until the context has room for an answer's first token, and returns
  // the number of dropped messages. Keeps the system's message and the last question: throws bad_argument if they do
  // not fit. `tokens` holds the conversation's tokens, on entry and on return.
  std::size_t drop_oldest_messages(std::vector<TokenId>& tokens);

  Session session_;
  ChatTemplate chat_;
  Conversation talk_;
};

// The command /set changes these settings: the options for generating text.

// Returns the names of the settings: those of the command line, without dashes, such as "temperature" and "top-k".
std::vector<std::string> list_settings();

// Applies a setting: "temperature 0.7", "top_k=40", "ignore-eos". Throws bad_argument for an unknown name or a wrong
// value; `options` then stay as they are.
void change_setting(const std::string& text, const Weights& weights, GenerateOptions& options);

// Returns max-tokens and the sampling settings except logit-bias, with their values: "temperature 0.7, top-k 0, ...".
std::string format_settings(const GenerateOptions& options);

}  // namespace poise::cli
