// What sessions and batches take from C programs and give to them: texts, tokens, options and reasons.
#pragma once

#include <cstddef>
#include <span>
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

poise_stop_reason c_reason(StopReason reason);

}  // namespace poise::capi
