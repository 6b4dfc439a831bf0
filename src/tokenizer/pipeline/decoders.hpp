// Decoders: join the texts of tokens.
#pragma once

#include <memory>
#include <string_view>

#include "tokenizer/pipeline/fields.hpp"

namespace poise {

// Takes the texts of tokens, perhaps in parts, and passes texts to the next sink.
class DecodeSink {
 public:
  virtual ~DecodeSink() = default;
  // Part of a token's text; `begins` and `ends` mark its ends. Parts are whole characters.
  virtual void take(std::string_view text, bool begins, bool ends) = 0;
  // The end. The sink then starts over.
  virtual void finish() = 0;
};

class Decoder {
 public:
  virtual ~Decoder() = default;
  // Requires: this and `next` outlive the result.
  virtual std::unique_ptr<DecodeSink> start(DecodeSink& next) const = 0;
};

// Selects a row of decoders.cpp by the field's "type". Throws invalid_file and unsupported.
std::unique_ptr<const Decoder> make_decoder(const Fields& fields);

// The decoder for files without one: puts a space between tokens.
std::unique_ptr<const Decoder> spaces_between_tokens();

}  // namespace poise
