// Elements: a tensor's elements, or a slice of them, for Python.
#pragma once

#include <memory>
#include <optional>

#include <poise/tensor.hpp>

#include "face.hpp"
#include "memory.hpp"
#include "strided.hpp"

namespace poise::python {

// Memory, and the places of the elements in it.
struct Placed {
  Memory memory;
  std::uint64_t offset = 0;            // bytes
  std::vector<std::uint64_t> strides;  // bytes
};

// A tensor's elements, or a slice of them; keeps its model open. Needs no GIL, unless stated.
struct HeldElements {
  std::shared_ptr<const Model> model;
  const Tensor* tensor = nullptr;
  Strided place;

  // Returns the type of the elements when read unchanged: f32 for codes; std::nullopt if they are not known to be
  // numbers.
  std::optional<DType> dtype() const;
  // dtype(); throws unsupported if there is none.
  DType require_dtype() const;

  // Returns the elements in the mapped file, read-only; std::nullopt if their bytes differ from it (codes, compressed,
  // less than a byte each, not mapped).
  std::optional<Placed> mapped() const;
  // Returns the same, writable: private pages of the file, or a copy; std::nullopt as above.
  std::optional<Placed> writable() const;
  // Returns a copy in row-major order, unchanged or as f32, f16 or bf16; f4 as one byte each. Throws unsupported, and
  // what reading throws. `stopped`: see read_strided().
  Memory read(std::optional<DType> as, const std::function<bool()>& stopped = {}) const;
};

// The same for a model that Python may close at any time.
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

// elements.read(as); Ctrl-C stops it if it takes long. Requires: the GIL.
Memory read_patiently(const HeldElements& elements, std::optional<DType> as);

// Returns a DLPack capsule that owns a copy of the elements as `as` (std::nullopt: unchanged). `bits`: as integers if
// consumers may not know the type. Requires: the GIL.
py::capsule to_dlpack(const HeldElements& elements, std::optional<DType> as, bool bits);

void declare_dlpack(py::module_& module);

}  // namespace poise::python
