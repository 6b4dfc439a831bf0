// divergence: weighs the matrices of a model by how much quantizing each of them changes the model's predictions for a
// text. A budget (SizeBudget) then spends its bytes where they count (docs/quantize-to-a-size.md).
//
//   poise::convert("model/", "small.gguf",
//                  {.budget = poise::SizeBudget{.bytes = 4'200'000'000, .divergence = poise::measure_on_text(text)}});
#pragma once

#include <cstddef>
#include <filesystem>
#include <string_view>

#include <poise/convert.hpp>

namespace poise {

// The largest number of tokens that measure_on_text() uses, from the beginning.
inline constexpr std::size_t kMeasuredTokens = 512;

// The largest number of bytes that measure_on_text() uses, from the beginning. This is 2048 bytes for each token;
// tokens are much shorter on average.
inline constexpr std::size_t kMeasuredBytes = 1 << 20;

// Returns a function that makes a measure on `text`. Empty lines divide it into texts, each with the special tokens
// that Perplexity::add() puts around it. The first kMeasuredTokens tokens count; a text that is longer than the model's
// context is cut into several. Each call of the measure computes these tokens once with the changed model, and the
// first call also with the unchanged one. The measure keeps the scores of the unchanged model, 4 bytes for each pair of
// a predicted token and a token of the vocabulary, and copies of the weights that are not mapped from files. Making the
// measure throws what load_weights() throws; unsupported without a vocabulary or an output matrix; bad_argument for a
// text without a token to predict.
MakeDivergenceMeasure measure_on_text(std::string_view text);

// Returns the same measure on the texts of a file. Throws what Source::open() throws.
MakeDivergenceMeasure measure_on_text_file(const std::filesystem::path& file);

}  // namespace poise
