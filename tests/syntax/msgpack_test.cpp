// Items are written by hand from the specification (msgpack.org); some break its rules.
#include "syntax/msgpack.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <limits>

#include <poise/error.hpp>

#include "support/errors.hpp"
#include "support/memory_source.hpp"

namespace poise::msgpack {
namespace {

using support::MemorySource;
using testing::HasSubstr;

template <std::size_t kSize>
MemorySource bytes(const char (&text)[kSize]) {
  return MemorySource(std::string_view(text, kSize - 1));
}

Value value_in(const MemorySource& range) {
  Tree tree(range, "test");
  return tree.read_value(Tree::kRoot, [&](const Item& item) {
    return Value::Array{std::int64_t{item.type}, item.content, item.argument};
  });
}

Error error_in(const MemorySource& range) {
  return support::error_of([&] { Tree(range, "test"); });
}

TEST(Msgpack, Numbers) {
  EXPECT_EQ(value_in(bytes("\x00")), Value(0));
  EXPECT_EQ(value_in(bytes("\x7f")), Value(127));
  EXPECT_EQ(value_in(bytes("\xff")), Value(-1));
  EXPECT_EQ(value_in(bytes("\xe0")), Value(-32));
  EXPECT_EQ(value_in(bytes("\xcc\xff")), Value(255));
  EXPECT_EQ(value_in(bytes("\xcd\x01\x02")), Value(0x102));
  EXPECT_EQ(value_in(bytes("\xce\x01\x02\x03\x04")), Value(0x1020304));
  EXPECT_EQ(value_in(bytes("\xcf\xff\xff\xff\xff\xff\xff\xff\xff")), Value(std::uint64_t{UINT64_MAX}));
  EXPECT_EQ(value_in(bytes("\xd0\x80")), Value(-128));
  EXPECT_EQ(value_in(bytes("\xd0\x7f")), Value(127));
  EXPECT_EQ(value_in(bytes("\xd1\xff\x00")), Value(-256));
  EXPECT_EQ(value_in(bytes("\xd2\x80\x00\x00\x00")), Value(std::int64_t{INT32_MIN}));
  EXPECT_EQ(value_in(bytes("\xd3\x80\x00\x00\x00\x00\x00\x00\x00")), Value(std::int64_t{INT64_MIN}));
  EXPECT_EQ(value_in(bytes("\xca\x3f\xc0\x00\x00")), Value(1.5));
  EXPECT_EQ(value_in(bytes("\xcb\xbf\xf8\x00\x00\x00\x00\x00\x00")), Value(-1.5));
}

TEST(Msgpack, OtherValues) {
  EXPECT_EQ(value_in(bytes("\xc0")), Value());
  EXPECT_EQ(value_in(bytes("\xc2")), Value(false));
  EXPECT_EQ(value_in(bytes("\xc3")), Value(true));
  EXPECT_EQ(value_in(bytes("\xa2\xc3\xa9")), Value("\xc3\xa9"));
  EXPECT_EQ(value_in(bytes("\xd9\x01x")), Value("x"));
  EXPECT_EQ(value_in(bytes("\xda\x00\x01x")), Value("x"));
  EXPECT_EQ(value_in(bytes("\xdb\x00\x00\x00\x01x")), Value("x"));
  const Value one_byte = Value::Bytes{std::byte{7}};
  EXPECT_EQ(value_in(bytes("\xc4\x01\x07")), one_byte);
  EXPECT_EQ(value_in(bytes("\xc5\x00\x01\x07")), one_byte);
  EXPECT_EQ(value_in(bytes("\xc6\x00\x00\x00\x01\x07")), one_byte);
}

TEST(Msgpack, Containers) {
  const Value list = Value::Array{1, "x"};
  EXPECT_EQ(value_in(bytes("\x90")), Value(Value::Array{}));
  EXPECT_EQ(value_in(bytes("\x92\x01\xa1x")), list);
  EXPECT_EQ(value_in(bytes("\xdc\x00\x02\x01\xa1x")), list);
  EXPECT_EQ(value_in(bytes("\xdd\x00\x00\x00\x02\x01\xa1x")), list);
  const Value map = Attributes{{"a", 1}, {"b", Attributes{{"a", Value::Array{2}}}}};
  EXPECT_EQ(value_in(bytes("\x82\xa1"
                           "a\x01\xa1"
                           "b\x81\xa1"
                           "a\x91\x02")),
            map);
  EXPECT_EQ(value_in(bytes("\xde\x00\x02\xa1"
                           "a\x01\xa1"
                           "b\x81\xa1"
                           "a\x91\x02")),
            map);
  EXPECT_EQ(value_in(bytes("\xdf\x00\x00\x00\x02\xa1"
                           "a\x01\xa1"
                           "b\x81\xa1"
                           "a\x91\x02")),
            map);
}

// Expected: the type, the place of the content, and its length.
TEST(Msgpack, Extensions) {
  EXPECT_EQ(value_in(bytes("\xd4\xff\x09")), Value(Value::Array{-1, 2, 1}));
  EXPECT_EQ(value_in(bytes("\xd5\x01\x09\x09")), Value(Value::Array{1, 2, 2}));
  EXPECT_EQ(value_in(bytes("\xd6\x01"
                           "1234")),
            Value(Value::Array{1, 2, 4}));
  EXPECT_EQ(value_in(bytes("\xd7\x01"
                           "12345678")),
            Value(Value::Array{1, 2, 8}));
  EXPECT_EQ(value_in(bytes("\xd8\x01"
                           "1234567812345678")),
            Value(Value::Array{1, 2, 16}));
  EXPECT_EQ(value_in(bytes("\xc7\x00\x03")), Value(Value::Array{3, 3, 0}));
  EXPECT_EQ(value_in(bytes("\xc8\x00\x01\x03x")), Value(Value::Array{3, 4, 1}));
  EXPECT_EQ(value_in(bytes("\xc9\x00\x00\x00\x01\x03x")), Value(Value::Array{3, 6, 1}));
}

TEST(Msgpack, ATreeIsReadByTheNumbersOfItems) {
  const MemorySource range = bytes(
      "\x82\xa1"
      "a\x92\x01\x02\xa1"
      "b\x03");
  const Tree tree(range, "test");
  EXPECT_EQ(tree.size(), 7U);
  EXPECT_EQ(tree.find_after(Tree::kRoot), 7U);
  EXPECT_EQ(tree.read_text(1), "a");
  EXPECT_EQ(tree.find_after(2), 5U);
  EXPECT_EQ(tree.find(Tree::kRoot, "b"), 6U);
  EXPECT_EQ(tree.find(Tree::kRoot, "c"), std::nullopt);
}

TEST(Msgpack, ErrorsHaveTheKeysThatLeadToTheItem) {
  const auto expect = [](const MemorySource& range, std::string_view message, std::uint64_t offset) {
    const Error error = error_in(range);
    EXPECT_EQ(error.kind(), ErrorKind::invalid_file);
    EXPECT_EQ(error.message(), message);
    EXPECT_EQ(error.offset(), offset);
  };
  expect(bytes(""), "test: item: 1 byte wanted, 0 left", 0);
  expect(bytes("\xc1"), "test: item: no item begins with 0xc1", 0);
  expect(bytes("\x00\x00"), "test: 1 bytes after the end", 1);
  expect(bytes("\xcd\x00"), "test: number: 2 bytes wanted, 1 left", 1);
  expect(bytes("\x91\xc4\x02x"), "test: item 0: bytes: 2 bytes wanted, 1 left", 3);
  expect(bytes("\x81\xa1"
               "a\xdb\xff\xff\xff\xff"),
         "test: a: text: 4294967295 bytes wanted, 0 left", 8);
  expect(bytes("\x81\xa1"
               "a\xc9\xff\xff\xff\xff\x01"),
         "test: a: extension: 4294967295 bytes wanted, 0 left", 9);
  expect(bytes("\x81\xa1"
               "a\xdd\xff\xff\xff\xff\x01"),
         "test: a: array: 4294967295 items do not fit the 1 bytes left", 3);
  expect(bytes("\xdf\x00\x00\x00\x02\xa1"
               "a\x01"),
         "test: map: 2 pairs do not fit the 3 bytes left", 0);
  expect(bytes("\x81\x01\x02"), "test: item 0: key: expected text, found a natural number", 1);
  expect(bytes("\x81\xa1\xff\x02"), "test: item 0: key: it is not UTF-8", 1);
  expect(bytes("\x82\xa1"
               "a\x01\xa1"
               "a\x01"),
         "test: a: the key appears twice", 4);
}

TEST(Msgpack, TextIsUtf8) {
  const MemorySource range = bytes("\xa1\xff");
  EXPECT_THAT(support::error_of([&] { value_in(range); }).message(), HasSubstr("it is not UTF-8"));
}

TEST(Msgpack, NestingIsBounded) {
  EXPECT_NO_THROW(Tree(MemorySource(std::string(64, '\x91') + '\xc0'), "test"));
  EXPECT_THAT(error_in(MemorySource(std::string(65, '\x91') + '\xc0')).message(), HasSubstr("deeper than 64 levels"));
}

TEST(Msgpack, ItemsAreBoundedByTheSizeOfTheFile) {
  std::string many = "\xdd" + std::string("\x01\x00\x00\x00", 4);
  many.resize(5 + (std::size_t{1} << 24), '\xc0');
  const Error error = error_in(MemorySource(many));
  EXPECT_EQ(error.kind(), ErrorKind::unsupported);
  EXPECT_THAT(error.message(), HasSubstr("more items than a file of this size may hold"));
}

}  // namespace
}  // namespace poise::msgpack
