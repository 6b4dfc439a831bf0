#include "capi/running.hpp"

#include <chrono>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <thread>

#include "capi/handles.hpp"
#include "kernels/cache_type.hpp"

namespace poise::capi {
namespace {

// The numbers of poise_cache_type are those of CacheType.
static_assert(static_cast<int>(CacheType::f32) == POISE_CACHE_F32);
static_assert(static_cast<int>(CacheType::f16) == POISE_CACHE_F16);
static_assert(static_cast<int>(CacheType::q8) == POISE_CACHE_Q8);

std::optional<CacheType> cache_type(poise_cache_type given) {
  if (given == POISE_CACHE_DEFAULT) return std::nullopt;
  std::string expected;
  for (const CacheTypeRow& row : cache_types()) {
    const auto number = static_cast<int>(row.type);
    if (number == given) return row.type;
    expected += fmt::format("{}{} ({})", expected.empty() ? "" : ", ", number, row.name);
  }
  refuse(fmt::format("cache is {}, expected one of {}, {} (default)", static_cast<int>(given), expected,
                     static_cast<int>(POISE_CACHE_DEFAULT)));
}

// More than 32 bits of threads are too many, too.
unsigned threads(std::uint64_t given) {
  return static_cast<unsigned>(std::min<std::uint64_t>(given, std::numeric_limits<unsigned>::max()));
}

}  // namespace

poise_tokens give_tokens(std::span<const TokenId> tokens) {
  auto* data = static_cast<std::int32_t*>(std::malloc(std::max<std::size_t>(tokens.size_bytes(), 1)));
  if (data == nullptr) throw std::bad_alloc();
  std::copy(tokens.begin(), tokens.end(), data);
  return {data, tokens.size()};
}

std::string_view input_text(const char* text, std::size_t size) { return view({text, size}, "text"); }

SessionOptions session_options(const poise_session_options* given) {
  const poise_session_options usual = POISE_SESSION_OPTIONS_INIT;
  const poise_session_options from = options_or(given, usual);
  SessionOptions options = {.threads = threads(from.threads),
                            .context = static_cast<std::size_t>(from.context),
                            .exact = from.exact != 0,
                            .cache = cache_type(from.cache)};
  if (from.draft != nullptr && from.draft_lookup != 0) refuse("draft and draft_lookup exclude each other");
  if (from.draft_lookup != 0) options.draft.emplace();
  if (from.draft != nullptr) options.draft = {.model = load_weights(from.draft->model)};
  return options;
}

GenerateOptions generate_options(const poise_generate_options* given) {
  const poise_generate_options usual = POISE_GENERATE_OPTIONS_INIT;
  const poise_generate_options from = options_or(given, usual);
  GenerateOptions options;
  options.max_tokens = static_cast<std::size_t>(from.max_tokens);
  options.sampling = {.temperature = from.temperature,
                      .top_k = from.top_k,
                      .top_p = from.top_p,
                      .seed = from.seed,
                      .min_p = from.min_p,
                      .repetition_penalty = from.repetition_penalty,
                      .presence_penalty = from.presence_penalty,
                      .frequency_penalty = from.frequency_penalty};
  for (const poise_logit_bias& bias : items(from.logit_bias, from.logit_bias_count, "logit_bias"))
    options.sampling.logit_bias.emplace_back(bias.token, bias.bias);
  for (const poise_text& stop : items(from.stop, from.stop_count, "stop"))
    options.stop.emplace_back(view(stop, "stop"));
  if (from.stop_id >= 0) options.stop_id = from.stop_id;
  options.ignore_eos = from.ignore_eos != 0;
  return options;
}

Cancel::Cancel(const poise_session_options* options) {
  const poise_session_options usual = POISE_SESSION_OPTIONS_INIT;
  const poise_session_options from = options_or(options, usual);
  asked_ = from.cancel;
  user_ = from.cancel_user;
}

void Cancel::run(const std::function<void(const std::stop_token& stop)>& work) const {
  if (asked_ == nullptr) return work({});
  if (asked_(user_) != 0) throw Error(ErrorKind::cancelled, "cancelled");
  constexpr auto kBetweenAsks = std::chrono::milliseconds(20);
  std::stop_source source;
  const std::jthread watch([&](const std::stop_token& ends) {
    std::mutex mutex;
    std::condition_variable_any ended;
    std::unique_lock lock(mutex);
    while (!ended.wait_for(lock, ends, kBetweenAsks, [&] { return ends.stop_requested(); })) {
      if (asked_(user_) == 0) continue;
      source.request_stop();
      return;
    }
  });
  work(source.get_token());
}

poise_stop_reason c_reason(StopReason reason) {
  switch (reason) {
    case StopReason::end_of_text: return POISE_STOP_END_OF_TEXT;
    case StopReason::max_tokens: return POISE_STOP_MAX_TOKENS;
    case StopReason::context_full: return POISE_STOP_CONTEXT_FULL;
    case StopReason::callback: return POISE_STOP_CALLBACK;
    case StopReason::stop_text: return POISE_STOP_TEXT;
  }
  return POISE_STOP_CALLBACK;
}

}  // namespace poise::capi
