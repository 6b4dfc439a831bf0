// safetensors: a JSON header, then the tensors' bytes. Read strictly (docs/formats/safetensors.md), written aligned.
#pragma once

#include <string>
#include <vector>

#include "bytes/function_ref.hpp"
#include "formats/format.hpp"
#include "io/meter.hpp"
#include "io/sink.hpp"

namespace poise {

extern const Format kSafetensors;

// Gives a file's tensors in the order of their bytes; returns its `__metadata__`. What `take` throws without an offset
// gets that of the tensor in the header. Throws invalid_file, unsupported, io.
Attributes read_safetensors(const SourcePtr& source, FunctionRef<void(Tensor)> take);

// Format::keys of a file: those of `__metadata__`.
std::vector<MetadataKey> safetensors_keys(const SourcePtr& source);

// A file of some tensors, to be written.
class SafetensorsFile {
 public:
  // `metadata`: texts. Throws unsupported for what such a file cannot hold, naming the tensor. Requires: the tensors
  // outlive this.
  SafetensorsFile(std::vector<const Tensor*> tensors, Attributes metadata);

  std::uint64_t bytes() const;
  std::uint64_t tensor_bytes() const { return tensor_bytes_; }
  void write(Sink& sink, Meter& meter) const;

 private:
  // Those of the widest elements first, so that each begins at a multiple of its element's bytes; else as they were
  // given.
  std::vector<const Tensor*> tensors_;
  std::string header_;
  std::uint64_t tensor_bytes_ = 0;
};

// What such files cannot hold of a model's tensors, and of attributes that are written as their metadata; one sentence
// each.
std::vector<std::string> safetensors_losses(const Model& model, const Attributes& attributes);

}  // namespace poise
