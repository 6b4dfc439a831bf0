// Reads ONNX models: the initializers of a ModelProto, and the tensors of its Constant nodes (onnx.proto).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <poise/blob.hpp>
#include <poise/dtype.hpp>
#include <poise/error.hpp>
#include <poise/format.hpp>
#include <poise/tensor.hpp>
#include <poise/value.hpp>

#include "formats/format.hpp"
#include "formats/input.hpp"
#include "syntax/protobuf.hpp"
#include "syntax/value_budget.hpp"

namespace poise::onnx {

using Places = std::vector<protobuf::Message::Place>;

// Counts the varints in these ranges of a source; reads all bytes of the ranges. Throws invalid_file for a range that
// ends inside a varint.
std::uint64_t count_integers(const Source& source, const Places& places);

// Describes the integers in the blob of a list.
struct Integers {
  unsigned bytes = 0;  // bytes of an integer: 1, 2, 4 or 8
  bool is_signed = false;
};

// Makes a blob that decodes the varints in these ranges to little-endian integers when it is read. Reading throws
// invalid_file, which names the tensor, if an integer does not fit. Requires: `count` is the result of
// count_integers().
BlobPtr make_integer_list_blob(SourcePtr source, Places places, std::uint64_t count, Integers integers,
                               std::string tensor);

// Names fields of a TensorProto. The values are the fields' numbers.
enum class ListField : std::uint8_t {
  none = 0,
  float_data = 4,
  int32_data = 5,
  int64_data = 7,
  double_data = 10,
  uint64_data = 11,
};

struct OnnxType {
  std::uint64_t number;
  std::string_view name;
  DType dtype;  // unknown: Poise has no such type
  unsigned bits;
  ListField field;
  bool is_signed;  // true if integers in a list have signs
};

// Lists TensorProto.DataType: the element types of ONNX, and for each the field with elements that are not raw bytes.
inline constexpr std::array kElementTypes = std::to_array<OnnxType>({
    {1, "FLOAT", DType::f32, 32, ListField::float_data, false},
    {2, "UINT8", DType::u8, 8, ListField::int32_data, false},
    {3, "INT8", DType::i8, 8, ListField::int32_data, true},
    {4, "UINT16", DType::u16, 16, ListField::int32_data, false},
    {5, "INT16", DType::i16, 16, ListField::int32_data, true},
    {6, "INT32", DType::i32, 32, ListField::int32_data, true},
    {7, "INT64", DType::i64, 64, ListField::int64_data, true},
    {9, "BOOL", DType::boolean, 8, ListField::int32_data, false},
    {10, "FLOAT16", DType::f16, 16, ListField::int32_data, false},
    {11, "DOUBLE", DType::f64, 64, ListField::double_data, false},
    {12, "UINT32", DType::u32, 32, ListField::uint64_data, false},
    {13, "UINT64", DType::u64, 64, ListField::uint64_data, false},
    {14, "COMPLEX64", DType::complex64, 64, ListField::float_data, false},
    {15, "COMPLEX128", DType::complex128, 128, ListField::double_data, false},
    {16, "BFLOAT16", DType::bf16, 16, ListField::int32_data, false},
    {17, "FLOAT8E4M3FN", DType::f8_e4m3, 8, ListField::int32_data, false},
    {18, "FLOAT8E4M3FNUZ", DType::f8_e4m3fnuz, 8, ListField::int32_data, false},
    {19, "FLOAT8E5M2", DType::f8_e5m2, 8, ListField::int32_data, false},
    {20, "FLOAT8E5M2FNUZ", DType::f8_e5m2fnuz, 8, ListField::int32_data, false},
    {21, "UINT4", DType::unknown, 4, ListField::int32_data, false},
    {22, "INT4", DType::unknown, 4, ListField::int32_data, false},
    {23, "FLOAT4E2M1", DType::f4_e2m1, 4, ListField::int32_data, false},
    {24, "FLOAT8E8M0", DType::f8_e8m0, 8, ListField::int32_data, false},
    {25, "UINT2", DType::unknown, 2, ListField::int32_data, false},
    {26, "INT2", DType::unknown, 2, ListField::int32_data, false},
});
inline constexpr std::uint64_t kText = 8;  // STRING

// Returns the row of the type with that number; null if it is unknown.
inline const OnnxType* find_element_type(std::uint64_t number) {
  const auto* const row = std::ranges::find(kElementTypes, number, &OnnxType::number);
  return row == kElementTypes.end() ? nullptr : row;
}

using protobuf::Message;

// Throws an error without path and offset, which the reader adds.
[[noreturn]] void fail(const std::string& problem, ErrorKind kind = ErrorKind::invalid_file);

struct TensorProto {
  std::string name;
  std::uint64_t at = 0;  // offset in the file
  Shape dims;
  std::uint64_t type = 0;  // OnnxType::number
  std::optional<Message::Place> raw;
  ListField field = ListField::none;  // the field with the elements
  Places list;                        // the pieces of that field
  Places texts;
  bool is_external = false;
  std::vector<std::pair<std::string, std::string>> external;
};

// Reads a TensorProto, without its elements. Throws invalid_file for fields that contradict each other.
TensorProto read_tensor_proto(Message message);
// Appends a piece of a field. Throws invalid_file for more than 65536 pieces.
void add_piece(const Message& message, std::string_view field, Places& places, Message::Place place);
// Reads a field of dimensions. Throws invalid_file for a negative one, and for more than kMaxRank.
void read_dims(Message& message, Shape& dims);

// Finds the files in the model's directory that hold elements, and opens each once.
class ExternalFiles {
 public:
  // Looks in the model's directory. A model in memory has none.
  ExternalFiles(const Input& model, const ReadOptions& options)
      : model_(model.path), has_folder_(model.has_folder), options_(options) {}

  // Opens a file. Throws invalid_file if `name` or a link leads out of the directory, or the file has hard links;
  // unsupported if the model is in memory; not_found; io.
  const SourcePtr& open(const std::string& name);
  const std::map<std::string, SourcePtr>& opened() const { return opened_; }

 private:
  void require_inside(const std::filesystem::path& path, const std::string& name) const;

  std::filesystem::path model_;
  bool has_folder_;
  const ReadOptions& options_;
  std::map<std::string, SourcePtr> opened_;
};

// Makes a tensor. If Poise lacks the type, the tensor gets a layout that Poise only copies ("onnx.INT4"). Throws
// (without path) invalid_file if there are too few or too many elements, or if their place is not inside their file;
// unsupported for types that are not in kElementTypes; what ExternalFiles::open() throws. Requires: the type is not
// kText.
Tensor make_tensor(const TensorProto& proto, const SourcePtr& source, ExternalFiles& files);

// Reads a tensor of texts: one text, or a list of texts. Returns std::nullopt for more than 1 MiB, or if they are not
// UTF-8. Throws invalid_file for another number of texts than the shape has, and for elements in other fields.
std::optional<Value> read_texts(const TensorProto& proto, const Source& source);

struct SparseProto {
  TensorProto values;   // has one dimension, and the tensor's name
  TensorProto indices;  // [values, dimensions], or [values]: numbers of cells in row-major order
  Shape dims;
};

// Reads a SparseTensorProto, without its elements. Throws invalid_file.
SparseProto read_sparse_proto(Message message);

// Makes a sparse tensor of values and their coordinates (sparse_coo). Throws what make_tensor() throws, and
// invalid_file if the parts do not fit each other.
Tensor make_sparse(const SparseProto& proto, const SourcePtr& source, ExternalFiles& files);

struct Node {
  bool is_constant = false;  // true for a Constant with one tensor, which is its output
  std::vector<TensorProto> tensors;
  std::vector<SparseProto> sparse;
  // `lists` has the offsets of attributes that hold lists of tensors, `graphs` those of attributes that hold graphs.
  std::vector<std::uint64_t> lists;
  std::vector<std::uint64_t> graphs;
};

// Reads the tensors of a node. Numbers and texts of a Constant (value_float, value_ints, value_string, ...) are
// tensors, too. Tensors of a Constant have the name of its output. Throws invalid_file.
Node read_node(const Message& message, const Source& source);

// Converts an ONNX model's descriptions of its inputs, outputs and itself to values.
class ValueReader {
 public:
  using Message = protobuf::Message;

  // Reads a ValueInfoProto: {"name": "x", "type": "FLOAT", "shape": ["batch", 3, null]}. For values that are not
  // tensors, "type" is their kind.
  Value read_value_info(Message message);
  // Reads a StringStringEntryProto.
  Attributes::Entry read_entry(Message message);
  // Reads an OperatorSetIdProto: a domain, by default "ai.onnx", and a version.
  Attributes::Entry read_operator_set(Message message);
  std::string read_text(Message& message, std::string_view field);

 private:
  void read_type(Message message, Attributes& into);
  void read_tensor_type(Message message, Attributes& into);
  Value read_dimension(Message message);
  void charge(const Message& message, std::size_t text_bytes = 0);

  ValueBudget budget_{0};
};

// Returns true if the source is a ModelProto with a graph. Looks only at the fields of the outermost message.
bool is_model(const SourcePtr& source);

Model read(const Input& input, const ReadOptions& options);

}  // namespace poise::onnx
