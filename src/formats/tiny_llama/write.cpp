#include "formats/tiny_llama/write.hpp"

#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <poise/error.hpp>

#include "bytes/byte_writer.hpp"
#include "family/check.hpp"
#include "family/config_json.hpp"
#include "family/tiny_llama.hpp"
#include "formats/losses.hpp"
#include "formats/metadata.hpp"
#include "formats/refusal.hpp"
#include "formats/tiny_llama/layout.hpp"
#include "io/meter.hpp"
#include "pack/pump.hpp"
#include "pack/read_ahead.hpp"
#include "tokenizer/gguf/vocabulary.hpp"
#include "views/dense.hpp"

namespace poise::tiny_llama {
namespace {

// Faults of a model, and their remedies.
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

// Checks that values are float32, and as many as the shape requires.
void check_values(const Tensor& tensor, Faults& faults) {
  if (tensor.layout != Layout::dense || tensor.require("data").dtype != DType::f32) {
    std::string sentence =
        fmt::format("tensor {} is {}: the file holds dense float32 only", tensor.name, storage_name(tensor));
    if (!has_float_elements(tensor)) return faults.add(std::move(sentence));
    return faults.add(std::move(sentence), {.kind = Remedy::Kind::dtype, .value = "f32"});
  }
  const Part& data = tensor.require("data");
  if (data.blob->size() != tensor.elements() * sizeof(float)) {
    faults.add(fmt::format("tensor {} has {} bytes, its shape {} needs {}", tensor.name, data.blob->size(),
                           to_string(tensor.shape), tensor.elements() * sizeof(float)));
  }
}

bool is_listed_already(const Tensor& tensor, const Config& config) {
  const auto layer = kTinyLlamaFamily.tensors.in_layer(tensor.name);
  return layer && layer->number >= config.num_hidden_layers;
}

// Reports tensors that the configuration does not require, and wrong values.
void check_tensors(const Model& model, Faults& faults) {
  std::set<std::string, std::less<>> names;
  for (ExpectedTensor& tensor : kTinyLlamaFamily.tensors.all(*model.config)) names.insert(std::move(tensor.name));
  for (const Tensor& tensor : model.tensors()) {
    if (names.contains(tensor.name)) {
      check_values(tensor, faults);
    } else if (!is_listed_already(tensor, *model.config)) {
      faults.add(fmt::format("tensor {} has no place in the file", tensor.name),
                 {.kind = Remedy::Kind::skip, .tensor = tensor.name});
    }
  }
}

Faults faults_of(const Model& model) {
  const Config& config = *model.config;
  Faults faults{check_consistency(model), {}};
  const bool sizes_make_sense = check_config(config, kTinyLlamaFamily).empty();
  if (sizes_make_sense && static_cast<std::uint64_t>(config.num_hidden_layers) <= model.size())
    check_tensors(model, faults);
  return faults;
}

void require_writable(const Model& model) {
  const std::string& type = model.card.model_type;
  if (!type.empty() && type != kTinyLlama)
    refuse(fmt::format("the model is a {}, the file holds a tiny_llama only", type));
  if (!model.config) refuse("the model has no configuration, and the file begins with one");
  if (type.empty())
    refuse("the model does not say what it is", {{.kind = Remedy::Kind::model_type, .value = std::string(kTinyLlama)}});
  require_no_effects("tllm", model);  // with such keys check_consistency() does not know the tensors
  Faults faults = faults_of(model);
  if (faults.sentences.empty() && !file_size(*model.config)) faults.add("it would have more than 2^64 bytes");
  // An empty model agrees with any configuration, but lacks every tensor.
  if (model.size() == 0) faults.add("the model has no tensors");
  const auto& sentences = faults.sentences;
  if (sentences.size() == 1) refuse(sentences.front(), faults.remedies);
  if (!sentences.empty())
    refuse(fmt::format("{} faults:\n  {}", sentences.size(), fmt::join(sentences, "\n  ")), faults.remedies);
}

void add_header(ByteWriter& writer, const Config& config) {
  writer.u32(kMagic);
  writer.u32(kVersion);
  for (const std::int64_t size : {config.hidden_size, config.num_hidden_layers, config.num_attention_heads,
                                  config.intermediate_size, config.max_position_embeddings, config.vocab_size}) {
    writer.i32(static_cast<std::int32_t>(size));
  }
  writer.f32(config.dropout);
}

}  // namespace

void write(const Model& model, Output& output, const WriteOptions& options) {
  require_writable(model);
  Sink& sink = output.main();
  Meter meter(options.progress, *file_size(*model.config));
  ByteWriter fields;
  add_header(fields, *model.config);
  const auto tensors = kTinyLlamaFamily.tensors.all(*model.config);
  const ReadAhead ahead(ReadAhead::of(tensors, [&](const ExpectedTensor& expected) -> const Blob& {
    return *model.find(expected.name)->require("data").blob;
  }));
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const ExpectedTensor& expected = tensors[i];
    for (const std::uint64_t length : expected.shape) fields.u64(length);
    sink.write(fields.bytes());
    meter.advance(fields.size(), expected.name);
    fields.clear();
    pump(ahead[i], sink, meter, expected.name);
  }
}

FilePlan plan(const Model& model, const WriteOptions&) {
  require_writable(model);
  FilePlan plan{{}, file_size(*model.config), true};
  for (const Tensor& tensor : model.tensors()) plan.tensor_bytes.push_back(tensor.require("data").blob->size());
  return plan;
}

std::vector<std::string> losses(const Model& model, const WriteOptions&) {
  Losses losses("a Tiny Llama weight file");
  losses.note_card(model.card);
  losses.note_vocabulary(model, "programs take it from vocab.txt and merges.txt");
  losses.note_other_config_keys(model);
  losses.note_if(!model.attributes.empty(), fmt::format("attributes ({} of them)", model.attributes.size()));
  return losses.take();
}

}  // namespace poise::tiny_llama
