// Prepares data for the page of `poise report`: deflates bytes, and escapes JSON.
#pragma once

#include <string>
#include <string_view>

namespace poise {

// Returns the bytes deflated (RFC 1951).
std::string deflate_bytes(std::string_view bytes);

// Returns JSON that an HTML script element can hold: characters that could end the element, or a line of a script,
// become escapes.
std::string escape_json_for_html(std::string_view json);

}  // namespace poise
