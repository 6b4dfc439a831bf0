// zTensor 1.x: 0.1, 1.0, 1.1 and 1.2 are read, 1.1 is written (docs/formats/ztensor.md; the layout is in zt1_read.cpp).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "formats/format.hpp"
#include "formats/ztensor/manifest_bytes.hpp"
#include "formats/ztensor/object.hpp"

namespace poise {

extern const Format kZtensor1;

namespace ztensor {

inline constexpr std::string_view kMagic1 = "ZTEN1000";  // 1.0 to 1.2
inline constexpr std::string_view kMagic0 = "ZTEN0001";  // 0.1
inline constexpr std::uint64_t kAlignment1 = 64;

// Makes tensors of objects while they are read, and puts them into the order of their bytes when all are there.
// `context` opens every message.
class ModelBuilder1 {
 public:
  // Requires: the model outlives this; the manifest begins where the data end.
  ModelBuilder1(Model& model, SourcePtr source, std::uint64_t data_end, std::string context);
  ~ModelBuilder1();
  ModelBuilder1(const ModelBuilder1&) = delete;
  ModelBuilder1& operator=(const ModelBuilder1&) = delete;

  // Makes room for that many.
  void reserve(std::size_t objects);
  // Takes what it needs out of the object. Throws invalid_file when the name comes twice, or a component is misaligned,
  // is outside [64, data_end) or has another size than shape and layout call for.
  void take(Object& object);
  // Throws invalid_file when components share some of their bytes, but not all.
  void finish();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// The sizes of a tensor's parts: some may be known only when they have been decoded.
enum class Sizes1 { known, hidden };

// Finds out what a tensor is whose layout is named so, and whose attributes and parts are those of a 1.x file. Hidden
// sizes are checked when the parts are decoded. Throws invalid_file (without path) when they do not fit each other.
void from_stored1(Tensor& tensor, std::string_view layout, Sizes1 sizes);

// Where a file's manifest begins, and so where its blobs end. Throws invalid_file when it has none.
std::uint64_t manifest_begin1(const Source& source);

// The manifest of a 1.1 or 1.2 file. Throws invalid_file; unsupported for older files.
ManifestRange find_manifest1(const Source& source);

// The same for 0.1, whose manifest is called index.
ManifestRange find_index0(const Source& source);

// A 0.1 file's objects. Requires: the source begins with kMagic0.
void read_version_0(Model& model, const SourcePtr& source);

// How version 1 spells a type that Poise does not know. Version 2's types over bytes ("u8:acme.x/1") have the name of
// the logical type there, as known ones do; others keep theirs.
std::string_view spelling_of_unknown(std::string_view name);

void write_zt1(const Model& model, Output& output, const WriteOptions& options);
FilePlan plan_zt1(const Model& model, const WriteOptions& options);
std::vector<std::string> zt1_losses(const Model& model, const WriteOptions& options);

}  // namespace ztensor
}  // namespace poise
