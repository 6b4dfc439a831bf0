#include "formats/alt/file_builder.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace poise {
namespace {

struct Shaped {
  const char* name;
  std::int32_t component, block, layer, projection;
  std::int32_t rows, columns;  // columns 0: a vector
};

// hidden 2, intermediate 3, one head, vocabulary of 5.
constexpr Shaped kTensors[] = {
    {"model.embed_tokens.weight", 1, -1, 0, 0, 5, 2},
    {"model.layers.0.input_layernorm.weight", 0, 0, 3, 0, 2, 0},
    {"model.layers.0.self_attn.q_proj.weight", 0, 0, 1, 1, 2, 2},
    {"model.layers.0.self_attn.k_proj.weight", 0, 0, 1, 2, 2, 2},
    {"model.layers.0.self_attn.v_proj.weight", 0, 0, 1, 3, 2, 2},
    {"model.layers.0.self_attn.o_proj.weight", 0, 0, 1, 4, 2, 2},
    {"model.layers.0.post_attention_layernorm.weight", 0, 0, 4, 0, 2, 0},
    {"model.layers.0.mlp.gate_proj.weight", 0, 0, 2, 5, 3, 2},
    {"model.layers.0.mlp.up_proj.weight", 0, 0, 2, 6, 3, 2},
    {"model.layers.0.mlp.down_proj.weight", 0, 0, 2, 7, 2, 3},
    {"model.norm.weight", 3, -3, 0, 0, 2, 0},
    {"lm_head.weight", 2, -2, 0, 0, 5, 2},
};
constexpr std::int64_t kTensorCount = 12;
constexpr std::int64_t kShapeCount = 21;

std::int32_t rank(const Shaped& tensor) { return tensor.columns == 0 ? 1 : 2; }

}  // namespace

void FileBuilder::raw(std::string_view value) {
  const auto* from = reinterpret_cast<const std::byte*>(value.data());
  bytes_.insert(bytes_.end(), from, from + value.size());
}

void FileBuilder::text(std::string_view value) {
  i32(static_cast<std::int64_t>(value.size()));
  raw(value);
}

void FileBuilder::pad() { bytes_.resize((bytes_.size() + 31) / 32 * 32); }

void FileBuilder::section(std::int64_t marker, std::int64_t ids, const std::function<void()>& fields) {
  const std::size_t begin = bytes_.size();
  i64(marker);
  i64(0);
  fields();
  const auto no_padding = static_cast<std::int64_t>(bytes_.size() - begin);
  pad();
  std::int64_t size = static_cast<std::int64_t>(bytes_.size() - begin);
  if (sizes == Sizes::no_padding) size = no_padding;
  if (sizes == Sizes::fields) size = no_padding - 16;
  if (sizes == Sizes::fields_without_ids) size = no_padding - 16 - ids;
  std::memcpy(bytes_.data() + begin + 8, &size, sizeof size);
}

void FileBuilder::put_parameters() {
  text("silu");
  raw(std::string_view("\0", 1));
  for (const std::int32_t value : {2, 3, 64, 1, 1, 1}) i32(value);
  i32(sliding_window);
  if (alt_c_parameters) {
    i32(2);
    f32(1e-5F);
    f32(10000);
    f32(0.02F);
  } else {
    f32(10000);
    f32(1e-5F);
    f32(0.02F);
    i32(2);
  }
}

void FileBuilder::put_tokens_v2() {
  i32(static_cast<std::int64_t>(tokens.size()));
  for (const std::int32_t id : {1, 2, -1, 0}) i32(id);
  if (seq_len) i32(64);
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    const TokenFields& token = tokens[id];
    const std::int32_t type = alt_c_types ? token.alt_c_type : token.type;
    if (alt_c_tokens) {
      f32(token.score);
      i32(type);
      i32(static_cast<std::int64_t>(id));
      text(token.text);
    } else {
      text(token.text);
      f32(token.score);
      i32(type);
    }
  }
}

void FileBuilder::put_tensors_v2() {
  i64(kTensorCount);
  i64(kShapeCount);
  i32(1);
  i32(3);
  for (const Shaped& tensor : kTensors) {
    for (const std::int32_t hint : {tensor.component, tensor.block, tensor.layer, tensor.projection}) i32(hint);
    i32(rank(tensor));
    i32(tensor.rows);
    if (tensor.columns > 0) i32(tensor.columns);
    text(tensor.name);
    i32(0);  // float32
    for (int i = 0; i < 3; ++i) f32(0);
    raw(std::string_view("\0", 1));
    for (std::int32_t i = 0; i < tensor.rows * std::max(tensor.columns, 1); ++i) f32(static_cast<float>(i) - 2);
  }
}

void FileBuilder::put_tensors_v1() {
  i64(kTensorCount);
  i64(kShapeCount);
  for (const Shaped& tensor : kTensors) {
    i32(rank(tensor));
    i32(static_cast<std::int64_t>(std::strlen(tensor.name)));
    i32(0);  // float32
    i32(tensor.rows);
    if (tensor.columns > 0) i32(tensor.columns);
    raw(tensor.name);
    for (std::int32_t i = 0; i < tensor.rows * std::max(tensor.columns, 1); ++i) f32(static_cast<float>(i) - 2);
  }
}

std::vector<std::byte> FileBuilder::v2() {
  bytes_.clear();
  section(start_marker, 0, [&] {
    i32(2);
    i32(32);
  });
  if (general) {
    section(0xCAFEBABE, 0, [&] {
      for (const char* value : {"mistral", "nobody/tiny", "nobody"}) text(value);
      text(created_at);
      for (const char* value : {"2024-12-24", "apache-2.0", "00000000-0000-8000-8000-000000000001"}) text(value);
    });
  }
  if (parameters) section(0xDEADBEEF, 0, [&] { put_parameters(); });
  if (tokenizer) section(0xBADDCAFE, 4 * static_cast<std::int64_t>(tokens.size()), [&] { put_tokens_v2(); });
  if (tensors) section(0xFACEFEED, 0, [&] { put_tensors_v2(); });
  i32(0x0FFFFFFF);
  if (!short_end_marker) i32(0);
  return std::move(bytes_);
}

std::vector<std::byte> FileBuilder::v1() {
  bytes_.clear();
  i32(0x616C7463);
  pad();
  if (parameters) {
    section(0xDEADBEEF, 0, [&] {
      text("mistral");
      for (const std::int32_t value : {2, 1, 3, 1, 1}) i32(value);
      i32(sliding_window);
      f32(10000);
      f32(1e-5F);
      for (const std::int32_t value : {2, 0, 64}) i32(value);
    });
  }
  if (tokenizer) {
    const std::size_t begin = bytes_.size();
    section(0xBADDCAFE, 0, [&] {
      if (size_twice) i64(0);
      i32(static_cast<std::int64_t>(tokens.size()));
      for (const std::int32_t id : {1, 2, -1, 0}) i32(id);
      for (const TokenFields& token : tokens) text(token.text);
    });
    if (size_twice) std::memcpy(bytes_.data() + begin + 16, bytes_.data() + begin + 8, 8);
  }
  if (tensors) section(0xFACEFEED, 0, [&] { put_tensors_v1(); });
  i32(0x0FFFFFFF);
  if (long_end_marker) i32(0);
  return std::move(bytes_);
}

namespace {

// Offsets that were counted by hand check the builder itself.
TEST(FileBuilder, SectionsStandWhereTheSpecificationPutsThem) {
  FileBuilder builder;
  const auto bytes = builder.v2();
  EXPECT_EQ(bytes[32], std::byte{0xBE});   // general
  EXPECT_EQ(bytes[192], std::byte{0xEF});  // parameters: 32 + 16 + 7 * 4 + 7 + 11 + 6 + 10 + 10 + 10 + 36 = 166
  EXPECT_EQ(bytes.size() % 32, 8U);
}

}  // namespace
}  // namespace poise
