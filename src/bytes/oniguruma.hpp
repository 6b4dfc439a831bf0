// Translates regular expressions from Oniguruma's syntax (Ruby's), which tokenizer.json uses, to PCRE2's.
//
// It rewrites what means something else in PCRE2: \s, \w, \b, \h, \uHHHH, the intersection && in classes, {n,m}+, and ^
// and $, which match at the ends of lines.
#pragma once

#include <string>
#include <string_view>

namespace poise {

// Throws invalid_file (without path) for classes that do not end or are nested too deeply. PCRE2 reports other errors.
std::string pcre2_syntax(std::string_view expression);

}  // namespace poise
