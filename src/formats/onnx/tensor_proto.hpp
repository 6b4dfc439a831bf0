// A TensorProto of onnx.proto: where its elements are.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <poise/error.hpp>
#include <poise/format.hpp>
#include <poise/tensor.hpp>

#include "formats/input.hpp"
#include "formats/onnx/element_types.hpp"
#include "formats/onnx/integer_list.hpp"
#include "syntax/protobuf.hpp"

namespace poise::onnx {

using protobuf::Message;

// Throws without path or place, which the reader adds.
[[noreturn]] void fail(const std::string& problem, ErrorKind kind = ErrorKind::invalid_file);

struct TensorProto {
  std::string name;
  std::uint64_t at = 0;  // in the file
  Shape dims;
  std::uint64_t type = 0;  // ElementType::number
  std::optional<Message::Place> raw;
  ListField field = ListField::none;  // that has elements
  Places list;                        // of that field
  Places texts;
  bool is_external = false;
  std::vector<std::pair<std::string, std::string>> external;
};

// Throws invalid_file for fields that contradict each other.
TensorProto read_tensor_proto(Message message);
// Appends a piece of a field. Throws invalid_file for too many.
void take_piece(const Message& message, std::string_view field, Places& places, Message::Place place);
// A field of dimensions. Throws invalid_file for negative ones, and more than a model has.
void take_dims(Message& message, Shape& dims);

// The files in the model's directory that hold elements, each opened once.
class ExternalFiles {
 public:
  // In the model's directory. A model in memory has none.
  ExternalFiles(const Input& model, const ReadOptions& options)
      : model_(model.path), has_folder_(model.has_folder), options_(options) {}

  // Throws invalid_file where `name` is not a path inside the directory, or leads out of it, not_found, io.
  const SourcePtr& open(const std::string& name);
  const std::map<std::string, SourcePtr>& opened() const { return opened_; }

 private:
  void require_inside(const std::filesystem::path& path, const std::string& name) const;

  std::filesystem::path model_;
  bool has_folder_;
  const ReadOptions& options_;
  std::map<std::string, SourcePtr> opened_;
};

// A tensor whose type Poise does not have is carried only, under the layout "onnx.INT4". Throws (without path)
// invalid_file where elements are missing, superfluous or not in their file; unsupported for types that are not known.
// Requires: the type is not kText.
Tensor make_tensor(const TensorProto& proto, const SourcePtr& source, ExternalFiles& files);

// Of a tensor of texts: a text, or a list of them. Nothing where they are too many, or no UTF-8.
std::optional<Value> texts_of(const TensorProto& proto, const Source& source);

}  // namespace poise::onnx
