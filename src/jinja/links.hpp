// What the filter urlize takes for a link.
#pragma once

#include <string_view>

namespace poise::jinja {

// "https://example.org/x", "www.example.org", "example.org:80". The text has no white space.
bool is_web_address(std::string_view text);
// "someone@example.org"
bool is_mail_address(std::string_view text);
// "ftp://", "tel:"
bool is_scheme(std::string_view text);

}  // namespace poise::jinja
