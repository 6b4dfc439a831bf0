// Reads the header of a GGUF file from front to back: metadata, then descriptions of tensors.
//
//   "GGUF" | u32 version | counts | metadata: key, type, value ... | tensors: name, dimensions, type, offset ... |
//     padding | data
//
// Versions 2 and 3 have counts and lengths of 64 bits, version 1 of 32. All numbers are little-endian, or all
// big-endian: the zero bytes of the version, a small number, show which. Source: the GGUF specification of ggml, and
// ggml's own reader for the rest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <poise/tensor.hpp>

#include "bytes/byte_reader.hpp"
#include "bytes/function_ref.hpp"
#include "syntax/value_budget.hpp"

namespace poise::gguf {

constexpr std::string_view kMagic = "GGUF";
constexpr std::uint32_t kLastVersion = 3;
constexpr std::uint64_t kUsualAlignment = 32;
constexpr std::string_view kArchitectureKey = "general.architecture";
constexpr std::string_view kAlignmentKey = "general.alignment";
constexpr std::string_view kSplitNumberKey = "split.no";
constexpr std::string_view kSplitCountKey = "split.count";
constexpr std::string_view kSplitTensorsKey = "split.tensors.count";

// Returns true for the keys of a split model: a file's number, and the counts of files and tensors.
bool is_split_key(std::string_view key);
// Returns true for split keys and kAlignmentKey. The writer sets these keys, because they place the tensors.
bool is_placement_key(std::string_view key);

// Names the types of metadata values, with their numbers in the file.
enum class ValueType : std::uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, text, array, u64, i64, f64 };

bool is_integer(ValueType type);

// Returns "u8", "text", "array", ...
std::string_view to_string(ValueType type);

class HeaderReader;

// Gives access to one value during HeaderReader::read_metadata(). The caller calls at most one function that reads the
// value; the HeaderReader skips unread values.
class MetadataValue {
 public:
  // Returns the offset of the value's type in the file.
  std::uint64_t position() const { return position_; }
  ValueType type() const { return type_; }
  // Returns the type of an array's items.
  ValueType item_type() const { return item_type_; }
  // Returns the number of an array's items.
  std::uint64_t count() const { return count_; }

  // Each function reads the value, and returns std::nullopt if it is of another kind. A text is valid until the next
  // call on the reader.
  std::optional<std::string_view> read_text();
  std::optional<std::uint64_t> read_unsigned();  // accepts any integer type if the value is not negative
  // Reads a number or a boolean; a float32 becomes the double of the same shortest spelling.
  std::optional<double> read_number();
  // Each function calls its argument with every item of an array, and returns false for a value of another kind.
  bool visit_texts(FunctionRef<void(std::string_view text)> add_text);
  bool visit_numbers(FunctionRef<void(double number)> add_number);
  // Reads the whole value. Throws unsupported if the header's values together exceed their ValueBudget.
  Value read_tree();

 private:
  friend class HeaderReader;
  MetadataValue(HeaderReader& reader, std::uint64_t position) : reader_(reader), position_(position) {}

  HeaderReader& reader_;
  std::uint64_t position_;
  ValueType type_ = ValueType::u8;
  ValueType item_type_ = ValueType::u8;
  std::uint64_t count_ = 0;
  bool is_read_ = false;
};

struct TensorInfo {
  std::string name;
  Shape shape;  // the outermost dimension first, which is the last one in the file
  std::uint32_t type = 0;
  std::uint64_t offset = 0;    // in bytes from the beginning of the data
  std::uint64_t position = 0;  // where the description begins in the file
};

class HeaderReader {
 public:
  // Throws invalid_file for another magic number and for counts that do not fit the file; unsupported for a version
  // above kLastVersion or 0, and for counts above kMaxTensors and kMaxKeys. Requires: the source outlives this.
  explicit HeaderReader(const Source& source);

  std::uint32_t version() const { return version_; }
  bool is_big_endian() const { return big_endian_; }

  // The first function reads all metadata, the second all descriptions of tensors. Call each once, in this order. They
  // throw invalid_file if the file breaks a rule: keys are unique, keys and names are UTF-8 of bounded length, values
  // have known types, counts fit the remaining bytes, arrays nest at most kMaxNesting deep, tensors have at most
  // kMaxDimensions. Tensors' names may repeat.
  void read_metadata(FunctionRef<void(std::string_view key, MetadataValue& value)> use_entry);
  void read_tensors(FunctionRef<void(TensorInfo tensor)> add_tensor);

  // Returns the offset up to which the header has been read: its end after read_tensors().
  std::uint64_t end() const { return in_.position(); }

  [[noreturn]] void fail(std::string_view what, std::string_view problem, std::uint64_t offset) const {
    in_.fail(what, problem, offset);
  }

 private:
  friend class MetadataValue;

  // Reads a count or a length: 32 bits in version 1, else 64.
  std::uint64_t read_length(std::string_view field);
  // Reads a count of items of at least `least` bytes. Throws invalid_file if the remaining bytes cannot hold the items.
  std::uint64_t read_count(std::string_view field, std::uint64_t least);
  std::string_view read_text(std::string_view field);
  ValueType read_value_type(std::string_view field);
  std::uint64_t count_least_bytes(ValueType type) const;
  void skip_value(ValueType type, std::size_t depth);
  double read_number(ValueType type);
  Value read_tree(ValueType type, std::size_t depth);
  Value read_items(ValueType type, std::uint64_t count, std::size_t depth);
  void skip_items(ValueType type, std::uint64_t count, std::size_t depth);
  void skip_unread(MetadataValue& value);

  ByteReader in_;
  std::uint32_t version_ = 0;
  bool big_endian_ = false;
  std::uint64_t tensor_count_ = 0;
  std::uint64_t metadata_count_ = 0;
  ValueBudget budget_;
};

// GGUF files have these limits. docs/limits.md lists them for users.

inline constexpr std::size_t kMaxDimensions = 4;    // ggml's limit
inline constexpr std::size_t kMaxWrittenName = 63;  // ggml's limit for tensors' names
inline constexpr std::size_t kMaxNameBytes = 1024;  // Poise's limit for tensors' names in files that it reads
inline constexpr std::size_t kMaxKeyBytes = 65535;  // the specification's limit
inline constexpr std::size_t kMaxKeys = 1'000'000;  // keys in the metadata of a file
inline constexpr std::size_t kMaxNesting = 8;       // the depth of arrays
inline constexpr std::uint64_t kMaxAlignment = std::uint64_t{1} << 30;
inline constexpr std::uint64_t kLeastAlignment = 32;       // for written files: llama.cpp exits at a smaller alignment
inline constexpr std::uint64_t kMaxExperts = 4096;         // experts in a stacked tensor
inline constexpr std::uint64_t kLeastExpertBytes = 64;     // so that a small file cannot make millions of tensors
inline constexpr std::uint64_t kMaxPatternLayers = 65536;  // layers in a model with a pattern of sliding windows
inline constexpr std::uint64_t kMaxRopeFactors = 4096;     // factors in a tensor
inline constexpr std::size_t kMaxSplits = 65535;           // ggml counts them in 16 bits
inline constexpr std::uint64_t kMostValueText = 64 << 20;  // the most bytes of text for which a ValueBudget is made

}  // namespace poise::gguf
