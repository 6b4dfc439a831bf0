// Reads and writes one array in NumPy's form, as an .npy file or a member of an .npz archive (docs/formats/numpy.md):
//
//   "\x93NUMPY"    then the version: 1.0, 2.0 or 3.0
//   u16 or u32     length N of the header (u16 in version 1)
//   N bytes        a Python dict: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }, spaces, a line feed
//   rest           the elements
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <poise/blob.hpp>
#include <poise/finding.hpp>
#include <poise/tensor.hpp>
#include <poise/value.hpp>

#include "bytes/byte_reader.hpp"
#include "bytes/byte_writer.hpp"
#include "formats/pickle_files.hpp"
#include "formats/spellings.hpp"

namespace poise::numpy {

inline constexpr std::string_view kMagic = "\x93NUMPY";
inline constexpr std::uint64_t kAlignment = 64;  // the alignment of elements in files that NumPy writes
inline constexpr std::size_t kMaxRank = 32;      // NumPy 1's limit

// Lists NumPy's spellings of element types, without the byte order. NumPy lacks bfloat16, and floating-point types of 8
// bits or fewer.
inline constexpr std::array kSpellings = {
    Spelling<std::string_view>{DType::f64, "f8"},         Spelling<std::string_view>{DType::f32, "f4"},
    Spelling<std::string_view>{DType::f16, "f2"},         Spelling<std::string_view>{DType::complex64, "c8"},
    Spelling<std::string_view>{DType::complex128, "c16"}, Spelling<std::string_view>{DType::i64, "i8"},
    Spelling<std::string_view>{DType::i32, "i4"},         Spelling<std::string_view>{DType::i16, "i2"},
    Spelling<std::string_view>{DType::i8, "i1"},          Spelling<std::string_view>{DType::u64, "u8"},
    Spelling<std::string_view>{DType::u32, "u4"},         Spelling<std::string_view>{DType::u16, "u2"},
    Spelling<std::string_view>{DType::u8, "u1"},          Spelling<std::string_view>{DType::boolean, "b1"},
};

struct ArrayHeader {
  std::string descr;       // "<f4"; for records, the whole list with its brackets
  bool is_record = false;  // true if elements have several fields
  bool fortran_order = false;
  Shape shape;
  std::uint64_t descr_at = 0;  // offset of descr in the file
};

// Reads a header, and leaves the reader at the elements. Throws invalid_file.
ArrayHeader read_header(ByteReader& reader);

// Returns the element type; std::nullopt for types that are not in kSpellings, such as texts, Python objects, times,
// records and raw bytes.
std::optional<DType> find_dtype(const ArrayHeader& header);
// Returns the reason why Poise does not hold the type, in a few words.
std::string explain_unsupported_type(const ArrayHeader& header);

// Makes a tensor of an array with the elements `data`. Throws invalid_file (without path) if their number does not fit
// the shape. Requires: find_dtype(header) has a value.
Tensor make_tensor(std::string name, const ArrayHeader& header, BlobPtr data);

// Returns the header for a tensor, padded to a multiple of kAlignment. Throws unsupported, which names the tensor and
// the `format`, if NumPy cannot hold it.
ByteWriter make_header(std::string_view format, const Tensor& tensor);

// Reads an array of texts as the value of an attribute: one text, or a list of texts. The array's type is U (UTF-32) or
// S (bytes), with at most one dimension. Returns std::nullopt for other arrays, for more than 1 MiB or 2^20 texts, for
// invalid Unicode, and for a number of bytes that does not fit the shape.
std::optional<Value> read_texts(const ArrayHeader& header, const Blob& data);

// Checks Python objects, which NumPy stores as a pickle and loads with numpy.load(allow_pickle=True). Returns errors
// for a pickle that does more than make plain data, for one that Poise cannot follow to its end, and for types that
// NumPy may read as objects. Numbers, texts, times and raw bytes have no errors. `data` has the bytes after the header.
// Throws io.
std::vector<Finding> check_objects(const ArrayHeader& header, const pytorch::PickleFile& data);

}  // namespace poise::numpy
