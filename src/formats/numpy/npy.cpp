// Reads and writes a file with one array (formats/numpy/array.hpp). The array has no name, so the tensor has the name
// of the file without its extension.
#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/short_text.hpp"
#include "formats/losses.hpp"
#include "formats/numpy/array.hpp"
#include "formats/registry.hpp"
#include "io/meter.hpp"
#include "pack/pump.hpp"

namespace poise::npy {
namespace {

bool sniff(const Input& input) {
  const auto bytes = read_first_bytes(input, numpy::kMagic.size());
  return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()) == numpy::kMagic;
}

std::string make_array_name(const std::filesystem::path& path) {
  const std::string stem = path.stem().string();
  return stem.empty() ? "array" : stem;
}

Model read(const Input& input, const ReadOptions&) {
  const SourcePtr& source = input.source;
  ByteReader reader(*source, "npy");
  const numpy::ArrayHeader header = numpy::read_header(reader);
  if (!numpy::find_dtype(header))
    throw Error(ErrorKind::unsupported, "npy: " + numpy::explain_unsupported_type(header), source->name(),
                header.descr_at);
  Model model;
  model.origin = {input.path, "npy", source->size(), {input.path}};
  try {
    model.add(numpy::make_tensor(make_array_name(input.path), header,
                                 make_source_blob(source, reader.position(), reader.remaining())));
  } catch (const Error& error) {
    throw Error(error.kind(), "npy: " + error.message(), source->name(), reader.position());
  }
  return model;
}

std::vector<Finding> find_dangerous_code(const SourcePtr& source) {
  if (!sniff({source->name(), source})) return {};
  ByteReader reader(*source, "npy");
  const numpy::ArrayHeader header = numpy::read_header(reader);
  return numpy::check_objects(header, {.bytes = make_source_blob(source, reader.position(), reader.remaining()),
                                       .name = source->name(),
                                       .path = source->name(),
                                       .begin = reader.position()});
}

const Tensor& require_only_tensor(const Model& model) {
  if (model.size() == 1) return model.tensors().front();
  Error error(ErrorKind::unsupported,
              fmt::format("an .npy file holds one array, the model has {} tensors", model.size()));
  error = std::move(error).with({.kind = Remedy::Kind::format, .value = "npz"});
  if (model.size() == 0) throw error;
  throw std::move(error).with({.kind = Remedy::Kind::only, .tensor = model.tensors().front().name});
}

FilePlan plan(const Model& model, const WriteOptions&) {
  const Tensor& tensor = require_only_tensor(model);
  const std::uint64_t header = numpy::make_header("npy", tensor).size();  // rejects what the file cannot hold
  const std::uint64_t bytes = tensor.require("data").blob->size();
  return {{bytes}, header + bytes, true};
}

void write(const Model& model, Output& output, const WriteOptions& options) {
  const Tensor& tensor = require_only_tensor(model);
  const ByteWriter header = numpy::make_header("npy", tensor);
  const Blob& data = *tensor.require("data").blob;
  Meter meter(options.progress, data.size());
  output.main().write(header.bytes());
  write_blob(data, output.main(), meter, tensor.name);
}

std::vector<std::string> list_losses(const Model& model, const WriteOptions&) {
  std::vector<std::string> lost = list_lost_metadata(model);
  lost.insert(lost.begin(), fmt::format("the name {}", require_only_tensor(model).name));
  return {fmt::format("an .npy file holds an array alone, without {}", list_names(lost, lost.size()))};
}

}  // namespace
}  // namespace poise::npy

namespace poise {

const Format kNpy = {
    .info = {"npy", "a NumPy array", ".npy"},
    .holds_bf16 = false,
    .sniff = npy::sniff,
    .read = npy::read,
    .prepare = prepare_with<npy::plan, npy::write, npy::list_losses>,
    .find_dangerous_code = npy::find_dangerous_code,
};

}  // namespace poise
