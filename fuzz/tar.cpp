// Reads a tar archive twice, as it is and with right checksums of its headers: its files, and the directory in it.
#include <string>

#include <fmt/format.h>

#include <poise/format.hpp>

#include "pack/container.hpp"
#include "target.hpp"

using namespace poise;

namespace {

constexpr std::size_t kBlock = 512;

std::string with_checksums(std::string file) {
  for (std::size_t at = 0; at + kBlock <= file.size(); at += kBlock) {
    if (file.compare(at + 257, 5, "ustar") != 0) continue;
    file.replace(at + 148, 8, 8, ' ');
    unsigned sum = 0;
    for (std::size_t i = 0; i < kBlock; ++i) sum += static_cast<unsigned char>(file[at + i]);
    file.replace(at + 148, 7, fmt::format("{:06o}", sum) + '\0');
  }
  return file;
}

void use_archive(fuzz::Bytes bytes) {
  const SourcePtr source = fuzz::source(bytes, "fuzz.tar");
  const auto kind = container_kind(source);
  if (!kind) return;
  const auto files = open_container(*kind, "fuzz.tar", source);
  (void)files->warnings();
  for (const std::string& name : files->names()) {
    if (!files->has_file(name)) continue;
    const SourcePtr file = files->open(name);
    std::vector<std::byte> all(static_cast<std::size_t>(file->size()));
    file->read(0, all);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string sound = with_checksums({reinterpret_cast<const char*>(data), size});
  for (const fuzz::Bytes input : {fuzz::bytes_of(data, size), fuzz::bytes_of(sound)}) {
    fuzz::expect_sound(size, [&] { use_archive(input); });
    fuzz::expect_sound(size, [&] { fuzz::use(open(fuzz::source(input, "fuzz.tar"))); });
  }
  return 0;
}
