#include "formats/tiny_llama/read.hpp"

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/byte_reader.hpp"
#include "family/check.hpp"
#include "family/tiny_llama.hpp"
#include "formats/tiny_llama/layout.hpp"
#include "io/source_range.hpp"
#include "model/limits.hpp"

namespace poise::tiny_llama {
namespace {

const TensorTable& kTensors = kTinyLlamaFamily.tensors;

void read_magic(ByteReader& reader) {
  const std::uint64_t at = reader.position();
  const std::uint32_t magic = reader.u32("magic number");
  if (magic == kSwappedMagic) {
    reader.fail("magic number",
                "the file begins with the letters \"TLLM\", so its bytes are swapped: a little-endian file begins with "
                "\"MLLT\" (0x544c4c4d); "
                "write it again on a little-endian machine",
                at);
  }
  if (magic != kMagic) reader.fail("magic number", fmt::format("expected 0x{:08x}, found 0x{:08x}", kMagic, magic), at);
}

void read_version(ByteReader& reader) {
  const std::uint64_t at = reader.position();
  const std::uint32_t version = reader.u32("version");
  if (version != kVersion) reader.fail("version", fmt::format("expected {}, found {}", kVersion, version), at);
}

std::int64_t read_size(ByteReader& reader, std::string_view field, std::int64_t most = kMaxModelSize) {
  const std::uint64_t at = reader.position();
  const std::int32_t size = reader.i32(field);
  if (size < 1) reader.fail(field, fmt::format("expected at least 1, found {}", size), at);
  if (size > most) reader.fail(field, fmt::format("expected at most {}, found {}", most, size), at);
  return size;
}

float read_dropout(ByteReader& reader) {
  const std::uint64_t at = reader.position();
  const float dropout = reader.f32("dropout rate");
  if (!(dropout >= 0.0F && dropout <= 1.0F))
    reader.fail("dropout rate", fmt::format("expected 0 to 1, found {}", dropout), at);
  return dropout;
}

Config read_config(ByteReader& reader) {
  const std::uint64_t at = reader.position();
  TinyLlamaSizes sizes;
  sizes.model_dim = read_size(reader, "model dimension");
  sizes.layers = read_size(reader, "number of layers", kMaxLayers);
  const std::uint64_t heads_at = reader.position();
  sizes.heads = read_size(reader, "number of heads", kMaxLayers);
  if (sizes.model_dim % sizes.heads != 0) {
    reader.fail("number of heads", fmt::format("{} do not divide the model dimension {}", sizes.heads, sizes.model_dim),
                heads_at);
  }
  if (sizes.model_dim / sizes.heads > kMaxLayers) {
    reader.fail(
        "number of heads",
        fmt::format("they have {} dimensions each, expected at most {}", sizes.model_dim / sizes.heads, kMaxLayers),
        heads_at);
  }
  sizes.ffn_hidden_dim = read_size(reader, "FFN hidden dimension");
  sizes.positions = read_size(reader, "max sequence length");
  sizes.vocabulary = read_size(reader, "vocabulary size");
  sizes.dropout = read_dropout(reader);
  Config config = tiny_llama_config(sizes);
  if (const auto faults = check_config(config); !faults.empty()) reader.fail("model configuration", faults.front(), at);
  return config;
}

Config read_header(ByteReader& reader) {
  const auto scope = reader.scope("header");
  read_magic(reader);
  if (reader.end() < kHeaderBytes) {
    reader.fail(
        "size",
        fmt::format("the file is cut off: the header alone has {} bytes, the file {}", kHeaderBytes, reader.end()),
        reader.end());
  }
  read_version(reader);
  return read_config(reader);
}

// The header implies the exact size of the file; loops and allocations come after this check.
void require_exact_size(const ByteReader& reader, const Config& config) {
  const auto size = file_size(config);
  if (!size) reader.fail("header", "the arrays it describes would have more than 2^64 bytes", 8);
  reader.require_end(*size, "array");
}

// `called` names the array in errors.
void read_array(ByteReader& reader, const SourcePtr& source, const ExpectedTensor& expected, std::string_view called,
                Model& model) {
  const std::uint64_t at = reader.position();
  Shape found;
  for (std::size_t axis = 0; axis < expected.shape.size(); ++axis) found.push_back(reader.u64(called));
  if (found != expected.shape)
    reader.fail(called, fmt::format("dimensions: expected {}, found {}", to_string(expected.shape), to_string(found)),
                at);
  const std::uint64_t bytes = *packed_bytes(DType::f32, *element_count(found));
  model.add(
      make_dense(expected.name, std::move(found), DType::f32, make_source_blob(source, reader.position(), bytes)));
  reader.skip(bytes, called);
}

void read_layer(ByteReader& reader, const SourcePtr& source, std::int64_t layer, Model& model) {
  const auto scope = reader.scope("layer", layer);
  for (const ExpectedTensor& expected : kTensors.of_layer(*model.config, layer)) {
    read_array(reader, source, expected, kTensors.in_layer(expected.name)->rest, model);
  }
}

}  // namespace

Model read(const Input& input, const ReadOptions&) {
  const SourceRange range(*input.source);
  ByteReader reader(range, "tiny llama");
  Model model;
  model.origin = {input.path, "tllm", input.source->size(), {input.path}};
  model.card.model_type = kTinyLlama;
  model.config = read_header(reader);
  require_exact_size(reader, *model.config);
  for (const ExpectedTensor& expected : kTensors.before_layers(*model.config))
    read_array(reader, input.source, expected, expected.name, model);
  for (std::int64_t layer = 0; layer < model.config->num_hidden_layers; ++layer)
    read_layer(reader, input.source, layer, model);
  for (const ExpectedTensor& expected : kTensors.after_layers(*model.config))
    read_array(reader, input.source, expected, expected.name, model);
  return model;
}

}  // namespace poise::tiny_llama
