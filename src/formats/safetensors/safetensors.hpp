// safetensors: a JSON header, then the tensors' bytes. Read strictly (docs/formats/safetensors.md), written aligned.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bytes/function_ref.hpp"
#include "formats/format.hpp"
#include "io/meter.hpp"
#include "io/sink.hpp"

namespace poise {

extern const Format kSafetensors;

// Passes a file's tensors to `take` in the order of their bytes; returns its `__metadata__`. Adds the tensor's offset
// in the header to errors of `take` without one. Throws invalid_file, unsupported, io.
Attributes read_safetensors(const SourcePtr& source, FunctionRef<void(Tensor)> take);

// Format::keys of a file: those of `__metadata__`.
std::vector<MetadataKey> safetensors_keys(const SourcePtr& source);

// Format::edit: changes `__metadata__`, in place if it fits the header's length. Values other than text become JSON
// text.
std::unique_ptr<PreparedEdit> edit_safetensors(const Input& input, const AttributeChanges& changes);

// A file with some tensors, to be written.
class SafetensorsFile {
 public:
  // `metadata`: texts. Throws unsupported, naming the tensor, for what such a file cannot hold. Requires: the tensors
  // outlive this.
  SafetensorsFile(std::vector<const Tensor*> tensors, Attributes metadata);

  std::uint64_t bytes() const;
  std::uint64_t tensor_bytes() const { return tensor_bytes_; }
  void write(Sink& sink, Meter& meter) const;

 private:
  // Widest elements first, so that each begins at a multiple of its element's bytes; otherwise in the given order.
  std::vector<const Tensor*> tensors_;
  std::string header_;
  std::uint64_t tensor_bytes_ = 0;
};

// What such files lose of a model's tensors, and of attributes that are written as their metadata; one sentence each.
std::vector<std::string> safetensors_losses(const Model& model, const Attributes& attributes);

}  // namespace poise
