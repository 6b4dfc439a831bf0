// Makes the page of write_report(): its data, with markup, style and script around them. The inputs may be streams.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <poise/report.hpp>

#include "formats/input.hpp"

namespace poise {

struct ReportInputs {
  Input model;
  std::optional<Input> against;
};

// Returns the page. Throws the errors of write_report(). Ignores options.against and options.overwrite.
std::string make_report(const ReportInputs& inputs, const ReportOptions& options);

// Holds the data of a page. Tensors, maps and vocabulary are deflated.
struct PageData {
  std::string title;       // plain text, not markup
  std::string model;       // JSON: all other data
  std::string tensors;     // JSON: a list for each column
  std::string maps;        // cells of heat maps, a byte each
  std::string vocabulary;  // JSON: texts and types
};

// Returns the page. A policy in it lets a browser run only its own script, and load nothing.
std::string make_page(const PageData& data);

// The build embeds the files in page/. It joins all scripts, in the order of their names.
extern const std::string_view kPageMarkup;
extern const std::string_view kPageStyle;
extern const std::string_view kPageScript;

}  // namespace poise
