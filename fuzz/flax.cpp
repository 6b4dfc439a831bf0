// Files of Flax. Mutations rarely keep the lengths of all items right. Thus the input is read as a file, and its halves
// also as an array and as one of two chunks in a valid file.
#include <algorithm>

#include <poise/format.hpp>

#include "bytes/byte_writer.hpp"
#include "target.hpp"

using namespace poise;

namespace {

void add_array(ByteWriter& file, fuzz::Bytes content) {
  const auto kept = content.first(std::min<std::size_t>(content.size(), UINT16_MAX));
  file.append_u8(0xc8);
  file.append_u8(static_cast<std::uint8_t>(kept.size() >> 8U));
  file.append_u8(static_cast<std::uint8_t>(kept.size()));
  file.append_u8(1);
  file.append(kept);
}

ByteWriter make_file(fuzz::Bytes input) {
  const fuzz::Bytes first = input.first(input.size() / 2);
  const fuzz::Bytes second = input.subspan(input.size() / 2);
  ByteWriter file;
  file.append_text("\x82\xa1w");
  add_array(file, first);
  file.append_text("\xa1x\x83\xb9__msgpack_chunked_array__\xc3\xa5shape\x82\xa1");
  file.append_text("0\x02\xa1");
  file.append_text("1\x03\xa6");
  file.append_text("chunks\x82\xa1");
  file.append_text("0");
  add_array(file, first);
  file.append_text("\xa1");
  file.append_text("1");
  add_array(file, second);
  return file;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto input = fuzz::bytes_of(data, size);
  fuzz::expect_sound(size, [&] { fuzz::use_all(open(fuzz::make_source(input, "fuzz.msgpack"))); });
  const ByteWriter made = make_file(input);
  fuzz::expect_sound(size, [&] { fuzz::use_all(open(fuzz::make_source(made.bytes(), "fuzz.msgpack"))); });
  return 0;
}
