#include "huggingface_seed.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/number_text.hpp"
#include "bytes/utf8.hpp"
#include "family/families.hpp"
#include "formats/safetensors/safetensors.hpp"
#include "support/memory_output.hpp"
#include "target.hpp"
#include "tokenizer/sentencepiece/model.hpp"

namespace poise::fuzz {
namespace {

constexpr std::array kShards = {"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"};

Config make_tiny_config() {
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

// Returns the shard that holds a tensor.
std::size_t find_shard(std::size_t tensor) { return tensor < 4 ? 0 : 1; }

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

std::vector<std::string_view> split_words(std::string_view line) {
  std::vector<std::string_view> words;
  while (!line.empty()) {
    const std::size_t end = std::min(line.find(' '), line.size());
    if (end > 0) words.push_back(line.substr(0, end));
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return words;
}

std::vector<std::byte> parse_hex(std::string_view digits) {
  std::vector<std::byte> bytes;
  for (; digits.size() >= 2; digits.remove_prefix(2)) {
    unsigned byte = 0;
    std::from_chars(digits.data(), digits.data() + 2, byte, 16);
    bytes.push_back(static_cast<std::byte>(byte));
  }
  return bytes;
}

std::string format_hex(std::string_view text) {
  std::string digits;
  for (const char c : text) digits += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return digits;
}

// Returns the tensor that a line describes; std::nullopt if it describes none, or if the tensor takes more than `most`
// bytes.
std::optional<Tensor> parse_listed_tensor(std::string_view line, std::uint64_t most) {
  const auto words = split_words(line);
  const auto dtype = words.size() < 3 ? std::nullopt : dtype_from_name(words[1]);
  if (!dtype) return std::nullopt;
  Shape shape;
  for (std::size_t i = 3; i < words.size() && i < 11; ++i)
    shape.push_back(parse_number_text<std::uint64_t>(words[i]).value_or(1));
  const auto elements = element_count(shape);
  const auto size = elements ? packed_bytes(*dtype, *elements) : std::nullopt;
  const std::vector<std::byte> pattern = parse_hex(words[2]);
  if (!size || *size > most || pattern.empty()) return std::nullopt;
  std::vector<std::byte> bytes(static_cast<std::size_t>(*size));
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = pattern[i % pattern.size()];
  std::string name(words[0]);
  return make_dense(name, std::move(shape), *dtype, make_memory_blob(std::move(bytes), name));
}

std::string make_field(int number, const std::string& value) {
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(value.size())} + value;
}
std::string make_piece(const std::string& text, char type, float score) {
  std::string fixed(sizeof score, '\0');
  std::memcpy(fixed.data(), &score, sizeof score);
  return make_field(1, make_field(1, text) + '\x15' + fixed + '\x18' + type);
}

}  // namespace

void write_huggingface_weights(const std::filesystem::path& directory, bool sharded) {
  std::array<Model, kShards.size()> models;
  const auto tensors = llama::kMistralFamily.tensors.list_all(make_tiny_config());
  for (std::size_t i = 0; i < tensors.size(); ++i) add_weight(models[sharded ? find_shard(i) : 0], tensors[i]);
  if (!sharded) return write_weights(directory / "model.safetensors", models[0]);
  for (std::size_t i = 0; i < kShards.size(); ++i) write_weights(directory / kShards[i], models[i]);
}

void write_listed_weights(const std::filesystem::path& directory, std::string_view list) {
  Model model;
  std::uint64_t left = 64 << 10;
  while (!list.empty()) {
    const std::size_t end = std::min(list.find('\n'), list.size());
    const std::string_view line = list.substr(0, end);
    list.remove_prefix(std::min(end + 1, list.size()));
    if (line.starts_with('@')) {  // "@KEY TEXT" is an entry of the file's metadata
      const std::size_t space = std::min(line.find(' '), line.size());
      model.attributes.set(std::string(line.substr(1, space - 1)), line.substr(std::min(space + 1, line.size())));
      continue;
    }
    auto tensor = parse_listed_tensor(line, left);
    if (!tensor || !is_utf8(tensor->name) || model.find(tensor->name) != nullptr) continue;
    left -= tensor->size_bytes();
    model.add(*std::move(tensor));
  }
  const std::filesystem::path path = directory / "model.safetensors";
  std::filesystem::remove(path);
  try {
    write_weights(path, model);
  } catch (const Error&) {  // safetensors refuses some names and values; then the directory has no weights
  }
}

// Returns seeds of matrices [8, 32] in groups of 16.
std::vector<SchemeSeed> list_scheme_seeds() {
  const auto list = [](std::initializer_list<std::string> lines) {
    std::string text;
    for (const std::string& line : lines) text += "m." + line + "\n";
    return text;
  };
  const std::string numbers =
      "0800000000000000"
      "2000000000000000";
  const std::string state =
      format_hex(R"({"quant_type": "nf4", "blocksize": 64, "dtype": "float16", "shape": [8, 32]})");
  return {
      {"gptq", R"({"quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 16, "desc_act": false}})",
       list({"qweight i32 7654 4 8", "qzeros i32 77 2 1", "scales f16 003c 2 8", "g_idx i32 0000000001000000 32"})},
      {"awq",
       R"({"quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 16, )"
       R"("version": "gemm", "zero_point": true}})",
       list({"qweight i32 7654 32 1", "qzeros i32 77 2 1", "scales f16 003c 2 8"})},
      {"packed",
       R"({"quantization_config": {"quant_method": "compressed-tensors", "format": "pack-quantized", )"
       R"("config_groups": {"g": {"targets": ["Linear"], "weights": {"num_bits": 4, "type": "int", )"
       R"("strategy": "group", "group_size": 16, "symmetric": true}}}}})",
       list({"weight_packed i32 7654 8 4", "weight_scale f16 003c 8 2", "weight_shape i64 " + numbers + " 2"})},
      {"ints",
       R"({"quantization_config": {"quant_method": "compressed-tensors", "format": "int-quantized", )"
       R"("config_groups": {"g": {"targets": ["Linear"], "weights": {"num_bits": 8, "type": "int", )"
       R"("strategy": "channel", "symmetric": true}}}}})",
       list({"weight i8 01fe 8 32", "weight_scale f16 003c 8 1"})},
      {"fp8", R"({"quantization_config": {"quant_method": "fp8", "weight_block_size": [4, 16]}})",
       list({"weight f8_e4m3 38 8 32", "weight_scale_inv f32 0000803f 2 2"})},
      {"nvfp4", R"({"quantization_config": {"quant_method": "modelopt", "quant_algo": "NVFP4"}})",
       list({"weight u8 21 8 16", "weight_scale f8_e4m3 38 8 2", "weight_scale_2 f32 0000803f"})},
      {"nf4", R"({"quantization_config": {"quant_method": "bitsandbytes", "load_in_4bit": true}})",
       list({"weight u8 21 128 1", "weight.absmax f32 0000803f 4", "weight.quant_map f32 0000803f 16",
             "weight.quant_state.bitsandbytes__nf4 u8 " + state + fmt::format(" {}", state.size() / 2)})},
      {"int8", R"({"quantization_config": {"quant_method": "bitsandbytes", "load_in_8bit": true}})",
       list({"weight i8 01fe 8 32", "SCB f32 0000803f 8"})},
      {"hqq", R"({"quantization_config": {"quant_method": "hqq"}})",
       list({"W_q u8 21 8 16", "scale f16 003c 16 1", "zero f16 0040 16 1", "shape i64 " + numbers + " 2",
             "nbits i64 0400000000000000 1", "group_size i64 1000000000000000 1", "axis i64 0100000000000000 1",
             "packing u8 " + format_hex("4bit_u8") + " 7"})},
      {"mlx", R"({"quantization": {"group_size": 16, "bits": 4}})",
       list({"weight u32 21 8 4", "scales f16 003c 8 2", "biases f16 0040 8 2"})},
      {"mxfp4", R"({"quantization_config": {"quant_method": "mxfp4"}})",
       list({"experts_blocks u8 21 2 8 1 16", "experts_scales u8 7f 2 8 1"})},
      {"blocks",
       R"({"quantization_config": {"quant_method": "compressed-tensors", "format": "int-quantized", )"
       R"("config_groups": {"g": {"weights": {"num_bits": 8, "strategy": "block", "block_structure": "6x24"}}}}})",
       list({"weight i8 01fe 8 32", "weight_scale f16 003c 2 2", "weight_zero_point i8 01 2 2"})},
      {"torchao", R"({"quantization_config": {"quant_method": "torchao"}})",
       R"(@m.weight {"_type": "IntxUnpackedToInt8Tensor", "_data": {"block_size": [1, 16]}})"
       "\n" +
           list({"_weight_qdata i8 01fe 8 32", "_weight_scale f16 003c 8 2", "_weight_zero_point i8 01 8 2"})},
      {"gptq-file",
       "{}",
       list({"qweight i32 7654 4 8", "qzeros i32 77 2 1", "scales f16 003c 2 8", "g_idx i32 0000000001000000 32"}),
       {},
       R"({"bits": 4, "group_size": 24})"},
      {"fp8-file", "{}", list({"weight f8_e4m3 38 8 32", "weight_scale f32 0000803f 1"}),
       R"({"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}})",
       R"({"w_bit": 4, "q_group_size": 128, "version": "GEMM"})"},
  };
}

Model make_huggingface_model() {
  Model model;
  model.card.model_type = "mistral";
  model.config = make_tiny_config();
  model.vocabulary = read_sentencepiece(*make_source(bytes_of(make_sentencepiece_seed()), "tokenizer.model"));
  for (const ExpectedTensor& tensor : llama::kMistralFamily.tensors.list_all(make_tiny_config()))
    add_weight(model, tensor);
  return model;
}

std::string make_huggingface_config() { return to_json(config_to_attributes(make_tiny_config(), "mistral"), 2); }

std::string make_huggingface_index() {
  Attributes map;
  const auto tensors = llama::kMistralFamily.tensors.list_all(make_tiny_config());
  for (std::size_t i = 0; i < tensors.size(); ++i) map.set(tensors[i].name, kShards[find_shard(i)]);
  return to_json(Attributes{{"metadata", Attributes{{"total_size", 276}}}, {"weight_map", std::move(map)}}, 2);
}

std::string make_sentencepiece_seed() {
  const std::string pieces = make_piece("<unk>", 2, 0) + make_piece("<s>", 3, 0) + make_piece("</s>", 3, 0) +
                             make_piece("\xe2\x96\x81", 1, -1) + make_piece("a", 1, -2) +
                             make_piece(
                                 "\xe2\x96\x81"
                                 "a",
                                 4, -3);
  const std::string trainer = make_field(2, "\x18\x02");                                 // model_type bpe
  const std::string normalizer = make_field(3, make_field(1, "identity") + "\x18\x01");  // add_dummy_prefix
  return pieces + trainer + normalizer;
}

}  // namespace poise::fuzz
