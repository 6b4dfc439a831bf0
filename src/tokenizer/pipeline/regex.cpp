#include "tokenizer/pipeline/regex.hpp"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/utf8.hpp"

namespace poise {
namespace {

constexpr std::size_t kMaxExpressionBytes = 64 << 10;
constexpr std::uint32_t kMatchLimit = 5'000'000;  // steps back from one place
constexpr std::uint32_t kHeapLimitKiB = 64 << 10;
constexpr std::size_t kJitStackBytes = 64 << 20;  // at most; pages that are not used take no memory
constexpr std::size_t kWindow = 64;               // places that one search tries before it looks at the clock
constexpr std::size_t kSearchesPerLook = 16;      // at the clock
// What a search of one text may take: no real expression comes near.
constexpr std::chrono::milliseconds kLongest{5000};
constexpr std::chrono::nanoseconds kLongestPerByte{2000};

// Sets of characters that mean something else in PCRE2, or that it does not know: as [:name:], as \p{name}, or as a
// letter. Oniguruma passes over case, spaces, "_" and "-" in names.
struct SetRow {
  std::string_view name;
  std::string_view contents;  // of a class
  bool is_rest = false;       // all but the contents
};
constexpr std::string_view kWord = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc})";
constexpr std::string_view kLatinNumbers = R"(\xB2\xB3\xB9\xBC-\xBE)";  // are of words, too, but not in a class
constexpr std::string_view kSpace = R"(\p{White_Space})";
constexpr std::string_view kHexadecimal = "0-9A-Fa-f";
constexpr std::array kSets = std::to_array<SetRow>({
    {"alnum", R"(\p{Alphabetic}\p{Nd})"},
    {"alpha", R"(\p{Alphabetic})"},
    {"ascii", R"(\x00-\x7F)"},
    {"assigned", R"(\p{Cn})", true},
    {"blank", R"(\t\p{Zs})"},
    {"casedletter", R"(\p{L&})"},
    {"closepunctuation", R"(\p{Pe})"},
    {"cntrl", R"(\p{Cc})"},
    {"connectorpunctuation", R"(\p{Pc})"},
    {"control", R"(\p{Cc})"},
    {"currencysymbol", R"(\p{Sc})"},
    {"dashpunctuation", R"(\p{Pd})"},
    {"decimalnumber", R"(\p{Nd})"},
    {"digit", R"(\p{Nd})"},
    {"enclosingmark", R"(\p{Me})"},
    {"finalpunctuation", R"(\p{Pf})"},
    {"format", R"(\p{Cf})"},
    {"graph", R"(\p{White_Space}\p{Cc}\p{Cn}\p{Cs})", true},
    {"initialpunctuation", R"(\p{Pi})"},
    {"letter", R"(\p{L})"},
    {"letternumber", R"(\p{Nl})"},
    {"lineseparator", R"(\p{Zl})"},
    {"lower", R"(\p{Lowercase})"},
    {"lowercaseletter", R"(\p{Ll})"},
    {"mark", R"(\p{M})"},
    {"mathsymbol", R"(\p{Sm})"},
    {"modifierletter", R"(\p{Lm})"},
    {"modifiersymbol", R"(\p{Sk})"},
    {"nonspacingmark", R"(\p{Mn})"},
    {"number", R"(\p{N})"},
    {"openpunctuation", R"(\p{Ps})"},
    {"other", R"(\p{C})"},
    {"otherletter", R"(\p{Lo})"},
    {"othernumber", R"(\p{No})"},
    {"otherpunctuation", R"(\p{Po})"},
    {"othersymbol", R"(\p{So})"},
    {"paragraphseparator", R"(\p{Zp})"},
    {"print", R"(\p{Cc}\p{Cn}\p{Cs}\p{Zl}\p{Zp})", true},
    {"privateuse", R"(\p{Co})"},
    {"punct", R"(\p{P})"},
    {"punctuation", R"(\p{P})"},
    {"separator", R"(\p{Z})"},
    {"space", kSpace},
    {"spaceseparator", R"(\p{Zs})"},
    {"spacingmark", R"(\p{Mc})"},
    {"symbol", R"(\p{S})"},
    {"titlecaseletter", R"(\p{Lt})"},
    {"unassigned", R"(\p{Cn})"},
    {"upper", R"(\p{Uppercase})"},
    {"uppercaseletter", R"(\p{Lu})"},
    {"word", kWord},
    {"xdigit", kHexadecimal},
});

// A name as kSets has it.
std::string plain_name(std::string_view name) {
  std::string plain;
  for (const char c : name) {
    if (c != ' ' && c != '_' && c != '-') plain += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  }
  return plain;
}

// Does PCRE2 have a script of this name? A bare name takes characters that several scripts use, too, which Oniguruma's
// does not.
bool is_script(std::string_view name) {
  if (name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz _-") != std::string_view::npos)
    return false;
  const std::string pattern = fmt::format(R"(\p{{sc:{}}})", name);
  int problem = 0;
  PCRE2_SIZE at = 0;
  pcre2_code_8* code =
      pcre2_compile_8(reinterpret_cast<PCRE2_SPTR8>(pattern.data()), pattern.size(), PCRE2_UTF, &problem, &at, nullptr);
  pcre2_code_free_8(code);
  return code != nullptr;
}

// Rewrites an expression, one construct after the other.
class Translator {
 public:
  explicit Translator(std::string_view expression) : rest_(expression) {}

  std::string translate() {
    while (!rest_.empty()) step();
    return std::move(out_);
  }

 private:
  char take() {
    const char c = rest_.front();
    rest_.remove_prefix(1);
    return c;
  }

  // Begins an atom, which a quantifier may follow.
  void atom() { atom_ = out_.size(); }

  void step() {
    const char c = rest_.front();
    switch (c) {
      case '\\': return escape(false);
      case '[': {
        atom();
        out_ += char_class();
        return;
      }
      case '(':
        groups_.push_back(out_.size());
        out_ += take();
        if (rest_.starts_with('?')) out_ += take();  // what follows it is no quantifier
        return;
      case ')':
        atom_ = groups_.empty() ? out_.size() : groups_.back();
        if (!groups_.empty()) groups_.pop_back();
        out_ += take();
        return;
      case '{': return interval();
      case '*':
      case '+':
      case '?':
      case '|': out_ += take(); return;
      default: break;
    }
    atom();
    const std::size_t length = std::max<std::size_t>(character_length(rest_), 1);
    out_ += rest_.substr(0, length);
    rest_.remove_prefix(length);
  }

  // "{n,m}+" repeats the interval, which is no possessive quantifier.
  void interval() {
    const std::size_t end = rest_.find('}');
    const std::string_view inside = end == std::string_view::npos ? std::string_view() : rest_.substr(1, end - 1);
    const bool valid = !inside.empty() && inside.find_first_not_of("0123456789,") == std::string_view::npos;
    if (!valid) {
      atom();
      out_ += R"(\{)";
      rest_.remove_prefix(1);
      return;
    }
    if (inside.starts_with(',')) {
      out_ += fmt::format("{{0{}}}", inside);
    } else {
      out_ += rest_.substr(0, end + 1);
    }
    rest_.remove_prefix(end + 1);
    if (!rest_.starts_with('+')) return;
    out_.insert(std::min(atom_, out_.size()), "(?:");
    out_ += ')';
  }

  struct Set {
    std::string contents;  // of a class
    bool negated = false;
    std::size_t length = 0;  // of what names it
  };

  // What is here if it is the name of a set that PCRE2 understands otherwise.
  std::optional<Set> set() const {
    if (rest_.starts_with("[:")) {
      const std::size_t end = rest_.find(":]");
      if (end == std::string_view::npos) return std::nullopt;
      auto set = named(rest_.substr(2, end - 2), false, end + 2);
      if (set && set->contents == R"(\p{P})") set->contents += R"(\p{S})";
      return set;
    }
    if (rest_.size() < 2) return std::nullopt;
    switch (const char letter = rest_[1]; letter) {
      case 's':
      case 'S': return Set{std::string(kSpace), letter == 'S', 2};
      case 'w':
      case 'W': return Set{std::string(kWord), letter == 'W', 2};
      case 'h':
      case 'H': return Set{std::string(kHexadecimal), letter == 'H', 2};
      case 'p':
      case 'P': {
        const std::size_t end = rest_.substr(2).starts_with('{') ? rest_.find('}') : std::string_view::npos;
        if (end == std::string_view::npos) return std::nullopt;
        return named(rest_.substr(3, end - 3), letter == 'P', end + 1);
      }
      default: return std::nullopt;
    }
  }

  static std::optional<Set> named(std::string_view name, bool negated, std::size_t length) {
    if (name.starts_with('^')) {
      name.remove_prefix(1);
      negated = !negated;
    }
    const std::string plain = plain_name(name);
    if (const auto* row = std::ranges::find(kSets, plain, &SetRow::name); row != kSets.end())
      return Set{std::string(row->contents), negated != row->is_rest, length};
    if (is_script(name)) return Set{fmt::format(R"(\p{{sc:{}}})", name), negated, length};
    return std::nullopt;
  }

  // \p{...} alone negates itself.
  static bool is_property(std::string_view contents) {
    return contents.starts_with(R"(\p{)") && contents.find('}') == contents.size() - 1;
  }
  static std::string property(const Set& set) { return (set.negated ? R"(\P)" : R"(\p)") + set.contents.substr(2); }

  void escape(bool in_class) {
    if (rest_.size() == 1) {
      out_ += take();
      return;
    }
    if (!in_class) atom();
    if (auto set = in_class ? std::nullopt : this->set()) {
      if (set->contents == kWord) set->contents += kLatinNumbers;
      return replace(set->length, is_property(set->contents)
                                      ? property(*set)
                                      : fmt::format("[{}{}]", set->negated ? "^" : "", set->contents));
    }
    const char letter = rest_[1];
    switch (letter) {
      case 'O':
        if (!in_class) return replace(2, "(?s:.)");
        break;
      case 'b':
        if (!in_class)
          return replace(2,
                         fmt::format("(?:(?<=[{0}{1}])(?![{0}{1}])|(?<![{0}{1}])(?=[{0}{1}]))", kWord, kLatinNumbers));
        break;
      case 'B':
        if (!in_class)
          return replace(2,
                         fmt::format("(?:(?<=[{0}{1}])(?=[{0}{1}])|(?<![{0}{1}])(?![{0}{1}]))", kWord, kLatinNumbers));
        break;
      case 'Z': return replace(2, in_class ? "Z" : R"((?=\n?\z))");
      case 'u':
        if (rest_.size() >= 6) return replace(6, fmt::format(R"(\x{{{}}})", rest_.substr(2, 4)));
        break;
      default: break;
    }
    const bool braces = (letter == 'p' || letter == 'P' || letter == 'x' || letter == 'k' || letter == 'g') &&
                        rest_.size() > 2 && rest_[2] == '{';
    const std::size_t end = braces ? rest_.find('}') : std::string_view::npos;
    std::size_t length =
        end == std::string_view::npos ? 1 + std::max<std::size_t>(character_length(rest_.substr(1)), 1) : end + 1;
    replace(length, std::string(rest_.substr(0, length)));
  }

  void replace(std::size_t length, const std::string& with) {
    rest_.remove_prefix(length);
    out_ += with;
  }

  // A class that begins here; what && joins becomes look-aheads.
  std::string char_class() {
    if (++depth_ > 32) throw Error(ErrorKind::invalid_file, "classes in classes are nested too deeply");
    take();
    bool negated = false;
    if (rest_.starts_with('^')) {
      negated = true;
      take();
    }
    std::vector<std::string> parts;  // each a class of its own
    std::string items;
    std::vector<std::string> classes;  // unions with the items
    const auto end_part = [&] {
      std::string part = items.empty() ? std::string() : fmt::format("[{}]", items);
      for (const std::string& one : classes) part += (part.empty() ? "" : "|") + one;
      if (classes.size() + (items.empty() ? 0 : 1) > 1) part = fmt::format("(?:{})", part);
      parts.push_back(std::move(part));
      items.clear();
      classes.clear();
    };
    bool first = true;
    while (!rest_.empty() && (first || rest_.front() != ']')) {
      first = false;
      if (rest_.starts_with("&&")) {
        rest_.remove_prefix(2);
        end_part();
      } else if (const auto set = rest_.front() == '[' || rest_.front() == '\\' ? this->set() : std::nullopt) {
        rest_.remove_prefix(set->length);
        if (is_property(set->contents)) {
          items += property(*set);
        } else if (set->negated) {
          classes.push_back(fmt::format("[^{}]", set->contents));
        } else {
          items += set->contents;
        }
      } else if (rest_.starts_with("[:")) {
        const std::size_t end = std::min(rest_.find(":]"), rest_.size() - 2) + 2;
        items += rest_.substr(0, end);
        rest_.remove_prefix(end);
      } else if (rest_.front() == '[') {
        classes.push_back(char_class());
      } else if (rest_.front() == '\\') {
        const std::string before = std::exchange(out_, std::string());
        escape(true);
        items += out_;
        out_ = before;
      } else {
        const std::size_t length = std::max<std::size_t>(character_length(rest_), 1);
        items += rest_.substr(0, length);
        rest_.remove_prefix(length);
      }
    }
    if (rest_.empty()) throw Error(ErrorKind::invalid_file, "a class without an end");
    take();
    --depth_;
    if (parts.empty() && classes.empty()) return fmt::format("[{}{}]", negated ? "^" : "", items);
    end_part();
    std::string all;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) all += fmt::format("(?={})", parts[i]);
    all += parts.back();
    return negated ? fmt::format("(?:(?!{})(?s:.))", all) : fmt::format("(?:{})", all);
  }

  std::string_view rest_;
  std::string out_;
  std::size_t atom_ = 0;             // where the last atom begins in `out_`
  std::vector<std::size_t> groups_;  // where those that are open begin
  std::size_t depth_ = 0;
};

template <typename T, void (*kFree)(T*)>
struct Free {
  void operator()(T* pointer) const { kFree(pointer); }
};
template <typename T, void (*kFree)(T*)>
using Owned = std::unique_ptr<T, Free<T, kFree>>;

template <typename T>
T* allocated(T* pointer) {
  if (pointer == nullptr) throw std::bad_alloc();
  return pointer;
}

// For a message: whole characters, not too many.
std::string_view front_of(std::string_view text) {
  constexpr std::size_t kMost = 200;
  if (text.size() <= kMost) return text;
  text = text.substr(0, kMost);
  return text.substr(0, text.size() - incomplete_tail(text));
}

std::string message_of(int code) {
  std::array<PCRE2_UCHAR8, 256> buffer{};
  pcre2_get_error_message_8(code, buffer.data(), buffer.size());
  return reinterpret_cast<const char*>(buffer.data());
}

}  // namespace

std::string pcre2_syntax(std::string_view expression) { return Translator(expression).translate(); }

struct Regex::Code {
  Owned<pcre2_code_8, pcre2_code_free_8> code;
  bool jit = false;
  std::string where;
};

Regex::Regex(std::string_view expression, std::string where) {
  const auto refuse = [&](std::string_view problem) {
    throw Error(ErrorKind::invalid_file,
                fmt::format("tokenizer: {}: the regular expression \"{}\": {}", where, front_of(expression), problem));
  };
  if (expression.size() > kMaxExpressionBytes) refuse(fmt::format("more than {} bytes", kMaxExpressionBytes));
  auto code = std::make_unique<Code>();
  code->where = where;
  std::string pattern;
  try {
    pattern = pcre2_syntax(expression);
  } catch (const Error& error) {
    refuse(error.message());
  }
  int problem = 0;
  PCRE2_SIZE at = 0;
  const std::uint32_t options =
      PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_USE_OFFSET_LIMIT | PCRE2_NEVER_BACKSLASH_C;
  code->code.reset(
      pcre2_compile_8(reinterpret_cast<PCRE2_SPTR8>(pattern.data()), pattern.size(), options, &problem, &at, nullptr));
  if (!code->code) refuse(fmt::format("{} (at {} of \"{}\")", message_of(problem), at, front_of(pattern)));
  code->jit = pcre2_jit_compile_8(code->code.get(), PCRE2_JIT_COMPLETE) == 0;
  code_ = std::move(code);
}

Regex::~Regex() = default;
Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;

struct RegexMatcher::State {
  explicit State(const Regex::Code& of)
      : code(of),
        data(allocated(pcre2_match_data_create_8(1, nullptr))),
        context(allocated(pcre2_match_context_create_8(nullptr))) {
    pcre2_set_match_limit_8(context.get(), kMatchLimit);
    pcre2_set_heap_limit_8(context.get(), kHeapLimitKiB);
    if (!of.jit) return;
    stack.reset(allocated(pcre2_jit_stack_create_8(32 << 10, kJitStackBytes, nullptr)));
    pcre2_jit_stack_assign_8(context.get(), nullptr, stack.get());
  }

  [[noreturn]] void give_up(std::string_view why) const {
    throw Error(
        ErrorKind::unsupported,
        fmt::format("tokenizer: {}: the regular expression cannot be matched in this text: {}", code.where, why));
  }

  void look_at_clock() {
    searches = 0;
    if (std::chrono::steady_clock::now() > deadline) give_up("it takes too long");
  }

  const Regex::Code& code;
  Owned<pcre2_match_data_8, pcre2_match_data_free_8> data;
  Owned<pcre2_match_context_8, pcre2_match_context_free_8> context;
  Owned<pcre2_jit_stack_8, pcre2_jit_stack_free_8> stack;
  std::string_view text;
  std::size_t position = 0;
  std::size_t last_end = SIZE_MAX;  // of the last match
  std::size_t searches = 0;
  std::chrono::steady_clock::time_point deadline;
};

RegexMatcher::RegexMatcher(const Regex& regex) : state_(std::make_unique<State>(*regex.code_)) {}
RegexMatcher::~RegexMatcher() = default;
RegexMatcher::RegexMatcher(RegexMatcher&&) noexcept = default;

void RegexMatcher::allow(std::size_t bytes) {
  state_->deadline = std::chrono::steady_clock::now() + kLongest + kLongestPerByte * bytes;
}

void RegexMatcher::begin(std::string_view text) {
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
    if (++state.searches == kSearchesPerLook) state.look_at_clock();
    const int found = state.code.jit ? pcre2_jit_match_8(state.code.code.get(), subject, size, from, PCRE2_NO_UTF_CHECK,
                                                         state.data.get(), state.context.get())
                                     : pcre2_match_8(state.code.code.get(), subject, size, from, PCRE2_NO_UTF_CHECK,
                                                     state.data.get(), state.context.get());
    if (found >= 0) {
      const PCRE2_SIZE* offsets = pcre2_get_ovector_pointer_8(state.data.get());
      begin = offsets[0];
      end = std::max(offsets[1], offsets[0]);  // \K in a look-ahead may put the end first
      return begin >= state.position;
    }
    if (found != PCRE2_ERROR_NOMATCH) state.give_up(message_of(found));
    if (last == size) return false;
    state.look_at_clock();
    from = last;
    while (from < size && (static_cast<unsigned char>(state.text[from]) & 0xC0) == 0x80) ++from;
  }
}

bool RegexMatcher::next(std::size_t& begin, std::size_t& end) {
  State& state = *state_;
  while (state.position <= state.text.size() && search(begin, end)) {
    if (begin == end && end == state.last_end) {
      // On by one character: no two matches are at one place.
      const std::size_t left = state.text.size() - state.position;
      state.position += left == 0 ? 1 : std::max<std::size_t>(character_length(state.text.substr(state.position)), 1);
      continue;
    }
    state.position = end;
    state.last_end = end;
    return true;
  }
  return false;
}

}  // namespace poise
