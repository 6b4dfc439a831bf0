// Breaks every rule of ONNX files once (docs/formats/onnx.md).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include <poise/error.hpp>
#include <poise/format.hpp>
#include <poise/verify.hpp>

#include "support/bytes.hpp"
#include "support/directories.hpp"
#include "support/errors.hpp"
#include "support/hostile_cases.hpp"

namespace poise::hostile {
namespace {

using testing::HasSubstr;

constexpr auto kInvalid = ErrorKind::invalid_file;
constexpr auto kUnsupported = ErrorKind::unsupported;

// Each makes a field of a message. Source: the documentation of protocol buffers' encoding.
std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}
std::string number(std::uint64_t field, std::uint64_t value) { return varint(field << 3) + varint(value); }
std::string bytes(std::uint64_t field, const std::string& value) {
  return varint(field << 3 | 2) + varint(value.size()) + value;
}

std::string tensor(const std::string& rest, const std::string& dims = number(1, 2), std::uint64_t type = 1) {
  return dims + number(2, type) + bytes(8, "w") + rest;
}
const std::string kRaw = bytes(9, std::string(8, '\0'));
std::string external(const std::string& location, const std::string& offset = "0", const std::string& length = "8") {
  const auto entry = [](const std::string& key, const std::string& value) {
    return bytes(13, bytes(1, key) + bytes(2, value));
  };
  return entry("location", location) + entry("offset", offset) + entry("length", length) + number(14, 1);
}

ByteFile model_of(const std::string& graph) {
  ByteFile file;
  return file.raw("version", number(1, 8)).raw("graph", bytes(7, graph));
}
ByteFile with(const std::string& initializer) { return model_of(bytes(5, initializer)); }
ByteFile whole() { return with(tensor(kRaw)); }

std::string sparse(const std::string& indices, const std::string& dims = number(3, 2) + number(3, 3),
                   const std::string& values = tensor(kRaw)) {
  return bytes(15, bytes(1, values) + bytes(2, indices) + dims);
}
std::string cells(const std::string& dims, const std::string& packed) { return dims + number(2, 7) + bytes(7, packed); }

const HostileTable kTable("onnx", [] { return whole().bytes(); });

TEST(HostileOnnx, TheFilesAreSoundBeforeTheyAreBroken) {
  expect_sound("hostile.onnx", whole());
  expect_sound("hostile.onnx", model_of(sparse(cells(number(1, 2), "\1\5"))));
}

TEST(HostileOnnx, Tensors) {
  expect_refused(
      "hostile.onnx",
      std::array{
          Case{"a type is known", [] { return with(tensor(kRaw, number(1, 2), 99)); }, kUnsupported, kAnywhere,
               "tensor w: data_type: 99 is not known"},
          Case{"there is a type", [] { return with(tensor(kRaw, number(1, 2), 0)); }, kUnsupported, kAnywhere,
               "data_type: 0 is not known"},
          Case{"dimensions are not negative", [] { return with(tensor(kRaw, number(1, -2ULL))); }, kInvalid, kAnywhere,
               "a dimension is negative"},
          Case{"dimensions do not overflow",
               [] { return with(tensor(kRaw, number(1, 1ULL << 62) + number(1, 1ULL << 62))); }, kInvalid, kAnywhere,
               "more than 2^64 bytes"},
          Case{"dimensions are few", [] { return with(tensor(kRaw, bytes(1, std::string(65, '\1')))); }, kInvalid,
               kAnywhere, "more than 64 dimensions"},
          Case{"packed dimensions are whole", [] { return with(tensor(kRaw, bytes(1, "\x82"))); }, kInvalid, kAnywhere,
               "ends after the field"},
          Case{"raw elements are all there", [] { return with(tensor(kRaw, number(1, 3))); }, kInvalid, kAnywhere,
               "raw_data: 8 bytes, [3] of FLOAT needs 12"},
          Case{"there are elements", [] { return with(tensor("")); }, kInvalid, kAnywhere,
               "elements: 0 bytes, [2] of FLOAT needs 8"},
          Case{"raw elements come once", [] { return with(tensor(kRaw + kRaw)); }, kInvalid, kAnywhere,
               "raw_data: it appears twice"},
          Case{"elements are in one field", [] { return with(tensor(kRaw + bytes(4, std::string(8, '\0')))); },
               kInvalid, kAnywhere, "raw_data: expected elements in one field, found others in float_data"},
          Case{"elements are in one list",
               [] { return with(tensor(bytes(5, "\1\1") + bytes(4, std::string(8, '\0')))); }, kInvalid, kAnywhere,
               "expected elements in one field, found others in int32_data"},
          Case{"elements are in the field of their type", [] { return with(tensor(bytes(7, "\1\1"))); }, kInvalid,
               kAnywhere, "int64_data has elements, expected float_data, which holds those of FLOAT"},
          Case{"listed elements are all there", [] { return with(tensor(bytes(7, "\1\1\1"), number(1, 2), 7)); },
               kInvalid, kAnywhere, "int64_data: 24 bytes, [2] of INT64 needs 16"},
          Case{"tensors are whole", [] { return with(tensor(kRaw + bytes(3, number(1, 0)))); }, kInvalid, kAnywhere,
               "tensors in several pieces"},
          Case{"names come once", [] { return model_of(bytes(5, tensor(kRaw)) + bytes(5, tensor(kRaw))); }, kInvalid,
               kAnywhere, "\"w\" appears twice"},
          Case{"there is a graph", [] { return whole().erase("graph"); }, kInvalid, kAnywhere, "graph: it is missing"},
          Case{"there is one graph", [] { return whole().raw("another", bytes(7, "")); }, kInvalid, "another",
               "graph: it appears twice"},
          Case{"messages end in the file", [] { return whole().raw("graph", "\x3a\x7f"); }, kInvalid, kAnywhere,
               "graph"},
      });
}

TEST(HostileOnnx, ListsThatDoNotFit) {
  // Reading the elements finds the faults: an integer that is too large, one that is cut off, one of 11 bytes.
  for (const auto& [list, type, count, problem] :
       {std::tuple(varint(256) + varint(0), 2, 2, "256 does not fit 1 bytes"),
        std::tuple(varint(128) + varint(0), 3, 2, "128 does not fit 1 bytes"),
        std::tuple(varint(-129ULL) + varint(0), 3, 2, "-129 does not fit 1 bytes"),
        std::tuple(varint(1ULL << 32) + varint(0), 6, 2, "does not fit 4 bytes"),
        std::tuple(std::string(10, '\xff') + "\1\1", 6, 2, "more than 64 bits")}) {
    SCOPED_TRACE(problem);
    const Model model = open(support::source(
        with(tensor(bytes(5, list), number(1, static_cast<std::uint64_t>(count)), static_cast<std::uint64_t>(type)))
            .bytes(),
        "hostile.onnx"));
    try {
      read_all(*model.tensors().front().require("data").blob);
      ADD_FAILURE() << "it was read";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), kInvalid);
      EXPECT_THAT(error.message(), HasSubstr(problem));
      EXPECT_TRUE(error.offset().has_value());
    }
  }
}

TEST(HostileOnnx, Sparse) {
  expect_refused(
      "hostile.onnx",
      std::array{
          Case{"there is an index for each value", [] { return model_of(sparse(cells(number(1, 3), "\1\2\5"))); },
               kInvalid, kAnywhere, "indices: expected the shape [2] or [2, 2], found [3]"},
          Case{"indices are of 64 bits", [] { return model_of(sparse(tensor(kRaw))); }, kInvalid, kAnywhere,
               "indices: expected INT64"},
          Case{"there are indices", [] { return model_of(sparse("")); }, kUnsupported, kAnywhere,
               "data_type: 0 is not known"},
          Case{"values are a list",
               [] {
                 return model_of(sparse(cells(number(1, 2), "\1\5"), number(3, 2) + number(3, 3),
                                        tensor(kRaw, number(1, 2) + number(1, 1))));
               },
               kInvalid, kAnywhere, "values: expected one dimension"},
          Case{"dimensions do not overflow",
               [] {
                 return model_of(sparse(cells(number(1, 2), "\1\5"), number(3, 1ULL << 62) + number(3, 1ULL << 62)));
               },
               kInvalid, kAnywhere, "more than 2^64 elements"},
          Case{"there are dimensions", [] { return model_of(sparse(cells(number(1, 2), "\1\5"), "")); }, kInvalid,
               kAnywhere, "expected at least one dimension"},
      });
}

// Returns a model with cells outside of the shape, whose coordinates must be outside, too.
std::string constant(const std::string& attribute) {
  return bytes(1, bytes(2, "c") + bytes(4, "Constant") + bytes(5, bytes(1, "value") + attribute));
}

TEST(HostileOnnx, Constants) {
  expect_sound("hostile.onnx", model_of(constant(bytes(8, "\1\5"))));
  expect_sound("hostile.onnx", model_of(constant(bytes(7, std::string(8, '\0')))));
  expect_refused(
      "hostile.onnx",
      std::array{
          Case{"a constant has one value", [] { return model_of(constant(number(3, 1) + bytes(8, "\1"))); }, kInvalid,
               kAnywhere, "ints: expected a constant with one value"},
          Case{"one number comes once", [] { return model_of(constant(number(3, 1) + number(3, 1))); }, kInvalid,
               kAnywhere, "i: expected a constant with one value"},
          Case{"floats are whole", [] { return model_of(constant(bytes(7, "abc"))); }, kInvalid, kAnywhere,
               "float_data: 3 bytes"},
          Case{"integers are whole", [] { return model_of(constant(bytes(8, "\x82"))); }, kInvalid, kAnywhere,
               "the last integer of a list is cut off"},
          Case{"names are not used twice", [] { return model_of(constant(number(3, 1)) + constant(number(3, 1))); },
               kInvalid, kAnywhere, "the tensor name \"c\" appears twice"},
      });
}

TEST(HostileOnnx, SparseCellsOutside) {
  for (const std::string& packed : {std::string("\1\6"), std::string("\1") + varint(-1ULL)}) {
    const support::TemporaryDirectory directory;
    support::put(directory / "hostile.onnx", model_of(sparse(cells(number(1, 2), packed))).bytes());
    EXPECT_GT(verify(directory / "hostile.onnx").errors(), 0U);
  }
}

// The cache of the Hub has such links, to a model and to its data in the same folder.
TEST(HostileOnnx, LinksToOneDirectory) {
  const support::TemporaryDirectory directory;
  support::put(directory / "blobs" / "1", with(tensor(external("weights"))).bytes());
  support::put(directory / "blobs" / "2", std::string(8, '\0'));
  support::put(directory / "secret", std::string(8, '\0'));
  std::filesystem::create_directory(directory / "snapshot");
  std::filesystem::create_symlink("../blobs/1", directory / "snapshot" / "model.onnx");
  std::filesystem::create_symlink("../blobs/2", directory / "snapshot" / "weights");
  EXPECT_EQ(open(directory / "snapshot" / "model.onnx").size(), 1U);
  std::filesystem::remove(directory / "snapshot" / "weights");
  std::filesystem::create_symlink("../secret", directory / "snapshot" / "weights");
  EXPECT_THAT(support::error_of([&] { open(directory / "snapshot" / "model.onnx"); }).message(),
              HasSubstr("leads out of the model's directory"));
}

// onnx refuses them since version 1.21 (CVE-2026-34446).
TEST(HostileOnnx, HardLinksAreRefused) {
  const support::TemporaryDirectory directory;
  support::put(directory / "secret", std::string(8, '\0'));
  support::put(directory / "model" / "model.onnx", with(tensor(external("weights"))).bytes());
  const auto message = [&] { return support::error_of([&] { open(directory / "model" / "model.onnx"); }).message(); };
  std::filesystem::create_hard_link(directory / "secret", directory / "model" / "weights");
  EXPECT_THAT(message(), HasSubstr("location: \"weights\" has 2 names (hard links)"));
  std::filesystem::rename(directory / "model" / "weights", directory / "model" / "target");
  std::filesystem::create_symlink("target", directory / "model" / "weights");
  EXPECT_THAT(message(), HasSubstr("has 2 names (hard links)"));
  std::filesystem::remove(directory / "secret");
  EXPECT_EQ(open(directory / "model" / "model.onnx").size(), 1U);
}

// Bytes in memory are not in a directory, even if their name is a path.
TEST(HostileOnnx, AModelInMemoryOpensNoOtherFile) {
  const support::TemporaryDirectory directory;
  const std::string bytes = with(tensor(external("weights"))).bytes();
  support::put(directory / "model.onnx", bytes);
  support::put(directory / "weights", std::string(8, '\0'));
  EXPECT_EQ(open(directory / "model.onnx").size(), 1U);
  EXPECT_THAT(support::error_of([&] { open(support::source(bytes, directory / "model.onnx")); }).message(),
              HasSubstr("the model is in memory, and its numbers are in the file weights"));
}

TEST(HostileOnnx, OtherFiles) {
  const support::TemporaryDirectory directory;
  support::put(directory / "weights", std::string(8, '\0'));
  support::put(directory / "secret", std::string(8, '\0'));
  std::filesystem::create_directory(directory / "inside");
  const auto message_of = [&](const std::string& rest) -> std::string {
    support::put(directory / "inside" / "hostile.onnx", with(tensor(rest)).bytes());
    support::put(directory / "inside" / "weights", std::string(8, '\0'));
    try {
      open(directory / "inside" / "hostile.onnx");
      return "it was read";
    } catch (const Error& error) {
      return error.message();
    }
  };
  EXPECT_EQ(message_of(external("weights")), "it was read");
  EXPECT_EQ(message_of(external("./weights")), "it was read");
  support::put(directory / "inside" / "deeper" / "weights", std::string(8, '\0'));
  EXPECT_EQ(message_of(external("deeper/weights")), "it was read");
  for (const std::string& name :
       {std::string("../secret"), (directory / "secret").string(), std::string("inside/../weights"), std::string(".."),
        std::string("."), std::string(), std::string("a\\b"), std::string("weights\0x", 9), std::string("deeper/"),
        std::string("./../secret"), std::string("deeper//weights"), std::string("./")})
    EXPECT_THAT(message_of(external(name)), HasSubstr("is not inside the model's directory")) << name;
  EXPECT_THAT(message_of(external("absent")), HasSubstr("the file absent is missing"));
  const auto link = [&](const std::string& target, const std::string& name) {
    std::filesystem::create_symlink(target, directory / "inside" / name);
    return message_of(external(name));
  };
  EXPECT_EQ(link("deeper/weights", "link"), "it was read");
  EXPECT_THAT(link("../secret", "out"), HasSubstr("\"out\" is a link that leads out of the model's directory"));
  EXPECT_THAT(link((directory / "secret").string(), "absolute"), HasSubstr("leads out of the model's directory"));
  std::filesystem::create_directory_symlink(directory.path(), directory / "inside" / "folder");
  EXPECT_THAT(message_of(external("folder/secret")), HasSubstr("leads out of the model's directory"));
  EXPECT_THAT(message_of(external("weights", "1")),
              HasSubstr("8 bytes at offset 1 reach beyond the file weights, which has 8 bytes"));
  EXPECT_THAT(message_of(external("weights", "18446744073709551615")), HasSubstr("which has 8"));
  EXPECT_THAT(message_of(external("weights", "-1")), HasSubstr("offset: expected a number"));
  EXPECT_THAT(message_of(external("weights", "0", "7")), HasSubstr("length: 7 bytes, [2] of FLOAT needs 8"));
  EXPECT_THAT(message_of(external("weights") + kRaw),
              HasSubstr("expected elements in an external file alone, found others in the model"));
  EXPECT_THAT(message_of(number(14, 1)), HasSubstr("location is missing"));
}

TEST(HostileOnnx, SmallFilesThatClaimMuchFailSoon) {
  std::string initializers;
  for (int i = 0; i < 100000; ++i) initializers += bytes(5, "");
  expect_harmless("hostile.onnx", model_of(initializers).bytes());
  std::string inputs;
  for (int i = 0; i < 1000000; ++i) inputs += bytes(11, "");
  expect_harmless("hostile.onnx", model_of(inputs).bytes());
  std::string pieces;
  for (int i = 0; i < 200000; ++i) pieces += number(7, 1);
  expect_harmless("hostile.onnx", with(tensor(pieces, number(1, 200000), 7)).bytes());
}

}  // namespace
}  // namespace poise::hostile
