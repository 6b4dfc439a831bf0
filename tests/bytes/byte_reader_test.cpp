#include "bytes/byte_reader.hpp"

#include <gtest/gtest.h>

#include <poise/source.hpp>

#include "bytes/byte_writer.hpp"
#include "io/source_range.hpp"

namespace poise {
namespace {

SourcePtr memory(std::initializer_list<int> bytes) {
  std::vector<std::byte> data;
  for (const int byte : bytes) data.push_back(static_cast<std::byte>(byte));
  return Source::from_memory(std::move(data), "memory");
}

TEST(ByteReader, ReadsLittleEndianNumbersInOrder) {
  const auto source = memory({0x01, 0x02, 0x03, 0x04, 0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x80, 0x3f});
  const SourceRange range(*source);
  ByteReader reader(range, "test");
  EXPECT_EQ(reader.u32("a"), 0x04030201U);
  EXPECT_EQ(reader.i32("b"), -1);
  EXPECT_EQ(reader.f32("c"), 1.0F);
  EXPECT_EQ(reader.remaining(), 0U);
}

TEST(ByteReader, AnErrorNamesRecordFieldOffsetAndWhatIsLeft) {
  const auto source = memory({1, 2, 3, 4, 5, 6});
  const SourceRange range(*source);
  ByteReader reader(range, "alt v2");
  const auto section = reader.scope("tokenizer");
  const auto token = reader.scope("token", 17);
  reader.u32("score");
  try {
    reader.text(4294967295U, "length");
    FAIL() << "read past the end";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::invalid_file);
    EXPECT_EQ(error.offset(), 4U);
    EXPECT_STREQ(error.what(), "memory: alt v2: tokenizer: token 17: length: 4294967295 bytes wanted, 2 left (at 0x4)");
  }
}

}  // namespace
}  // namespace poise
