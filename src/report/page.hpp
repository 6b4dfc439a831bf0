// The page of a report: its markup, style and script, around the data of one model.
#pragma once

#include <string>
#include <string_view>

namespace poise {

// Holds the data of a page. Tensors, maps and vocabulary are deflated.
struct PageData {
  std::string title;       // plain text, not markup
  std::string model;       // JSON: all that is small
  std::string tensors;     // JSON: a list for each column
  std::string maps;        // cells of heat maps, a byte each
  std::string vocabulary;  // JSON: texts and types
};

// Returns the page. A policy in it lets a browser run only its own script, and load nothing.
std::string make_page(const PageData& data);

// The files in page/, which the build embeds: the script is made of all of them, in the order of their names.
extern const std::string_view kPageMarkup;
extern const std::string_view kPageStyle;
extern const std::string_view kPageScript;

}  // namespace poise
