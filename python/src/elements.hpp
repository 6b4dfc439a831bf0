// Gives Python a tensor's elements, or a slice of them.
#pragma once

#include <memory>
#include <optional>

#include <poise/tensor.hpp>

#include "face.hpp"
#include "memory.hpp"
#include "strided.hpp"

namespace poise::python {

// Holds memory, and the places of elements in it.
struct Placed {
  Memory memory;
  std::uint64_t offset = 0;            // bytes
  std::vector<std::uint64_t> strides;  // bytes
};

// Holds a tensor's elements, or a slice of them, and keeps the model open. Needs no GIL.
struct HeldElements {
  std::shared_ptr<const Model> model;
  const Tensor* tensor = nullptr;
  Strided place;

  // Returns the type in which read() returns the elements without conversion: f32 for codes; std::nullopt if they
  // cannot be read as numbers.
  std::optional<DType> dtype() const;
  // Returns dtype(). Throws unsupported if there is none.
  DType require_dtype() const;

  // Returns the elements in the mapped file, read-only; std::nullopt for layouts other than dense, and for elements
  // that are compressed, computed, not mapped, or smaller than a byte.
  std::optional<Placed> find_mapped() const;
  // Returns writable elements, in private pages of the file or in a copy; std::nullopt if find_mapped() returns that.
  std::optional<Placed> make_writable() const;
  // Returns a copy in row-major order, in the type `as` (f32, f16 or bf16) or in dtype(); elements of 4 bits take a
  // byte each. Throws unsupported, and what reading throws. read_strided() describes `stopped`.
  Memory read(std::optional<DType> as, const std::function<bool()>& stopped = {}) const;
};

// Refers to a tensor's elements, or a slice of them, in a model that Python may close at any time.
class Elements {
 public:
  Elements(std::shared_ptr<OpenModel> owner, const Tensor& tensor)
      : owner_(std::move(owner)), tensor_(&tensor), place_(Strided::make_whole(tensor.shape)) {}
  Elements(const Elements& elements, Strided place)
      : owner_(elements.owner_), tensor_(elements.tensor_), place_(std::move(place)) {}

  // hold() and hold_tensor() keep the model open while their results exist. They throw bad_argument when the model is
  // closed. Requires: the GIL.
  HeldElements hold() const { return {owner_->require_model(), tensor_, place_}; }
  std::shared_ptr<const Tensor> hold_tensor() const { return {owner_->require_model(), tensor_}; }
  const Strided& place() const { return place_; }

 private:
  std::shared_ptr<OpenModel> owner_;
  const Tensor* tensor_;
  Strided place_;
};

// Returns elements.read(as). Ctrl-C stops a long read. Requires: the GIL.
Memory read_interruptibly(const HeldElements& elements, std::optional<DType> as);

// Returns a DLPack capsule that owns the elements, in the type `as` (std::nullopt: in dtype()). With `bits`, states the
// type of integers with as many bits, for consumers that do not know the type. Requires: the GIL.
py::capsule make_dlpack_capsule(const HeldElements& elements, std::optional<DType> as, bool bits);

void declare_dlpack(py::module_& module);

}  // namespace poise::python
