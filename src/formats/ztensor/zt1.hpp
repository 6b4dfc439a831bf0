// Reads zTensor 0.1, 1.0, 1.1 and 1.2, and writes 1.1 (docs/formats/ztensor.md; zt1_read.cpp has the layout).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "formats/format.hpp"
#include "formats/ztensor/object.hpp"

namespace poise {

extern const Format kZtensor1;

namespace ztensor {

inline constexpr std::string_view kMagic1 = "ZTEN1000";  // 1.0 to 1.2
inline constexpr std::string_view kMagic0 = "ZTEN0001";  // 0.1
inline constexpr std::uint64_t kAlignment1 = 64;

// Makes a tensor from each object as soon as the parser has read it. finish() sorts the tensors by the places of their
// bytes.
class ModelBuilder1 {
 public:
  // `data_end` is the offset of the manifest, which follows the data. `context` begins every message. Requires: the
  // model outlives this.
  ModelBuilder1(Model& model, SourcePtr source, std::uint64_t data_end, std::string context);
  ~ModelBuilder1();
  ModelBuilder1(const ModelBuilder1&) = delete;
  ModelBuilder1& operator=(const ModelBuilder1&) = delete;

  void reserve(std::size_t objects);
  // Adds the tensor of an object, and may move out of the object. Notes a fault for a repeated name, for a component
  // that is misaligned, is outside [64, data_end) or has a wrong size for its shape and layout, and for attributes or
  // components that do not fit the layout.
  void add_object(StoredObject& object);
  // Sorts the tensors. Throws a FaultyModel if there are faults. Components that overlap, but do not have the same
  // range, are a fault, too.
  void finish();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

inline constexpr std::string_view kByteOrder = "data_endianness";  // a key of version 0.1

// States whether the sizes of all parts are known, or only decoding shows some of them.
enum class Sizes1 { known, hidden };

// Converts a tensor with version 1's attributes and parts to Poise's form. `layout` is the name of its layout in the
// file. Checks the parts, unless sizes are hidden: then decoding checks them. Throws invalid_file (without path) if
// attributes or parts do not fit.
void convert_from_stored1(Tensor& tensor, std::string_view layout, Sizes1 sizes);

// Returns the offset of a file's manifest, which is the end of its blobs. Throws invalid_file if there is none.
std::uint64_t find_manifest_begin1(const Source& source);

// Returns the place of the manifest of a 1.1 or 1.2 file. Throws invalid_file if there is none; unsupported for a 0.1
// or 1.0 file.
ManifestRange find_manifest1(const Source& source);

// Returns the place of the manifest of a 0.1 file, which is called the index there.
ManifestRange find_index0(const Source& source);

// Reads a 0.1 file's objects. Requires: the source begins with kMagic0.
void read_version_0(Model& model, const SourcePtr& source);

// Returns version 1's spelling of a type that Poise does not know. A logical type of version 2 over bytes
// ("u8:acme.x/1") loses "u8:", unless version 1 defines the rest; other types keep their spelling.
std::string_view spell_unknown_type(std::string_view name);

void write_zt1(const Model& model, Output& output, const WriteOptions& options);
FilePlan plan_zt1(const Model& model, const WriteOptions& options);
std::vector<std::string> list_zt1_losses(const Model& model, const WriteOptions& options);

}  // namespace ztensor
}  // namespace poise
