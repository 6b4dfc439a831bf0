// Throws the operating system's error as an Error.
#pragma once

#include <cerrno>
#include <string>
#include <string_view>
#include <system_error>

#include <poise/error.hpp>

namespace poise {

// "cannot open: No such file or directory", kind not_found for ENOENT and ENOTDIR, else io.
[[noreturn]] inline void throw_system_error(std::string_view doing, const std::string& path, int code = errno) {
  const ErrorKind kind = code == ENOENT || code == ENOTDIR ? ErrorKind::not_found : ErrorKind::io;
  throw Error(kind, "cannot " + std::string(doing) + ": " + std::generic_category().message(code), path);
}

}  // namespace poise
