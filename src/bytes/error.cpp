#include <poise/error.hpp>

#include <fmt/format.h>

namespace poise {
namespace {

std::string compose_message(const std::string& message, const std::string& path, std::optional<std::uint64_t> offset) {
  std::string text = path.empty() ? message : path + ": " + message;
  if (offset) text += fmt::format(" (at 0x{:x})", *offset);
  // what() ends at a NUL, and a name in a file may contain one.
  for (std::size_t at = text.find('\0'); at != std::string::npos; at = text.find('\0', at))
    text.replace(at, 1, "\\x00");
  return text;
}

}  // namespace

std::string_view to_string(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::invalid_file: return "invalid_file";
    case ErrorKind::unsupported: return "unsupported";
    case ErrorKind::not_found: return "not_found";
    case ErrorKind::bad_argument: return "bad_argument";
    case ErrorKind::io: return "io";
    case ErrorKind::cancelled: return "cancelled";
    case ErrorKind::internal: return "internal";
  }
  return "internal";
}

Error::Error(ErrorKind kind, std::string message, std::string path, std::optional<std::uint64_t> offset)
    : std::runtime_error(compose_message(message, path, offset)),
      kind_(kind),
      message_(std::move(message)),
      path_(std::move(path)),
      offset_(offset) {}

Error Error::with(Remedy remedy) && {
  remedies_.push_back(std::move(remedy));
  return std::move(*this);
}

}  // namespace poise
