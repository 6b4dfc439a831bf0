// Talk: a conversation with a model. The session keeps what it has computed, so that a turn costs its own tokens only.
#pragma once

#include <cstddef>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>

#include <poise/chat.hpp>
#include <poise/session.hpp>

namespace poise::cli {

class Talk {
 public:
  Talk(Session session, ChatTemplate chat, const std::string& system);

  struct Answer {
    std::string text;
    StopReason reason = StopReason::end_of_text;
    std::size_t left_out = 0;  // messages that no longer fit the context
    std::size_t fed = 0;       // tokens that had to be computed
  };
  // Asks, and hands out the answer piece by piece. Both become part of the talk; where `stop` ends it before the first
  // token, neither. Throws bad_argument where the message alone does not fit the context.
  Answer ask(const std::string& message, const GenerateOptions& options, const std::stop_token& stop,
             const std::function<void(std::string_view)>& on_text);

  // All but the system's message go.
  void reset();
  // The last question and its answer go; false: there is none.
  bool undo();
  std::string to_json() const;
  // Throws what parse_conversation() throws.
  void load(std::string_view json, const std::string& name);
  std::size_t messages() const { return talk_.messages.size(); }

 private:
  std::size_t first() const;  // that is not the system's
  std::vector<TokenId> tokens() const;
  // Takes the oldest messages away until there is room for an answer; how many.
  std::size_t make_room(std::vector<TokenId>& tokens);

  Session session_;
  ChatTemplate chat_;
  Conversation talk_;
};

}  // namespace poise::cli
