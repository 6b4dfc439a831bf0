// Breaks every rule of ALT v1 once (docs/formats/alt.md).
#include <gtest/gtest.h>

#include <array>

#include "support/hostile_cases.hpp"

namespace poise::hostile {
namespace {

constexpr auto kInvalid = ErrorKind::invalid_file;

ByteFile parameters() {
  ByteFile file;
  file.i64("marker", 0xDEADBEEF).size_of("size", "marker", "padding").text("model_type", "mistral");
  file.i32("hidden_size", 2)
      .i32("num_hidden_layers", 1)
      .i32("intermediate_size", 1)
      .i32("num_attention_heads", 1)
      .i32("num_key_value_heads", 1);
  file.i32("sliding_window", 0)
      .f32("rope_theta", 10000)
      .f32("rms_norm_eps", 1e-5F)
      .i32("head_size", 2)
      .i32("data_type", 0)
      .i32("context_length", 8);
  return file.pad("padding", 32);
}

ByteFile tokenizer() {
  ByteFile file;
  file.i64("marker", 0xBADDCAFE).size_of("size", "marker", "padding");
  file.i32("vocab_size", 4).i32("bos_id", 1).i32("eos_id", 2).i32("pad_id", -1).i32("unk_id", 0);
  file.text("token 0", "<unk>")
      .text("token 1", "<s>")
      .text("token 2", "</s>")
      .text("token 3", "a token of more than thirty-two bytes");
  return file.pad("padding", 32);
}

std::string floats(std::size_t count) { return std::string(4 * count, '\0'); }

void add_tensor(ByteFile& file, const std::string& at, const std::vector<std::int32_t>& shape, std::string_view name,
                std::int32_t type, std::string data) {
  file.i32(at + " n_dims", static_cast<std::int64_t>(shape.size()))
      .i32(at + " name_length", static_cast<std::int64_t>(name.size()));
  file.i32(at + " data_type", type);
  for (std::size_t i = 0; i < shape.size(); ++i) file.i32(at + " dimension " + std::to_string(i), shape[i]);
  file.raw(at + " name", std::string(name)).raw(at + " data", std::move(data));
}

ByteFile tensors(const std::vector<std::int32_t>& shape_of_x, std::string data_of_x) {
  ByteFile file;
  file.i64("marker", 0xFACEFEED).size_of("size", "marker", "padding");
  file.i64("tensor_count", 2).i64("shape_count", static_cast<std::int64_t>(1 + shape_of_x.size()));
  add_tensor(file, "a", {2}, "aa", 0, floats(2));
  add_tensor(file, "x", shape_of_x, "xx", 1, std::move(data_of_x));
  return file.pad("padding", 32);
}

// Returns the tensors that the parameters require.
ByteFile all_tensors() {
  ByteFile file;
  file.i64("marker", 0xFACEFEED).size_of("size", "marker", "padding").i64("tensor_count", 11).i64("shape_count", 19);
  const std::string layer = "model.layers.0.";
  add_tensor(file, "embed", {4, 2}, "model.embed_tokens.weight", 0, floats(8));
  add_tensor(file, "norm 1", {2}, layer + "input_layernorm.weight", 0, floats(2));
  for (const char* name : {"q", "k", "v", "o"})
    add_tensor(file, name, {2, 2}, layer + "self_attn." + name + "_proj.weight", 0, floats(4));
  add_tensor(file, "norm 2", {2}, layer + "post_attention_layernorm.weight", 0, floats(2));
  for (const char* name : {"gate", "up"})
    add_tensor(file, name, {1, 2}, layer + "mlp." + name + "_proj.weight", 0, floats(2));
  add_tensor(file, "down", {2, 1}, layer + "mlp.down_proj.weight", 0, floats(2));
  add_tensor(file, "norm", {2}, "model.norm.weight", 0, floats(2));
  return file.pad("padding", 32);
}

// Returns the whole file. Its fields are called "parameters: head_size" and so on.
ByteFile with_tensors(const ByteFile& section) {
  ByteFile file;
  file.i32("magic", 0x616C7463)
      .pad("magic padding", 32)
      .append(parameters(), "parameters: ")
      .append(tokenizer(), "tokenizer: ");
  return file.append(section, "tensors: ").i32("end", 0x0FFFFFFF);
}

ByteFile with_tensor(const std::vector<std::int32_t>& shape, std::string data) {
  return with_tensors(tensors(shape, std::move(data)));
}

ByteFile whole() { return with_tensor({2, 2}, std::string(8, '\0')); }

const HostileTable kTable("alt1", [] { return with_tensors(all_tensors()).bytes(); });

TEST(HostileAltV1, TheFileIsSoundBeforeItIsBroken) { expect_sound("hostile.alt", with_tensors(all_tensors())); }

TEST(HostileAltV1, Sections) {
  expect_refused(
      "hostile.alt",
      std::array{
          Case{"the magic is padded to 32", [] { return whole().cut("magic padding", 3); }, kInvalid, "magic padding",
               "padding"},
          Case{"a general section is version 2's", [] { return whole().i64("parameters: marker", 0xCAFEBABE); },
               kInvalid, "parameters: marker", "section_marker"},
          Case{"sections stand in order", [] { return whole().i64("tokenizer: marker", 0xDEADBEEF); }, kInvalid,
               "tokenizer: marker", "parameters section appears twice"},
          Case{"a size is not negative", [] { return whole().i64("parameters: size", -96); }, kInvalid,
               "parameters: size", "parameters: section_size"},
          Case{"a size ends inside the file", [] { return whole().i64("tensors: size", 1 << 20); }, kInvalid,
               "tensors: size", "tensors: section_size"},
          Case{"a size is exact", [] { return whole().i64("parameters: size", 97); }, kInvalid, "parameters: size",
               "parameters: section_size"},
          Case{"the end marker is there", [] { return whole().cut("end"); }, kInvalid, "end", "end marker"},
          Case{"the end marker is whole", [] { return whole().cut("end", 2); }, kInvalid, "end", "end marker"},
          Case{"the end marker is right", [] { return whole().i32("end", 0x0FFFFFF0); }, kInvalid, "end",
               "section_marker"},
          Case{"nothing is behind it", [] { return whole().u8("more", 1); }, kInvalid, "end", "end marker"},
      });
}

TEST(HostileAltV1, ParametersAndTokenizer) {
  expect_refused(
      "hostile.alt",
      std::array{
          Case{"model_type has a length", [] { return whole().i32("parameters: model_type length", -1); }, kInvalid,
               "parameters: model_type length", "parameters: model_type: length"},
          Case{"model_type is UTF-8", [] { return whole().raw("parameters: model_type", "mistra\xff"); }, kInvalid,
               "parameters: model_type", "model_type: text"},
          Case{"data_type is known", [] { return whole().i32("parameters: data_type", 3); }, kInvalid,
               "parameters: data_type", "parameters: data_type"},
          Case{"data_type is not negative", [] { return whole().i32("parameters: data_type", -1); }, kInvalid,
               "parameters: data_type", "parameters: data_type"},
          Case{"context_length is not negative", [] { return whole().i32("parameters: context_length", -8); }, kInvalid,
               "parameters: context_length", "parameters: context_length"},
          Case{"vocab_size is not negative", [] { return whole().i32("tokenizer: vocab_size", -1); }, kInvalid,
               "tokenizer: vocab_size", "tokenizer: vocab_size"},
          Case{"vocab_size fits the file", [] { return whole().i32("tokenizer: vocab_size", INT32_MAX); }, kInvalid,
               kAnywhere, "tokenizer: vocab_size"},
          Case{"a token has a length", [] { return whole().i32("tokenizer: token 1 length", -1); }, kInvalid,
               "tokenizer: token 1 length", "token 1: token_data: length"},
          Case{"a token ends inside the file", [] { return whole().i32("tokenizer: token 2 length", INT32_MAX); },
               kInvalid, "tokenizer: token 2", "token 2: token_data: text"},
          Case{"a token is UTF-8", [] { return whole().raw("tokenizer: token 1", "<\xc0>"); }, kInvalid,
               "tokenizer: token 1", "token 1: token_data: text: expected UTF-8"},
          Case{"a token has no NUL", [] { return whole().raw("tokenizer: token 1", std::string("\0s>", 3)); }, kInvalid,
               "tokenizer: token 1", "holds a NUL"},
          Case{"there are no more tokens", [] { return whole().i32("tokenizer: vocab_size", 3); }, kInvalid,
               "tokenizer: size", "tokenizer: section_size"},
      });
}

TEST(HostileAltV1, Tensors) {
  expect_refused(
      "hostile.alt",
      std::array{
          Case{"tensor_count is not negative", [] { return whole().i64("tensors: tensor_count", -1); }, kInvalid,
               "tensors: tensor_count", "tensor_count"},
          Case{"tensor_count fits the file", [] { return whole().i64("tensors: tensor_count", INT64_MAX); }, kInvalid,
               "tensors: tensor_count", "tensor_count"},
          Case{"shape_count is not negative", [] { return whole().i64("tensors: shape_count", INT64_MIN); }, kInvalid,
               "tensors: shape_count", "shape_count"},
          Case{"shape_count is exact", [] { return whole().i64("tensors: shape_count", 2); }, kInvalid,
               "tensors: shape_count", "the tensors have 3 dimensions"},
          Case{"n_dims is not negative", [] { return whole().i32("tensors: x n_dims", -1); }, kInvalid,
               "tensors: x n_dims", "tensor 1: n_dims"},
          Case{"n_dims is at most 64", [] { return whole().i32("tensors: x n_dims", 65); }, kInvalid,
               "tensors: x n_dims", "tensor 1: n_dims"},
          Case{"name_length is not negative", [] { return whole().i32("tensors: x name_length", -1); }, kInvalid,
               "tensors: x name_length", "tensor 1: name_length"},
          Case{"a name ends inside the file", [] { return whole().i32("tensors: x name_length", INT32_MAX); }, kInvalid,
               "tensors: x name", "tensor 1: name"},
          Case{"a name stands once", [] { return whole().raw("tensors: x name", "aa"); }, kInvalid, "tensors: x name",
               "\"aa\" appears twice"},
          Case{"a name is UTF-8", [] { return whole().raw("tensors: x name", "x\xf8"); }, kInvalid, "tensors: x name",
               "tensor 1: name: expected UTF-8"},
          Case{"data_type is known", [] { return whole().i32("tensors: x data_type", 3); }, kInvalid,
               "tensors: x data_type", "tensor 1: data_type: expected 0 to 2, found 3"},
          Case{"a dimension is not negative", [] { return whole().i32("tensors: x dimension 0", -1); }, kInvalid,
               "tensors: x dimension 0", "tensor 1: dimension"},
          Case{"the bytes fit 64 bits",
               [] {
                 return with_tensor({INT32_MAX, INT32_MAX, 4}, "xx");
               },
               kInvalid, "tensors: x data_type", "overflows 64 bits"},
          Case{"the data lie in the file",
               [] {
                 return with_tensor({INT32_MAX, INT32_MAX}, "xx");
               },
               kInvalid, "tensors: x data", "tensor 1: data"},
      });
}

}  // namespace
}  // namespace poise::hostile
