// Encodings come from RFC 8949: appendix A's examples and the rules of section 4.2.1.
#include "syntax/cbor.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/bytes.hpp"
#include "support/cbor_notation.hpp"

namespace poise::cbor {
namespace {

using support::array;
using support::bytes;
using support::hex;
using support::long_head;
using support::map;
using support::negative;
using support::number;
using support::text;
using testing::HasSubstr;

Value decode(const std::string& item, Rules rules) {
  const auto stored = support::to_bytes(item);
  Cursor in(stored, 100, "file", "cbor", rules);
  Value value = in.read_value();
  in.require_end();
  return value;
}

std::string refusal(const std::string& item, Rules rules) {
  try {
    decode(item, rules);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::invalid_file);
    return error.what();
  }
  return "";
}

struct Example {
  std::string item;
  Value value;
};

TEST(Cbor, TheStandardsExamplesDecodeAndEncode) {
  const std::vector<Example> examples = {
      {hex("00"), 0},
      {hex("17"), 23},
      {hex("18 18"), 24},
      {hex("19 03 e8"), 1000},
      {hex("1b 00 00 00 e8 d4 a5 10 00"), std::uint64_t{1000000000000}},
      {hex("1b ff ff ff ff ff ff ff ff"), std::uint64_t{UINT64_MAX}},
      {hex("20"), -1},
      {hex("38 63"), -100},
      {hex("3b 7f ff ff ff ff ff ff ff"), std::int64_t{INT64_MIN}},
      {hex("f9 00 00"), 0.0},
      {hex("f9 3c 00"), 1.0},
      {hex("fb 3f f1 99 99 99 99 99 9a"), 1.1},
      {hex("f9 3e 00"), 1.5},
      {hex("f9 7b ff"), 65504.0},
      {hex("fa 47 c3 50 00"), 100000.0},
      {hex("fa 7f 7f ff ff"), 3.4028234663852886e+38},
      {hex("fb 7e 37 e4 3c 88 00 75 9c"), 1.0e+300},
      {hex("f9 00 01"), 5.960464477539063e-8},
      {hex("f9 04 00"), 0.00006103515625},
      {hex("f9 c4 00"), -4.0},
      {hex("fb c0 10 66 66 66 66 66 66"), -4.1},
      {hex("f9 7c 00"), std::numeric_limits<double>::infinity()},
      {hex("f9 fc 00"), -std::numeric_limits<double>::infinity()},
      {hex("f4"), false},
      {hex("f5"), true},
      {hex("f6"), nullptr},
      {hex("40"), Value::Bytes{}},
      {hex("60"), ""},
      {hex("62 c3 bc"), "\u00fc"},
      {hex("80"), Value::Array{}},
      {hex("a0"), Attributes{}},
      {hex("a2 61 61 01 61 62 82 02 03"), Attributes{{"a", 1}, {"b", Value::Array{2, 3}}}},
      {hex("a2 01 02 03 04"), Value::Pairs{{1, 2}, {3, 4}}},
  };
  for (const Example& example : examples) {
    EXPECT_EQ(decode(example.item, Rules::deterministic), example.value) << to_json(example.value);
    EXPECT_EQ(decode(example.item, Rules::lenient), example.value) << to_json(example.value);
    EXPECT_EQ(encode(example.value), example.item) << to_json(example.value);
  }
}

TEST(Cbor, NanHasOneDeterministicForm) {
  EXPECT_TRUE(std::isnan(*decode(hex("f9 7e 00"), Rules::deterministic).get_if<double>()));
  EXPECT_EQ(encode(std::numeric_limits<double>::quiet_NaN()), hex("f9 7e 00"));
  for (const char* other : {"f9 7e 01", "f9 fe 00", "fa 7f c0 00 00", "fb 7f f8 00 00 00 00 00 00"}) {
    EXPECT_THAT(refusal(hex(other), Rules::deterministic), HasSubstr("shortest form")) << other;
    const Value lenient = decode(hex(other), Rules::lenient);
    EXPECT_TRUE(std::isnan(*lenient.get_if<double>())) << other;
  }
}

TEST(Cbor, MinusZeroStaysMinusZero) {
  EXPECT_EQ(encode(-0.0), hex("f9 80 00"));
  const Value zero = decode(hex("f9 80 00"), Rules::deterministic);
  EXPECT_TRUE(std::signbit(*zero.get_if<double>()));
}

TEST(Cbor, LenientReadsEveryWellFormedSpelling) {
  EXPECT_EQ(decode(hex("18 01"), Rules::lenient), Value(1));
  EXPECT_EQ(decode(hex("5f 42 01 02 43 03 04 05 ff"), Rules::lenient),
            Value(support::to_bytes("\x01\x02\x03\x04\x05")));
  EXPECT_EQ(decode(hex("7f 65 73 74 72 65 61 64 6d 69 6e 67 ff"), Rules::lenient), Value("streaming"));
  EXPECT_EQ(decode(hex("9f 01 82 02 03 9f 04 05 ff ff"), Rules::lenient),
            Value(Value::Array{1, Value::Array{2, 3}, Value::Array{4, 5}}));
  EXPECT_EQ(decode(hex("bf 63 46 75 6e f5 63 41 6d 74 21 ff"), Rules::lenient),
            Value(Attributes{{"Fun", true}, {"Amt", -2}}));
  EXPECT_EQ(decode(hex("c1 1a 51 4b 67 b0 | a tag"), Rules::lenient), Value(1363896240));
  for (const char* tag :
       {"c0", "c6", "d4", "d7", "d8 18", "d9 d9 f7", "da 00 01 00 00", "db ff ff ff ff ff ff ff ff"}) {
    EXPECT_EQ(decode(hex(tag) + number(7), Rules::lenient), Value(7)) << tag;
  }
  EXPECT_EQ(decode(hex("f7 | undefined"), Rules::lenient), Value());
  EXPECT_EQ(decode(hex("fb 3f f0 00 00 00 00 00 00"), Rules::lenient), Value(1.0));
}

TEST(Cbor, DeterministicRefusesItemsWithAShorterOrSortedForm) {
  EXPECT_THAT(refusal(hex("18 17"), Rules::deterministic), HasSubstr("the number 23 in other than its shortest form"));
  EXPECT_THAT(refusal(long_head(0, 255, 2), Rules::deterministic), HasSubstr("shortest"));
  EXPECT_THAT(refusal(long_head(0, 65535, 4), Rules::deterministic), HasSubstr("shortest"));
  EXPECT_THAT(refusal(long_head(0, 0xffffffff, 8), Rules::deterministic), HasSubstr("shortest"));
  EXPECT_THAT(refusal(long_head(1, 0, 1), Rules::deterministic), HasSubstr("shortest"));
  EXPECT_THAT(refusal(long_head(3, 1, 1) + "a", Rules::deterministic), HasSubstr("shortest"));
  EXPECT_THAT(refusal(long_head(4, 1, 1) + number(0), Rules::deterministic), HasSubstr("shortest"));
  EXPECT_THAT(refusal(long_head(5, 0, 1), Rules::deterministic), HasSubstr("shortest"));
  for (const char* indefinite : {"5f ff", "7f ff", "9f ff", "bf ff"})
    EXPECT_THAT(refusal(hex(indefinite), Rules::deterministic), HasSubstr("indefinite"));
  EXPECT_THAT(refusal(hex("c1 01"), Rules::deterministic), HasSubstr("a tag"));
  EXPECT_THAT(refusal(hex("f7"), Rules::deterministic), HasSubstr("undefined"));
  EXPECT_THAT(refusal(hex("fa 3f 80 00 00 | 1.0"), Rules::deterministic), HasSubstr("a float"));
  EXPECT_THAT(refusal(hex("fb 40 f8 6a 00 00 00 00 00 | 100000.0"), Rules::deterministic), HasSubstr("a float"));
  EXPECT_THAT(refusal(map({{text("b"), number(1)}, {text("a"), number(2)}}), Rules::deterministic),
              HasSubstr("out of order"));
  EXPECT_THAT(refusal(map({{text("bb"), number(1)}, {text("c"), number(2)}}), Rules::deterministic),
              HasSubstr("out of order"));
  EXPECT_EQ(refusal(map({{text("c"), number(1)}, {text("bb"), number(2)}}), Rules::deterministic), "");
}

TEST(Cbor, RepeatedKeysAreRefused) {
  EXPECT_THAT(refusal(map({{text("a"), number(1)}, {text("a"), number(2)}}), Rules::deterministic),
              HasSubstr("\"a\" appears twice"));
  EXPECT_THAT(refusal(map({{text("b"), number(1)}, {text("a"), number(2)}, {text("b"), number(2)}}), Rules::lenient),
              HasSubstr("\"b\" appears twice"));
  EXPECT_THAT(refusal(map({{number(1), number(1)}, {long_head(0, 1, 4), number(2)}}), Rules::lenient),
              HasSubstr("the key 1 appears twice"));
  EXPECT_THAT(refusal(map({{hex("61 61"), number(1)}, {hex("7f 61 61 ff"), number(2)}}), Rules::lenient),
              HasSubstr("appears twice"));
  for (const bool sorted : {true, false}) {
    std::vector<std::pair<std::string, std::string>> entries;
    for (int i = 0; i < 1000; ++i)
      entries.emplace_back(text("key " + std::to_string(sorted ? 1000 + i : 1000 + i * 7 % 1000)), number(0));
    EXPECT_EQ(refusal(map(entries), Rules::lenient), "");
    entries.push_back(entries[500]);
    EXPECT_THAT(refusal(map(entries), Rules::lenient), HasSubstr("appears twice"));
  }
}

TEST(Cbor, CountsAndDepthAreBounded) {
  EXPECT_THAT(refusal(hex("9b 7f ff ff ff ff ff ff ff"), Rules::lenient),
              HasSubstr("entries does not fit the 0 bytes left"));
  EXPECT_THAT(refusal(hex("bb 80 00 00 00 00 00 00 00 00"), Rules::lenient), HasSubstr("entries does not fit"));
  EXPECT_THAT(refusal(hex("5b ff ff ff ff ff ff ff ff"), Rules::lenient), HasSubstr("bytes left"));
  EXPECT_EQ(refusal(std::string(32, '\x81') + number(1), Rules::deterministic), "");
  EXPECT_THAT(refusal(std::string(33, '\x81') + number(1), Rules::deterministic), HasSubstr("nested deeper than 32"));
  EXPECT_EQ(refusal(std::string(31, '\x81') + hex("80"), Rules::deterministic), "");
  EXPECT_THAT(refusal(std::string(32, '\x81') + hex("80"), Rules::deterministic), HasSubstr("nested deeper than 32"));
  EXPECT_THAT(refusal(std::string(32, '\x81') + hex("a0"), Rules::deterministic), HasSubstr("nested deeper than 32"));
  EXPECT_EQ(refusal(std::string(64, '\x81') + number(1), Rules::lenient), "");
  EXPECT_THAT(refusal(std::string(100000, '\x81'), Rules::lenient), HasSubstr("nested deeper than 64"));
  EXPECT_THAT(refusal(std::string(100000, '\x9f'), Rules::lenient), HasSubstr("nested deeper than 64"));
  std::string maps;
  for (int i = 0; i < 1000; ++i) maps += hex("a1 00");
  EXPECT_THAT(refusal(maps, Rules::lenient), HasSubstr("nested deeper than 64"));
  std::string keys(1000, '\xa1');
  EXPECT_THAT(refusal(keys, Rules::lenient), HasSubstr("nested deeper than 64"));
  EXPECT_THAT(refusal(std::string(100000, '\xc1'), Rules::lenient), HasSubstr("bytes left"));
}

// A zero takes one byte in the file and 40 in memory.
TEST(Cbor, TheNumberOfValuesIsBounded) {
  const auto zeros = [](std::size_t count) { return long_head(4, count, 4) + std::string(count, '\0'); };
  EXPECT_EQ(refusal(zeros(900'000), Rules::lenient), "");
  EXPECT_THAT(refusal(zeros(2'000'000), Rules::lenient), HasSubstr("more values than a text of this size may hold"));
}

// RFC 8949, appendix B, with eight zeros after each first byte. Unassigned simple values are refused, too.
TEST(Cbor, EveryFirstByteBeginsAnItemOrIsRefused) {
  const auto begins_none = [](unsigned first) {
    const unsigned low = first & 0x1fU;
    if (first >= 0xe0) return first < 0xf4 || first == 0xf8 || (first >= 0xfc && first <= 0xfe);
    const bool no_indefinite = first < 0x40 || first >= 0xc0;
    return (low >= 28 && low <= 30) || (low == 31 && no_indefinite);
  };
  for (unsigned first = 0; first < 256; ++first) {
    const std::string why = refusal(std::string(1, static_cast<char>(first)) + std::string(8, '\0'), Rules::lenient);
    EXPECT_EQ(why.find("no item begins") != std::string::npos, begins_none(first)) << first << ": " << why;
  }
}

TEST(Cbor, BrokenItemsAreRefusedWithTheirPlace) {
  EXPECT_THAT(refusal("", Rules::lenient), HasSubstr("(at 0x64)"));
  EXPECT_THAT(refusal(hex("1c"), Rules::lenient), HasSubstr("no item begins with 0x1c"));
  EXPECT_THAT(refusal(hex("ff"), Rules::lenient), HasSubstr("a break where an item is expected"));
  EXPECT_THAT(refusal(hex("61 ff"), Rules::lenient), HasSubstr("not UTF-8"));
  EXPECT_THAT(refusal(hex("01 01"), Rules::lenient), HasSubstr("1 bytes after the end (at 0x65)"));
  EXPECT_THAT(refusal(hex("7f 41 61 ff"), Rules::lenient), HasSubstr("a piece of text is a byte string"));
  EXPECT_THAT(refusal(map({{text("shape"), array({number(1), text("\xff")})}}), Rules::lenient),
              HasSubstr("cbor: shape: item 1: CBOR: text is not UTF-8 (at 0x6d)"));
}

TEST(Cbor, TheEncoderSortsKeys) {
  const Value value = Attributes{{"bb", 1}, {"c", 2}, {"a", Attributes{{"z", 1}, {"yy", 2}}}};
  EXPECT_EQ(encode(value), map({{text("a"), map({{text("z"), number(1)}, {text("yy"), number(2)}})},
                                {text("c"), number(2)},
                                {text("bb"), number(1)}}));
  Encoder by_text(KeyOrder::by_text);
  by_text.append_value(value);
  EXPECT_EQ(by_text.bytes(), map({{text("a"), map({{text("yy"), number(2)}, {text("z"), number(1)}})},
                                  {text("bb"), number(1)},
                                  {text("c"), number(2)}}));
  EXPECT_EQ(encode(Value::Pairs{{"a", 1}, {2, 3}, {-1, 4}}),
            map({{number(2), number(3)}, {negative(0), number(4)}, {text("a"), number(1)}}));
}

TEST(Cbor, ErrorsOfInvalidTextHaveItsKeys) {
  const Value value(Attributes{{"a", Attributes{{"b", Value::Array{"x", "\xff"}}}}});
  try {
    encode(value);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
    EXPECT_THAT(error.message(), testing::StartsWith("a: b: zTensor holds text in UTF-8"));
  }
}

TEST(Cbor, EveryTruncationAndBitFlipDecodesOrIsRefused) {
  const std::string item =
      map({{text("a"), array({number(1000), negative(5), bytes("xyz"), hex("f9 3c 00"), hex("f6")})},
           {text("bcd"), map({{number(1), hex("f5")}})}});
  for (const Rules rules : {Rules::lenient, Rules::deterministic}) {
    ASSERT_EQ(refusal(item, rules), "");
    for (std::size_t length = 0; length < item.size(); ++length)
      EXPECT_NE(refusal(item.substr(0, length), rules), "") << length;
    for (std::size_t bit = 0; bit < item.size() * 8; ++bit) {
      std::string flipped = item;
      flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ 1 << bit % 8);
      if (refusal(flipped, rules).empty() && rules == Rules::deterministic) {
        EXPECT_EQ(encode(decode(flipped, rules)), flipped) << "accepted, so it must be the one encoding of its value";
      }
    }
  }
}

}  // namespace
}  // namespace poise::cbor
