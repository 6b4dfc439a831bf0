// Breaks every rule of NumPy's .npy files once (docs/formats/numpy.md).
#include <gtest/gtest.h>

#include <array>

#include <poise/verify.hpp>

#include "support/directories.hpp"
#include "support/hostile_cases.hpp"

namespace poise::hostile {
namespace {

constexpr auto kInvalid = ErrorKind::invalid_file;
constexpr auto kUnsupported = ErrorKind::unsupported;

// Returns a file as numpy.save() writes it, except for the padding: floats 0 to 5 in a matrix of two rows.
ByteFile with(std::string dict, std::size_t data = 24) {
  ByteFile file;
  file.raw("magic", "\x93NUMPY").u8("major", 1).u8("minor", 0).raw("length", le(dict.size(), 2));
  std::string bytes;
  for (std::size_t i = 0; i < data / 4; ++i) bytes += le(i * 0x01010101, 4);
  bytes.resize(data, '\1');
  return file.raw("dict", std::move(dict)).raw("data", bytes);
}
ByteFile whole() { return with("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }   \n"); }

const HostileTable kTable("npy", [] { return whole().bytes(); });

TEST(HostileNpy, TheFileIsSoundBeforeItIsBroken) { expect_sound("hostile.npy", whole()); }

TEST(HostileNpy, Header) {
  expect_refused(
      "hostile.npy",
      std::array{
          Case{"the magic is there", [] { return whole().raw("magic", "\x93NUMPx"); }, kInvalid, "magic",
               "npy: magic: expected"},
          Case{"the version is known", [] { return whole().u8("major", 4); }, kInvalid, "major", "found 4.0"},
          Case{"the version is not 0", [] { return whole().u8("major", 0); }, kInvalid, "major", "found 0.0"},
          Case{"the minor version is 0", [] { return whole().u8("minor", 1); }, kInvalid, "major", "found 1.1"},
          Case{"the header ends in the file", [] { return whole().u16("length", 0xffff); }, kInvalid, "dict",
               "header: 65535 bytes wanted"},
          Case{"the header is of a bounded size",
               [] { return whole().u8("major", 2).raw("length", le(0xffffffff, 4)); }, kInvalid, "length",
               "at most 1048576 are allowed"},
          Case{"the header is a dict", [] { return with("['descr']"); }, kInvalid, "dict", "header: expected {"},
          Case{"the dict ends", [] { return with("{'descr': '<f4'"); }, kInvalid, kAnywhere, "expected , or }"},
          Case{"the text ends", [] { return with("{'descr"); }, kInvalid, kAnywhere, "the text has no end"},
          Case{"nothing follows the dict",
               [] { return with("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)} os"); }, kInvalid, kAnywhere,
               "expected the end of the header after the dict"},
          Case{"a key is known", [] { return with("{'descr': '<f4', 'x': 1}"); }, kInvalid, "dict + 17",
               "unknown key 'x'"},
          Case{"a key comes once", [] { return with("{'descr': '<f4', 'descr': '<f4'}"); }, kInvalid, "dict + 17",
               "appears twice"},
          Case{"all keys are there", [] { return with("{'descr': '<f4', 'shape': (2, 3)}"); }, kInvalid, "dict",
               "expected the keys"},
          Case{"no expression is computed",
               [] { return with("{'descr': __import__('os').system('x'), 'fortran_order': False, 'shape': ()}"); },
               kInvalid, "dict + 10", "descr: expected text in quotes"},
          Case{"fortran_order is a boolean", [] { return with("{'fortran_order': 1}"); }, kInvalid, "dict + 18",
               "expected True or False"},
      });
}

TEST(HostileNpy, Shape) {
  static const auto shaped = [](const std::string& shape, std::size_t data = 24) {
    return with("{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + "}", data);
  };
  expect_refused(
      "hostile.npy",
      std::array{
          Case{"it is a tuple", [] { return shaped("[2, 3]"); }, kInvalid, "dict + 50", "expected ("},
          Case{"a tuple of one has a comma", [] { return shaped("(6)"); }, kInvalid, "dict + 52", "expected , or )"},
          Case{"it is not negative", [] { return shaped("(-2, 3)"); }, kInvalid, "dict + 51", "non-negative"},
          Case{"it is not a fraction", [] { return shaped("(2.0, 3)"); }, kInvalid, "dict + 52", "expected , or )"},
          Case{"it fits 64 bits", [] { return shaped("(18446744073709551616,)"); }, kInvalid, "dict + 51", "64 bits"},
          Case{"the product fits 64 bits", [] { return shaped("(4294967296, 4294967296)"); }, kInvalid, "dict",
               "more than 2^64 bytes"},
          Case{"the bytes fit 64 bits", [] { return shaped("(4611686018427387904,)"); }, kInvalid, "dict",
               "more than 2^64 bytes"},
          Case{"the rank is bounded",
               [] {
                 std::string shape = "(";
                 for (int i = 0; i < 65; ++i) shape += "1, ";
                 return shaped(shape + ")", 4);
               },
               kInvalid, kAnywhere, "more than 64 dimensions"},
          Case{"no element is absent", [] { return shaped("(2, 4)"); }, kInvalid, "data",
               "needs 32 bytes, 24 are there"},
          Case{"no element is too many", [] { return shaped("(2, 2)"); }, kInvalid, "data",
               "needs 16 bytes, 24 are there"},
          Case{"elements are not claimed for nothing", [] { return shaped("(1099511627776,)"); }, kInvalid, "data",
               "needs 4398046511104 bytes"},
      });
}

TEST(HostileNpy, ElementTypes) {
  static const auto typed = [](const std::string& descr) {
    return with("{'descr': " + descr + ", 'fortran_order': False, 'shape': (2, 3)}");
  };
  expect_refused(
      "hostile.npy",
      std::array{
          Case{"they are not objects", [] { return typed("'|O'"); }, kUnsupported, "dict + 10", "Python objects"},
          Case{"they are not texts", [] { return typed("'<U1'"); }, kUnsupported, "dict + 10", "texts"},
          Case{"they are not records", [] { return typed("[('a', '<f2'), ('b', '<f2', (1,))]"); }, kUnsupported,
               "dict + 10", "records"},
          Case{"records end", [] { return with("{'descr': [('a', '<f2'"); }, kInvalid, "dict + 10",
               "the list has no end"},
          Case{"they are not raw bytes", [] { return typed("'|V4'"); }, kUnsupported, "dict + 10", "raw bytes ('|V4')"},
          Case{"they are not times", [] { return typed("'<M8[s]'"); }, kUnsupported, "dict + 10", "times"},
          Case{"they are not long doubles", [] { return typed("'<f16'"); }, kUnsupported, "dict + 10", "'<f16'"},
          Case{"they are named", [] { return typed("''"); }, kUnsupported, "dict + 10", "''"},
      });
}

TEST(HostileNpy, VerifyNamesTheCodeOfObjects) {
  const support::TemporaryDirectory directory;
  const std::string pickle = "cos\nsystem\n(X" + le(4, 4) + "truetR.";
  const std::string start = with("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", 0).bytes();
  support::put(directory / "a.npy", start + pickle);
  const VerifyReport report = verify(directory / "a.npy");
  ASSERT_EQ(report.errors(), 2U);
  EXPECT_NE(report.faults[0].message.find("Python objects"), std::string::npos);
  EXPECT_NE(report.faults[1].message.find("it names os.system, which runs commands"), std::string::npos);
  EXPECT_EQ(report.faults[1].offset, start.size());
}

TEST(HostileNpy, CutsAreRefused) { expect_cuts_refused("hostile.npy", whole()); }

}  // namespace
}  // namespace poise::hostile
