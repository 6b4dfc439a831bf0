// The tensors section of both versions: counts, then metadata and data, tensor by tensor, in canonical order.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <poise/model.hpp>
#include <poise/progress.hpp>

#include "formats/alt/section_writer.hpp"
#include "io/sink.hpp"

namespace poise::alt {

class TensorsSection {
 public:
  // Makes the fields before a tensor's data. Their length must not depend on the scale, since finding it may take a
  // pass over the data. Throws unsupported for a tensor that the format cannot hold.
  using Header = std::function<SectionWriter(const Tensor& tensor, const Affine& affine)>;

  // `tensors` is in the order of the file. Throws what `header` throws. Requires: the tensors outlive this.
  TensorsSection(std::vector<const Tensor*> tensors, Header header);

  // Dimensions of all tensors.
  std::uint64_t shape_count() const { return dimensions_; }

  // Of the whole section.
  std::uint64_t bytes(const SectionWriter& counts) const;

  void write(Sink& sink, const SectionWriter& counts, const Progress& progress) const;

 private:
  std::vector<const Tensor*> tensors_;
  Header header_;
  std::uint64_t bytes_ = 0;       // of all tensors: metadata and data
  std::uint64_t data_bytes_ = 0;  // of these, data
  std::uint64_t dimensions_ = 0;
};

}  // namespace poise::alt
