// Messages are those of the encoding's own documentation (protobuf.dev/programming-guides/encoding); some are broken by
// hand.
#include "syntax/protobuf.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include <poise/error.hpp>

#include "support/memory_source.hpp"

namespace poise::protobuf {
namespace {

using testing::HasSubstr;

using Bytes = support::MemorySource;

Message message_in(const Bytes& bytes) { return Message(bytes, "test", 0, bytes.size()); }

template <std::size_t kSize>
Bytes bytes(const char (&text)[kSize]) {
  return Bytes(std::string_view(text, kSize - 1));
}

// Returns the error of reading a field of number 1, and its place.
template <typename Read>
std::pair<std::string, std::uint64_t> error_of(const Bytes& bytes, Read&& read) {
  Message message = message_in(bytes);
  try {
    while (message.next()) {
      if (message.number() == 1) read(message);
    }
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::invalid_file) << error.what();
    return {error.message(), error.offset().value_or(UINT64_MAX)};
  }
  return {"no error", 0};
}

void read_integer(Message& message) { message.read_integer("value"); }
void read_text(Message& message) { message.read_text("value"); }

// "message Test1 { int32 a = 1; }" with a = 150, "Test2 { string b = 2; }" with b = "testing", "Test3 { Test1 c = 3; }"
// with c.a = 150.
TEST(Protobuf, ReadsTheExamplesOfItsDocumentation) {
  const Bytes file = bytes("\x08\x96\x01\x12\x07testing\x1a\x03\x08\x96\x01");
  Message message = message_in(file);
  ASSERT_TRUE(message.next());
  EXPECT_EQ(message.number(), 1U);
  EXPECT_EQ(message.read_integer("a"), 150U);
  ASSERT_TRUE(message.next());
  EXPECT_EQ(message.number(), 2U);
  EXPECT_EQ(message.field_offset(), 3U);
  EXPECT_EQ(message.read_text("b"), "testing");
  ASSERT_TRUE(message.next());
  EXPECT_EQ(message.number(), 3U);
  Message inner = message.read_message("c", "Test1");
  EXPECT_FALSE(message.next());
  ASSERT_TRUE(inner.next());
  EXPECT_EQ(inner.field_offset(), 14U) << "of the file";
  EXPECT_EQ(inner.read_integer("a"), 150U);
  EXPECT_FALSE(inner.next());
}

TEST(Protobuf, NumbersOfEverySize) {
  const Bytes file = bytes("\x08\x00\x08\x7f\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x0d\x00\x00\xc0\x3f");
  Message message = message_in(file);
  for (const std::uint64_t expected : {std::uint64_t{0}, std::uint64_t{127}, UINT64_MAX}) {
    ASSERT_TRUE(message.next());
    EXPECT_EQ(message.read_integer("value"), expected);
  }
  ASSERT_TRUE(message.next());
  EXPECT_EQ(message.read_f32("value"), 1.5F);
  EXPECT_FALSE(message.next());
}

TEST(Protobuf, FieldsThatAreNotReadAreSkipped) {
  const Bytes file =
      bytes("\x10\x96\x01\x19\x01\x02\x03\x04\x05\x06\x07\x08\x22\x03\x08\x08\x08\x2d\x01\x02\x03\x04\x08\x2a");
  Message message = message_in(file);
  std::vector<std::uint64_t> numbers;
  while (message.next()) numbers.push_back(message.number());
  EXPECT_THAT(numbers, testing::ElementsAre(2, 3, 4, 5, 1));
}

TEST(Protobuf, AnEmptyMessageHasNoFields) { EXPECT_FALSE(message_in(Bytes("")).next()); }

TEST(Protobuf, ErrorsPointAtTheWrongByte) {
  using Place = std::pair<std::string, std::uint64_t>;
  const auto is = [](std::string_view text, std::uint64_t offset) {
    return testing::Pair(HasSubstr(std::string(text)), offset);
  };
  const auto integer = [](const Bytes& file) -> Place { return error_of(file, read_integer); };
  const auto text = [](const Bytes& file) -> Place { return error_of(file, read_text); };
  EXPECT_THAT(integer(bytes("\x08\x01\x08")), is("test: value: 1 byte wanted", 3));
  EXPECT_THAT(integer(bytes("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02")),
              is("test: value: a varint of more than 64 bits", 1));
  EXPECT_THAT(integer(bytes("\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80")),
              is("a varint of more than 64 bits", 1));
  EXPECT_THAT(integer(bytes("\x0d\x01\x02\x03\x04")), is("test: value: wire type 5, expected 0", 0));
  EXPECT_THAT(text(bytes("\x08\x01")), is("test: value: wire type 0, expected 2", 0));
  EXPECT_THAT(text(bytes("\x0a\x04"
                         "abc")),
              is("4 bytes wanted", 2));
  EXPECT_THAT(text(bytes("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")), is("18446744073709551615 bytes wanted", 11));
  EXPECT_THAT(text(bytes("\x12\x04"
                         "abc")),
              is("test: unknown field: 4 bytes wanted", 2));
  EXPECT_THAT(text(bytes("\x10\x01\x02")), is("test: tag: field number 0", 2));
  EXPECT_THAT(text(bytes("\x80\x80\x80\x80\x10\x01")),
              is("test: tag: field number 536870912, expected 1 to 536870911", 0));
  EXPECT_THAT(text(bytes("\x0b")), is("wire type 3 of field 1", 0));
  EXPECT_THAT(text(bytes("\x0f")), is("wire type 7 of field 1", 0));
}

TEST(Protobuf, AMessageEndsWhereItsFieldEnds) {
  const auto read = [](Message& message) {
    Message inner = message.read_message("inner", "inside");
    while (inner.next()) inner.read_text("text");
  };
  EXPECT_EQ(error_of(bytes("\x0a\x05\x0a\x03"
                           "abc\x10\x01"),
                     read)
                .first,
            "no error");
  // The text is one byte longer than its message, but not longer than the file.
  EXPECT_THAT(error_of(bytes("\x0a\x04\x0a\x03"
                             "abc\x10\x01"),
                       read),
              testing::Pair(HasSubstr("test: inside: text: 3 bytes wanted, 2 left"), 4));
  EXPECT_THAT(error_of(bytes("\x0a\x0a\x0a\x03"
                             "abc\x10\x01"),
                       read),
              testing::Pair(HasSubstr("test: inner: 10 bytes wanted"), 2));
}

// "message Test5 { repeated int32 f = 6 [packed=true]; }" with 3, 270 and 86942, of the same documentation.
TEST(Protobuf, PackedFields) {
  const Bytes packed = bytes("\x32\x06\x03\x8e\x02\x9e\xa7\x05");
  Message message = message_in(packed);
  ASSERT_TRUE(message.next());
  std::vector<std::uint64_t> values;
  message.visit_integers("f", [&](std::uint64_t value) { values.push_back(value); });
  EXPECT_THAT(values, testing::ElementsAre(3, 270, 86942));
  EXPECT_FALSE(message.next());
  Message place = message_in(packed);
  ASSERT_TRUE(place.next());
  const Message::Place found = place.read_packed("f", Message::Wire::varint);
  EXPECT_EQ(found.begin, 2U);
  EXPECT_EQ(found.end, 8U);
}

TEST(Protobuf, NumbersByThemselvesAreFieldsOfOne) {
  const Bytes one = bytes("\x30\x8e\x02\x35\x01\x02\x03\x04");
  Message message = message_in(one);
  ASSERT_TRUE(message.next());
  const Message::Place varint = message.read_packed("f", Message::Wire::varint);
  EXPECT_EQ(varint.begin, 1U);
  EXPECT_EQ(varint.end, 3U);
  ASSERT_TRUE(message.next());
  const Message::Place fixed = message.read_packed("f", Message::Wire::fixed32);
  EXPECT_EQ(fixed.begin, 4U);
  EXPECT_EQ(fixed.end, 8U);
  EXPECT_FALSE(message.next());
}

TEST(Protobuf, PackedFieldsEndWithAWholeInteger) {
  const auto read = [](Message& message) { message.visit_integers("f", [](std::uint64_t) {}); };
  EXPECT_THAT(error_of(bytes("\x0a\x01\x8e\x02"), read).first, HasSubstr("ends after the field"));
  EXPECT_THAT(error_of(bytes("\x0a\x01\x8e"), read).first, HasSubstr("f"));
}

}  // namespace
}  // namespace poise::protobuf
