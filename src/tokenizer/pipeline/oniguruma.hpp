// The translation of regular expressions from Oniguruma's syntax (Ruby's), which tokenizer.json has, to that of PCRE2.
//
// What means something else in PCRE2 is rewritten: \s, \w, \b, \h, \uHHHH, the intersection && in classes, {n,m}+, and
// ^ and $, which mean the ends of lines.
#pragma once

#include <string>
#include <string_view>

namespace poise {

// Throws invalid_file (without path) for classes that do not end or are nested too deeply. What else is wrong PCRE2
// finds.
std::string pcre2_syntax(std::string_view expression);

}  // namespace poise
