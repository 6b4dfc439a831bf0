// Decoders: what makes text of the texts of tokens.
#pragma once

#include <memory>
#include <string_view>

#include "tokenizer/pipeline/fields.hpp"

namespace poise {

// Gets the texts of tokens, perhaps in parts, and gives others to the next.
class DecodeSink {
 public:
  virtual ~DecodeSink() = default;
  // A part of a token's text; `begins` and `ends` say which. Parts are whole characters.
  virtual void take(std::string_view text, bool begins, bool ends) = 0;
  // There are no more. It then starts anew.
  virtual void finish() = 0;
};

class Decoder {
 public:
  virtual ~Decoder() = default;
  // Requires: this and `next` outlive what is returned.
  virtual std::unique_ptr<DecodeSink> start(DecodeSink& next) const = 0;
};

// A row of decoders.cpp by the field's "type". Throws invalid_file and unsupported.
std::unique_ptr<const Decoder> make_decoder(const Fields& fields);

// What takes the place of a decoder where a file has none: a space between tokens.
std::unique_ptr<const Decoder> spaces_between_tokens();

}  // namespace poise
