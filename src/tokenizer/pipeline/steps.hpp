// Declares the steps of a tokenizer's pipeline (normalizers, pre-tokenizers and decoders), and makes them from their
// fields in tokenizer.json.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <poise/model.hpp>
#include <poise/tokenizer.hpp>

#include "tokenizer/pipeline/fields.hpp"

namespace poise {

// Names a type of steps and its maker. A table has all types except Sequence. `Made` is a normalizer, a pre-tokenizer
// or a decoder.
template <typename Made>
struct StepRow {
  std::string_view type;
  Made (*make)(const Fields& fields);
};

// Returns a function that makes the step with these options, in front of the step `next`.
template <typename Made, typename Step>
Made make_step(const Fields& fields) {
  return [options = typename Step::Options(fields)](auto& next) { return std::make_unique<Step>(options, next); };
}

// Makes the step of the fields' type, or joins the steps in `list` of a Sequence, which may be sequences, too. Throws
// invalid_file, and unsupported for unknown types.
template <typename Made>
Made make_steps(std::span<const StepRow<Made>> rows, std::string_view list, Made (*join)(std::vector<Made> steps),
                const Fields& fields, std::size_t& count) {
  count_step(fields, count);
  if (fields.require_text("type") != "Sequence") return find_row(rows, fields).make(fields);
  std::vector<Made> all;
  for (const Fields& step : fields.read_list(list)) all.push_back(make_steps(rows, list, join, step, count));
  return join(std::move(all));
}

// Runs a step of decoding: accepts the texts of tokens, perhaps in parts, and passes texts to the next sink.
class DecodeSink {
 public:
  virtual ~DecodeSink() = default;
  // Accepts a part of a token's text; `begins` and `ends` mark its ends. Parts are whole characters.
  virtual void accept(std::string_view text, bool begins, bool ends) = 0;
  // Ends the text. The sink then starts over.
  virtual void finish() = 0;
};

// Makes a sink that decodes texts and passes the results to `next`. The function is empty if there is no decoder.
// Requires: this function and `next` outlive the sink.
using Decoder = std::function<std::unique_ptr<DecodeSink>(DecodeSink& next)>;

// Makes the decoder of the field "type"; decoders.cpp has a row for each type. Throws invalid_file and unsupported.
Decoder make_pipeline_decoder(const Fields& fields);

// Makes the decoder for files that have none. It puts a space between tokens.
Decoder make_space_decoder();

// Holds a text during normalization, and how many bytes at its front come from the first character. As in Hugging
// Face's library, a piece that begins with such a byte counts as the beginning of the text.
struct FrontedText {
  std::string text;
  std::size_t front = 0;  // in bytes; added and removed characters count as in that library
};

// Changes a text before it is cut.
class Normalizer {
 public:
  virtual ~Normalizer() = default;
  // Requires: well-formed UTF-8. Replacements and sequences throw unsupported when the text grows beyond 64 times its
  // size plus 1 MiB.
  virtual void apply(FrontedText& text) const = 0;

  // Normalizes a text whose front is its first character.
  FrontedText apply_with_front(std::string_view text) const;
  std::string apply(std::string_view text) const { return apply_with_front(text).text; }
};

// Makes the normalizer of the field "type"; normalizers.cpp has a row for each type. Throws invalid_file and
// unsupported.
std::unique_ptr<const Normalizer> make_normalizer(const Fields& fields);

// Refers to a part of a text, which the model tokenizes alone.
struct Piece {
  std::string_view text;  // never empty
  std::size_t front = 0;  // bytes in front that belong to the first character of the whole text (FrontedText)

  // Requires: the range is inside.
  Piece part(std::size_t begin, std::size_t size) const {
    return {text.substr(begin, size), std::min(front - std::min(front, begin), size)};
  }
};

// Accepts pieces in order.
class PieceSink {
 public:
  virtual ~PieceSink() = default;
  // Accepts a piece, whose text is valid only during the call.
  virtual void accept(Piece piece) = 0;
};

// Cuts texts for a pre-tokenizer: accepts pieces, and passes smaller pieces to the next sink.
class Cutter : public PieceSink {
 public:
  // Starts the time limit for a text of that many bytes (RegexMatcher::start_time_limit()).
  virtual void start_time_limit(std::size_t /*bytes*/) {}
};

// Makes the cutter that passes its pieces to `next`. The function is empty if there is no pre-tokenizer. Requires: this
// function and `next` outlive the cutter.
using PreTokenizer = std::function<std::unique_ptr<Cutter>(PieceSink& next)>;

// Makes the pre-tokenizer of the field "type"; pre_tokenizers.cpp has a row for each type. Throws invalid_file and
// unsupported.
PreTokenizer make_pre_tokenizer(const Fields& fields);

// Makes a vocabulary for a model whose embedding has fewer rows than the vocabulary has tokens. Keeps the tokens with
// ids below `rows`. Removes the others also from the added tokens, the special ids and the tokens around texts, and
// removes merges that use or make them. So encoding never returns ids of `rows` and above. Returns the same vocabulary
// if it has at most `rows` tokens. Throws what find_special_around() throws.
Vocabulary keep_first_tokens(Vocabulary vocabulary, std::size_t rows);

}  // namespace poise
