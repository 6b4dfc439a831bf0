// tekken.json, the byte 0x1e, a text to encode and decode.
#include "tokenizer/files/files.hpp"

#include "target.hpp"

using namespace poise;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto texts = fuzz::split(fuzz::bytes_of(data, size), 2);
  fuzz::expect_sound(
      size, [&] { fuzz::use_all(read_tekken(*fuzz::make_source(fuzz::bytes_of(texts[0]), "tekken.json")), texts[1]); });
  return 0;
}
