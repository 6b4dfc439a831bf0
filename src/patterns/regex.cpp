#include "patterns/regex.hpp"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <new>
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/short_text.hpp"
#include "bytes/utf8.hpp"

namespace poise {

// Owns the memory that PCRE2 allocates. This namespace has a name, because members of the header's classes have these
// types.
namespace pcre2 {

template <typename T, void (*kFree)(T*)>
struct Free {
  void operator()(T* pointer) const { kFree(pointer); }
};
template <typename T, void (*kFree)(T*)>
using Owned = std::unique_ptr<T, Free<T, kFree>>;

}  // namespace pcre2

namespace {

constexpr std::size_t kMaxExpressionBytes = 64 << 10;
constexpr std::uint32_t kMatchLimit = 5'000'000;  // backtracking steps from one place
// If an expression is too large for machine code, PCRE2 interprets it: each step takes up to 20 microseconds.
constexpr std::uint32_t kSlowMatchLimit = 100'000;
constexpr std::uint32_t kHeapLimitKiB = 64 << 10;
constexpr std::size_t kJitStackBytes = 64 << 20;  // the stack grows up to this size; unused pages take no memory
constexpr std::size_t kWindow = 64;               // places at which one search tries to begin a match
constexpr std::size_t kSearchesPerCheck = 16;     // the time is checked after this many searches
// The time limit is far above the time that real expressions take.
constexpr std::chrono::milliseconds kLongest{5000};
constexpr std::chrono::nanoseconds kLongestPerByte{2000};

template <typename T>
T* check_allocated(T* pointer) {
  if (pointer == nullptr) throw std::bad_alloc();
  return pointer;
}

constexpr std::size_t kShown = 200;  // bytes of an expression, in messages

std::string get_error_message(int code) {
  std::array<PCRE2_UCHAR8, 256> buffer{};
  pcre2_get_error_message_8(code, buffer.data(), buffer.size());
  return reinterpret_cast<const char*>(buffer.data());
}

}  // namespace

struct Regex::Code {
  pcre2::Owned<pcre2_code_8, pcre2_code_free_8> code;
  bool jit = false;
  std::string where;
};

Regex::Regex(std::string_view expression, std::string where) {
  const auto refuse = [&](std::string_view problem) {
    throw Error(ErrorKind::invalid_file,
                fmt::format("{}: the regular expression \"{}\": {}", where, shorten(expression, kShown), problem));
  };
  if (expression.size() > kMaxExpressionBytes) refuse(fmt::format("more than {} bytes", kMaxExpressionBytes));
  auto code = std::make_unique<Code>();
  code->where = where;
  std::string pattern;
  try {
    pattern = translate_to_pcre2(expression);
  } catch (const Error& error) {
    refuse(error.message());
  }
  int problem = 0;
  PCRE2_SIZE at = 0;
  const std::uint32_t options =
      PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_USE_OFFSET_LIMIT | PCRE2_NEVER_BACKSLASH_C;
  code->code.reset(
      pcre2_compile_8(reinterpret_cast<PCRE2_SPTR8>(pattern.data()), pattern.size(), options, &problem, &at, nullptr));
  if (!code->code)
    refuse(fmt::format("{} (at {} of \"{}\")", get_error_message(problem), at, shorten(pattern, kShown)));
  code->jit = pcre2_jit_compile_8(code->code.get(), PCRE2_JIT_COMPLETE) == 0;
  code_ = std::move(code);
}

Regex::~Regex() = default;
Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;

std::size_t Regex::count_groups() const {
  std::uint32_t count = 0;
  pcre2_pattern_info_8(code_->code.get(), PCRE2_INFO_CAPTURECOUNT, &count);
  return count;
}

struct RegexMatcher::State {
  State(const Regex::Code& compiled, std::size_t groups)
      : code(compiled),
        data(check_allocated(pcre2_match_data_create_8(static_cast<std::uint32_t>(groups + 1), nullptr))),
        context(check_allocated(pcre2_match_context_create_8(nullptr))) {
    pcre2_set_match_limit_8(context.get(), compiled.jit ? kMatchLimit : kSlowMatchLimit);
    pcre2_set_heap_limit_8(context.get(), kHeapLimitKiB);
    if (!compiled.jit) return;
    stack.reset(check_allocated(pcre2_jit_stack_create_8(32 << 10, kJitStackBytes, nullptr)));
    pcre2_jit_stack_assign_8(context.get(), nullptr, stack.get());
  }

  [[noreturn]] void fail_match(std::string_view why) const {
    throw Error(ErrorKind::unsupported,
                fmt::format("{}: the regular expression cannot be matched in this text: {}", code.where, why));
  }

  void check_time() {
    searches = 0;
    if (std::chrono::steady_clock::now() > deadline) fail_match("it takes too long");
  }

  const Regex::Code& code;
  pcre2::Owned<pcre2_match_data_8, pcre2_match_data_free_8> data;
  pcre2::Owned<pcre2_match_context_8, pcre2_match_context_free_8> context;
  pcre2::Owned<pcre2_jit_stack_8, pcre2_jit_stack_free_8> stack;
  std::string_view text;
  std::size_t position = 0;
  std::size_t last_end = SIZE_MAX;  // the end of the last match; SIZE_MAX: none yet
  std::size_t searches = 0;
  std::chrono::steady_clock::time_point deadline;
};

RegexMatcher::RegexMatcher(const Regex& regex, std::size_t groups)
    : state_(std::make_unique<State>(*regex.code_, groups)) {}
RegexMatcher::~RegexMatcher() = default;
RegexMatcher::RegexMatcher(RegexMatcher&&) noexcept = default;

void RegexMatcher::start_time_limit(std::size_t bytes) {
  state_->deadline = std::chrono::steady_clock::now() + kLongest + kLongestPerByte * bytes;
}

void RegexMatcher::begin_text(std::string_view text) {
  state_->text = text;
  state_->position = 0;
  state_->last_end = SIZE_MAX;
}

bool RegexMatcher::search(std::size_t& begin, std::size_t& end) {
  State& state = *state_;
  const auto* subject = reinterpret_cast<PCRE2_SPTR8>(state.text.data());
  const std::size_t size = state.text.size();
  for (std::size_t from = state.position;;) {
    const std::size_t last = std::min(from + kWindow, size);
    pcre2_set_offset_limit_8(state.context.get(), last);
    if (++state.searches == kSearchesPerCheck) state.check_time();
    const int found = state.code.jit ? pcre2_jit_match_8(state.code.code.get(), subject, size, from, PCRE2_NO_UTF_CHECK,
                                                         state.data.get(), state.context.get())
                                     : pcre2_match_8(state.code.code.get(), subject, size, from, PCRE2_NO_UTF_CHECK,
                                                     state.data.get(), state.context.get());
    if (found >= 0) {
      const PCRE2_SIZE* offsets = pcre2_get_ovector_pointer_8(state.data.get());
      begin = offsets[0];
      end = std::max(offsets[1], offsets[0]);  // \K in a look-ahead may put the beginning after the end
      return begin >= state.position;
    }
    if (found != PCRE2_ERROR_NOMATCH) state.fail_match(get_error_message(found));
    if (last == size) return false;
    state.check_time();
    from = last;
    while (from < size && (static_cast<unsigned char>(state.text[from]) & 0xC0) == 0x80) ++from;
  }
}

std::string_view RegexMatcher::find_group(std::size_t number) const {
  const PCRE2_SIZE* offsets = pcre2_get_ovector_pointer_8(state_->data.get());
  const PCRE2_SIZE begin = offsets[2 * number];
  const PCRE2_SIZE end = offsets[2 * number + 1];
  return begin == PCRE2_UNSET || end < begin ? std::string_view() : state_->text.substr(begin, end - begin);
}

bool RegexMatcher::find_next(std::size_t& begin, std::size_t& end) {
  State& state = *state_;
  while (state.position <= state.text.size() && search(begin, end)) {
    if (begin == end && end == state.last_end) {
      // Skips an empty match directly after another match, and a character with it.
      const std::size_t left = state.text.size() - state.position;
      state.position += left == 0 ? 1 : std::max<std::size_t>(measure_character(state.text.substr(state.position)), 1);
      continue;
    }
    state.position = end;
    state.last_end = end;
    return true;
  }
  return false;
}

}  // namespace poise
