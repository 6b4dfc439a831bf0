#include "cli/format_names.hpp"

#include <fmt/format.h>

namespace poise::cli {
namespace {

void append_after(std::string& text, std::string_view separator, std::string_view more) {
  if (!text.empty()) text += separator;
  text += more;
}

}  // namespace

std::string format_list() {
  std::string text = "Formats:\n";
  for (const FormatInfo& format : formats()) {
    const char* access = format.readable && format.writable ? "read, write" : format.readable ? "read" : "write";
    text += fmt::format("  {:<14}{:<14}{}\n", format.name, access, format.description);
  }
  return text;
}

std::string format_names(FunctionRef<bool(const Format&)> is_meant) {
  std::string names;
  for (const Format* format : all_formats()) {
    if (is_meant(*format)) append_after(names, ", ", format->info.name);
  }
  return names;
}

std::string alignments() {
  std::string text;
  for (const Format* format : all_formats()) {
    const auto& align = format->options.align;
    if (align)
      append_after(text, "; ",
                   fmt::format("{}: at least {}, default {}", format->info.name, align->least, align->usual));
  }
  return text;
}

}  // namespace poise::cli
