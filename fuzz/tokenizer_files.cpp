// Tiny Llama's tokenizer files: vocab.txt, the byte 0x1e, merges.txt.
#include "target.hpp"
#include "tokenizer/files/files.hpp"

using namespace poise;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto texts = fuzz::split(fuzz::bytes_of(data, size), 2);
  fuzz::expect_sound(size, [&] {
    const auto vocab = fuzz::make_source(fuzz::bytes_of(texts[0]), "vocab.txt");
    const auto merges = fuzz::make_source(fuzz::bytes_of(texts[1]), "merges.txt");
    fuzz::use_all(read_byte_pair_vocabulary(*vocab, *merges));
  });
  return 0;
}
