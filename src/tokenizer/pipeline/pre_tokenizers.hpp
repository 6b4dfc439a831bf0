// Pre-tokenizers: cut a text into pieces, which the model tokenizes one by one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string_view>

#include "tokenizer/pipeline/fields.hpp"

namespace poise {

struct Piece {
  std::string_view text;  // never empty
  std::size_t front = 0;  // bytes in front that belong to the first character of the whole text (FrontedText)

  // Part of its text. Requires: the range is inside.
  Piece part(std::size_t begin, std::size_t size) const {
    return {text.substr(begin, size), std::min(front - std::min(front, begin), size)};
  }
};

// Takes pieces in order.
class PieceSink {
 public:
  virtual ~PieceSink() = default;
  // The piece's text is valid only during the call.
  virtual void take(Piece piece) = 0;
};

// A running pre-tokenizer: takes pieces, and passes smaller ones on.
class Cutter : public PieceSink {
 public:
  // Begins a text of that many bytes.
  virtual void allow(std::size_t bytes) = 0;
};

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  // Requires: this and `next` outlive the result.
  virtual std::unique_ptr<Cutter> start(PieceSink& next) const = 0;
};

// Selects a row of pre_tokenizers.cpp by the field's "type". Throws invalid_file and unsupported.
std::unique_ptr<const PreTokenizer> make_pre_tokenizer(const Fields& fields);

}  // namespace poise
