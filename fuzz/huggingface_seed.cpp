#include "huggingface_seed.hpp"

#include <array>
#include <cstring>

#include <fmt/format.h>

#include "family/llama.hpp"
#include "formats/safetensors/safetensors.hpp"
#include "target.hpp"
#include "tokenizer/sentencepiece/model.hpp"

namespace poise::fuzz {
namespace {

constexpr std::array kShards = {"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"};

Config tiny_config() {
  Config config;
  config.hidden_size = 4;
  config.intermediate_size = 3;
  config.max_position_embeddings = 8;
  config.num_attention_heads = 2;
  config.num_hidden_layers = 1;
  config.num_key_value_heads = 1;
  config.head_dim = 2;
  config.vocab_size = 6;
  return config;
}

// The shard that holds a tensor.
std::size_t shard_of(std::size_t tensor) { return tensor < 4 ? 0 : 1; }

void write_weights(const std::filesystem::path& path, const Model& model) {
  MemoryOutput output(path.filename().string());
  write_model(model, kSafetensors, output, {});
  write_file(path, output.take());
}

void add_weight(Model& model, const ExpectedTensor& expected) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(*packed_bytes(DType::bf16, *element_count(expected.shape))),
                               std::byte{0x3c});
  model.add(make_dense(expected.name, expected.shape, DType::bf16, make_memory_blob(std::move(bytes), expected.name)));
}

std::string field(int number, const std::string& value) {
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(value.size())} + value;
}
std::string piece(const std::string& text, char type, float score) {
  std::string fixed(sizeof score, '\0');
  std::memcpy(fixed.data(), &score, sizeof score);
  return field(1, field(1, text) + '\x15' + fixed + '\x18' + type);
}

}  // namespace

void write_huggingface_weights(const std::filesystem::path& directory, bool sharded) {
  std::array<Model, kShards.size()> models;
  const auto tensors = kMistralFamily.tensors.all(tiny_config());
  for (std::size_t i = 0; i < tensors.size(); ++i) add_weight(models[sharded ? shard_of(i) : 0], tensors[i]);
  if (!sharded) return write_weights(directory / "model.safetensors", models[0]);
  for (std::size_t i = 0; i < kShards.size(); ++i) write_weights(directory / kShards[i], models[i]);
}

Model huggingface_model() {
  Model model;
  model.card.model_type = "mistral";
  model.config = tiny_config();
  model.vocabulary = read_sentencepiece(*source(bytes_of(sentencepiece_seed()), "tokenizer.model"));
  for (const ExpectedTensor& tensor : kMistralFamily.tensors.all(tiny_config())) add_weight(model, tensor);
  return model;
}

std::string huggingface_config() { return to_json(config_to_attributes(tiny_config(), "mistral"), 2); }

std::string huggingface_index() {
  Attributes map;
  const auto tensors = kMistralFamily.tensors.all(tiny_config());
  for (std::size_t i = 0; i < tensors.size(); ++i) map.set(tensors[i].name, kShards[shard_of(i)]);
  return to_json(Attributes{{"metadata", Attributes{{"total_size", 276}}}, {"weight_map", std::move(map)}}, 2);
}

std::string sentencepiece_seed() {
  const std::string pieces = piece("<unk>", 2, 0) + piece("<s>", 3, 0) + piece("</s>", 3, 0) +
                             piece("\xe2\x96\x81", 1, -1) + piece("a", 1, -2) +
                             piece(
                                 "\xe2\x96\x81"
                                 "a",
                                 4, -3);
  const std::string trainer = field(2, "\x18\x02");                            // model_type bpe
  const std::string normalizer = field(3, field(1, "identity") + "\x18\x01");  // add_dummy_prefix
  return pieces + trainer + normalizer;
}

}  // namespace poise::fuzz
