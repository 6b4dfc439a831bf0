// SentencePiece models: tokenizer.model.
#include "target.hpp"
#include "tokenizer/sentencepiece/model.hpp"

using namespace poise;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto input = fuzz::bytes_of(data, size);
  fuzz::expect_sound(size, [&] { fuzz::use_all(read_sentencepiece(*fuzz::make_source(input, "fuzz.model"))); });
  return 0;
}
