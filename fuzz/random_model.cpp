#include "random_model.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <iterator>

#include <poise/dtype.hpp>

#include "family/families.hpp"
#include "views/groups.hpp"
#include "views/sparse.hpp"

namespace poise::fuzz {
namespace {

constexpr std::array<const char*, 8> kNames = {"model.embed_tokens.weight",
                                               "model.layers.0.input_layernorm.weight",
                                               "model.layers.3.mlp.up_proj.weight",
                                               "model.layers.0.odd",
                                               "model.norm.weight",
                                               "lm_head.weight",
                                               "x",
                                               "\xc3\xa4\xe2\x96\x81"};

Value make_random_value(Dice& dice, int depth) {
  switch (dice.below(depth > 0 ? 9 : 7)) {
    case 0: return dice.text();
    case 1: return dice.number();
    case 2: return -static_cast<std::int64_t>(dice.number() >> 1);
    case 3: return static_cast<double>(dice.real());
    case 4: return dice.chance();
    case 5: return nullptr;
    case 6: return Value::Bytes(static_cast<std::size_t>(dice.below(5)), std::byte{0xa5});
    case 7: return Value::Array{make_random_value(dice, depth - 1), make_random_value(dice, depth - 1)};
    default:
      return Attributes{{dice.text(), make_random_value(dice, depth - 1)}, {"key", make_random_value(dice, depth - 1)}};
  }
}

Card make_random_card(Dice& dice) {
  return {"mistral", dice.text(), dice.text(), "2024-07-05", "2024-07-06", dice.text(), dice.text()};
}

Config make_random_config(Dice& dice) {
  const auto size = [&] { return static_cast<std::int64_t>(dice.number() % (std::uint64_t{INT32_MAX} + 1)); };
  Config config;
  config.hidden_act = "silu" + dice.text();
  config.tie_word_embeddings = dice.chance();
  config.hidden_size = size();
  config.intermediate_size = size();
  config.max_position_embeddings = size();
  config.num_attention_heads = size();
  config.num_hidden_layers = size();
  config.num_key_value_heads = size();
  config.head_dim = 1 + size() % 65536;
  config.sliding_window = size();
  config.rope_theta = 1 + std::abs(dice.real());
  config.rms_norm_eps = std::abs(dice.real());
  config.initializer_range = std::abs(dice.real());
  return config;
}

// Makes a vocabulary whose types fit its ids and texts, so that no reader detects another numbering of types.
Vocabulary make_random_vocabulary(Dice& dice) {
  Vocabulary vocabulary;
  vocabulary.max_length = static_cast<std::int32_t>(dice.below(5000));
  const std::uint64_t tokens = 1 + dice.below(5);
  vocabulary.unk_id = 0;
  vocabulary.add("<unk>", 0, TokenType::unknown);
  static constexpr std::array kTypes = {TokenType::normal, TokenType::user_defined, TokenType::unused,
                                        TokenType::control};
  for (std::uint64_t id = 1; id < tokens; ++id) {
    const float score = dice.chance() ? -static_cast<float>(id) : dice.real();
    vocabulary.add(dice.chance() ? std::string(1, static_cast<char>(dice.byte() | 1)) : dice.text(), score,
                   kTypes[dice.below(kTypes.size())]);
  }
  return vocabulary;
}

Shape make_random_shape(Dice& dice) {
  Shape shape;
  for (std::uint64_t rank = dice.below(4); rank > 0; --rank) shape.push_back(dice.below(6));
  return shape;
}

// Clears the unused half of the last byte, if there is one.
void clear_unused(std::vector<std::byte>& bytes, const Shape& shape) {
  if (*element_count(shape) % 2 != 0 && !bytes.empty()) bytes.back() &= std::byte{0x0f};
}

// Makes a tensor of values that files may have.
Tensor make_dense(Dice& dice, const std::string& name, Shape shape, DType dtype) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(*packed_bytes(dtype, *element_count(shape))));
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(dtype == DType::boolean ? dice.below(2) : dice.byte());
  if (info(dtype).bits == 4) clear_unused(bytes, shape);
  return make_dense(name, std::move(shape), dtype, make_memory_blob(std::move(bytes), name));
}

// Makes elements from -8 to 8, many of them 0.
Tensor make_small_floats(Dice& dice, const std::string& name, Shape shape) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(*element_count(shape)) * sizeof(float));
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(float)) {
    const float value = dice.chance() ? 0 : static_cast<float>(static_cast<std::int8_t>(dice.byte())) / 16;
    std::memcpy(&bytes[at], &value, sizeof value);
  }
  return make_dense(name, std::move(shape), DType::f32, make_memory_blob(std::move(bytes), name));
}

// Makes codes of a byte each that fit into four bits, signed or not.
Tensor make_affine_codes(Dice& dice, const std::string& name) {
  const DType dtype = dice.chance() ? DType::qint8 : DType::qint4;
  const bool packed = dtype == DType::qint4 && dice.chance();
  const bool ranged = dice.chance();
  const Shape shape = make_random_shape(dice);
  std::vector<std::byte> codes(
      static_cast<std::size_t>(*packed_bytes(packed ? DType::qint4 : DType::qint8, *element_count(shape))));
  for (std::byte& code : codes)
    code = static_cast<std::byte>(dtype == DType::qint8 || packed ? dice.byte() : dice.below(8));
  if (packed) clear_unused(codes, shape);
  Tensor tensor = make_dense(name, shape, dtype, make_memory_blob(std::move(codes), name));
  tensor.layout = make_affine({std::abs(dice.real()), ranged ? -1.5F : 0, ranged ? 2.0F : 0, packed});
  return tensor;
}

Tensor make_random_tensor(Dice& dice, const std::string& name) {
  switch (dice.below(8)) {
    case 0: return make_affine_codes(dice, name);
    case 1:
      return quantize_groups(make_small_floats(dice, name, {1 + dice.below(3), 16}), {dice.chance() ? 4U : 8U, 8});
    case 2: {
      Tensor tensor = make_small_floats(dice, name, {1 + dice.below(3), 1 + dice.below(4)});
      auto sparse = sparsify(tensor, dice.chance() ? Layout::sparse_csr : Layout::sparse_coo, 0);
      return sparse ? std::move(*sparse) : tensor;
    }
    case 3:
    case 4: {
      // every type except the two that need a scale
      const auto dtype = static_cast<DType>(dice.below(static_cast<std::uint64_t>(DType::qint8)));
      return make_dense(dice, name, make_random_shape(dice), dtype);
    }
    default: return make_dense(dice, name, make_random_shape(dice), dice.chance() ? DType::f32 : DType::f16);
  }
}

Model make_random_tiny_llama(Dice& dice) {
  const auto heads = static_cast<std::int64_t>(1 + dice.below(2));
  Model model;
  model.card.model_type = kTinyLlama;
  model.config = make_tiny_llama_config({.model_dim = heads * static_cast<std::int64_t>(1 + dice.below(3)),
                                         .layers = static_cast<std::int64_t>(1 + dice.below(2)),
                                         .heads = heads,
                                         .ffn_hidden_dim = static_cast<std::int64_t>(1 + dice.below(4)),
                                         .positions = static_cast<std::int64_t>(1 + dice.below(4)),
                                         .vocabulary = static_cast<std::int64_t>(1 + dice.below(5)),
                                         .dropout = static_cast<float>(dice.below(101)) / 100});
  for (const ExpectedTensor& expected : tiny_llama::kTinyLlamaFamily.tensors.list_all(*model.config))
    model.add(make_dense(dice, expected.name, expected.shape, DType::f32));
  return model;
}

}  // namespace

std::uint8_t Dice::byte() {
  if (bytes_.empty()) return 0;
  const auto value = std::to_integer<std::uint8_t>(bytes_.front());
  bytes_ = bytes_.subspan(1);
  return value;
}

std::uint64_t Dice::below(std::uint64_t limit) {
  const std::uint64_t value = limit <= 256 ? byte() : static_cast<std::uint64_t>(byte()) << 8 | byte();
  return value % limit;
}

std::uint64_t Dice::number() {
  std::uint64_t value = 0;
  for (std::uint64_t bytes = below(9); bytes > 0; --bytes) value = value << 8 | byte();
  return value;
}

float Dice::real() {
  std::uint32_t bits = 0;
  for (int i = 0; i < 4; ++i) bits = bits << 8 | byte();
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return std::isfinite(value) ? value : static_cast<float>(bits & 0xffff) / 256;
}

std::string Dice::text() {
  static constexpr std::array kPieces = {"a",      "Z9",     "\xc3\xa9", "\xe2\x96\x81", "\xf0\x9f\x99\x82",
                                         "\"\\\n", "<0x41>", "\x7f",     "e\xcc\x81"};
  std::string text;
  for (std::uint64_t pieces = below(4); pieces > 0; --pieces) text += kPieces[below(kPieces.size())];
  if (below(32) == 31) text += '\0';
  return text;
}

Model make_random_model(Dice& dice) {
  if (dice.below(8) == 7) return make_random_tiny_llama(dice);
  Model model;
  if (dice.chance()) model.card = make_random_card(dice);
  if (dice.chance()) model.config = make_random_config(dice);
  if (dice.chance()) model.vocabulary = make_random_vocabulary(dice);
  for (std::uint64_t entries = dice.below(3); entries > 0; --entries)
    model.attributes.set(dice.text(), dice.chance() ? dice.text() : make_random_value(dice, 3));
  for (const char* name : kNames) {
    if (!dice.chance()) continue;
    Tensor tensor = make_random_tensor(dice, name);
    if (dice.below(4) == 3) tensor.attributes.set(dice.text(), make_random_value(dice, 3));
    model.add(std::move(tensor));
  }
  return model;
}

}  // namespace poise::fuzz
