// Reads and writes Tiny Llama weight files. tiny_llama.hpp has the layout. Source: docs/formats/tiny-llama.md.
#include "formats/registry.hpp"

#include <array>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <poise/error.hpp>

#include "bytes/byte_reader.hpp"
#include "bytes/byte_writer.hpp"
#include "bytes/checked.hpp"
#include "bytes/little_endian.hpp"
#include "family/check.hpp"
#include "family/config_json.hpp"
#include "family/families.hpp"
#include "formats/losses.hpp"
#include "formats/metadata.hpp"
#include "formats/tiny_llama/tiny_llama.hpp"
#include "io/meter.hpp"
#include "model/limits.hpp"
#include "pack/pump.hpp"
#include "pack/read_ahead.hpp"
#include "tokenizer/gguf/vocabulary.hpp"
#include "views/dense.hpp"

namespace poise::tiny_llama {
namespace {

std::optional<std::uint64_t> count_array_bytes(const Shape& shape) {
  const auto elements = element_count(shape);
  const auto values = elements ? packed_bytes(DType::f32, *elements) : std::nullopt;
  return values ? checked_add(count_dimension_bytes(shape), *values) : std::nullopt;
}

std::optional<std::uint64_t> add_array_bytes(std::optional<std::uint64_t> sum,
                                             const std::vector<ExpectedTensor>& tensors) {
  for (const ExpectedTensor& tensor : tensors) {
    const auto bytes = count_array_bytes(tensor.shape);
    if (!sum || !bytes) return std::nullopt;
    sum = checked_add(*sum, *bytes);
  }
  return sum;
}

}  // namespace

std::optional<std::uint64_t> compute_file_size(const Config& config) {
  const TensorTable& tensors = kTinyLlamaFamily.tensors;
  const auto layer = add_array_bytes(0, tensors.list_layer(config, 0));
  const auto layers = layer ? checked_mul(*layer, static_cast<std::uint64_t>(config.num_hidden_layers)) : std::nullopt;
  const auto with_header = layers ? checked_add(*layers, kHeaderBytes) : std::nullopt;
  return add_array_bytes(add_array_bytes(with_header, tensors.list_before_layers(config)),
                         tensors.list_after_layers(config));
}

namespace {

const TensorTable& kTensors = kTinyLlamaFamily.tensors;

void read_magic(ByteReader& reader) {
  const std::uint64_t at = reader.position();
  const std::uint32_t magic = reader.read_u32("magic number");
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
  const std::uint32_t version = reader.read_u32("version");
  if (version != kVersion) reader.fail("version", fmt::format("expected {}, found {}", kVersion, version), at);
}

std::int64_t read_size(ByteReader& reader, std::string_view field, std::int64_t most = kMaxModelSize) {
  const std::uint64_t at = reader.position();
  const std::int32_t size = reader.read_i32(field);
  if (size < 1) reader.fail(field, fmt::format("expected at least 1, found {}", size), at);
  if (size > most) reader.fail(field, fmt::format("expected at most {}, found {}", most, size), at);
  return size;
}

float read_dropout(ByteReader& reader) {
  const std::uint64_t at = reader.position();
  const float dropout = reader.read_f32("dropout rate");
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
  Config config = make_tiny_llama_config(sizes);
  if (const auto faults = check_config(config); !faults.empty()) reader.fail("model configuration", faults.front(), at);
  return config;
}

Config read_header(ByteReader& reader) {
  const auto scope = reader.open_scope("header");
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

// Throws invalid_file unless the file has exactly the size that the header implies. Loops and allocations come after
// this check, so that a damaged header cannot make them long.
void require_exact_size(const ByteReader& reader, const Config& config) {
  const auto size = compute_file_size(config);
  if (!size) reader.fail("header", "the arrays it describes would have more than 2^64 bytes", 8);
  reader.require_end(*size, "array");
}

// Reads an array. `called` is the name of the array in errors.
void read_array(ByteReader& reader, const SourcePtr& source, const ExpectedTensor& expected, std::string_view called,
                Model& model) {
  const std::uint64_t at = reader.position();
  Shape found;
  for (std::size_t axis = 0; axis < expected.shape.size(); ++axis) found.push_back(reader.read_u64(called));
  if (found != expected.shape)
    reader.fail(called, fmt::format("dimensions: expected {}, found {}", to_string(expected.shape), to_string(found)),
                at);
  const std::uint64_t bytes = *packed_bytes(DType::f32, *element_count(found));
  model.add(
      make_dense(expected.name, std::move(found), DType::f32, make_source_blob(source, reader.position(), bytes)));
  reader.skip(bytes, called);
}

void read_layer(ByteReader& reader, const SourcePtr& source, std::int64_t layer, Model& model) {
  const auto scope = reader.open_scope("layer", layer);
  for (const ExpectedTensor& expected : kTensors.list_layer(*model.config, layer)) {
    read_array(reader, source, expected, kTensors.split_layer_name(expected.name)->rest, model);
  }
}

}  // namespace

Model read(const Input& input, const ReadOptions&) {
  ByteReader reader(*input.source, "tiny llama");
  Model model;
  model.origin = {input.path, "tllm", input.source->size(), {input.path}};
  model.card.model_type = kTinyLlama;
  model.config = read_header(reader);
  require_exact_size(reader, *model.config);
  for (const ExpectedTensor& expected : kTensors.list_before_layers(*model.config))
    read_array(reader, input.source, expected, expected.name, model);
  for (std::int64_t layer = 0; layer < model.config->num_hidden_layers; ++layer)
    read_layer(reader, input.source, layer, model);
  for (const ExpectedTensor& expected : kTensors.list_after_layers(*model.config))
    read_array(reader, input.source, expected, expected.name, model);
  return model;
}

namespace {

// Collects faults of a model, and their remedies.
struct Faults {
  std::vector<std::string> sentences;
  std::vector<Remedy> remedies;

  void add(std::string sentence) { sentences.push_back(std::move(sentence)); }
  void add(std::string sentence, Remedy remedy) {
    add(std::move(sentence));
    if (remedies.empty() || remedies.back() != remedy) remedies.push_back(std::move(remedy));
  }
};

[[noreturn]] void refuse(std::string_view reason, const std::vector<Remedy>& remedies = {}) {
  Error error(ErrorKind::unsupported, fmt::format("this cannot be a Tiny Llama weight file: {}", reason));
  for (const Remedy& remedy : remedies) error = std::move(error).with(remedy);
  throw error;
}

// Adds a fault for values that are not dense float32, or do not have the size of the shape.
void add_value_faults(const Tensor& tensor, Faults& faults) {
  if (tensor.layout != Layout::dense || tensor.require("data").dtype != DType::f32) {
    std::string sentence =
        fmt::format("tensor {} is {}: the file holds dense float32 only", tensor.name, describe_storage(tensor));
    if (!has_float_elements(tensor)) return faults.add(std::move(sentence));
    return faults.add(std::move(sentence), {.kind = Remedy::Kind::dtype, .value = "f32"});
  }
  const Part& data = tensor.require("data");
  if (data.blob->size() != tensor.elements() * sizeof(float)) {
    faults.add(fmt::format("tensor {} has {} bytes, its shape {} needs {}", tensor.name, data.blob->size(),
                           to_string(tensor.shape), tensor.elements() * sizeof(float)));
  }
}

// Returns true for tensors of layers that the configuration lacks: check_consistency() reports them.
bool is_reported_already(const Tensor& tensor, const Config& config) {
  const auto layer = kTinyLlamaFamily.tensors.split_layer_name(tensor.name);
  return layer && layer->number >= config.num_hidden_layers;
}

// Adds faults for tensors that the configuration does not require, and for values of a wrong type or size.
void add_tensor_faults(const Model& model, Faults& faults) {
  std::set<std::string, std::less<>> names;
  for (ExpectedTensor& tensor : kTinyLlamaFamily.tensors.list_all(*model.config)) names.insert(std::move(tensor.name));
  for (const Tensor& tensor : model.tensors()) {
    if (names.contains(tensor.name)) {
      add_value_faults(tensor, faults);
    } else if (!is_reported_already(tensor, *model.config)) {
      faults.add(fmt::format("tensor {} has no place in the file", tensor.name),
                 {.kind = Remedy::Kind::skip, .tensor = tensor.name});
    }
  }
}

Faults find_faults(const Model& model) {
  const Config& config = *model.config;
  Faults faults{check_consistency(model), {}};
  const bool sizes_make_sense = check_config(config, kTinyLlamaFamily).empty();
  if (sizes_make_sense && static_cast<std::uint64_t>(config.num_hidden_layers) <= model.size())
    add_tensor_faults(model, faults);
  return faults;
}

void require_writable(const Model& model) {
  const std::string& type = model.card.model_type;
  if (!type.empty() && type != kTinyLlama) refuse(fmt::format("the model_type is {}, expected tiny_llama", type));
  if (!model.config) refuse("the model has no configuration, which the format requires");
  if (type.empty())
    refuse("the model has no model_type", {{.kind = Remedy::Kind::model_type, .value = std::string(kTinyLlama)}});
  refuse_config_effects("tllm", model);  // keys that change the computation may need tensors unknown to find_faults()
  Faults faults = find_faults(model);
  if (faults.sentences.empty() && !compute_file_size(*model.config)) faults.add("it would have more than 2^64 bytes");
  // check_consistency() accepts a model without tensors.
  if (model.size() == 0) faults.add("the model has no tensors");
  const auto& sentences = faults.sentences;
  if (sentences.size() == 1) refuse(sentences.front(), faults.remedies);
  if (!sentences.empty())
    refuse(fmt::format("{} faults:\n  {}", sentences.size(), fmt::join(sentences, "\n  ")), faults.remedies);
}

void append_header(ByteWriter& writer, const Config& config) {
  writer.append_u32(kMagic);
  writer.append_u32(kVersion);
  for (const std::int64_t size : {config.hidden_size, config.num_hidden_layers, config.num_attention_heads,
                                  config.intermediate_size, config.max_position_embeddings, config.vocab_size}) {
    writer.append_i32(static_cast<std::int32_t>(size));
  }
  writer.append_f32(config.dropout);
}

}  // namespace

void write(const Model& model, Output& output, const WriteOptions& options) {
  require_writable(model);
  Sink& sink = output.main();
  Meter meter(options.progress, *compute_file_size(*model.config));
  ByteWriter fields;
  append_header(fields, *model.config);
  const auto tensors = kTinyLlamaFamily.tensors.list_all(*model.config);
  const ReadAhead ahead(ReadAhead::list_blobs(tensors, [&](const ExpectedTensor& expected) -> const Blob& {
    return *model.find(expected.name)->require("data").blob;
  }));
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const ExpectedTensor& expected = tensors[i];
    for (const std::uint64_t length : expected.shape) fields.append_u64(length);
    sink.write(fields.bytes());
    meter.advance(fields.size(), expected.name);
    fields.clear();
    write_blob(ahead[i], sink, meter, expected.name);
  }
}

FilePlan plan(const Model& model, const WriteOptions&) {
  require_writable(model);
  FilePlan plan{{}, compute_file_size(*model.config), true};
  for (const Tensor& tensor : model.tensors()) plan.tensor_bytes.push_back(tensor.require("data").blob->size());
  return plan;
}

std::vector<std::string> list_losses(const Model& model, const WriteOptions&) {
  Losses losses("a Tiny Llama weight file");
  losses.note_card(model.card);
  losses.note_vocabulary(model, "programs take it from vocab.txt and merges.txt");
  losses.note_other_config_keys(model);
  const Config usual;
  const Config config = model.config.value_or(usual);
  losses.note_if(config.rope_theta != usual.rope_theta, fmt::format("rope_theta ({})", config.rope_theta));
  losses.note_if(config.initializer_range != usual.initializer_range,
                 fmt::format("initializer_range ({})", config.initializer_range));
  losses.note_if(!model.attributes.empty(), fmt::format("attributes ({} of them)", model.attributes.size()));
  const std::string tensors = describe_tensor_attributes(model);
  losses.note_if(!tensors.empty(), tensors);
  return losses.release_sentences();
}

}  // namespace poise::tiny_llama

namespace poise {

namespace {

constexpr std::array<std::string_view, 1> kExtensions = {".bin"};  // the ending that Tiny Llama gives its files

// Recognizes a swapped magic number, too, so that the reader can explain the fault.
bool sniff(const Input& input) {
  const auto bytes = read_first_bytes(input, sizeof tiny_llama::kMagic);
  if (bytes.size() < sizeof tiny_llama::kMagic) return false;
  const auto magic = load_le<std::uint32_t>(bytes.data());
  return magic == tiny_llama::kMagic || magic == tiny_llama::kSwappedMagic;
}

}  // namespace

const Format kTinyLlamaFormat = {
    .info = {"tllm", "a Tiny Llama weight file", ".tllm"},
    .extensions = kExtensions,
    .holds_bf16 = true,  // it holds only float32, but to refuse bf16 is clearer than to convert silently
    .holds_half = false,
    .sniff = sniff,
    .read = tiny_llama::read,
    .prepare = prepare_with<tiny_llama::plan, tiny_llama::write, tiny_llama::list_losses>,
};

}  // namespace poise
