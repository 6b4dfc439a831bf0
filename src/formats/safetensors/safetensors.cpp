#include "formats/safetensors/safetensors.hpp"

#include <utility>

#include "bytes/little_endian.hpp"
#include "formats/metadata.hpp"

namespace poise {
namespace {

// Returns true for safetensors: a length, and an object after at most 64 KiB of white space.
bool sniff(const Input& input) {
  constexpr std::size_t kBegin = safetensors::kSizeBytes;
  constexpr std::size_t kMostSpace = 64 << 10;
  auto bytes = read_first_bytes(input, kBegin + 1);
  if (bytes.size() <= kBegin) return false;
  const auto length = load_le<std::uint64_t>(bytes.data());
  const auto is_space = [](std::byte byte) {
    return safetensors::kWhiteSpace.find(static_cast<char>(byte)) != std::string_view::npos;
  };
  if (length > safetensors::kMaxHeaderBytes) return false;
  if (is_space(bytes[kBegin])) bytes = read_first_bytes(input, kBegin + std::min<std::uint64_t>(length, kMostSpace));
  const auto first = std::find_if_not(bytes.begin() + kBegin, bytes.end(), is_space);
  return first != bytes.end() && *first == std::byte{'{'};
}

Model read(const Input& input, const ReadOptions&) {
  Model model;
  model.origin = {input.path, "safetensors", input.source->size(), {input.path}};
  model.attributes = read_safetensors(input.source, [&](Tensor tensor) { model.add(std::move(tensor)); });
  parse_text_attributes(model);
  return model;
}

SafetensorsFile make_whole_file(const Model& model) {
  std::vector<const Tensor*> tensors;
  tensors.reserve(model.size());
  for (const Tensor& tensor : model.tensors()) tensors.push_back(&tensor);
  return {std::move(tensors), make_text_attributes(model)};
}

FilePlan plan(const Model& model, const WriteOptions&) {
  FilePlan plan;
  plan.bytes = make_whole_file(model).bytes();
  for (const Tensor& tensor : model.tensors()) plan.tensor_bytes.push_back(tensor.require("data").blob->size());
  return plan;
}

void write(const Model& model, Output& output, const WriteOptions& options) {
  const SafetensorsFile file = make_whole_file(model);
  Meter meter(options.progress, file.tensor_bytes());
  file.write(output.main(), meter);
}

std::vector<std::string> list_losses(const Model& model, const WriteOptions&) {
  const DescribedVocabulary described = make_described_vocabulary(model);
  std::vector<std::string> result = list_safetensors_losses(model, described.attributes);
  if (std::string loss = describe_text_loss(described, "safetensors"); !loss.empty()) result.push_back(std::move(loss));
  return result;
}

std::vector<MetadataKey> list_keys(const Input& input) { return list_safetensors_keys(input.source); }

constexpr std::array<std::string_view, 2> kNames = {"model.safetensors", "adapter_model.safetensors"};

Attributes read_weights(const SourcePtr& source, FunctionRef<void(Tensor)> add_tensor, std::vector<Finding>&) {
  return read_safetensors(source, add_tensor);
}

}  // namespace

const Format kSafetensors = {
    .info = {"safetensors", "a safetensors file", ".safetensors"},
    .holds_bf16 = true,
    .sniff = sniff,
    .read = read,
    .prepare = prepare_with<plan, write, list_losses>,
    .edit = edit_safetensors,
    .list_keys = list_keys,
    .weight_files = WeightFiles{kNames, "model.safetensors.index.json", read_weights, true},
};

}  // namespace poise
