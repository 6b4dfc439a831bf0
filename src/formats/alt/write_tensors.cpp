#include "formats/alt/write_tensors.hpp"

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/checked.hpp"
#include "formats/alt/layout.hpp"
#include "io/meter.hpp"
#include "pack/pump.hpp"
#include "pack/read_ahead.hpp"

namespace poise::alt {

TensorsSection::TensorsSection(std::vector<const Tensor*> tensors, Header header)
    : tensors_(std::move(tensors)), header_(std::move(header)) {
  for (const Tensor* tensor : tensors_) {
    const std::uint64_t header_bytes = header_(*tensor, Affine{}).fields().size();
    data_bytes_ += tensor->require("data").blob->size();
    bytes_ += header_bytes + tensor->require("data").blob->size();
    dimensions_ += tensor->shape.size();
  }
}

std::uint64_t TensorsSection::bytes(const SectionWriter& counts) const {
  return *checked_align(kHeaderBytes + counts.fields().size() + bytes_, kAlignment);
}

void TensorsSection::write(Sink& sink, const SectionWriter& counts, const Progress& progress) const {
  ByteWriter header;
  header.i64(info(Section::tensors).marker);
  header.u64(bytes(counts));
  sink.write(header.bytes());
  sink.write(counts.fields().bytes());
  Meter meter(progress, data_bytes_);
  const ReadAhead ahead(
      ReadAhead::of(tensors_, [](const Tensor* tensor) -> const Blob& { return *tensor->require("data").blob; }));
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const Tensor* const tensor = tensors_[i];
    const Affine affine = tensor->layout.affine() != nullptr ? tensor->layout.affine()->get() : Affine{};
    sink.write(header_(*tensor, affine).fields().bytes());
    pump(ahead[i], sink, meter, tensor->name);
  }
  sink.pad_to(kAlignment);
}

}  // namespace poise::alt
