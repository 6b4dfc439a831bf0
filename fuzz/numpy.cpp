// NumPy's .npy and .npz. Mutations rarely keep the CRC-32s and places of an archive right. Thus the input is read as a
// file, and its halves also as the two arrays of a valid archive.
#include <poise/format.hpp>

#include "io/sink.hpp"
#include "pack/zip_writer.hpp"
#include "support/memory_output.hpp"
#include "target.hpp"

using namespace poise;

namespace {

std::vector<std::byte> make_archive(fuzz::Bytes input) {
  MemorySink sink;
  ZipWriter archive(sink, 64);
  archive.add_member("a.npy", input.first(input.size() / 2));
  archive.add_member("b.npy", input.subspan(input.size() / 2));
  archive.finish();
  return sink.take();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto input = fuzz::bytes_of(data, size);
  fuzz::expect_sound(size, [&] { fuzz::use_all(open(fuzz::make_source(input, "fuzz.npy"))); });
  fuzz::expect_sound(size, [&] { fuzz::use_all(open(fuzz::make_source(make_archive(input), "fuzz.npz"))); });
  return 0;
}
