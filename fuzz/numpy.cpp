// NumPy's .npy and .npz. The CRC-32s and places of an archive are right in few mutations: the input is read as the file
// that it is, and as the two arrays of an archive, whose bytes are cut in half.
#include <poise/format.hpp>

#include "io/sink.hpp"
#include "pack/zip_writer.hpp"
#include "support/memory_output.hpp"
#include "target.hpp"

using namespace poise;

namespace {

std::vector<std::byte> as_archive(fuzz::Bytes input) {
  MemorySink sink;
  ZipWriter archive(sink, 64);
  archive.add("a.npy", input.first(input.size() / 2));
  archive.add("b.npy", input.subspan(input.size() / 2));
  archive.finish();
  return sink.take();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto input = fuzz::bytes_of(data, size);
  fuzz::expect_sound(size, [&] { fuzz::use(open(fuzz::source(input, "fuzz.npy"))); });
  fuzz::expect_sound(size, [&] { fuzz::use(open(fuzz::source(as_archive(input), "fuzz.npz"))); });
  return 0;
}
