// tokenizer.json, the byte 0x1e, a text that is encoded and decoded.
#include <span>

#include <poise/tokenizer.hpp>

#include "target.hpp"
#include "tokenizer/tokenizer_json.hpp"

using namespace poise;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto texts = fuzz::split(fuzz::bytes_of(data, size), 2);
  fuzz::expect_sound(size, [&] {
    const Vocabulary vocabulary = read_tokenizer_json(*fuzz::source(fuzz::bytes_of(texts[0]), "tokenizer.json"));
    fuzz::use(vocabulary);
    const Tokenizer tokenizer(vocabulary);
    const auto ids = tokenizer.encode_with_special(texts[1]);
    (void)tokenizer.decode(ids, SpecialTokens::shown);
  });
  return 0;
}
