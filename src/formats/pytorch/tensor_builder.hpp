// Builds the tensors that a pickle of torch.save() makes, as views of storages.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <poise/error.hpp>
#include <poise/finding.hpp>
#include <poise/tensor.hpp>

#include "formats/pickle_files.hpp"
#include "formats/pytorch/storages.hpp"
#include "syntax/pickle.hpp"

namespace poise::pytorch {

class TensorBuilder {
 public:
  // Requires: all outlive this.
  TensorBuilder(const pickle::Pickle& pickle, const std::string& path, Storages& storages)
      : pickle_(pickle), path_(path), storages_(storages) {}

  // Returns true if PyTorch would make a tensor of any kind from this object.
  bool is_tensor(pickle::Id id) const;

  // Makes a tensor: dense; sparse, as coordinates or compressed rows; or quantized, with one scale or a scale for each
  // index along an axis. Throws unsupported with the reason for others, and invalid_file (without path for errors about
  // the whole tensor). Requires: is_tensor(id).
  Tensor make_tensor(std::string name, pickle::Id id);

  // Returns warnings about scales that were rounded to float32, and about attributes of tensors that are left out.
  std::vector<Finding> list_findings() const;

 private:
  // Holds the call that makes a tensor: a function with its arguments.
  struct Making {
    pickle::Id id = pickle::kNone;
    std::string function;
    std::span<const pickle::Id> arguments;
  };
  // Describes a tensor as elements of a storage.
  struct View {
    pickle::Id storage = pickle::kNone;
    DType dtype = DType::unknown;  // unknown: the storage's
    std::uint64_t offset = 0;      // counts elements, as the strides do
    Shape shape;
    std::vector<std::int64_t> strides;
  };

  [[noreturn]] void fail(pickle::Id id, ErrorKind kind, const std::string& problem) const;
  std::string find_function_name(pickle::Id id) const { return pytorch::find_function_name(pickle_, id); }
  std::span<const pickle::Id> read_arguments(pickle::Id id, std::size_t least) const;
  Making find_making_call(pickle::Id id, std::size_t depth);
  Making read_typed_call(pickle::Id id) const;
  void require_arguments(const Making& making, std::size_t least) const;
  std::uint64_t read_natural(pickle::Id id, std::string_view field) const;
  std::span<const pickle::Id> read_items(const Making& making, pickle::Id id, std::string_view field) const;
  void refuse_changed(pickle::Id container, pickle::Id call, std::string_view field) const;
  void refuse_pending_change(std::span<const pickle::Id> metadata) const;
  View read_view(const Making& making) const;
  std::optional<Finding> describe_rounded_scales() const;
  StorageName read_storage(const View& view) const;
  Tensor build_dense(std::string name, const View& view) const;
  Tensor make_dense_part(std::string name, pickle::Id id);
  Tensor build_sparse(std::string name, const Making& making);
  Tensor build_quantized(std::string name, const Making& making);
  // Holds the arguments that describe codes: scale and zero point, or scales, zero points and their axis.
  struct Quantizer {
    std::span<const pickle::Id> parameters;
    std::int64_t zero = 0;  // added to each zero point, because signed codes become unsigned
  };
  void add_scale(Tensor& tensor, const Quantizer& quantizer);
  void add_scales(Tensor& tensor, const Quantizer& quantizer);
  float read_scale(pickle::Id id);
  std::int64_t read_zero_point(pickle::Id id) const;

  const pickle::Pickle& pickle_;
  const std::string& path_;
  Storages& storages_;
  std::size_t rounded_ = 0;
  std::uint64_t first_rounded_ = 0;  // the offset of the first rounded scale in the file
  std::size_t with_attributes_ = 0;
  std::uint64_t first_with_attributes_ = 0;
};

}  // namespace poise::pytorch
