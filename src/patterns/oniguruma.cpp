#include "patterns/regex.hpp"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/utf8.hpp"

namespace poise {
namespace {

// Describes a set of characters that PCRE2 interprets differently or lacks. Expressions name it [:name:] or \p{name},
// and some sets also by a letter, such as \h.
struct SetRow {
  std::string_view name;
  std::string_view contents;  // what replaces the name inside brackets
  bool is_rest = false;       // everything except the contents
};
constexpr std::string_view kWordInClass = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc})";
constexpr std::string_view kWord = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\xB2\xB3\xB9\xBC-\xBE)";  // \w outside a class
constexpr std::string_view kSpace = R"(\p{White_Space})";
constexpr std::string_view kHexadecimal = "0-9A-Fa-f";
constexpr std::array kSets = std::to_array<SetRow>({
    {"alnum", R"(\p{Alphabetic}\p{Nd})"},
    {"alpha", R"(\p{Alphabetic})"},
    {"ascii", R"(\x00-\x7F)"},
    {"assigned", R"(\p{Cn})", true},
    {"blank", R"(\p{Zs}\t)"},
    {"cntrl", R"(\p{Cc})"},
    {"digit", R"(\p{Nd})"},
    {"graph", R"(\p{White_Space}\p{Cc}\p{Cn}\p{Cs})", true},
    {"lower", R"(\p{Lowercase})"},
    {"print", R"(\p{Cc}\p{Cn}\p{Cs}\p{Zl}\p{Zp})", true},
    {"punct", R"(\p{P})"},
    {"space", kSpace},
    {"upper", R"(\p{Uppercase})"},
    {"word", kWordInClass},
    {"xdigit", kHexadecimal},
});

// PCRE2 accepts only the short names of Unicode's general categories.
constexpr std::string_view kCategories =
    " casedletter=L& closepunctuation=Pe connectorpunctuation=Pc control=Cc currencysymbol=Sc dashpunctuation=Pd"
    " decimalnumber=Nd enclosingmark=Me finalpunctuation=Pf format=Cf initialpunctuation=Pi letter=L letternumber=Nl"
    " lineseparator=Zl lowercaseletter=Ll mark=M mathsymbol=Sm modifierletter=Lm modifiersymbol=Sk nonspacingmark=Mn"
    " number=N openpunctuation=Ps other=C otherletter=Lo othernumber=No otherpunctuation=Po othersymbol=So"
    " paragraphseparator=Zp privateuse=Co punctuation=P separator=Z spaceseparator=Zs spacingmark=Mc symbol=S"
    " titlecaseletter=Lt unassigned=Cn uppercaseletter=Lu ";

// Returns true if PCRE2 has a script of this name. In PCRE2, \p{name} also matches characters that several scripts
// share, but \p{sc:name} matches what \p{name} matches in Oniguruma.
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

struct Set {
  std::string contents;  // what replaces the name inside brackets
  bool negated = false;
  std::size_t length = 0;  // the length of the name in the expression

  // Returns true if the contents are a single \p{...}.
  bool is_property() const { return contents.find('}') + 1 == contents.size(); }
};

// Finds a set by its name. Oniguruma ignores case, spaces, "_" and "-" in names.
Set find_named_set(std::string_view name, bool negated, std::size_t length) {
  if (name.starts_with('^')) {
    name.remove_prefix(1);
    negated = !negated;
  }
  std::string plain;
  for (const char c : name) {
    if (c != ' ' && c != '_' && c != '-') plain += to_lower_ascii(c);
  }
  if (const auto* row = std::ranges::find(kSets, plain, &SetRow::name); row != kSets.end())
    return Set{std::string(row->contents), negated != row->is_rest, length};
  const std::string key = fmt::format(" {}=", plain);
  if (const std::size_t at = kCategories.find(key); at != std::string_view::npos) {
    const std::string_view category = kCategories.substr(at + key.size());
    return Set{fmt::format(R"(\p{{{}}})", category.substr(0, category.find(' '))), negated, length};
  }
  return Set{fmt::format(R"(\p{{{}{}}})", is_script(name) ? "sc:" : "", name), negated, length};
}

// Returns the set that the beginning of the text names, such as [:alpha:] or \h; std::nullopt if there is none.
std::optional<Set> find_set(std::string_view text) {
  if (text.starts_with("[:")) {
    const std::size_t end = text.find(":]");
    if (end == std::string_view::npos) return std::nullopt;
    auto set = find_named_set(text.substr(2, end - 2), false, end + 2);
    // In Oniguruma, symbols are in [:punct:], and in [:^punct:], too.
    if (!set.negated && set.contents == R"(\p{P})") set.contents += R"(\p{S})";
    return set;
  }
  if (!text.starts_with('\\') || text.size() < 2) return std::nullopt;
  switch (const char letter = text[1]; letter) {
    case 's':
    case 'S': return Set{std::string(kSpace), letter == 'S', 2};
    case 'w':
    case 'W': return Set{std::string(kWordInClass), letter == 'W', 2};
    case 'h':
    case 'H': return Set{std::string(kHexadecimal), letter == 'H', 2};
    case 'p':
    case 'P': {
      const std::size_t end = text.substr(2).starts_with('{') ? text.find('}') : std::string_view::npos;
      if (end == std::string_view::npos) return std::nullopt;
      return find_named_set(text.substr(3, end - 3), letter == 'P', end + 1);
    }
    default: return std::nullopt;
  }
}

// Translates an expression, construct by construct.
class Translator {
 public:
  explicit Translator(std::string_view expression) : rest_(expression) {}

  std::string translate() {
    while (!rest_.empty()) translate_construct();
    return std::move(out_);
  }

 private:
  std::string_view cut_front(std::size_t bytes) {
    const std::string_view front = rest_.substr(0, bytes);
    rest_.remove_prefix(front.size());
    return front;
  }
  std::string_view cut_character() { return cut_front(std::max<std::size_t>(measure_character(rest_), 1)); }

  void translate_construct() {
    switch (rest_.front()) {
      case '(':
        groups_.push_back(out_.size());
        out_ += cut_front(rest_.starts_with("(?") ? 2 : 1);  // this ? is not a quantifier
        return;
      case ')':
        atom_ = groups_.empty() ? out_.size() : groups_.back();
        if (!groups_.empty()) groups_.pop_back();
        out_ += cut_front(1);
        return;
      case '{': return translate_interval();
      case '*':
      case '+':
      case '?':
      case '|': out_ += cut_front(1); return;
      default: break;
    }
    atom_ = out_.size();
    if (rest_.front() == '[') {
      out_ += translate_class();
    } else if (rest_.front() == '\\') {
      out_ += translate_escape();
    } else {
      out_ += cut_character();
    }
  }

  // Translates {n,m}. In Oniguruma, "{n,m}+" and "{n}?" repeat the interval: the first is not possessive, the second
  // not lazy.
  void translate_interval() {
    const std::size_t end = rest_.find('}');
    const std::string_view inside = end == std::string_view::npos ? std::string_view() : rest_.substr(1, end - 1);
    if (inside.empty() || inside.find_first_not_of("0123456789,") != std::string_view::npos) {
      atom_ = out_.size();
      out_ += '\\';
      out_ += cut_front(1);
      return;
    }
    out_ += fmt::format("{{{}{}}}", inside.starts_with(',') ? "0" : "", inside);
    cut_front(end + 1);
    const bool exact = inside.find(',') == std::string_view::npos;
    if (!rest_.starts_with('+') && !(exact && rest_.starts_with('?'))) return;
    out_.insert(std::min(atom_, out_.size()), "(?:");
    out_ += ')';
  }

  // Translates an escape outside classes.
  std::string translate_escape() {
    if (const auto set = find_set(rest_)) {
      const bool word = to_lower_ascii(cut_front(set->length)[1]) == 'w';
      if (set->is_property() && !set->negated) return set->contents;
      // PCRE2 10.42 makes \P{...}+ possessive before \P{...}, which loses matches, but not [^\p{...}]+.
      return fmt::format("[{}{}]", set->negated ? "^" : "", word ? kWord : set->contents);
    }
    switch (const char letter = rest_.size() < 2 ? '\0' : rest_[1]; letter) {
      case 'O': cut_front(2); return "(?s:.)";
      case 'b':
      case 'B':
        cut_front(2);
        return fmt::format("(?:(?<=[{0}])(?{1}[{0}])|(?<![{0}])(?{2}[{0}]))", kWord, letter == 'b' ? '!' : '=',
                           letter == 'b' ? '=' : '!');
      case 'Z': cut_front(2); return R"((?=\n?\z))";
      default: return translate_common_escape();
    }
  }

  // Translates an escape that means the same in and outside classes.
  std::string translate_common_escape() {
    const char letter = rest_.size() < 2 ? '\0' : rest_[1];
    if (letter == 'u' && rest_.size() >= 6) return fmt::format(R"(\x{{{}}})", cut_front(6).substr(2));
    const bool braces = (letter == 'p' || letter == 'P' || letter == 'x' || letter == 'k' || letter == 'g') &&
                        rest_.substr(2).starts_with('{');
    if (const std::size_t end = rest_.find('}'); braces && end != std::string_view::npos)
      return std::string(cut_front(end + 1));
    std::string escape(cut_front(1));
    if (!rest_.empty()) escape += cut_character();
    return escape;
  }

  // Translates a class: && becomes look-aheads, and a class in a class becomes an alternative.
  std::string translate_class() {
    if (++depth_ > 32)
      throw Error(ErrorKind::invalid_file, "classes are nested too deeply, at most 32 deep are possible");
    cut_front(1);
    const bool negated = rest_.starts_with('^');
    if (negated) cut_front(1);
    std::vector<std::string> parts;  // the translated operands of &&
    std::string items;
    std::vector<std::string> classes;  // alternatives to the items
    const auto end_part = [&] {
      if (items.empty() && classes.empty()) classes.emplace_back("(?!)");  // no character
      if (!items.empty()) classes.insert(classes.begin(), fmt::format("[{}]", items));
      const std::string part = fmt::format("{}", fmt::join(classes, "|"));
      parts.push_back(classes.size() > 1 ? fmt::format("(?:{})", part) : part);
      items.clear();
      classes.clear();
    };
    for (bool first = true; !rest_.empty() && (first || rest_.front() != ']'); first = false) {
      if (rest_.starts_with("&&")) {
        cut_front(2);
        end_part();
      } else if (const auto set = find_set(rest_)) {
        cut_front(set->length);
        if (!set->negated) {
          items += set->contents;
        } else if (set->is_property()) {
          items += R"(\P)" + set->contents.substr(2);
        } else {
          classes.push_back(fmt::format("[^{}]", set->contents));
        }
      } else if (rest_.front() == '[') {
        classes.push_back(translate_class());
      } else if (rest_.starts_with(R"(\Z)")) {
        items += cut_front(2).substr(1);
      } else if (rest_.front() == '\\') {
        items += translate_common_escape();
      } else {
        items += cut_character();
      }
    }
    if (rest_.empty()) throw Error(ErrorKind::invalid_file, "a class without an end");
    cut_front(1);
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
  std::size_t atom_ = 0;             // where the atom before a quantifier begins in `out_`
  std::vector<std::size_t> groups_;  // where the open groups begin
  std::size_t depth_ = 0;
};

}  // namespace

std::string translate_to_pcre2(std::string_view expression) { return Translator(expression).translate(); }

}  // namespace poise
