// Elements: a tensor's elements, or a slice of them, as Python sees them.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <poise/tensor.hpp>

#include "face.hpp"
#include "memory.hpp"
#include "strided.hpp"

namespace poise::python {

// Memory, and where the elements are in it.
struct Placed {
  Memory memory;
  std::uint64_t offset = 0;            // bytes
  std::vector<std::uint64_t> strides;  // bytes
};

// A tensor's elements, or a slice of them, of a model that stays open meanwhile. Needs no GIL, unless said otherwise.
struct HeldElements {
  std::shared_ptr<const Model> model;
  const Tensor* tensor = nullptr;
  Strided place;

  // The type that elements have when they are read as they are: f32 for codes; nothing where they are not known to be
  // numbers.
  std::optional<DType> dtype() const;
  // dtype(); throws unsupported where there is none.
  DType require_dtype() const;

  // The elements in the mapped file, read-only; nothing where their bytes are others (codes, compressed, less than a
  // byte each, not mapped).
  std::optional<Placed> mapped() const;
  // The same to write to, for the caller alone: private pages of the file, or a copy. Nothing as above.
  std::optional<Placed> writable() const;
  // A copy in row-major order, as they are or as f32, f16 or bf16; f4 as one byte each. Throws unsupported, and what
  // reading throws. `stopped`: see read_strided().
  Memory read(std::optional<DType> as, const std::function<bool()>& stopped = {}) const;
};

// The same for Python, which may close the model at any time.
class Elements {
 public:
  Elements(std::shared_ptr<OpenModel> owner, const Tensor& tensor)
      : owner_(std::move(owner)), tensor_(&tensor), place_(Strided::whole(tensor.shape)) {}
  Elements(const Elements& of, Strided place) : owner_(of.owner_), tensor_(of.tensor_), place_(std::move(place)) {}

  // Throws bad_argument when the model is closed. Requires: the GIL.
  HeldElements hold() const { return {owner_->use(), tensor_, place_}; }
  std::shared_ptr<const Tensor> tensor() const { return {owner_->use(), tensor_}; }
  const Strided& place() const { return place_; }

 private:
  std::shared_ptr<OpenModel> owner_;
  const Tensor* tensor_;
  Strided place_;
};

// elements.read(as), which Ctrl-C ends where it takes long. Requires: the GIL.
Memory read_patiently(const HeldElements& elements, std::optional<DType> as);

// A DLPack capsule of memory of its own, of the elements as `as` (nothing: as they are). `bits`: types that consumers
// may not know as integers. Requires: the GIL.
py::capsule to_dlpack(const HeldElements& elements, std::optional<DType> as, bool bits);

void declare_dlpack(py::module_& module);

}  // namespace poise::python
