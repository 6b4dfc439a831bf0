// PyTorch's checkpoints. Mutations rarely keep the CRC-32s and places of an archive right. Thus the input is read as a
// file, and also as the pickle of a valid archive with three storages, whose sizes are those of the seeds.
#include <array>
#include <string>

#include <poise/format.hpp>

#include "io/sink.hpp"
#include "pack/zip_writer.hpp"
#include "pickle_seed.hpp"
#include "support/memory_output.hpp"
#include "target.hpp"

using namespace poise;

namespace {

std::vector<std::byte> make_archive(fuzz::Bytes pickle) {
  constexpr std::array<std::byte, fuzz::kPickledBytes> kStorage{};
  MemorySink sink;
  ZipWriter archive(sink, 64);
  archive.add_member("a/data.pkl", pickle);
  for (const std::string key : {"0", "1", "2"}) archive.add_member("a/data/" + key, kStorage);
  archive.finish();
  return sink.take();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto input = fuzz::bytes_of(data, size);
  fuzz::expect_sound(size, [&] { fuzz::use_all(open(fuzz::make_source(input, "fuzz.pt"))); });
  fuzz::expect_sound(size, [&] { fuzz::use_all(open(fuzz::make_source(make_archive(input), "fuzz.pt"))); });
  return 0;
}
