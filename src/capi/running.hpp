// What sessions and batches take from C programs and give to them: texts, tokens, options and reasons.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <stop_token>
#include <string_view>

#include <poise/session.hpp>

#include "capi/face.hpp"

namespace poise::capi {

// What poise_tokens_free() frees. Throws bad_alloc.
poise_tokens give_tokens(std::span<const TokenId> tokens);
std::string_view input_text(const char* text, std::size_t size);

// NULL: the usual options. Throw bad_argument for fields that make no sense.
SessionOptions session_options(const poise_session_options* given);
GenerateOptions generate_options(const poise_generate_options* given);

// Whether a C program wants long computations of a session or batch to end: its `cancel`.
class Cancel {
 public:
  // Requires: session_options() has accepted them.
  explicit Cancel(const poise_session_options* options);

  // Runs the work with a token that is stopped when the program wants that. It is asked before, on this thread, and
  // then on another one. Throws cancelled, and what the work throws.
  void run(const std::function<void(const std::stop_token& stop)>& work) const;

 private:
  int (*asked_)(void* user) = nullptr;
  void* user_ = nullptr;
};

poise_stop_reason c_reason(StopReason reason);

}  // namespace poise::capi
