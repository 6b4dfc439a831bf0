#include "formats/pytorch/pytorch.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/byte_writer.hpp"
#include "bytes/short_text.hpp"
#include "bytes/utf8.hpp"
#include "formats/losses.hpp"
#include "formats/pickle_globals.hpp"
#include "formats/pytorch/archive.hpp"
#include "formats/pytorch/checkpoint.hpp"
#include "io/meter.hpp"
#include "pack/pump.hpp"
#include "pack/read_ahead.hpp"
#include "pack/zip_writer.hpp"
#include "syntax/pickle_steps.hpp"

namespace poise::pytorch {
namespace {

using pickle::PickleStep;

constexpr std::string_view kRoot = "archive/";
constexpr std::uint64_t kAlignment = 64;

// Writes the steps of a pickle of protocol 2.
class PickleWriter {
 public:
  void write_step(PickleStep step) { bytes_.append_u8(static_cast<std::uint8_t>(step)); }
  void write_protocol() {
    write_step(PickleStep::protocol);
    bytes_.append_u8(2);
  }
  void write_text(std::string_view text) {
    write_step(PickleStep::unicode4);
    bytes_.append_u32(static_cast<std::uint32_t>(text.size()));
    bytes_.append_text(text);
  }
  void write_integer(std::uint64_t value) {
    if (value <= 0x7fffffff) {
      write_step(PickleStep::int4);
      return bytes_.append_u32(static_cast<std::uint32_t>(value));
    }
    write_step(PickleStep::long1);  // little-endian, with room for the sign
    bytes_.append_u8(9);
    bytes_.append_u64(value);
    bytes_.append_u8(0);
  }
  void write_global(std::string_view full_name) {
    const std::size_t dot = full_name.rfind('.');
    write_step(PickleStep::global_lines);
    bytes_.append_text(fmt::format("{}\n{}\n", full_name.substr(0, dot), full_name.substr(dot + 1)));
  }
  void write_integers(const Shape& numbers) {
    write_step(PickleStep::mark);
    for (const std::uint64_t number : numbers) write_integer(number);
    write_step(PickleStep::tuple);
  }
  void write_empty_ordered_dict() {
    write_global("collections.OrderedDict");
    write_step(PickleStep::empty_tuple);
    write_step(PickleStep::reduce);
  }
  std::span<const std::byte> bytes() const { return bytes_.bytes(); }

 private:
  ByteWriter bytes_;
};

// Returns the class of the tensor's storage. Throws unsupported if a checkpoint cannot hold the tensor.
std::string_view require_storage_class(const Tensor& tensor) {
  if (tensor.layout != Layout::dense) refuse_tensor("pytorch", tensor);
  const std::string_view name = find_storage_name(tensor.require("data").dtype);
  if (name.empty()) refuse_tensor("pytorch", tensor, "torch.load(weights_only=True) has no such storages");
  if (!is_utf8(tensor.name))
    throw Error(ErrorKind::unsupported, fmt::format("pytorch needs names in UTF-8; \"{}\" is not", tensor.name));
  if (tensor.name.size() > kMostNameBytes)
    throw Error(ErrorKind::unsupported, fmt::format("pytorch: a tensor's name has {} bytes, at most {} are read: {}",
                                                    tensor.name.size(), kMostNameBytes, shorten(tensor.name, 100)));
  return name;
}

// Lists the storages to write. Tensors that share their bytes in one file share a storage.
class WrittenStorages {
 public:
  explicit WrittenStorages(const Model& model) {
    using Place = std::tuple<const Source*, std::uint64_t, std::uint64_t, std::string, unsigned, std::uint64_t, DType>;
    std::map<Place, std::size_t> known;
    for (const Tensor& tensor : model.tensors()) {
      require_storage_class(tensor);
      const Part& data = tensor.require("data");
      const std::uint64_t size = data.blob->size();
      const auto place = size == 0 ? std::nullopt : data.blob->stored();
      if (place) {
        const auto [found, is_new] = known.emplace(
            Place(place->source.get(), place->offset, place->length, place->encoding, place->swapped, size, data.dtype),
            first_.size());
        keys_.push_back(found->second);
        if (!is_new) continue;
      } else {
        keys_.push_back(first_.size());
      }
      first_.push_back(&tensor);
    }
  }

  std::size_t key(std::size_t tensor) const { return keys_[tensor]; }
  // Returns the first tensor of each storage.
  const std::vector<const Tensor*>& first_tensors() const { return first_; }
  std::uint64_t count_bytes() const {
    std::uint64_t sum = 0;
    for (const Tensor* tensor : first_) sum += tensor->require("data").blob->size();
    return sum;
  }

 private:
  std::vector<std::size_t> keys_;
  std::vector<const Tensor*> first_;
};

Shape make_row_major_strides(const Shape& shape) {
  Shape strides = shape;
  std::uint64_t stride = 1;
  for (std::size_t d = shape.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= std::max<std::uint64_t>(1, shape[d]);
  }
  return strides;
}

PickleWriter make_pickle(const Model& model, const WrittenStorages& storages) {
  PickleWriter out;
  out.write_protocol();
  out.write_empty_ordered_dict();
  out.write_step(PickleStep::mark);
  std::size_t index = 0;
  for (const Tensor& tensor : model.tensors()) {
    out.write_text(tensor.name);
    out.write_global("torch._utils._rebuild_tensor_v2");
    out.write_step(PickleStep::mark);
    out.write_step(PickleStep::mark);
    out.write_text("storage");
    out.write_global(require_storage_class(tensor));
    out.write_text(std::to_string(storages.key(index++)));
    out.write_text("cpu");
    out.write_integer(tensor.elements());
    out.write_step(PickleStep::tuple);
    out.write_step(PickleStep::persistent);
    out.write_integer(0);
    out.write_integers(tensor.shape);
    out.write_integers(make_row_major_strides(tensor.shape));
    out.write_step(PickleStep::new_false);  // no gradient wanted
    out.write_empty_ordered_dict();         // no hooks
    out.write_step(PickleStep::tuple);
    out.write_step(PickleStep::reduce);
  }
  out.write_step(PickleStep::set_items);
  out.write_step(PickleStep::stop);
  return out;
}

void write_text_member(ZipWriter& archive, std::string_view name, std::string_view text) {
  archive.add_member(fmt::format("{}{}", kRoot, name), std::as_bytes(std::span(text.data(), text.size())));
}

// Writes the file. Without a meter, writes zeros instead of elements, which suffices to count bytes.
void write_to(const Model& model, Sink& sink, Meter* meter) {
  const WrittenStorages storages(model);
  ZipWriter archive(sink, kAlignment);
  archive.add_member(fmt::format("{}{}", kRoot, kPickle), make_pickle(model, storages).bytes());
  write_text_member(archive, "byteorder", "little");
  const ReadAhead ahead(ReadAhead::list_blobs(
      storages.first_tensors(), [](const Tensor* tensor) -> const Blob& { return *tensor->require("data").blob; }));
  for (std::size_t key = 0; key < storages.first_tensors().size(); ++key) {
    const Blob& data = ahead[key];
    Crc32& crc32 = archive.begin_member(fmt::format("{}data/{}", kRoot, key), data.size());
    if (meter != nullptr) {
      write_whole_blob(data, sink, *meter, storages.first_tensors()[key]->name, crc32);
    } else {
      sink.pad(data.size());
    }
    archive.end_member();
  }
  write_text_member(archive, "version", "3\n");
  archive.finish();
}

}  // namespace

FilePlan plan(const Model& model, const WriteOptions&) {
  FilePlan plan;
  CountingSink count;
  write_to(model, count, nullptr);
  plan.bytes = count.position();
  for (const Tensor& tensor : model.tensors()) plan.tensor_bytes.push_back(tensor.require("data").blob->size());
  return plan;
}

void write(const Model& model, Output& output, const WriteOptions& options) {
  Meter meter(options.progress, WrittenStorages(model).count_bytes());
  write_to(model, output.main(), &meter);
}

std::vector<std::string> list_losses(const Model& model, const WriteOptions&) {
  return list_metadata_losses(model, "a PyTorch checkpoint");
}

}  // namespace poise::pytorch
