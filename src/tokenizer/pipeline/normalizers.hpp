// Normalizers: what tokenizer.json does to a text before it is cut.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "tokenizer/pipeline/fields.hpp"

namespace poise {

// A text on its way. Hugging Face's library knows of each byte which character it came from, and takes a piece for the
// beginning of the text where it begins with a byte of the first one: these are the bytes in front.
struct FrontedText {
  std::string text;
  std::size_t front = 0;  // bytes, as that library counts what its normalizers add and take away
};

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  // Requires: well-formed UTF-8. Throws unsupported when the text grows beyond all reason.
  virtual void apply(FrontedText& text) const = 0;

  FrontedText apply_to_beginning(std::string_view text) const;
  std::string apply(std::string_view text) const { return apply_to_beginning(text).text; }
};

// A row of normalizers.cpp by the field's "type". Throws invalid_file and unsupported.
std::unique_ptr<const Normalizer> make_normalizer(const Fields& fields);

}  // namespace poise
