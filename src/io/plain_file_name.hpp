// Names of files that other files give.
#pragma once

#include <string_view>

namespace poise {

// True for the name of a file inside a directory: not empty, not "." or "..", and without separators (of Windows, too)
// and zero bytes. A path from a stranger's file must not lead elsewhere.
inline bool is_plain_file_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\\\0", 3)) == std::string_view::npos;
}

}  // namespace poise
