// Normalizers: what tokenizer.json changes in a text before it is cut.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "tokenizer/pipeline/fields.hpp"

namespace poise {

// A text during normalization. Hugging Face's library tracks the original character of each byte, and a piece counts as
// the beginning of the text if it begins with a byte of the first character: these are the bytes in front.
struct FrontedText {
  std::string text;
  std::size_t front = 0;  // bytes, counted as that library counts what its normalizers add and remove
};

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  // Requires: well-formed UTF-8. Throws unsupported when the text grows absurdly.
  virtual void apply(FrontedText& text) const = 0;

  FrontedText apply_to_beginning(std::string_view text) const;
  std::string apply(std::string_view text) const { return apply_to_beginning(text).text; }
};

// Selects a row of normalizers.cpp by the field's "type". Throws invalid_file and unsupported.
std::unique_ptr<const Normalizer> make_normalizer(const Fields& fields);

}  // namespace poise
