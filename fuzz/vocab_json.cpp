// GPT-2's tokenizer files in a directory: vocab.json, merges.txt, tokenizer_config.json, special_tokens_map.json,
// added_tokens.json and a text to encode and decode, separated by the byte 0x1e. An empty text means a missing file.
#include <array>

#include <poise/tokenizer.hpp>

#include "target.hpp"

using namespace poise;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::array kNames = {"vocab.json", "merges.txt", "tokenizer_config.json", "special_tokens_map.json",
                                 "added_tokens.json"};
  const auto texts = fuzz::split(fuzz::bytes_of(data, size), kNames.size() + 1);
  for (std::size_t i = 0; i < kNames.size(); ++i) fuzz::put_file(fuzz::get_scratch_directory() / kNames[i], texts[i]);
  fuzz::expect_sound(size, [&] {
    if (const auto vocabulary = read_vocabulary(fuzz::get_scratch_directory()))
      fuzz::use_all(*vocabulary, texts.back());
  });
  return 0;
}
