// Breaks every rule of PyTorch's checkpoints once (docs/formats/pytorch.md), and tries every way in which a pickle can
// name and call a function: reading calls none, and verify() reports all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include <poise/format.hpp>
#include <poise/verify.hpp>

#include "support/directories.hpp"
#include "support/errors.hpp"
#include "support/hostile_cases.hpp"
#include "support/zip_file.hpp"

namespace poise::hostile {
namespace {

using support::zip_file;
using testing::HasSubstr;

constexpr auto kInvalid = ErrorKind::invalid_file;
constexpr auto kUnsupported = ErrorKind::unsupported;

// These write steps of pickles. Source: Lib/pickletools.py of CPython.
std::string text(const std::string& value) { return "X" + le(value.size(), 4) + value; }
std::string integer(std::uint64_t value) { return "\x8a\x08" + le(value, 8); }
std::string global(const std::string& module, const std::string& name) { return "c" + module + "\n" + name + "\n"; }
std::string tuple(const std::string& items) { return "(" + items + "t"; }
std::string call(const std::string& function, const std::string& arguments) {
  return function + tuple(arguments) + "R";
}
const std::string kFalse = "\x89";
const std::string kHooks = global("collections", "OrderedDict") + ")R";

std::string storage(const std::string& key = text("0"), const std::string& count = integer(6),
                    const std::string& type = global("torch", "FloatStorage")) {
  return tuple(text("storage") + type + key + text("cpu") + count) + "Q";
}
std::string view(const std::string& subject, const std::string& offset, const std::string& size,
                 const std::string& stride) {
  return call(global("torch._utils", "_rebuild_tensor_v2"),
              subject + offset + tuple(size) + tuple(stride) + kFalse + kHooks);
}
const std::string kMatrix = view(storage(), integer(0), integer(2) + integer(3), integer(3) + integer(1));

// Returns the pickle of a dict with a matrix, and with these further keys and values.
std::string objects(const std::string& more = "") { return "\x80\x02}(" + text("w") + kMatrix + more + "u."; }
std::string tensor(const std::string& made) { return "\x80\x02}(" + text("w") + made + "u."; }
const std::string kFloats = le(0x3f800000, 4) + le(0, 12) + le(0x40000000, 4) + le(0, 4);

ByteFile file_of(const std::string& pickle) { return zip_file({{"a/data.pkl", pickle}, {"a/data/0", kFloats}}); }
ByteFile whole() { return file_of(objects()); }

const HostileTable kTable("pytorch", [] { return whole().bytes(); });

TEST(HostilePytorch, TheFileIsSoundBeforeItIsBroken) { expect_sound("hostile.pt", whole()); }

TEST(HostilePytorch, Steps) {
  expect_refused(
      "hostile.pt",
      std::array{
          Case{"steps are known", [] { return file_of("\x80\x02\xff."); }, kInvalid, "0 bytes + 2", "no step 0xff"},
          Case{"the protocol is known", [] { return file_of("\x80\x06}."); }, kInvalid, "0 bytes", "protocol 6"},
          Case{"the program ends", [] { return file_of("\x80\x02}"); }, kInvalid, "0 bytes + 3", "a step"},
          Case{"the program is all there is", [] { return file_of(objects() + "}."); }, kInvalid, kAnywhere,
               "bytes after its end"},
          Case{"something is left", [] { return file_of("\x80\x02."); }, kInvalid, "0 bytes + 2", "stack is empty"},
          Case{"nothing is taken from below a mark", [] { return file_of("\x80\x02}(K\1s."); }, kInvalid, "0 bytes + 6",
               "2 objects wanted, the stack has 1"},
          Case{"a mark is there", [] { return file_of("\x80\x02}t."); }, kInvalid, "0 bytes + 3", "no mark"},
          Case{"keys have values", [] { return file_of("\x80\x02}(K\1u."); }, kInvalid, "0 bytes + 6",
               "a key without a value"},
          Case{"what is remembered was", [] { return file_of("\x80\x02h\7."); }, kInvalid, "0 bytes + 2",
               "the memo has no object 7"},
          Case{"a text is there", [] { return file_of("\x80\x02X" + le(0x7fffffff, 4) + "."); }, kInvalid,
               "0 bytes + 2", "2147483647 bytes wanted"},
          Case{"a text of 2^63 bytes is there", [] { return file_of("\x80\x04\x8d" + le(std::uint64_t{1} << 63, 8)); },
               kInvalid, "0 bytes + 2", "9223372036854775808 bytes wanted"},
          Case{"a length is not negative", [] { return file_of("\x80\x02\x8b" + le(0xffffffff, 4) + "."); }, kInvalid,
               "0 bytes + 2", "LONG4: -1 bytes"},
          Case{"a text is UTF-8", [] { return file_of("\x80\x02" + text("\xff") + "."); }, kInvalid, "0 bytes + 2",
               "not UTF-8"},
          Case{"a name ends", [] { return file_of("cos\nsystem"); }, kUnsupported, "0 bytes", "the line has no end"},
          Case{"a line ends", [] { return file_of("I12"); }, kInvalid, "0 bytes", "the line has no end"},
          Case{"names are texts", [] { return file_of("\x80\x04K\1K\2\x93."); }, kInvalid, "0 bytes + 6",
               "STACK_GLOBAL: expected texts"},
          Case{"arguments are a tuple", [] { return file_of("\x80\x02" + global("os", "system") + "}R."); },
               kUnsupported, kAnywhere, "expected a tuple of arguments"},
          Case{"arguments are not a number", [] { return file_of("\x80\x02" + global("os", "system") + "K\1R."); },
               kInvalid, kAnywhere, "expected a tuple of arguments"},
          Case{"what is called is a function", [] { return file_of("\x80\x02K\1)R."); }, kInvalid, "0 bytes + 5",
               "neither a function nor a class"},
          Case{"a list gets what is appended", [] { return file_of("\x80\x02K\1K\2a."); }, kInvalid, "0 bytes + 6",
               "APPEND: expected a list"},
          Case{"a dict gets what is set", [] { return file_of("\x80\x02NK\1K\2s."); }, kInvalid, "0 bytes + 7",
               "SETITEM: expected a dict"},
          Case{"an index is in its list", [] { return file_of("\x80\x02]K\1K\2s."); }, kInvalid, "0 bytes + 7",
               "index 1 of a list of 0"},
          Case{"an index is not an object", [] { return file_of("\x80\x02]" + global("a", "b") + "K\2s."); },
               kUnsupported, kAnywhere, "SETITEM: the index of a list"},
          Case{"objects are built", [] { return file_of("\x80\x02}}K\1K\2sb."); }, kUnsupported, "0 bytes + 9",
               "BUILD"},
          Case{"objects are built once", [] { return file_of("\x80\x02" + global("a", "b") + ")R}b}b."); },
               kUnsupported, kAnywhere, "a second state"},
          Case{"classes are not built",
               [] {
                 return file_of("\x80\x02" + global("a", "b") +
                                "N}K\1K\2s\x86"
                                "b.");
               },
               kUnsupported, kAnywhere, "BUILD"},
          Case{"storages are not set", [] { return file_of("\x80\x02" + storage() + "K\1K\2s."); }, kUnsupported,
               kAnywhere, "SETITEM: expected a dict"},
          Case{"names are not computed", [] { return file_of("\x80\x04" + kHooks + text("x") + "\x93."); },
               kUnsupported, kAnywhere, "STACK_GLOBAL: the name is computed"},
          Case{"versions of Python read the same number", [] { return file_of("I017\n."); }, kUnsupported, "0 bytes",
               "INT: a number with zeros before it"},
          Case{"steps are in one frame", [] { return file_of("\x80\x04\x95" + le(2, 8) + "M\1\2."); }, kUnsupported,
               "0 bytes + 11", "beyond the end of its frame"},
          Case{"frames are in no other",
               [] { return file_of("\x80\x04\x95" + le(12, 8) + "N\x95" + le(2, 8) + "0N."); }, kUnsupported,
               "0 bytes + 12", "a frame begins inside another one"},
          Case{"frames are there", [] { return file_of("\x80\x04\x95" + le(9, 8) + "N."); }, kUnsupported,
               "0 bytes + 2", "a frame of 9 bytes, 2 are left"},
          Case{"buffers are in the file", [] { return file_of("\x80\x05\x97."); }, kInvalid, "0 bytes + 2",
               "a buffer that is outside the pickle"},
          Case{"lists that hold themselves end", [] { return file_of("\x80\x02]q\0h\0a" + objects("").substr(2)); },
               kInvalid, kAnywhere, "pickle"},
      });
}

TEST(HostilePytorch, Tensors) {
  static const auto with_view = [](const std::string& offset, const std::string& size, const std::string& stride) {
    return file_of(tensor(view(storage(), offset, size, stride)));
  };
  expect_refused(
      "hostile.pt",
      std::array{
          Case{"views end in their storage", [] { return with_view(integer(1), integer(6), integer(1)); }, kInvalid,
               kAnywhere, "w: elements of shape [6]"},
          Case{"views begin in their storage", [] { return with_view(integer(0), integer(2), integer(-1ULL)); },
               kInvalid, kAnywhere, "strides (-4)"},
          Case{"offsets are not negative", [] { return with_view(integer(-1ULL), integer(6), integer(1)); }, kInvalid,
               kAnywhere, "storage_offset: expected a non-negative integer"},
          Case{"offsets do not overflow", [] { return with_view(integer(0x7fffffffffffffff), integer(6), integer(1)); },
               kInvalid, kAnywhere, "more than 2^64 bytes"},
          Case{"strides do not overflow", [] { return with_view(integer(0), integer(6), integer(0x7fffffffffffffff)); },
               kInvalid, kAnywhere, "more than 2^63 bytes"},
          Case{"sizes do not overflow",
               [] { return with_view(integer(0), integer(1ULL << 62) + integer(1ULL << 62), integer(0) + integer(0)); },
               kInvalid, kAnywhere, "more than 2^64 bytes"},
          Case{"sizes are not negative", [] { return with_view(integer(0), integer(-6ULL), integer(1)); }, kInvalid,
               kAnywhere, "size: expected a non-negative integer"},
          Case{"sizes are integers", [] { return with_view(integer(0), text("6"), integer(1)); }, kInvalid, kAnywhere,
               "size: expected a non-negative integer"},
          Case{"elements are not repeated without end",
               [] { return with_view(integer(0), integer(1ULL << 40), integer(0)); }, kUnsupported, kAnywhere,
               "expected at most 1024 times"},
          Case{"each size has a stride", [] { return with_view(integer(0), integer(2) + integer(3), integer(3)); },
               kInvalid, kAnywhere, "found 1 strides and 2 sizes"},
          Case{"a tensor has a storage", [] { return file_of(tensor(view("N", integer(0), integer(6), integer(1)))); },
               kInvalid, kAnywhere, "expected a storage"},
          Case{"a storage is in the archive",
               [] { return file_of(tensor(view(storage(text("1")), integer(0), integer(6), integer(1)))); }, kInvalid,
               kAnywhere, "no data/1"},
          Case{"a storage is as large as it says",
               [] {
                 return file_of(
                     tensor(view(storage(text("0"), integer(1ULL << 40)), integer(0), integer(6), integer(1))));
               },
               kInvalid, kAnywhere, "data/0 has 24 bytes, 1099511627776 elements of f32"},
          Case{"a storage's size is not negative",
               [] {
                 return file_of(tensor(view(storage(text("0"), integer(-6ULL)), integer(0), integer(6), integer(1))));
               },
               kInvalid, kAnywhere, "a size that is not negative"},
          Case{"a storage's key is text",
               [] { return file_of(tensor(view(storage(integer(0)), integer(0), integer(6), integer(1)))); }, kInvalid,
               kAnywhere, "a key that is text"},
          Case{"a storage's class is known",
               [] {
                 return file_of(tensor(
                     view(storage(text("0"), integer(6), global("os", "system")), integer(0), integer(6), integer(1))));
               },
               kUnsupported, kAnywhere, "the class os.system is not known"},
          Case{"a persistent object is a storage",
               [] { return file_of(tensor(view(text("storage") + "Q", integer(0), integer(6), integer(1)))); },
               kInvalid, kAnywhere, "expected a tuple of a kind"},
          Case{"a persistent object says which",
               [] { return file_of(tensor(view("(tQ", integer(0), integer(6), integer(1)))); }, kInvalid, kAnywhere,
               "expected a tuple of a kind"},
          Case{"arguments are there",
               [] { return file_of(tensor(call(global("torch._utils", "_rebuild_tensor_v2"), storage()))); }, kInvalid,
               kAnywhere, "arguments, at least "},
          Case{"tensors are of no other class",
               [] {
                 return file_of(
                     tensor(call(global("torch._tensor", "_rebuild_from_type_v2"),
                                 global("torch._utils", "_rebuild_tensor_v2") + global("evil", "Tensor") + "(t}")));
               },
               kUnsupported, kAnywhere, "the class evil.Tensor"},
          Case{"names come once", [] { return file_of(objects(text("1") + kMatrix + "K\x01" + kMatrix)); }, kInvalid,
               kAnywhere, "1"},
          Case{"tensors are in no object",
               [] { return file_of("\x80\x02" + global("evil", "Net") + ")\x81}(" + text("w") + kMatrix + "ub."); },
               kUnsupported, kAnywhere, "an object of evil.Net"},
          Case{"a checkpoint is not an object",
               [] { return file_of("\x80\x02" + call(global("os", "system"), text("x")) + "."); }, kUnsupported,
               kAnywhere, "an object of os.system"},
          Case{"a checkpoint is a dict", [] { return file_of("\x80\x02K\1."); }, kInvalid, kAnywhere,
               "expected a dict of tensors"},
          Case{"nesting is bounded",
               [] {
                 std::string deep;
                 for (int i = 0; i < 70; ++i) deep += "}" + text("a");
                 return file_of("\x80\x02" + deep + kMatrix + std::string(70, 's') + ".");
               },
               kInvalid, kAnywhere, "nested deeper than 64"},
          Case{"the byte order is known",
               [] {
                 return zip_file({{"a/data.pkl", objects()}, {"a/byteorder", "middle"}, {"a/data/0", kFloats}});
               },
               kInvalid, "1 bytes", "\"middle\", expected little or big"},
          Case{"a deflated pickle is not much larger than its bytes",
               [] {
                 return zip_file({{"a/data.pkl", std::string(10000, 'x'), std::string(9 << 20, '\0'), true}});
               },
               kUnsupported, "0 bytes",
               "data.pkl has 9437184 bytes when unpacked, at most 8408608 are read for its 10000 compressed bytes"},
          Case{"it is not a program",
               [] {
                 return zip_file({{"a/data.pkl", objects()}, {"a/constants.pkl", ").}"}, {"a/data/0", kFloats}});
               },
               kUnsupported, kAnywhere, "TorchScript"},
      });
}

// Adds a storage "1" of six int64 to the storage of floats.
ByteFile file_with_integers(const std::string& made) {
  std::string integers;
  for (const unsigned number : {0U, 1U, 1U, 2U, 0U, 2U}) integers += le(number, 8);
  return zip_file({{"a/data.pkl", tensor(made)}, {"a/data/0", kFloats}, {"a/data/1", integers}});
}
std::string layout(const std::string& name) {
  return call(global("torch.serialization", "_get_layout"), text("torch." + name));
}
std::string integers(const std::string& size, const std::string& stride, std::uint64_t offset = 0) {
  return view(storage(text("1"), integer(6), global("torch", "LongStorage")), integer(offset), size, stride);
}
const std::string kCells = integers(integer(2) + integer(3), integer(3) + integer(1));
const std::string kThree = view(storage(), integer(0), integer(3), integer(1));
std::string coo(const std::string& indices, const std::string& values, const std::string& size,
                const std::string& form = layout("sparse_coo")) {
  return call(global("torch._utils", "_rebuild_sparse_tensor"), form + tuple(indices + values + tuple(size)));
}

TEST(HostilePytorch, SparseTensors) {
  const std::string sound = coo(kCells, kThree, integer(2) + integer(3));
  expect_sound("hostile.pt", file_with_integers(sound));
  expect_refused(
      "hostile.pt",
      std::array{
          Case{"a layout is known",
               [] { return file_with_integers(coo(kCells, kThree, integer(2) + integer(3), layout("sparse_bsr"))); },
               kUnsupported, kAnywhere, "the layout \"torch.sparse_bsr\" are not read"},
          Case{"a layout is called",
               [] { return file_with_integers(coo(kCells, kThree, integer(2) + integer(3), text("sparse_coo"))); },
               kUnsupported, kAnywhere, "the layout \"\" are not read"},
          Case{"indices are a tensor", [] { return file_with_integers(coo("N", kThree, integer(2) + integer(3))); },
               kInvalid, kAnywhere, "indices: expected a tensor"},
          Case{"there is an index for each dimension",
               [] { return file_with_integers(coo(kCells, kThree, integer(2) + integer(3) + integer(1))); }, kInvalid,
               kAnywhere, "indices: expected the shape [3, 3], found [2, 3]"},
          Case{"there is an index for each value",
               [] {
                 return file_with_integers(
                     coo(kCells, view(storage(), integer(0), integer(2), integer(1)), integer(2) + integer(3)));
               },
               kInvalid, kAnywhere, "indices: expected the shape [2, 2], found [2, 3]"},
          Case{"indices are integers", [] { return file_with_integers(coo(kMatrix, kThree, integer(2) + integer(3))); },
               kInvalid, kAnywhere, "w: coords"},
          Case{"values are numbers", [] { return file_with_integers(coo(kCells, kMatrix, integer(2) + integer(3))); },
               kUnsupported, kAnywhere, "whose values are tensors"},
          Case{"sizes do not overflow",
               [] { return file_with_integers(coo(kCells, kThree, integer(1ULL << 62) + integer(1ULL << 62))); },
               kInvalid, kAnywhere, "more than 2^64 elements"},
          Case{"arguments are there",
               [] { return file_with_integers(call(global("torch._utils", "_rebuild_sparse_tensor"), "N")); }, kInvalid,
               kAnywhere, "arguments, at least "},
          Case{"rows have their parts",
               [] {
                 return file_with_integers(call(global("torch._utils", "_rebuild_sparse_csr_tensor"),
                                                layout("sparse_csr") + tuple(kCells + kThree + tuple(integer(2)))));
               },
               kInvalid, kAnywhere, "a tuple of indices, values and a size"},
      });
}

std::string quantized(const std::string& parameters, const std::string& type = "QUInt8Storage",
                      const std::string& size = integer(4) + integer(6)) {
  const std::string codes = storage(text("0"), integer(24), global("torch", type));
  return call(global("torch._utils", "_rebuild_qtensor"),
              codes + integer(0) + tuple(size) + tuple(size == integer(24) ? integer(1) : integer(6) + integer(1)) +
                  tuple(parameters) + kFalse + kHooks);
}
const std::string kPerTensor = global("torch", "per_tensor_affine");
const std::string kHalf = "G\x3f\xe0" + std::string(6, '\0');

TEST(HostilePytorch, QuantizedTensors) {
  expect_sound("hostile.pt", file_of(tensor(quantized(kPerTensor + kHalf + integer(128)))));
  expect_sound("hostile.pt", file_of(tensor(quantized(kPerTensor + kHalf + integer(-3ULL), "QInt8Storage"))));
  expect_refused(
      "hostile.pt",
      std::array{
          Case{"a scheme is known",
               [] { return file_of(tensor(quantized(global("torch", "per_row_affine") + kHalf + integer(0)))); },
               kUnsupported, kAnywhere, "the scheme \"torch.per_row_affine\" are not read"},
          Case{"a scale is a number", [] { return file_of(tensor(quantized(kPerTensor + text("1") + integer(0)))); },
               kInvalid, kAnywhere, "scale: expected a number"},
          Case{"a scale is positive",
               [] { return file_of(tensor(quantized(kPerTensor + "G" + std::string(8, '\0') + integer(0)))); },
               kInvalid, kAnywhere, "scale: 0, expected a positive number"},
          Case{"a scale is one of float32",
               [] { return file_of(tensor(quantized(kPerTensor + "G\x7e\x37" + std::string(6, '\0') + integer(0)))); },
               kInvalid, kAnywhere, "expected a positive number of float32"},
          Case{"a zero point is a code", [] { return file_of(tensor(quantized(kPerTensor + kHalf + integer(256)))); },
               kInvalid, kAnywhere, "zero_point: expected an integer of -255 to 255"},
          Case{"parameters are there", [] { return file_of(tensor(quantized(kPerTensor + kHalf))); }, kInvalid,
               kAnywhere, "expected a scale and a zero point"},
          Case{"codes have 8 bits",
               [] {
                 return file_of(tensor(call(global("torch._utils", "_rebuild_qtensor"),
                                            storage() + integer(0) + tuple(integer(6)) + tuple(integer(1)) +
                                                tuple(kPerTensor + kHalf + integer(0)) + kFalse + kHooks)));
               },
               kUnsupported, kAnywhere, "quantized tensors of torch.FloatStorage are not read"},
          Case{"codes are in their storage",
               [] {
                 return file_of(
                     tensor(quantized(kPerTensor + kHalf + integer(0), "QUInt8Storage", integer(5) + integer(6))));
               },
               kInvalid, kAnywhere, "w: elements of shape [5, 6]"},
      });
}

// Returns a file with codes [2, 3], a scale for each row, and zero points from the storage of integers.
std::string quantized_rows(const std::string& scales, const std::string& zeros, const std::string& axis = integer(0),
                           const std::string& type = "QUInt8Storage") {
  const std::string codes = storage(text("0"), integer(24), global("torch", type));
  return call(global("torch._utils", "_rebuild_qtensor"),
              codes + integer(0) + tuple(integer(2) + integer(3)) + tuple(integer(3) + integer(1)) +
                  tuple(global("torch", "per_channel_affine") + scales + zeros + axis) + kFalse + kHooks);
}
const std::string kTwoScales = view(storage(), integer(0), integer(2), integer(4));
const std::string kTwoZeros = integers(integer(2), integer(1));

TEST(HostilePytorch, TensorsQuantizedAlongAnAxis) {
  expect_sound("hostile.pt", file_with_integers(quantized_rows(kTwoScales, kTwoZeros)));
  expect_sound("hostile.pt", file_with_integers(quantized_rows(kTwoScales, kTwoZeros, integer(0), "QInt8Storage")));
  expect_sound("hostile.pt", file_of(tensor(quantized_rows(kTwoScales, kTwoScales))));
  expect_refused(
      "hostile.pt",
      std::array{
          Case{"an axis is one of the tensor",
               [] { return file_with_integers(quantized_rows(kTwoScales, kTwoZeros, integer(2))); }, kInvalid,
               kAnywhere, "axis 2 is out of range: the shape is [2, 3]"},
          Case{"an axis is not negative",
               [] { return file_with_integers(quantized_rows(kTwoScales, kTwoZeros, integer(-1ULL))); }, kInvalid,
               kAnywhere, "axis: expected a non-negative integer"},
          Case{"there is an axis", [] { return file_with_integers(quantized_rows(kTwoScales, kTwoZeros, "")); },
               kInvalid, kAnywhere, "expected scales, zero points and an axis"},
          Case{"scales are a tensor", [] { return file_with_integers(quantized_rows(kHalf, kTwoZeros)); }, kInvalid,
               kAnywhere, "scales: expected a tensor"},
          Case{"there is a scale for each index", [] { return file_with_integers(quantized_rows(kThree, kTwoZeros)); },
               kInvalid, kAnywhere, "scales: expected the shape [2], found [3]"},
          Case{"there is a zero point for each index",
               [] { return file_with_integers(quantized_rows(kTwoScales, integers(integer(3), integer(1)))); },
               kInvalid, kAnywhere, "zero_points: expected the shape [2], found [3]"},
          Case{"scales are floating-point numbers",
               [] { return file_with_integers(quantized_rows(kTwoZeros, kTwoZeros)); }, kUnsupported, kAnywhere,
               "scales: expected f32 or f64, found i64"},
          Case{"zero points of signed codes are integers",
               [] { return file_with_integers(quantized_rows(kTwoScales, kTwoScales, integer(0), "QInt8Storage")); },
               kUnsupported, kAnywhere, "zero_points: f32 with codes that are signed is not read"},
          Case{"zero points are in their storage",
               [] { return file_with_integers(quantized_rows(kTwoScales, integers(integer(2), integer(6)))); },
               kInvalid, kAnywhere, "w: elements of shape [2]"},
      });
}

// Unknown state of a dict is kept, or left out with a warning. Version 1 of a module is the default and not reported.
TEST(HostilePytorch, TheStateOfADict) {
  const auto with_state = [](const std::string& state) {
    return file_of("\x80\x02" + global("collections", "OrderedDict") + ")R(" + text("w") + kMatrix + "u" + state +
                   "b.");
  };
  const auto versions = [](const std::string& version) {
    return "}(" + text("_metadata") + "}(" + text("") + "}(" + text("version") + version + "uuu";
  };
  const Model usual = open(support::source(with_state(versions(integer(1))).bytes(), "hostile.pt"));
  EXPECT_TRUE(usual.attributes.empty());
  EXPECT_TRUE(usual.warnings.empty());
  const Model newer = open(support::source(with_state(versions(integer(2))).bytes(), "hostile.pt"));
  EXPECT_EQ(to_json(newer.attributes), R"({"_metadata":{"":{"version":2}}})");
  const Model other = open(support::source(with_state("K\1").bytes(), "hostile.pt"));
  ASSERT_EQ(other.warnings.size(), 2U);
  EXPECT_THAT(other.warnings[0].message, HasSubstr("it sets the state of an object of collections.OrderedDict"));
  EXPECT_THAT(other.warnings[1].message, HasSubstr("the state of a dict is left out"));
  // A state that contains itself.
  const std::string dict =
      global("collections", "OrderedDict") + ")Rq\1(" + text("w") + kMatrix + "u}(" + text("a") + "h\1ub.";
  expect_harmless("hostile.pt", file_of("\x80\x02" + dict).bytes());
}

// Names a way in which a pickle can call a function. Each pickle also has the matrix, which must be read anyway.
struct Trick {
  const char* name;
  std::string steps;
};
std::vector<Trick> tricks(const std::string& module, const std::string& function) {
  const std::string name = global(module, function);
  const std::string argument = text("touch poise-was-here");
  return {
      {"REDUCE", call(name, argument)},
      {"REDUCE of a name from the stack", text(module) + text(function) + "\x93" + tuple(argument) + "R"},
      {"REDUCE of a name from the memo",
       text(module) + "q\x20" + "0" + text(function) + "q\x21" + "0h\x20h\x21\x93" + tuple(argument) + "R"},
      {"INST", "(" + argument + "i" + module + "\n" + function + "\n"},
      {"OBJ", "(" + name + argument + "o"},
      {"NEWOBJ", name + tuple(argument) + "\x81"},
      {"NEWOBJ_EX", name + tuple(argument) + "}\x92"},
      {"BUILD", name + ")\x81}(" + text("__setstate__") + argument + "ub"},
      {"APPENDS", name + ")R(" + argument + "e"},
      {"SETITEMS", name + ")R(" + argument + argument + "u"},
      {"what a call makes is called", call(name, argument) + tuple(argument) + "R"},
      {"in a key", "N0" + std::string("K\1")},
  };
}

TEST(HostilePytorch, ReadingCallsNoFunction) {
  const std::array<std::array<std::string, 3>, 8> kNames = {{{"os", "system", "runs commands"},
                                                             {"posix", "system", "runs commands"},
                                                             {"subprocess", "Popen", "runs commands"},
                                                             {"builtins", "eval", "runs code"},
                                                             {"__builtin__", "exec", "runs code"},
                                                             {"runpy", "_run_code", "runs code"},
                                                             {"importlib", "import_module", "imports modules"},
                                                             {"my_module", "Thing", "which no checkpoint needs"}}};
  for (const auto& [module, function, what] : kNames) {
    const std::string name = module + "." + function;
    for (const Trick& trick : tricks(module, function)) {
      if (trick.steps.find(function) == std::string::npos) continue;
      SCOPED_TRACE(name + ": " + trick.name);
      const std::string file = file_of(objects(text("x") + trick.steps)).bytes();
      const Model model = open(support::source(file, "hostile.pt"));
      EXPECT_EQ(model.size(), 1U);
      const auto is_reported = std::ranges::any_of(model.warnings, [&name, &reason = what](const Finding& finding) {
        return finding.severity == Severity::error && finding.offset &&
               finding.message.find(name) != std::string::npos && finding.message.find(reason) != std::string::npos;
      });
      EXPECT_TRUE(is_reported);
      const support::TemporaryDirectory directory;
      support::put(directory / "hostile.pt", file);
      EXPECT_GT(verify(directory / "hostile.pt").errors(), 0U);
      EXPECT_FALSE(std::filesystem::exists("poise-was-here"));
    }
  }
}

// Later steps of a pickle, and further arguments, may give a tensor other numbers in PyTorch.
TEST(HostilePytorch, TensorsThatChangeAreRefused) {
  const std::string one = integer(1);
  const std::string parameter = call(global("torch._utils", "_rebuild_parameter"), kMatrix + kFalse + kHooks);
  const std::string function = global("torch._utils", "_rebuild_tensor_v2");
  const std::string arguments =
      tuple(storage() + integer(0) + tuple(integer(2) + integer(3)) + tuple(integer(3) + integer(1)) + kFalse + kHooks);
  const auto of_type = [&](const std::string& state) {
    return call(global("torch._tensor", "_rebuild_from_type_v2"),
                function + global("torch.nn.parameter", "Parameter") + arguments + state);
  };
  const auto dict = [](const std::string& key, const std::string& value) { return "}" + text(key) + value + "s"; };
  const std::string list = "](" + integer(2) + integer(3) + "eq\x30" + "0";
  const std::string other =
      "h\x30K\1K\1s"
      "0";  // the list becomes [2, 1]
  const std::array<Trick, 14> tricks = {{
      {"SETITEM", kMatrix + one + one + "s"},
      {"SETITEMS", kMatrix + "(" + one + one + "u"},
      {"APPEND", kMatrix + one + "a"},
      {"BUILD with storage, offset, size, stride", kMatrix + tuple("NNNN") + "b"},
      {"BUILD with data", kMatrix + tuple(kMatrix + "N" + kHooks + kFalse + kFalse) + "b"},
      {"BUILD with fields", kMatrix + dict("data", kMatrix) + "b"},
      {"BUILD of a parameter", parameter + tuple("NNNN") + "b"},
      {"a parameter of what changes",
       call(global("torch._utils", "_rebuild_parameter"), kMatrix + one + one + "s" + kFalse + kHooks)},
      {"a state with data", of_type(dict("data", kMatrix))},
      {"a state with real", of_type(dict("real", one))},
      {"a state of two with data", of_type("N" + dict("data", kMatrix) + "\x86")},
      {"a state with a function", of_type(dict("detach", function))},
      {"hooks", call(function, storage() + integer(0) + tuple(integer(6)) + tuple(one) + kFalse + dict("0", function))},
      {"a size that changes",
       list + call(function, storage() + integer(0) + "h\x30" + tuple(integer(3) + one) + kFalse + kHooks) + other},
  }};
  for (const Trick& trick : tricks) {
    SCOPED_TRACE(trick.name);
    const std::string file = file_of(objects(text("x") + trick.steps)).bytes();
    EXPECT_EQ(support::error_of([&] { open(support::source(file, "hostile.pt")); }).kind(), kUnsupported);
    const support::TemporaryDirectory directory;
    support::put(directory / "hostile.pt", file);
    EXPECT_GT(verify(directory / "hostile.pt").errors(), 0U);
  }
}

// Ordinary files have such states: requires_grad without hooks (PyTorch 0.3), and attributes of parameters.
TEST(HostilePytorch, TensorsThatStayAreRead) {
  const std::string parameter = global("torch.nn.parameter", "Parameter") + tuple(kMatrix) + "R" +
                                tuple(std::string("\x88") + kFalse + kHooks) + "b";
  expect_sound("hostile.pt", file_of(objects(text("x") + parameter)));
  const std::string with_state = call(global("torch._utils", "_rebuild_parameter_with_state"),
                                      kMatrix + kFalse + kHooks + "}" + text("tensor_model_parallel") + "\x88s");
  const Model model = open(support::source(file_of(objects(text("x") + with_state)).bytes(), "hostile.pt"));
  EXPECT_EQ(model.size(), 2U);
  ASSERT_EQ(model.warnings.size(), 1U);
  EXPECT_EQ(model.warnings[0].severity, Severity::warning);
  EXPECT_THAT(model.warnings[0].message, HasSubstr("1 tensor has attributes of its own"));
}

// As in Python, a key that comes again keeps its place and gets the later value: CPython 3.11 unpickles these dicts so.
TEST(HostilePytorch, TheLaterValueOfAKeyCounts) {
  const std::string other = view(storage(), integer(0), integer(3), integer(1));
  const std::string twice =
      objects(text("n") + "K\x01" + text("v") + kMatrix + text("w") + other + text("n") + "K\x02");
  const Model model = open(support::source(file_of(twice).bytes(), "hostile.pt"));
  ASSERT_EQ(model.size(), 2U);
  EXPECT_EQ(model.tensors()[0].name, "w");
  EXPECT_EQ(model.tensors()[0].shape, Shape{3});
  EXPECT_EQ(model.tensors()[1].name, "v");
  EXPECT_EQ(*model.attributes.find("n"), Value(2));
  EXPECT_TRUE(model.warnings.empty());
  const std::string numbers = objects("K\x01" + kMatrix + "K\x01" + other);
  EXPECT_EQ(open(support::source(file_of(numbers).bytes(), "hostile.pt")).find("1")->shape, Shape{3});
}

TEST(HostilePytorch, AtMostAThousandWarningsAreListed) {
  std::string more;
  for (unsigned i = 0; i < 3000; ++i) more += "N" + text("x");  // the key is None
  const Model model = open(support::source(file_of(objects(more)).bytes(), "hostile.pt"));
  ASSERT_EQ(model.warnings.size(), 1001U);
  EXPECT_THAT(model.warnings[0].message, HasSubstr("its key is neither text nor an integer"));
  EXPECT_EQ(model.warnings[1000].message, "more parts of the file are left out");
}

// These names are expected, but checkpoints do not call them in this way.
TEST(HostilePytorch, ExpectedNamesAreNotCalledAtWill) {
  const std::string path = global("pathlib", "Path");
  const std::string getattr = call(global("builtins", "getattr"), path + text("write_text"));
  const std::string flags = "(" + integer(3) + text("|") + "NNN" + integer(-1ULL) + integer(-1ULL) + integer(0) + "t";
  const std::string type = call(global("numpy", "dtype"), text("O8") + kFalse + "\x88");
  const std::array<std::array<std::string, 3>, 12> kCases = {{
      {"a rebuild function calls a method",
       call(global("torch._tensor", "_rebuild_from_type_v2"),
            getattr + path + tuple(call(path, text("poise-was-here")) + text("x")) + "N"),
       "reaches any function by its name"},
      {"a rebuild function calls a class",
       call(global("torch._tensor", "_rebuild_from_type_v2"), path + path + tuple(text("x")) + "N"),
       "with a function that does not rebuild a tensor"},
      {"a rebuild function calls itself",
       call(global("torch._tensor", "_rebuild_from_type_v2"), global("torch._tensor", "_rebuild_from_type_v2") + path +
                                                                  tuple(path + path + tuple(text("x")) + "N") + "N"),
       "with a function that does not rebuild a tensor"},
      {"a constant is a function", getattr, "builtins.getattr"},
      {"a dict calls a class", call(global("collections", "defaultdict"), path),
       "collections.defaultdict with a function"},
      {"a dict calls what a call makes", call(global("collections", "defaultdict"), call(path, text("x"))),
       "collections.defaultdict with a function"},
      {"what a call makes is called", call(call(global("torch", "device"), text("cpu")), text("x")),
       "calls an object that it makes itself"},
      {"what is stored elsewhere is called", tuple(text("module") + path) + "Q" + tuple(text("x")) + "R",
       "calls an object that it makes itself"},
      {"a type is called", call(global("torch", "FloatStorage"), integer(5)), "torch.FloatStorage, which checkpoints"},
      {"an array is made of addresses", type + flags + "b", "numpy.dtype with a state that does not fit"},
      {"an array is of another class",
       call(global("numpy.core.multiarray", "_reconstruct"), path + tuple(integer(0)) + text("b")),
       "with another class than numpy.ndarray"},
      {"items of an object are set", call(path, text("x")) + integer(0) + integer(1) + "s", "sets items of an object"},
  }};
  for (const auto& [what, steps, message] : kCases) {
    SCOPED_TRACE(what);
    const support::TemporaryDirectory directory;
    support::put(directory / "hostile.pt", file_of(objects(text("x") + steps)).bytes());
    const VerifyReport report = verify(directory / "hostile.pt");
    EXPECT_TRUE(std::ranges::any_of(report.faults, [&, &part = message](const Finding& finding) {
      return finding.severity == Severity::error && finding.message.find(part) != std::string::npos;
    }));
  }
}

TEST(HostilePytorch, NamesFromTheExtensionRegistryAreReported) {
  const Model model = open(support::source(file_of(objects(text("x") + "\x82\1)R")).bytes(), "hostile.pt"));
  EXPECT_THAT(model.warnings.at(0).message, HasSubstr("copyreg.extension 1"));
}

// verify() reports all faulty tensors, and checks the others.
TEST(HostilePytorch, FaultyTensorsAreReportedTogether) {
  const std::string outside = view(storage(), integer(6), integer(1), integer(1));
  const std::string odd =
      view(storage(text("0"), integer(6), global("torch", "QUInt4x2Storage")), integer(0), integer(1), integer(1));
  const support::TemporaryDirectory directory;
  support::put(directory / "hostile.pt", file_of(objects(text("x") + outside + text("y") + odd)).bytes());
  const Error error = support::error_of([&] { open(directory / "hostile.pt"); });
  EXPECT_EQ(error.kind(), kInvalid);
  EXPECT_THAT(error.message(), HasSubstr("pytorch: x: elements of shape [1]"));
  EXPECT_THAT(error.message(), HasSubstr("(and 1 more fault)"));
  const VerifyReport report = verify(directory / "hostile.pt");
  ASSERT_EQ(report.faults.size(), 2U);
  EXPECT_THAT(report.faults[1].message,
              HasSubstr("pytorch: y: storage: the class torch.QUInt4x2Storage is not known: in Python, save x.deq"));
  EXPECT_TRUE(report.faults[0].offset && report.faults[1].offset);
  EXPECT_EQ(report.tensors, 1U);
  EXPECT_EQ(report.checksums, 2U);
}

TEST(HostilePytorch, ChecksumsAreComparedNextToFaultyTensors) {
  auto file = file_of(objects(text("x") + view(storage(), integer(6), integer(1), integer(1))));
  file.raw("1 bytes", kFloats.substr(1) + '\1');
  const support::TemporaryDirectory directory;
  support::put(directory / "hostile.pt", file.bytes());
  const VerifyReport report = verify(directory / "hostile.pt");
  ASSERT_EQ(report.faults.size(), 2U);
  EXPECT_THAT(report.faults[0].message, HasSubstr("pytorch: x: elements of shape [1]"));
  EXPECT_THAT(report.faults[1].message, HasSubstr("a/data/0: the CRC-32 is"));
  EXPECT_TRUE(report.has_digests);
}

TEST(HostilePytorch, AtMostAHundredFaultsAreListed) {
  std::string many = text("run") + global("os", "system");
  for (int i = 0; i < 200; ++i)
    many += text("x" + std::to_string(i)) + view(storage(), integer(6), integer(1), integer(1));
  const support::TemporaryDirectory directory;
  support::put(directory / "hostile.pt", file_of(objects(many)).bytes());
  EXPECT_THAT(support::error_of([&] { open(directory / "hostile.pt"); }).message(),
              HasSubstr("pytorch: x0: elements of shape [1]"));
  const VerifyReport report = verify(directory / "hostile.pt");
  ASSERT_GT(report.faults.size(), 101U);
  EXPECT_THAT(report.faults[99].message, HasSubstr("pytorch: x99: "));
  EXPECT_THAT(report.faults[100].message,
              HasSubstr("100 faults are listed, the most that Poise lists: the rest of the file is not checked"));
  EXPECT_THAT(report.faults[101].message, HasSubstr("os.system"));
  EXPECT_EQ(report.tensors, 1U);
}

// CPython 3.11 pickles b"" and b"x\xff" so in protocol 2.
TEST(HostilePytorch, BytesOfProtocol2AreRead) {
  const std::string empty = global("__builtin__", "bytes") + ")R";
  const std::string two = call(global("_codecs", "encode"), text("x\u00ff") + text("latin1"));
  const Model model =
      open(support::source(file_of(objects(text("a") + empty + text("b") + two)).bytes(), "hostile.pt"));
  EXPECT_TRUE(model.warnings.empty());
  ASSERT_NE(model.attributes.get_if<Value::Bytes>("a"), nullptr);
  EXPECT_TRUE(model.attributes.get_if<Value::Bytes>("a")->empty());
  EXPECT_EQ(*model.attributes.get_if<Value::Bytes>("b"), (Value::Bytes{std::byte{'x'}, std::byte{0xff}}));
}

// Python's texts may have half of a surrogate pair.
TEST(HostilePytorch, SurrogatesAreBytes) {
  const std::string half = "a\xed\xa0\x80";
  const Model model = open(support::source(file_of(objects(text("x") + text(half))).bytes(), "hostile.pt"));
  const auto* bytes = model.attributes.get_if<Value::Bytes>("x");
  ASSERT_NE(bytes, nullptr);
  EXPECT_EQ(bytes->size(), 4U);
  EXPECT_THAT(model.warnings.at(0).message, HasSubstr("half of a surrogate pair"));
  const Model line = open(support::source(file_of(objects(text("x") + "Va\\ud800\n")).bytes(), "hostile.pt"));
  EXPECT_NE(line.attributes.get_if<Value::Bytes>("x"), nullptr);
  for (const std::string& name : {half, std::string("\xed\xa0"), std::string("\xff")}) {
    EXPECT_EQ(support::error_of([&] {
                open(support::source(file_of(objects(text(name) + kMatrix)).bytes(), "hostile.pt"));
              }).kind(),
              name == half ? kUnsupported : kInvalid);
  }
}

// The files claim much more than they hold.
TEST(HostilePytorch, SmallFilesThatClaimMuchFailSoon) {
  const auto expect_end = [](const char* what, const std::string& pickle) {
    SCOPED_TRACE(what);
    expect_harmless("hostile.pt", file_of(pickle).bytes());
  };
  std::string laughs = "\x80\x02](" + text("ha") + "e";
  for (int i = 0; i < 60; ++i)
    laughs += "q" + std::string(1, static_cast<char>(i)) + "0](" + [&] {
      std::string many;
      for (int k = 0; k < 10; ++k) many += "h" + std::string(1, static_cast<char>(i));
      return many;
    }() + "e";
  expect_end("billion laughs", laughs +
                                   "q\x7f"
                                   "0}(" +
                                   text("w") + kMatrix + text("x") +
                                   "h\x7f"
                                   "u.");
  expect_end("lists", "\x80\x02" + std::string(3 << 20, ']') + ".");
  expect_end("marks", "\x80\x02" + std::string(3 << 20, '(') + ".");
  expect_end("copies", "\x80\x02N" + std::string(3 << 20, '2') + ".");
  std::string far = "\x80\x02N";
  for (std::uint64_t i = 0; i < 100000; ++i) far += "r" + le(0x80000000 + i * 7, 4);
  expect_end("far places of the memo", far + ".");
  expect_end("a list in itself", "\x80\x02]q\1h\1a}(" + text("w") + kMatrix + text("x") + "h\1u.");
  std::string deep = "\x80\x02";
  for (int i = 0; i < 100000; ++i) deep += "(";
  expect_end("deep tuples", deep + "N" + std::string(100000, 't') + ".");
}

TEST(HostilePytorch, CutsAreRefused) { expect_cuts_refused("hostile.pt", whole()); }

}  // namespace
}  // namespace poise::hostile
