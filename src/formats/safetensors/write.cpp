// Checks that a file can hold the tensors, and writes it.
#include <algorithm>
#include <functional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <poise/error.hpp>

#include "bytes/byte_writer.hpp"
#include "bytes/checked.hpp"
#include "bytes/utf8.hpp"
#include "formats/format.hpp"
#include "formats/losses.hpp"
#include "formats/metadata.hpp"
#include "formats/safetensors/safetensors.hpp"
#include "pack/pump.hpp"
#include "pack/read_ahead.hpp"
#include "syntax/json.hpp"

namespace poise {
namespace {

using namespace safetensors;

// Returns the element type. Throws unsupported for tensors that a file cannot hold.
const ElementType& require_element_type(const Tensor& tensor) {
  if (tensor.layout != Layout::dense) refuse_tensor("safetensors", tensor);
  const Part& data = tensor.require("data");
  const ElementType* type =
      data.dtype == DType::unknown ? find_type(name_unknown_type(data.type_name())) : find_type(data.dtype);
  if (type == nullptr || type->is_known() != (data.dtype != DType::unknown)) refuse_tensor("safetensors", tensor);
  if (!fills_whole_bytes(type->bits(), tensor.elements())) {
    throw Error(ErrorKind::unsupported,
                fmt::format("safetensors cannot hold {}: shape {} of {} does not fill whole bytes", tensor.name,
                            to_string(tensor.shape), type->name))
        .with({.kind = Remedy::Kind::dtype, .value = "f32"});
  }
  // check_parts() has checked the sizes of other types.
  if (!type->is_known() && count_bytes(type->bits(), tensor.elements()) != data.blob->size())
    refuse_tensor("safetensors", tensor, fmt::format("it has {} bytes", data.blob->size()));
  return *type;
}

// Returns the tensor's name. Throws unsupported if a safetensors file cannot hold it.
std::string_view require_valid_name(const Tensor& tensor) {
  if (tensor.name == kMetadata)
    throw Error(ErrorKind::unsupported, fmt::format("safetensors reserves the name {}, which a tensor has", kMetadata));
  if (!is_utf8(tensor.name))
    throw Error(ErrorKind::unsupported, fmt::format("safetensors needs names in UTF-8; \"{}\" is not", tensor.name));
  return tensor.name;
}

}  // namespace

SafetensorsFile::SafetensorsFile(std::vector<const Tensor*> tensors, Attributes metadata)
    : tensors_(std::move(tensors)) {
  for (const Tensor* tensor : tensors_)
    (void)require_element_type(*tensor);  // throws for a tensor that a file cannot hold
  const auto alignment = [](const Tensor* tensor) { return std::max(1U, require_element_type(*tensor).bits() / 8U); };
  std::ranges::stable_sort(tensors_, std::greater(), alignment);
  std::vector<Attributes::Entry> entries;
  const std::uint64_t cost = measure_cost(metadata);
  if (!metadata.empty()) entries.emplace_back(kMetadata, std::move(metadata));
  for (const Tensor* tensor : tensors_) {
    const std::string_view dtype = require_element_type(*tensor).name;
    Value::Array shape(tensor->shape.begin(), tensor->shape.end());
    const std::uint64_t end = tensor_bytes_ + tensor->require("data").blob->size();
    entries.emplace_back(
        require_valid_name(*tensor),
        Attributes{{"dtype", dtype}, {"shape", std::move(shape)}, {"data_offsets", Value::Array{tensor_bytes_, end}}});
    tensor_bytes_ = end;
  }
  header_ = to_json(Attributes::from_unique(std::move(entries)));
  require_readable(cost, header_.size());
  header_.resize(*checked_align(header_.size(), kAlignment), ' ');
  if (header_.size() > kMaxHeaderBytes)
    throw Error(ErrorKind::unsupported, "safetensors: the header would be larger than 100 MB");
}

std::uint64_t SafetensorsFile::bytes() const { return kSizeBytes + header_.size() + tensor_bytes_; }

void SafetensorsFile::write(Sink& sink, Meter& meter) const {
  ByteWriter start;
  start.append_u64(header_.size());
  start.append_text(header_);
  sink.write(start.bytes());
  const ReadAhead ahead(ReadAhead::list_blobs(
      tensors_, [](const Tensor* tensor) -> const Blob& { return *tensor->require("data").blob; }));
  for (std::size_t i = 0; i < tensors_.size(); ++i) write_blob(ahead[i], sink, meter, tensors_[i]->name);
}

std::vector<std::string> list_safetensors_losses(const Model& model, const Attributes& attributes) {
  std::vector<std::string> result;
  if (std::string loss = describe_text_loss(attributes, "safetensors"); !loss.empty())
    result.push_back(std::move(loss));
  std::vector<std::string> changed;
  for (const auto& [key, value] : attributes) {
    const auto* text = value.get_if<std::string>();
    if (!is_utf8(key) || (text != nullptr && !is_utf8(*text))) changed.push_back(key);
  }
  if (!changed.empty())
    result.push_back(
        fmt::format("safetensors cannot hold texts that are not UTF-8: their wrong bytes become U+FFFD in {}",
                    fmt::join(changed, ", ")));
  std::vector<std::string> tensors;
  for (const Tensor& tensor : model.tensors()) {
    if (!tensor.attributes.empty()) tensors.push_back(tensor.name);
  }
  if (!tensors.empty())
    result.push_back(fmt::format("safetensors cannot hold the attributes of tensors: those of {} are lost",
                                 fmt::join(tensors, ", ")));
  return result;
}

}  // namespace poise
