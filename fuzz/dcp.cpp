// A distributed checkpoint of PyTorch: the length of .metadata in four bytes, .metadata, and one file of parts, which
// is the rest.
#include <algorithm>

#include <poise/format.hpp>

#include "bytes/little_endian.hpp"
#include "target.hpp"

using namespace poise;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Bytes rest = fuzz::bytes_of(data, size);
  if (rest.size() < sizeof(std::uint32_t)) return 0;
  const auto stated = load_le<std::uint32_t>(rest.data());
  rest = rest.subspan(sizeof stated);
  const std::size_t length = std::min<std::size_t>(stated, rest.size());
  const std::filesystem::path& path = fuzz::get_scratch_directory();
  fuzz::write_file(path / ".metadata", rest.first(length));
  fuzz::write_file(path / "__0_0.distcp", rest.subspan(length));
  fuzz::expect_sound(size, [&] { fuzz::use_all(open(path)); });
  return 0;
}
