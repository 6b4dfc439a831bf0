#include "cli/inspect_json.hpp"

#include <iterator>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "syntax/json.hpp"

namespace poise::cli {
namespace {

// A file's own attributes, and the scale that ALT stores beside them.
Attributes attributes_json(const Tensor& tensor) {
  Attributes map = tensor.attributes;
  if (tensor.layout.affine() != nullptr) {
    const Affine affine = tensor.layout.affine()->get();
    map.set("delta", static_cast<double>(affine.delta));
    map.set("min", static_cast<double>(affine.min));
    map.set("max", static_cast<double>(affine.max));
    map.set("packed", affine.packed);
  }
  return map;
}

std::string indented(std::string_view text, std::size_t spaces) {
  std::string result(spaces, ' ');
  for (const char c : text) {
    result += c;
    if (c == '\n') result.append(spaces, ' ');
  }
  return result;
}

// The list of tensors in JSON, laid out as to_json() lays out values: as values, they would take many times the memory
// of the model, and the time.
class TensorsJson {
 public:
  void print(const Model& model) {
    std::string_view before = "\n";
    for (const Tensor& tensor : model.tensors()) {
      text_ += std::exchange(before, ",\n");
      append(tensor);
      if (text_.size() > kPiece) flush();
    }
    flush();
  }

 private:
  static constexpr std::size_t kPiece = 64 << 10;

  void flush() {
    fmt::print("{}", text_);
    text_.clear();
  }

  void append(const Tensor& tensor) {
    text_ += "    {\n      \"name\": ";
    append_quoted(text_, tensor.name);
    text_ += ",\n      \"shape\": [";
    for (std::size_t i = 0; i < tensor.shape.size(); ++i)
      fmt::format_to(std::back_inserter(text_), "{}\n        {}", i == 0 ? "" : ",", tensor.shape[i]);
    text_ += tensor.shape.empty() ? "],\n      \"layout\": " : "\n      ],\n      \"layout\": ";
    append_quoted(text_, tensor.layout.name());
    text_ += ",\n      \"attributes\": ";
    const Attributes attributes = attributes_json(tensor);
    text_ += attributes.empty() ? "{}" : indented(to_json(attributes, 2), 6).substr(6);  // it begins in this line
    text_ += ",\n      \"parts\": [";
    std::string_view before = "\n";
    for (const Part& part : tensor.parts) {
      text_ += std::exchange(before, ",\n");
      append(part);
    }
    text_ += tensor.parts.empty() ? "]\n    }" : "\n      ]\n    }";
  }

  void append(const Part& part) {
    const auto at = part.blob->stored();
    text_ += "        {\n          \"role\": ";
    append_quoted(text_, part.role);
    text_ += ",\n          \"dtype\": ";
    append_quoted(text_, part.shown_type());
    text_ += ",\n          \"file\": ";
    if (at) {
      append_quoted(text_, at->source->name());
    } else {
      text_ += "null";
    }
    fmt::format_to(std::back_inserter(text_),
                   ",\n          \"offset\": {},\n          \"length\": {},\n          \"encoding\": ",
                   at ? fmt::to_string(at->offset) : "null", at ? at->length : part.blob->size());
    append_quoted(text_, at ? std::string_view(at->encoding) : "raw");
    text_ += ",\n          \"digest\": ";
    if (part.digest) {
      append_quoted(text_, part.digest.text());
    } else {
      text_ += "null";
    }
    text_ += "\n        }";
  }

  std::string text_;
};

}  // namespace

Attributes vocabulary_json(const Vocabulary& vocabulary) {
  return {{"size", vocabulary.size()},   {"bos_id", vocabulary.bos_id}, {"eos_id", vocabulary.eos_id},
          {"pad_id", vocabulary.pad_id}, {"unk_id", vocabulary.unk_id}, {"max_length", vocabulary.max_length}};
}

std::string describe(const Finding& warning) {
  return warning.offset ? fmt::format("{} (at 0x{:x})", warning.message, *warning.offset) : warning.message;
}

void print_inspection_json(const Model& model, const std::string& path) {
  Value::Array warnings;
  for (const Finding& warning : model.warnings) warnings.emplace_back(describe(warning));
  Attributes root{{"path", path}, {"format", model.origin.format}, {"size", model.origin.size}};
  root.set("card", card_to_attributes(model.card));
  root.set("config", whole_config(model));
  root.set("vocabulary", model.vocabulary ? Value(vocabulary_json(*model.vocabulary)) : Value());
  root.set("attributes", model.attributes);
  root.set("warnings", std::move(warnings));
  std::string text = to_json(root, 2);
  text.erase(text.rfind('\n'));
  fmt::print("{},\n  \"tensors\": [", text);
  TensorsJson().print(model);
  fmt::print("{}]\n}}\n", model.size() > 0 ? "\n  " : "");
}

}  // namespace poise::cli
