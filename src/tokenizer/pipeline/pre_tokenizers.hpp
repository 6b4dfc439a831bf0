// Pre-tokenizers: what cuts a text into pieces, each of which the model tokenizes by itself.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string_view>

#include "tokenizer/pipeline/fields.hpp"

namespace poise {

struct Piece {
  std::string_view text;  // never empty
  std::size_t front = 0;  // bytes in front that come from the first character of the whole text (FrontedText)

  // A part of its text. Requires: the text has it.
  Piece part(std::size_t begin, std::size_t size) const {
    return {text.substr(begin, size), std::min(front - std::min(front, begin), size)};
  }
};

// Gets pieces in their order.
class PieceSink {
 public:
  virtual ~PieceSink() = default;
  // The piece's text is there only as long as the call.
  virtual void take(Piece piece) = 0;
};

// A pre-tokenizer at work: it gets pieces, and gives smaller ones to the next.
class Cutter : public PieceSink {
 public:
  // A text of so many bytes begins.
  virtual void allow(std::size_t bytes) = 0;
};

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  // Requires: this and `next` outlive what is returned.
  virtual std::unique_ptr<Cutter> start(PieceSink& next) const = 0;
};

// A row of pre_tokenizers.cpp by the field's "type". Throws invalid_file and unsupported.
std::unique_ptr<const PreTokenizer> make_pre_tokenizer(const Fields& fields);

}  // namespace poise
