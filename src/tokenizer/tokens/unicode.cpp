#include "tokenizer/tokens/unicode.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <utf8proc.h>

#include <poise/error.hpp>

#include "bytes/utf8.hpp"

namespace poise::unicode {
namespace {

utf8proc_category_t find_category(char32_t code) { return utf8proc_category(static_cast<utf8proc_int32_t>(code)); }

bool is_between(char32_t code, char32_t first, char32_t last) { return code >= first && code <= last; }

// Returns true for the most frequent of those characters that a normal form does not change and that never combine with
// the character before.
bool is_inert(char32_t code, Form form) {
  if (code < 0x80 || is_between(code, 0x3400, 0x4DBF) || is_between(code, 0x4E00, 0x9FFF)) return true;
  if (form != Form::nfc) return false;
  return code < 0x300 ||                      // Latin
         is_between(code, 0x400, 0x482) ||    // Cyrillic
         is_between(code, 0x2010, 0x2027) ||  // punctuation
         is_between(code, 0x3001, 0x3029) || is_between(code, 0x3030, 0x3096) ||
         is_between(code, 0x309B, 0x30FF) ||  // punctuation and kana
         is_between(code, 0xAC00, 0xD7A3) ||  // Hangul
         is_between(code, 0xFF01, 0xFF5E);    // fullwidth forms
}

class Normalizer {
 public:
  explicit Normalizer(Form form) : form_(form) {}

  std::string normalize(std::string_view text) {
    std::vector<utf8proc_int32_t> codes;
    codes.reserve(text.size());
    for_each_character(text, [&](char32_t code, std::string_view) { decompose(code, codes); });
    sort_marks(codes);
    auto size = static_cast<utf8proc_ssize_t>(codes.size());
    if (form_ == Form::nfc || form_ == Form::nfkc) {
      size = utf8proc_normalize_utf32(codes.data(), size,
                                      static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
      if (size < 0) throw Error(ErrorKind::internal, fmt::format("normal form: {}", utf8proc_errmsg(size)));
    }
    std::string result;
    result.reserve(text.size());
    for (utf8proc_ssize_t i = 0; i < size; ++i)
      append_utf8(result, static_cast<char32_t>(codes[static_cast<std::size_t>(i)]));
    return result;
  }

 private:
  void decompose(char32_t code, std::vector<utf8proc_int32_t>& codes) const {
    if (is_inert(code, Form::nfd)) return codes.push_back(static_cast<utf8proc_int32_t>(code));
    int options = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE;
    if (form_ == Form::nfkc || form_ == Form::nfkd) options |= UTF8PROC_COMPAT;
    std::array<utf8proc_int32_t, 32> parts;
    int boundary = 0;
    const utf8proc_ssize_t count =
        utf8proc_decompose_char(static_cast<utf8proc_int32_t>(code), parts.data(), parts.size(),
                                static_cast<utf8proc_option_t>(options), &boundary);
    if (count < 0 || static_cast<std::size_t>(count) > parts.size())
      throw Error(ErrorKind::internal, "normal form: a character in too many parts");
    codes.insert(codes.end(), parts.begin(), parts.begin() + count);
  }

  static int find_combining_class(utf8proc_int32_t code) {
    return code < 0x300 ? 0 : utf8proc_get_property(code)->combining_class;
  }

  // Sorts runs of combining marks by their class. utf8proc sorts them in quadratic time.
  static void sort_marks(std::vector<utf8proc_int32_t>& codes) {
    std::vector<std::pair<int, utf8proc_int32_t>> run;
    for (std::size_t i = 0; i < codes.size();) {
      run.clear();
      std::size_t end = i;
      for (int place = 0; end < codes.size() && (place = find_combining_class(codes[end])) != 0; ++end)
        run.emplace_back(place, codes[end]);
      if (run.size() > 1) {
        std::ranges::stable_sort(run, {}, &std::pair<int, utf8proc_int32_t>::first);
        for (std::size_t k = 0; k < run.size(); ++k) codes[i + k] = run[k].second;
      }
      i = std::max(end, i + 1);
    }
  }

  Form form_;
};

}  // namespace

std::string make_well_formed(std::string_view text) {
  if (is_utf8(text)) return std::string(text);
  std::string result;
  while (!text.empty()) {
    const std::size_t length = measure_character(text);
    result += length == 0 ? kReplacementCharacter : text.substr(0, length);
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return result;
}

std::size_t append_lossy(std::string& text, std::string_view bytes, bool at_end) {
  while (!bytes.empty()) {
    if (const std::size_t length = measure_character(bytes); length > 0) {
      text += bytes.substr(0, length);
      bytes.remove_prefix(length);
      continue;
    }
    // `begun` is the length of the longest prefix that may begin a character.
    std::size_t begun = std::min<std::size_t>(bytes.size(), 3);
    while (begun > 1 && measure_incomplete_tail(bytes.substr(0, begun)) != begun) --begun;
    if (begun == bytes.size() && measure_incomplete_tail(bytes) == bytes.size() && !at_end) return bytes.size();
    text += kReplacementCharacter;
    bytes.remove_prefix(begun);
  }
  return 0;
}

bool is_white_space(char32_t code) {
  if (code < 0x80) return code == ' ' || (code >= '\t' && code <= '\r');
  return code == 0x85 || code == 0xA0 || code == 0x1680 || is_between(code, 0x2000, 0x200A) || code == 0x2028 ||
         code == 0x2029 || code == 0x202F || code == 0x205F || code == 0x3000;
}

bool is_number(char32_t code) {
  const auto kind = find_category(code);
  return kind >= UTF8PROC_CATEGORY_ND && kind <= UTF8PROC_CATEGORY_NO;
}

bool is_punctuation(char32_t code) {
  const auto kind = find_category(code);
  return kind >= UTF8PROC_CATEGORY_PC && kind <= UTF8PROC_CATEGORY_PO;
}

bool is_mark(char32_t code) {
  const auto kind = find_category(code);
  return kind >= UTF8PROC_CATEGORY_MN && kind <= UTF8PROC_CATEGORY_ME;
}

bool is_nonspacing_mark(char32_t code) { return find_category(code) == UTF8PROC_CATEGORY_MN; }

bool is_control_or_format(char32_t code) {
  const auto kind = find_category(code);
  return kind == UTF8PROC_CATEGORY_CC || kind == UTF8PROC_CATEGORY_CF || kind == UTF8PROC_CATEGORY_CO;
}

bool is_word(char32_t code) {
  const auto kind = find_category(code);
  return (kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_ND) || kind == UTF8PROC_CATEGORY_NL ||
         kind == UTF8PROC_CATEGORY_PC || code == 0x200C || code == 0x200D || is_between(code, 0x24B6, 0x24E9) ||
         is_between(code, 0x1F130, 0x1F149) || is_between(code, 0x1F150, 0x1F169) || is_between(code, 0x1F170, 0x1F189);
}

bool is_ideograph(char32_t code) {
  return is_between(code, 0x4E00, 0x9FFF) || is_between(code, 0x3400, 0x4DBF) || is_between(code, 0x20000, 0x2A6DF) ||
         is_between(code, 0x2A700, 0x2B73F) || is_between(code, 0x2B740, 0x2B81F) ||
         is_between(code, 0x2B920, 0x2CEAF) || is_between(code, 0xF900, 0xFAFF) || is_between(code, 0x2F800, 0x2FA1F);
}

std::string to_lower_case(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for_each_character(text, [&](char32_t code, std::string_view bytes) {
    if (code < 0x80) {
      result += to_lower_ascii(bytes.front());
    } else if (code == 0x130) {
      result += "i\xCC\x87";  // the only character whose lower case is two characters
    } else {
      append_utf8(result, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code))));
    }
  });
  return result;
}

std::string to_normal_form(std::string_view text, Form form) {
  std::string result;
  std::size_t done = 0;
  std::size_t before = 0;  // where the last character begins, because the following characters may combine with it
  for (std::size_t i = 0; i < text.size();) {
    const Character next = decode(text, i);
    if (is_inert(next.code, form)) {
      before = i;
      i += next.bytes;
      continue;
    }
    while (i < text.size() && !is_inert(decode(text, i).code, form)) i += decode(text, i).bytes;
    result.append(text.substr(done, before - done)).append(Normalizer(form).normalize(text.substr(before, i - before)));
    done = before = i;
  }
  return result.append(text.substr(done));
}

std::size_t measure_grapheme(std::string_view text) {
  Character before = decode(text, 0);
  std::size_t length = before.bytes;
  utf8proc_int32_t state = 0;
  while (length < text.size()) {
    const Character next = decode(text, length);
    if (utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(before.code),
                                         static_cast<utf8proc_int32_t>(next.code), &state))
      break;
    length += next.bytes;
    before = next;
  }
  return length;
}

}  // namespace poise::unicode

namespace poise {

namespace {

// Lists the scripts of Unicode 14, abbreviated as in ISO 15924, except those that make_script_run_expression() names.
constexpr std::string_view kScripts =
    "Adlm Aghb Ahom Arab Armi Armn Avst Bali Bamu Bass Batk Beng Bhks Bopo Brah Brai Bugi Buhd Cakm Cans Cari Cham "
    "Cher Chrs Copt Cpmn Cprt Cyrl Deva Diak Dogr Dsrt Dupl Egyp Elba Elym Ethi Geor Glag Gong Gonm Goth Gran Grek "
    "Gujr Guru Hang Hano Hatr Hebr Hluw Hmng Hmnp Hung Ital Java Kali Khar Khmr Khoj Kits Knda Kthi Lana Laoo Latn "
    "Lepc Limb Lina Linb Lisu Lyci Lydi Mahj Maka Mand Mani Marc Medf Mend Merc Mero Mlym Modi Mong Mroo Mtei Mult "
    "Mymr Nand Narb Nbat Newa Nkoo Nshu Ogam Olck Orkh Orya Osge Osma Ougr Palm Pauc Perm Phag Phli Phlp Phnx Plrd "
    "Prti Rjng Rohg Runr Samr Sarb Saur Sgnw Shaw Shrd Sidd Sind Sinh Sogd Sogo Sora Soyo Sund Sylo Syrc Tagb Takr "
    "Tale Talu Taml Tang Tavt Telu Tfng Tglg Thaa Thai Tibt Tirh Tnsa Toto Ugar Vaii Vith Wara Wcho Xpeo Xsux Yezi "
    "Yiii Zanb Zinh";

// Returns the expression of a run of one script. The run begins with a character of the script; spaces and characters
// without a script may follow.
std::string make_run_expression(std::string_view script) { return fmt::format(R"([{0}][{0} \p{{sc:Zzzz}}]*)", script); }

}  // namespace

std::string make_script_run_expression() {
  std::string runs = make_run_expression(R"(\p{sc:Hani}\p{sc:Hira}\p{sc:Kana}\x{30FC})");
  for (std::string_view rest = kScripts; !rest.empty(); rest.remove_prefix(std::min<std::size_t>(rest.size(), 5))) {
    runs += '|' + make_run_expression(fmt::format(R"(\p{{sc:{}}})", rest.substr(0, 4)));
  }
  // The script Common includes the space and U+30FC, which the other expressions match.
  return runs + R"(|(?![ \x{30FC}])\p{sc:Zyyy}(?:(?!\x{30FC})[\p{sc:Zyyy}\p{sc:Zzzz}])*)";
}

}  // namespace poise
