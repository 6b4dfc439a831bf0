// Base64 (RFC 4648), with padding.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace poise {

std::string to_base64(std::string_view bytes);

// Nothing for invalid base64.
std::optional<std::string> base64_decoded(std::string_view text);

}  // namespace poise
