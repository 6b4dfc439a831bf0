#include "cli/text_lines.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <poise/error.hpp>
#include <poise/value.hpp>

namespace poise::cli {

std::optional<std::string> TextLines::next() {
  std::string line;
  if (!input_.line(line)) return std::nullopt;
  ++number_;
  const Value value = parse_json(line, name());
  if (const auto* text = value.get_if<std::string>()) return *text;
  throw Error(ErrorKind::invalid_file, "expected a JSON string", name());
}

std::string TextLines::name() const { return fmt::format("line {} of the input", number_); }

void require_no_text(bool has_lines, const std::string& text) {
  if (has_lines && text != "-")
    throw CLI::ValidationError("--jsonl", "the texts come from standard input, one a line, and not as TEXT");
}

}  // namespace poise::cli
