// Breaks every rule of zip archives once, in .npz files (docs/formats/numpy.md).
#include <gtest/gtest.h>

#include <array>

#include <poise/verify.hpp>

#include "support/directories.hpp"
#include "support/hostile_cases.hpp"
#include "support/zip_file.hpp"

namespace poise::hostile {
namespace {

using support::zip_file;
using support::ZipEntry;

constexpr auto kInvalid = ErrorKind::invalid_file;
constexpr auto kUnsupported = ErrorKind::unsupported;

std::string array_file(std::string dict, const std::string& data) {
  return "\x93NUMPY\1" + std::string(1, '\0') + le(dict.size(), 2) + dict + data;
}
const std::string kFloats =
    array_file("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n", le(0x3f800000, 8));
const std::string kBytes = array_file("{'descr': '|u1', 'fortran_order': False, 'shape': (1, 3), }\n", "abc");

// Returns a block of deflate that is not compressed: its length, the inverted length, the bytes.
std::string deflated(const std::string& bytes) { return "\1" + le(bytes.size(), 2) + le(~bytes.size(), 2) + bytes; }

ByteFile whole() { return zip_file({{"w.npy", kFloats}, {"layer/b.npy", deflated(kBytes), kBytes, true}}); }
ByteFile named(const std::string& name) { return zip_file({{name, kFloats}}); }

// Returns an archive with an end record in its directory. The record states a comment of that length.
ByteFile with_end_in_directory(std::uint64_t comment_bytes) {
  const std::string end = "PK\5\6" + le(0, 16) + le(comment_bytes, 2);
  ByteFile file = whole();
  const auto bytes = static_cast<std::uint32_t>(file.offset("end signature") - file.offset("0 entry signature"));
  return file.raw("1 entry extra", le(0, 2) + le(22, 2) + end)
      .u16("1 entry extra length", 26)
      .u32("end bytes", bytes + 26);
}

// Changes the sizes of the first member, in its header and in the directory.
ByteFile with_size(std::uint32_t bytes) {
  return whole()
      .u32("0 stored bytes", bytes)
      .u32("0 size", bytes)
      .u32("0 entry stored bytes", bytes)
      .u32("0 entry size", bytes);
}

const HostileTable kTable("npz", [] { return whole().bytes(); });

TEST(HostileNpz, TheFileIsSoundBeforeItIsBroken) { expect_sound("hostile.npz", whole()); }

TEST(HostileNpz, Directory) {
  expect_refused("hostile.npz",
                 std::array{
                     Case{"the end is there", [] { return whole().raw("end signature", "PK\5\7"); }, kInvalid,
                          kEndOfFile, "end of the directory"},
                     Case{"the end is the end", [] { return whole().raw("more", "x"); }, kInvalid, "end signature",
                          "end of the directory: its record does not end the file"},
                     Case{"a comment holds no other end",
                          [] { return whole().u16("end comment length", 4).raw("comment", "PK\5\6"); }, kInvalid,
                          "comment", "end of the directory: its record does not end the file"},
                     Case{"one record ends the file", [] { return with_end_in_directory(22); }, kInvalid,
                          "1 entry extra + 4", "two records end the file"},
                     Case{"the directory holds no other end", [] { return with_end_in_directory(0); }, kInvalid,
                          "1 entry extra + 4", "a second record is in the directory"},
                     Case{"the directory is before its end", [] { return whole().u32("end offset", 0xfffffff0); },
                          kInvalid, "end signature", "directory"},
                     Case{"its size is right", [] { return whole().u32("end bytes", 0x7fffffff); }, kInvalid,
                          "end signature", "directory"},
                     Case{"its members are not claimed for nothing",
                          [] { return whole().u16("end here", 9).u16("end members", 9); }, kInvalid, "end signature",
                          "9 members do not fit"},
                     Case{"it has no members more", [] { return whole().u16("end here", 1).u16("end members", 1); },
                          kInvalid, "1 entry signature", "after the last of its members"},
                     Case{"the archive is one file", [] { return whole().u16("end disk", 1); }, kUnsupported,
                          "end signature", "split into several files"},
                     Case{"an entry has a signature", [] { return whole().raw("0 entry signature", "PK\1\3"); },
                          kInvalid, "0 entry signature", "signature"},
                     Case{"a name comes once",
                          [] {
                            return zip_file({{"w.npy", kFloats}, {"w.npy", kFloats}});
                          },
                          kInvalid, "1 entry signature", "the member w.npy appears twice"},
                     Case{"members are not encrypted", [] { return whole().u16("0 entry flags", 1); }, kUnsupported,
                          "0 entry signature", "is encrypted"},
                     Case{"the method is known", [] { return whole().u16("0 entry method", 14); }, kUnsupported,
                          "0 entry signature", "method 14"},
                     Case{"what is stored is as large as it is", [] { return whole().u32("0 entry size", 1 << 30); },
                          kInvalid, "0 entry signature", "bytes are stored as"},
                     Case{"what is deflated is not a bomb", [] { return whole().u32("1 entry size", 1 << 30); },
                          kInvalid, "1 entry signature", "cannot inflate to 1073741824"},
                     Case{"nothing is before the end", [] { return whole().raw("end signature", "xPK\5\6"); }, kInvalid,
                          "end signature + 1", "do not end where its end record begins"},
                     Case{"extra fields end",
                          [] {
                            return whole()
                                .raw("0 entry extra", le(1, 2) + le(9, 2))
                                .u16("0 entry extra length", 4)
                                .u32("end bytes", 112);
                          },
                          kInvalid, kAnywhere, "extra field"},
                     Case{"names do not leave", [] { return named("../w.npy"); }, kInvalid, "0 entry signature",
                          "is not allowed: expected a relative path"},
                     Case{"names do not leave later", [] { return named("a/../../w.npy"); }, kInvalid,
                          "0 entry signature", "is not allowed: expected a relative path"},
                     Case{"names are not absolute", [] { return named("/w.npy"); }, kInvalid, "0 entry signature",
                          "is not allowed: expected a relative path"},
                     Case{"names are not of Windows", [] { return named("..\\w.npy"); }, kInvalid, "0 entry signature",
                          "is not allowed: expected a relative path"},
                     Case{"names have no NUL", [] { return named(std::string("w\0.npy", 6)); }, kInvalid,
                          "0 entry signature", "is not allowed: expected a relative path"},
                 });
}

TEST(HostileNpz, Members) {
  expect_refused(
      "hostile.npz",
      std::array{
          Case{"a header is there", [] { return whole().raw("1 signature", "PK\3\5"); }, kInvalid, "1 signature",
               "zip: layer/b.npy: signature"},
          Case{"a header is before the directory", [] { return whole().u32("0 entry offset", 400); }, kInvalid,
               kAnywhere, "is not before the directory"},
          Case{"the name is the directory's", [] { return whole().raw("0 name", "v.npy"); }, kInvalid, "0 name",
               "it differs from the name in the directory"},
          Case{"the method is the directory's", [] { return whole().u16("0 method", 8); }, kInvalid, "0 method",
               "found 8, but the directory states 0"},
          Case{"the CRC-32 is the directory's", [] { return whole().u32("0 crc32", 1); }, kInvalid, "0 crc32",
               "the directory states"},
          Case{"the sizes are the directory's", [] { return whole().u32("1 size", 1); }, kInvalid, "1 size",
               "layer/b.npy: bytes: found 1, but the directory states"},
          Case{"the stored sizes are the directory's", [] { return whole().u32("1 stored bytes", 1); }, kInvalid,
               "1 stored bytes", "layer/b.npy: stored bytes: found 1, but the directory states"},
          Case{"the sizes of 64 bits are the directory's",
               [] {
                 return whole()
                     .raw("1 extra", le(1, 2) + le(16, 2) + le(7, 8) + le(7, 8))
                     .u16("1 extra length", 20)
                     .u32("end offset", static_cast<std::uint32_t>(whole().offset("0 entry signature") + 20));
               },
               kInvalid, "1 extra", "zip64 extra field: found 7, but the directory states"},
          Case{"headers are of members that can be read", [] { return whole().u16("0 flags", 1); }, kUnsupported,
               "0 signature", "is encrypted"},
          Case{"a promised descriptor is there", [] { return whole().u16("0 flags", 8); }, kInvalid, "1 signature",
               "w.npy: descriptor: 0 bytes after the member's"},
          Case{"the bytes are before the directory", [] { return with_size(4000); }, kInvalid, "0 bytes",
               "4000 bytes wanted"},
          Case{"members share no bytes", [] { return with_size(static_cast<std::uint32_t>(kFloats.size() + 60)); },
               kInvalid, "1 signature", "shares bytes with the member w.npy"},
          Case{"every byte belongs to a member",
               [] { return with_size(static_cast<std::uint32_t>(kFloats.size() - 1)); }, kInvalid, kAnywhere,
               "layer/b.npy: 1 bytes before it belong to no member"},
          Case{"a stream of deflate is sound",
               [] { return whole().raw("1 bytes", std::string(kBytes.size() + 5, '\7')); }, kInvalid, "1 bytes",
               "deflate"},
          Case{"a member is an array",
               [] {
                 return zip_file({{"w.npy", "no array, whatever its name says"}});
               },
               kInvalid, "0 bytes", "npz: w.npy: magic"},
          Case{"an array is whole",
               [] {
                 return zip_file({{"w.npy", kFloats.substr(0, kFloats.size() - 1)}});
               },
               kInvalid, "0 bytes", "needs 8 bytes, 7 are there"},
      });
}

TEST(HostileNpz, Bytes) {
  expect_faults("hostile.npz",
                std::array{
                    VerifyCase{"the CRC-32 of stored bytes is right",
                               [] {
                                 std::string bytes = kFloats;
                                 bytes.back() = '\1';
                                 return whole().raw("0 bytes", bytes);
                               },
                               "0 bytes", "w.npy: the CRC-32 is"},
                    VerifyCase{"the CRC-32 of inflated bytes is right",
                               [] {
                                 std::string bytes = deflated(kBytes);
                                 bytes.back() = 'd';
                                 return whole().raw("1 bytes", bytes);
                               },
                               "1 bytes", "the CRC-32 is"},
                    VerifyCase{"other members are reported",
                               [] {
                                 return zip_file({{"w.npy", kFloats}, {"readme.txt", "hello"}});
                               },
                               "1 signature", "readme.txt is left out: it is not an array", true},
                    VerifyCase{"arrays of objects are reported",
                               [] {
                                 return zip_file({{"w.npy", kFloats},
                                                  {"o.npy", array_file("{'descr': '|O', 'fortran_order': "
                                                                       "False, 'shape': (), }\n",
                                                                       "\x80\2N.")}});
                               },
                               "1 signature", "o.npy is left out: its elements are Python objects", true},
                });
}

std::string objects(const std::string& descr, const std::string& pickle) {
  return array_file("{'descr': " + descr + ", 'fortran_order': False, 'shape': (2,), }\n", pickle);
}
const std::string kAttack = "cos\nsystem\n(X" + le(4, 4) + "truetR.";
const std::string kHarmless = "\x80\2]N\x85.";

// numpy.load(allow_pickle=True) runs the pickles of arrays of objects.
TEST(HostileNpz, ObjectsThatRunCodeAreErrors) {
  expect_faults(
      "hostile.npz",
      std::array{
          VerifyCase{"stored objects run no code",
                     [] {
                       return zip_file({{"w.npy", kFloats}, {"o.npy", objects("'|O'", kAttack)}});
                     },
                     kAnywhere, "o.npy: it names os.system, which runs commands"},
          VerifyCase{"inflated objects run no code",
                     [] {
                       const std::string array = objects("'|O'", kAttack);
                       return zip_file({{"w.npy", kFloats}, {"o.npy", deflated(array), array, true}});
                     },
                     "1 signature", "o.npy: it names os.system, which runs commands"},
          VerifyCase{"objects in records run no code",
                     [] {
                       return zip_file(
                           {{"w.npy", kFloats},
                            {"o.npy", objects("[('a', '<f4', (2, 3)), (('b', 'c'), [('d', 'O')])]", kAttack)}});
                     },
                     kAnywhere, "o.npy: it names os.system, which runs commands"},
          VerifyCase{"types that NumPy takes for objects are known",
                     [] {
                       return zip_file({{"w.npy", kFloats}, {"o.npy", objects("'object'", kHarmless)}});
                     },
                     kAnywhere, "the element type 'object' is not known"},
          VerifyCase{"types of several words are known",
                     [] {
                       return zip_file({{"w.npy", kFloats}, {"o.npy", objects("'f4,O'", kHarmless)}});
                     },
                     kAnywhere, "the element type 'f4,O' is not known"},
          VerifyCase{"objects are followed to their end",
                     [] {
                       return zip_file({{"w.npy", kFloats}, {"o.npy", objects("'|O'", "I017\n0" + kAttack)}});
                     },
                     kAnywhere,
                     "o.npy: Poise cannot follow a pickle to its end, but Python may: INT: a number with zeros"},
          VerifyCase{"pickles that break off are reported",
                     [] {
                       return zip_file({{"w.npy", kFloats}, {"o.npy", objects("'|O'", "\x80\2]q")}});
                     },
                     kAnywhere, "o.npy: a pickle breaks off"},
          VerifyCase{"other members run no code",
                     [] {
                       return zip_file({{"w.npy", kFloats}, {"o.pkl", kAttack}});
                     },
                     kAnywhere, "o.pkl: it names os.system, which runs commands"},
          VerifyCase{"an array is read",
                     [] {
                       return zip_file({{"o.npy", objects("'|O'", kHarmless)}});
                     },
                     "0 signature", "no array is read: 1 array has other elements than numbers and texts"},
      });
}

// Records, times and raw bytes are not pickles.
TEST(HostileNpz, OtherElementsAreLeftOutWithAWarning) {
  for (const std::string descr : {"[('O', '<f4'), ('x', '|V3'), (('y', 'z'), ('<U2', (4,)))]", "'<M8[ns]'", "'|V2'",
                                  "'<f16'", "[('a', [('b', '>i2')], (2, 2))]"}) {
    SCOPED_TRACE(descr);
    const support::TemporaryDirectory directory;
    support::put(directory / "a.npz", zip_file({{"w.npy", kFloats}, {"o.npy", objects(descr, kAttack)}}).bytes());
    const VerifyReport report = verify(directory / "a.npz");
    EXPECT_EQ(report.errors(), 0U);
    EXPECT_EQ(report.warnings(), 1U);
  }
}

TEST(HostileNpz, CutsAreRefused) { expect_cuts_refused("hostile.npz", whole()); }

}  // namespace
}  // namespace poise::hostile
