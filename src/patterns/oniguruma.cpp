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

// Sets of characters that PCRE2 interprets differently or lacks: as [:name:], as \p{name}, or as a letter. Oniguruma
// ignores case, spaces, "_" and "-" in names.
struct SetRow {
  std::string_view name;
  std::string_view contents;  // of a class
  bool is_rest = false;       // everything except the contents
};
constexpr std::string_view kWord = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc})";
constexpr std::string_view kLatinNumbers = R"(\xB2\xB3\xB9\xBC-\xBE)";  // part of words, too, but not in a class
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

// Returns a name in the spelling of kSets.
std::string plain_name(std::string_view name) {
  std::string plain;
  for (const char c : name) {
    if (c != ' ' && c != '_' && c != '-') plain += to_lower_ascii(c);
  }
  return plain;
}

// Returns true when PCRE2 has a script of this name. A bare name also matches characters that several scripts share,
// which Oniguruma's does not.
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

// Translates an expression, construct by construct.
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

  // Begins an atom that a quantifier may follow.
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
        if (rest_.starts_with('?')) out_ += take();  // what follows it is not a quantifier
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

  // "{n,m}+" repeats the interval; it is not possessive.
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
    std::size_t length = 0;  // of its name in the expression
  };

  // Returns the set at the current position, if PCRE2 interprets its name differently.
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

  // Only \p{...} negates itself.
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

  // Translates a class; && becomes look-aheads.
  std::string char_class() {
    if (++depth_ > 32) throw Error(ErrorKind::invalid_file, "classes in classes are nested too deeply");
    take();
    bool negated = false;
    if (rest_.starts_with('^')) {
      negated = true;
      take();
    }
    std::vector<std::string> parts;  // joined by &&, each a class
    std::string items;
    std::vector<std::string> classes;  // unions with the items
    const auto end_part = [&] {
      std::string part = items.empty() ? std::string() : fmt::format("[{}]", items);
      for (const std::string& class_text : classes) part += (part.empty() ? "" : "|") + class_text;
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
  std::vector<std::size_t> groups_;  // the beginnings of the open ones
  std::size_t depth_ = 0;
};

}  // namespace

std::string pcre2_syntax(std::string_view expression) { return Translator(expression).translate(); }

}  // namespace poise
