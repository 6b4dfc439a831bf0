// A file of any registered format. The input is the name of a format, a line end, and the file. The file is read as
// this format, whatever its first bytes are.
#include <string_view>

#include <fmt/format.h>

#include "formats/format.hpp"
#include "target.hpp"

using namespace poise;

namespace {

void read_as(const Format& format, fuzz::Bytes file) {
  const std::string name = fmt::format("fuzz{}", format.info.extension);
  fuzz::expect_sound(file.size(), [&] { fuzz::use_all(format.read({name, fuzz::make_source(file, name)}, {})); });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t end = input.substr(0, 64).find('\n');
  if (end == std::string_view::npos) return 0;
  for (const Format* format : list_all_formats()) {
    const bool is_meant =
        format->info.name == input.substr(0, end) && format->read != nullptr && !format->info.extension.empty();
    if (is_meant) read_as(*format, fuzz::bytes_of(data + end + 1, size - end - 1));
  }
  return 0;
}
