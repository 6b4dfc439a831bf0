// Breaks every rule of safetensors once (docs/formats/safetensors.md).
#include <gtest/gtest.h>

#include <array>

#include "support/hostile_cases.hpp"

namespace poise::hostile {
namespace {

constexpr auto kInvalid = ErrorKind::invalid_file;

ByteFile file_of(const std::string& header, std::size_t data) {
  ByteFile file;
  return file.u64("length", header.size()).raw("header", header).raw("data", std::string(data, '\0'));
}
// Returns a file whose header is two fields, so that an error can point at the second.
ByteFile file_of(const std::string& before, std::string_view name, const std::string& rest, std::size_t data) {
  ByteFile file;
  return file.u64("length", before.size() + rest.size())
      .raw("header", before)
      .raw(name, rest)
      .raw("data", std::string(data, '\0'));
}

// Returns a file with a float16 vector of two elements and then a float32 matrix: 4 and 16 bytes.
constexpr std::string_view kVector = R"("a":{"dtype":"F16","shape":[2],"data_offsets":[0,4]})";
constexpr std::string_view kMatrix = R"("b":{"dtype":"F32","shape":[2,2],"data_offsets":[4,20]})";

ByteFile with(std::string_view first, std::string_view second, std::size_t data = 20) {
  ByteFile file;
  file.u64("length", first.size() + second.size() + 3).raw("header", "{").raw("first", std::string(first));
  return file.raw("comma", ",")
      .raw("second", std::string(second))
      .raw("brace", "}")
      .raw("data", std::string(data, '\0'));
}
ByteFile whole() { return with(kVector, kMatrix); }
// Returns a file with these fields in the vector's entry.
ByteFile entry(std::string_view fields) { return with(R"("a":{)" + std::string(fields) + "}", kMatrix); }

const HostileTable kTable("safetensors", [] { return whole().bytes(); });

TEST(HostileSafetensors, TheFileIsSoundBeforeItIsBroken) { expect_sound("hostile.safetensors", whole()); }

TEST(HostileSafetensors, Header) {
  expect_refused(
      "hostile.safetensors",
      std::array{
          Case{"the length is there", [] { return whole().cut("length", 7); }, kInvalid, "length",
               "it needs at least 8 bytes, has 7"},
          Case{"the length is at most 100 MB", [] { return whole().u64("length", 100'000'001); }, kInvalid, "length",
               "header length: 100000001 bytes, at most"},
          Case{"the length does not overflow", [] { return whole().u64("length", UINT64_MAX); }, kInvalid, "length",
               "header length"},
          Case{"the header ends inside the file", [] { return whole().u64("length", 1000); }, kInvalid, "length",
               "the file is cut off"},
          Case{"the header is not empty", [] { return file_of("", 0); }, kInvalid, "header",
               "expected { as the first byte"},
          Case{"the header is not white space alone", [] { return file_of(" \t\n\r", 0); }, kInvalid, "header",
               "expected { as the first byte"},
          Case{"the header begins with a brace after white space", [] { return file_of(" \v{}", 0); }, kInvalid,
               "header", "expected { as the first byte"},
          Case{"the header is not an array", [] { return file_of("[]", 0); }, kInvalid, "header",
               "expected { as the first byte"},
          Case{"the header is JSON", [] { return file_of("{,}", 0); }, kInvalid, kAnywhere, "JSON"},
          Case{"the header is UTF-8", [] { return file_of("{\"\xff\":1}", 0); }, kInvalid, kAnywhere, "JSON"},
          Case{"the header has no NUL", [] { return file_of(std::string("{}\0", 3), 0); }, kInvalid, kAnywhere,
               "a NUL byte"},
          Case{"nothing is behind the object", [] { return file_of("{}{}", 0); }, kInvalid, kAnywhere, "JSON"},
          Case{"a name stands once",
               [] { return with(kVector, R"("a":{"dtype":"F32","shape":[2,2],"data_offsets":[4,20]})"); }, kInvalid,
               "second", "the tensor name \"a\" appears twice"},
          Case{"a name stands once, however it is spelled",
               [] {
                 return with(R"("\\\"a":{"dtype":"F16","shape":[2],"data_offsets":[0,4]})",
                             R"("\u005c\"a":{"dtype":"F32","shape":[2,2],"data_offsets":[4,20]})");
               },
               kInvalid, "second", "appears twice"},
          Case{"a field stands once",
               [] {
                 return file_of(R"({"a":{"dtype":"F16",)", "twin",
                                R"("dtype":"F16","shape":[2],"data_offsets":[0,4]}})", 4);
               },
               kInvalid, "twin", "the key \"dtype\" appears twice"},
          Case{"nesting is bounded",
               [] {
                 return file_of(R"({"__metadata__":)" + std::string(63, '['), "too deep",
                                std::string(100000, '[') + std::string(100063, ']') + "}", 0);
               },
               kInvalid, "too deep", "nested deeper than 64"},
      });
}

TEST(HostileSafetensors, Entries) {
  expect_refused(
      "hostile.safetensors",
      std::array{
          Case{"an entry is an object", [] { return with(R"("a":[])", kMatrix); }, kInvalid, "first",
               "a: expected an object"},
          Case{"an entry has three fields only",
               [] { return entry(R"("dtype":"F16","shape":[2],"data_offsets":[0,4],"more":1)"); }, kInvalid, "first",
               "a: unknown key \"more\""},
          Case{"dtype is there", [] { return entry(R"("shape":[2],"data_offsets":[0,4])"); }, kInvalid, "first",
               "a: dtype"},
          Case{"dtype is text", [] { return entry(R"("dtype":1,"shape":[2],"data_offsets":[0,4])"); }, kInvalid,
               "first", "a: dtype: expected text"},
          Case{"dtype is known", [] { return entry(R"("dtype":"F7","shape":[2],"data_offsets":[0,4])"); },
               ErrorKind::unsupported, "first", "a: dtype \"F7\" is not known"},
          Case{"dtype is in capitals", [] { return entry(R"("dtype":"f16","shape":[2],"data_offsets":[0,4])"); },
               ErrorKind::unsupported, "first", "a: dtype \"f16\" is not known"},
          Case{"shape is there", [] { return entry(R"("dtype":"F16","data_offsets":[0,4])"); }, kInvalid, "first",
               "a: shape: expected an array"},
          Case{"shape is an array", [] { return entry(R"("dtype":"F16","shape":2,"data_offsets":[0,4])"); }, kInvalid,
               "first", "a: shape: expected an array"},
          Case{"a dimension is not negative",
               [] { return entry(R"("dtype":"F16","shape":[-2],"data_offsets":[0,4])"); }, kInvalid, "first",
               "a: shape: expected non-negative integers"},
          Case{"a dimension is an integer", [] { return entry(R"("dtype":"F16","shape":[2.0],"data_offsets":[0,4])"); },
               kInvalid, "first", "a: shape: expected non-negative integers"},
          Case{"a dimension is not text", [] { return entry(R"("dtype":"F16","shape":["2"],"data_offsets":[0,4])"); },
               kInvalid, "first", "a: shape: expected non-negative integers"},
          Case{"a dimension fits 64 bits",
               [] { return entry(R"("dtype":"F16","shape":[18446744073709551616],"data_offsets":[0,4])"); }, kInvalid,
               "first", "a: shape: expected non-negative integers"},
          Case{"the shape fits 64 bits",
               [] { return entry(R"("dtype":"F16","shape":[4294967296,4294967296,2],"data_offsets":[0,4])"); },
               kInvalid, "first", "a: shape [4294967296, 4294967296, 2] overflows"},
          Case{"the bytes fit 64 bits",
               [] { return entry(R"("dtype":"F16","shape":[9223372036854775808],"data_offsets":[0,4])"); }, kInvalid,
               "first", "a: shape [9223372036854775808] overflows"},
          Case{"the rank is at most 64",
               [] {
                 return with(R"("a":{"dtype":"U8","shape":[4)" +
                                 [] {
                                   std::string ones;
                                   for (int i = 0; i < 64; ++i) ones += ",1";
                                   return ones;
                                 }() +
                                 R"(],"data_offsets":[0,4]})",
                             kMatrix);
               },
               kInvalid, "first", "a: shape: a rank of more than 64"},
          Case{"data_offsets is there", [] { return entry(R"("dtype":"F16","shape":[2])"); }, kInvalid, "first",
               "a: data_offsets: expected [begin, end]"},
          Case{"data_offsets has two numbers", [] { return entry(R"("dtype":"F16","shape":[2],"data_offsets":[0])"); },
               kInvalid, "first", "a: data_offsets: expected [begin, end]"},
          Case{"data_offsets has not three",
               [] { return entry(R"("dtype":"F16","shape":[2],"data_offsets":[0,4,4])"); }, kInvalid, "first",
               "a: data_offsets: expected [begin, end]"},
          Case{"an offset is not negative", [] { return entry(R"("dtype":"F16","shape":[2],"data_offsets":[-4,0])"); },
               kInvalid, "first", "a: data_offsets: expected non-negative"},
          Case{"begin is not behind end", [] { return entry(R"("dtype":"F16","shape":[2],"data_offsets":[4,0])"); },
               kInvalid, "first", "a: data_offsets: begin 4 is after end 0"},
          Case{"the size is that of the shape",
               [] { return entry(R"("dtype":"F16","shape":[3],"data_offsets":[0,4])"); }, kInvalid, "first",
               "a: shape [3] of f16 needs 6 bytes, data_offsets hold 4"},
          Case{"a scalar has one element", [] { return entry(R"("dtype":"F16","shape":[],"data_offsets":[0,4])"); },
               kInvalid, "first", "a: shape [] of f16 needs 2 bytes"},
          Case{"elements of four bits fill bytes",
               [] { return entry(R"("dtype":"F4","shape":[7],"data_offsets":[0,4])"); }, kInvalid, "first",
               "a: shape [7] of f4_e2m1 does not fill whole bytes"},
          Case{"elements of six bits fill bytes",
               [] { return entry(R"("dtype":"F6_E2M3","shape":[5],"data_offsets":[0,4])"); }, kInvalid, "first",
               "a: shape [5] of F6_E2M3 does not fill whole bytes"},
          Case{"the size of elements of six bits is that of the shape",
               [] { return entry(R"("dtype":"F6_E3M2","shape":[8],"data_offsets":[0,4])"); }, kInvalid, "first",
               "a: shape [8] of F6_E3M2 needs 6 bytes, data_offsets hold 4"},
          Case{"elements of six bits do not overflow",
               [] { return entry(R"("dtype":"F6_E3M2","shape":[4611686018427387904,8],"data_offsets":[0,4])"); },
               kInvalid, "first", "overflows"},
      });
}

TEST(HostileSafetensors, Places) {
  expect_refused(
      "hostile.safetensors",
      std::array{
          Case{"the first tensor begins at 0",
               [] { return with(R"("a":{"dtype":"F16","shape":[1],"data_offsets":[2,4]})", kMatrix); }, kInvalid,
               "first", "a: a hole of 2 bytes"},
          Case{"there are no holes",
               [] { return with(kVector, R"("b":{"dtype":"F32","shape":[3],"data_offsets":[8,20]})"); }, kInvalid,
               "second", "b: a hole of 4 bytes"},
          Case{"tensors do not overlap",
               [] { return with(kVector, R"("b":{"dtype":"F16","shape":[9],"data_offsets":[2,20]})"); }, kInvalid,
               "second", "b: overlaps the tensor before it"},
          Case{"tensors share nothing",
               [] { return with(kVector, R"("b":{"dtype":"F16","shape":[2],"data_offsets":[0,4]})", 4); }, kInvalid,
               "second", "overlaps the tensor before it"},
          Case{"the last tensor ends inside the file", [] { return whole().cut("data", 19); }, kInvalid, kEndOfFile,
               "the file is cut off"},
          Case{"an end does not overflow",
               [] {
                 return with(
                     kVector,
                     R"("b":{"dtype":"U8","shape":[18446744073709551611],"data_offsets":[4,18446744073709551615]})");
               },
               kInvalid, kEndOfFile, "the file is cut off"},
          Case{"nothing is behind the last tensor", [] { return whole().u8("more", 0); }, kInvalid, "more",
               "1 bytes after the last tensor"},
          Case{"nor where there are no tensors", [] { return file_of("{}", 1); }, kInvalid, "data",
               "1 bytes after the last tensor"},
      });
}

TEST(HostileSafetensors, Metadata) {
  expect_refused(
      "hostile.safetensors",
      std::array{
          Case{"__metadata__ is an object", [] { return with(R"("__metadata__":"pt")", kVector, 4); }, kInvalid,
               "first", "__metadata__: expected an object"},
          Case{"its values are text", [] { return with(R"("__metadata__":{"epoch":3})", kVector, 4); }, kInvalid,
               "first", "__metadata__: the value of \"epoch\" is not text"},
          Case{"poise.config is JSON", [] { return with(R"("__metadata__":{"poise.config":"{"})", kVector, 4); },
               kInvalid, kAnywhere, "JSON"},
          Case{"poise.config is an object", [] { return with(R"("__metadata__":{"poise.config":"[]"})", kVector, 4); },
               kInvalid, kNowhere, "attribute poise.config: expected a JSON object"},
          Case{"its numbers are numbers",
               [] { return with(R"("__metadata__":{"poise.config":"{\"hidden_size\":\"4\"}"})", kVector, 4); },
               kInvalid, kNowhere, "config: hidden_size: expected an integer"},
          Case{"a card is text", [] { return with(R"("__metadata__":{"poise.card":"{\"author\":1}"})", kVector, 4); },
               kInvalid, kNowhere, "attribute poise.card: author is not text"},
          Case{"a vocabulary is whole", [] { return with(R"("__metadata__":{"poise.vocabulary":"{}"})", kVector, 4); },
               kInvalid, kNowhere, "attribute poise.vocabulary: kind is missing"},
      });
}

TEST(HostileSafetensors, Values) {
  expect_faults(
      "hostile.safetensors",
      std::array{
          VerifyCase{"a number is finite", [] { return whole().raw("data", le(0x7c00, 2) + std::string(18, '\0')); },
                     "data", "tensor a: data: element 0 is not finite", true},
          VerifyCase{"a bool is 0 or 1",
                     [] {
                       return with(R"("a":{"dtype":"BOOL","shape":[4],"data_offsets":[0,4]})", kMatrix)
                           .raw("data", "\2" + std::string(19, '\0'));
                     },
                     "data", "tensor a: data: element 0 is neither 0 nor 1"},
      });
}

TEST(HostileSafetensors, CutsAndFlippedBits) {
  expect_cuts_refused("hostile.safetensors", whole());
  expect_flips_show("hostile.safetensors", whole(), std::array<std::string_view, 1>{"data"});
}

}  // namespace
}  // namespace poise::hostile
