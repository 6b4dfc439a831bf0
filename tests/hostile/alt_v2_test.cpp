// Breaks every rule of ALT v2 once (docs/formats/alt.md).
#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "support/hostile_cases.hpp"

namespace poise::hostile {
namespace {

constexpr auto kInvalid = ErrorKind::invalid_file;

ByteFile start() {
  ByteFile file;
  file.i64("marker", 0x616C7400)
      .size_of("size", "marker", "padding")
      .i32("version", 2)
      .i32("alignment", 32)
      .pad("padding", 32);
  return file;
}

ByteFile general() {
  ByteFile file;
  file.i64("marker", 0xCAFEBABE).size_of("size", "marker", "padding");
  file.text("model_type", "mistral")
      .text("base_model", "a/b")
      .text("author", "a")
      .text("created_at", "2024-07-05")
      .text("last_modified", "2024-07-06");
  file.text("license", "MIT").text("uuid", "u").pad("padding", 32);
  return file;
}

ByteFile parameters() {
  ByteFile file;
  file.i64("marker", 0xDEADBEEF).size_of("size", "marker", "padding").text("hidden_act", "silu").u8("tie", 1);
  file.i32("hidden_size", 2)
      .i32("intermediate_size", 1)
      .i32("max_position_embeddings", 8)
      .i32("num_attention_heads", 1)
      .i32("num_hidden_layers", 1);
  file.i32("num_key_value_heads", 1)
      .i32("sliding_window", 0)
      .f32("rope_theta", 10000)
      .f32("rms_norm_eps", 1e-5F)
      .f32("initializer_range", 0.02F);
  file.i32("head_size", 2).pad("padding", 32);
  return file;
}

void add_token(ByteFile& file, const std::string& name, std::string_view text, float score, std::int32_t type) {
  file.text(name + " data", text).f32(name + " score", score).i32(name + " type", type);
}

ByteFile tokenizer() {
  ByteFile file;
  file.i64("marker", 0xBADDCAFE).size_of("size", "marker", "padding");
  file.i32("vocab_size", 4).i32("bos_id", 1).i32("eos_id", 2).i32("pad_id", -1).i32("unk_id", 0).i32("seq_len", 8);
  add_token(file, "token 0", "<unk>", 0, 3);
  add_token(file, "token 1", "<s>", 0, 5);
  add_token(file, "token 2", "</s>", 0, 6);
  add_token(file, "token 3", "abcdefghijklmnopqrst", -1, 0);
  file.pad("padding", 32);
  return file;
}

// component_type, block_index, layer_type, projection_type
using Hints = std::array<std::int32_t, 4>;

void add_tensor(ByteFile& file, const std::string& at, const Hints& hints, const std::vector<std::int32_t>& shape,
                std::string_view name, std::int32_t type, std::string data, float delta = 0, bool packed = false) {
  file.i32(at + " component_type", hints[0])
      .i32(at + " block_index", hints[1])
      .i32(at + " layer_type", hints[2])
      .i32(at + " projection_type", hints[3]);
  file.i32(at + " n_dims", static_cast<std::int64_t>(shape.size()));
  for (std::size_t i = 0; i < shape.size(); ++i) file.i32(at + " dimension " + std::to_string(i), shape[i]);
  file.text(at + " name", name)
      .i32(at + " data_type", type)
      .f32(at + " delta", delta)
      .f32(at + " min", 0)
      .f32(at + " max", 0);
  file.u8(at + " packing_flag", packed ? 1 : 0).raw(at + " data", std::move(data));
}

std::string floats(std::size_t count) { return std::string(4 * count, '\0'); }

// `packed`: a byte holds two codes of the gate matrix.
ByteFile tensors(bool packed) {
  ByteFile file;
  file.i64("marker", 0xFACEFEED).size_of("size", "marker", "padding");
  file.i64("tensor_count", 11).i64("shape_count", 19).i32("block_count", 1).i32("unique_count", 2);
  add_tensor(file, "embed", {1, -1, 0, 0}, {4, 2}, "model.embed_tokens.weight", 0, floats(8));
  add_tensor(file, "norm 1", {0, 0, 3, 0}, {2}, "model.layers.0.input_layernorm.weight", 0, floats(2));
  add_tensor(file, "q", {0, 0, 1, 1}, {2, 2}, "model.layers.0.self_attn.q_proj.weight", 0, floats(4));
  add_tensor(file, "k", {0, 0, 1, 2}, {2, 2}, "model.layers.0.self_attn.k_proj.weight", 1, std::string(8, '\0'));
  add_tensor(file, "v", {0, 0, 1, 3}, {2, 2}, "model.layers.0.self_attn.v_proj.weight", 2, std::string(4, '\1'), 0.5F);
  add_tensor(file, "o", {0, 0, 1, 4}, {2, 2}, "model.layers.0.self_attn.o_proj.weight", 3, std::string(2, '\x21'), 0.5F,
             true);
  add_tensor(file, "norm 2", {0, 0, 4, 0}, {2}, "model.layers.0.post_attention_layernorm.weight", 0, floats(2));
  add_tensor(file, "gate", {0, 0, 2, 5}, {1, 2}, "model.layers.0.mlp.gate_proj.weight", 3, packed ? "\x11" : "\1\1",
             0.5F, packed);
  add_tensor(file, "up", {0, 0, 2, 6}, {1, 2}, "model.layers.0.mlp.up_proj.weight", 0, floats(2));
  add_tensor(file, "down", {0, 0, 2, 7}, {2, 1}, "model.layers.0.mlp.down_proj.weight", 0, floats(2));
  add_tensor(file, "norm", {3, -3, 0, 0}, {2}, "model.norm.weight", 0, floats(2));
  file.pad("padding", 32);
  return file;
}

ByteFile end() {
  ByteFile file;
  file.i64("marker", 0x0FFFFFFF);
  return file;
}

// Returns the whole file. Its fields are called "general: author" and so on.
ByteFile whole(bool packed = true) {
  ByteFile file;
  file.append(start(), "start: ")
      .append(general(), "general: ")
      .append(parameters(), "parameters: ")
      .append(tokenizer(), "tokenizer: ");
  return file.append(tensors(packed), "tensors: ").append(end(), "end: ");
}

// Returns a file of three sections and the end, with another section among them.
ByteFile with_section(const ByteFile& extra) {
  ByteFile file;
  return file.append(start(), "start: ")
      .append(general(), "general: ")
      .append(parameters(), "parameters: ")
      .append(extra, "extra: ")
      .append(end(), "end: ");
}

// Returns a file with one tensor that belongs to no layer, so that only the tested rule can be broken.
ByteFile with_tensor(const std::vector<std::int32_t>& shape, std::string data) {
  ByteFile section;
  section.i64("marker", 0xFACEFEED).size_of("size", "marker", "padding");
  section.i64("tensor_count", 1)
      .i64("shape_count", static_cast<std::int64_t>(shape.size()))
      .i32("block_count", 0)
      .i32("unique_count", 1);
  add_tensor(section, "x", {-1, -4, -1, -1}, shape, "x", 0, std::move(data));
  section.pad("padding", 32);
  ByteFile file;
  return file.append(start(), "start: ").append(section, "tensors: ").append(end(), "end: ");
}

const HostileTable kTable("alt", [] { return whole().bytes(); });

TEST(HostileAltV2, TheFileIsSoundBeforeItIsBroken) { expect_sound("hostile.alt", whole()); }

TEST(HostileAltV2, Start) {
  expect_refused("hostile.alt", std::array{
                                    Case{"the marker is ALT's", [] { return whole().i64("start: marker", 0x616C7401); },
                                         kInvalid, "start: marker", "start: section_marker"},
                                    Case{"the size is positive", [] { return whole().i64("start: size", -32); },
                                         kInvalid, "start: size", "start: section_size"},
                                    Case{"the size counts the section", [] { return whole().i64("start: size", 64); },
                                         kInvalid, "start: size", "start: section_size"},
                                    Case{"the version is known", [] { return whole().i32("start: version", 3); },
                                         kInvalid, "start: version", "start: magic_version"},
                                    Case{"the version is not 0", [] { return whole().i32("start: version", 0); },
                                         kInvalid, "start: version", "start: magic_version"},
                                    Case{"the alignment is 32", [] { return whole().i32("start: alignment", 64); },
                                         kInvalid, "start: alignment", "start: magic_alignment"},
                                    Case{"the alignment is not 0", [] { return whole().i32("start: alignment", 0); },
                                         kInvalid, "start: alignment", "start: magic_alignment"},
                                    Case{"the padding is there", [] { return whole().cut("start: padding"); }, kInvalid,
                                         "start: padding", "padding"},
                                });
}

TEST(HostileAltV2, Sections) {
  expect_refused("hostile.alt",
                 std::array{
                     Case{"a section begins with a marker", [] { return whole().i64("general: marker", 7); }, kInvalid,
                          "general: marker", "section_marker"},
                     Case{"a marker has 64 bits", [] { return whole().i64("general: marker", 0x1CAFEBABE); }, kInvalid,
                          "general: marker", "section_marker"},
                     Case{"a section stands once", [] { return with_section(parameters()); }, kInvalid, "extra: marker",
                          "parameters section appears twice"},
                     Case{"sections stand in order", [] { return with_section(general()); }, kInvalid, "extra: marker",
                          "general section appears twice or too late"},
                     Case{"a size is not negative", [] { return whole().i64("general: size", -1); }, kInvalid,
                          "general: size", "general: section_size"},
                     Case{"a size ends inside the file", [] { return whole().i64("general: size", 1 << 20); }, kInvalid,
                          "general: size", "general: section_size"},
                     Case{"a size does not overflow", [] { return whole().i64("general: size", INT64_MAX); }, kInvalid,
                          "general: size", "general: section_size"},
                     Case{"a size is not one too small", [] { return whole().i64("general: size", 127); }, kInvalid,
                          "general: size", "general: section_size"},
                     Case{"a size is not one too large", [] { return whole().i64("general: size", 129); }, kInvalid,
                          "general: size", "general: section_size"},
                     Case{"a size is not 0", [] { return whole().i64("parameters: size", 0); }, kInvalid,
                          "parameters: size", "parameters: section_size"},
                     Case{"the padding of the last section is there", [] { return whole().cut("tensors: padding", 1); },
                          kInvalid, "tensors: size", "tensors: section_size"},
                 });
}

TEST(HostileAltV2, Texts) {
  expect_refused(
      "hostile.alt",
      std::array{
          Case{"a length is not negative", [] { return whole().i32("general: author length", -1); }, kInvalid,
               "general: author length", "general: author: length"},
          Case{"a length ends inside the file", [] { return whole().i32("general: author length", INT32_MAX); },
               kInvalid, "general: author", "general: author: text"},
          Case{"the last text, too", [] { return whole().i32("general: uuid length", INT32_MIN); }, kInvalid,
               "general: uuid length", "general: uuid: length"},
          Case{"text is UTF-8", [] { return whole().raw("general: author", "\xff"); }, kInvalid, "general: author",
               "general: author: text: expected UTF-8"},
          Case{"text has no overlong forms", [] { return whole().raw("general: base_model", "\xc0\xaf/"); }, kInvalid,
               "general: base_model", "expected UTF-8"},
          Case{"text has no surrogates", [] { return whole().raw("general: license", "\xed\xa0\x80"); }, kInvalid,
               "general: license", "expected UTF-8"},
          Case{"text has no NUL", [] { return whole().raw("general: license", std::string("M\0T", 3)); }, kInvalid,
               "general: license", "general: license: text: holds a NUL"},
      });
}

TEST(HostileAltV2, Parameters) {
  expect_refused("hostile.alt",
                 std::array{
                     Case{"hidden_act has a length", [] { return whole().i32("parameters: hidden_act length", -4); },
                          kInvalid, "parameters: hidden_act length", "hidden_act: length"},
                     Case{"hidden_act is text", [] { return whole().raw("parameters: hidden_act", "s\xe4lu"); },
                          kInvalid, "parameters: hidden_act", "hidden_act: text"},
                     Case{"a bool is 0 or 1", [] { return whole().u8("parameters: tie", 2); }, kInvalid,
                          "parameters: tie", "tie_word_embeddings: expected 0 or 1, found 2"},
                     Case{"every field is there", [] { return whole().cut("parameters: head_size", 3); }, kInvalid,
                          "parameters: size", "parameters: section_size"},
                 });
  expect_faults(
      "hostile.alt",
      std::array{
          VerifyCase{"hidden_size is positive", [] { return whole().i32("parameters: hidden_size", -2); }, kNowhere,
                     "hidden_size is -2"},
          VerifyCase{"there are heads", [] { return whole().i32("parameters: num_attention_heads", 0); }, kNowhere,
                     "num_attention_heads is 0"},
          VerifyCase{"there are layers", [] { return whole().i32("parameters: num_hidden_layers", 0); }, kNowhere,
                     "num_hidden_layers is 0"},
          VerifyCase{"there are not more layers than tensors",
                     [] { return whole().i32("parameters: num_hidden_layers", 60000); }, kNowhere, "num_hidden_layers"},
          VerifyCase{"the heads can be shared", [] { return whole().i32("parameters: num_key_value_heads", 3); },
                     kNowhere, "not a multiple of num_key_value_heads"},
          VerifyCase{"rope_theta is positive", [] { return whole().f32("parameters: rope_theta", -1); }, kNowhere,
                     "rope_theta is -1"},
          VerifyCase{"rms_norm_eps is finite",
                     [] { return whole().f32("parameters: rms_norm_eps", std::numeric_limits<float>::infinity()); },
                     kNowhere, "rms_norm_eps"},
          VerifyCase{"there is an output matrix", [] { return whole().u8("parameters: tie", 0); }, kNowhere,
                     "lm_head.weight is missing"},
      });
}

TEST(HostileAltV2, Tokenizer) {
  expect_refused(
      "hostile.alt",
      std::array{
          Case{"vocab_size is not negative", [] { return whole().i32("tokenizer: vocab_size", -1); }, kInvalid,
               "tokenizer: vocab_size", "tokenizer: vocab_size"},
          Case{"vocab_size fits the file", [] { return whole().i32("tokenizer: vocab_size", INT32_MAX); }, kInvalid,
               "tokenizer: vocab_size", "tokenizer: vocab_size"},
          Case{"there are no fewer tokens", [] { return whole().i32("tokenizer: vocab_size", 5); }, kInvalid,
               "tensors: marker", "token 4"},
          Case{"there are no more tokens", [] { return whole().i32("tokenizer: vocab_size", 3); }, kInvalid,
               "tokenizer: size", "section_size"},
          Case{"seq_len is not negative", [] { return whole().i32("tokenizer: seq_len", -1); }, kInvalid,
               "tokenizer: seq_len", "tokenizer: seq_len: expected 0 or more, found -1"},
          Case{"seq_len is not the least integer", [] { return whole().i32("tokenizer: seq_len", INT32_MIN); },
               kInvalid, "tokenizer: seq_len", "tokenizer: seq_len: expected 0 or more, found -2147483648"},
          Case{"a score is a number",
               [] { return whole().f32("tokenizer: token 2 score", std::numeric_limits<float>::quiet_NaN()); },
               kInvalid, "tokenizer: token 2 score", "token 2: token_score: expected a number, found NaN"},
          Case{"a token has a length", [] { return whole().i32("tokenizer: token 2 data length", -1); }, kInvalid,
               "tokenizer: token 2 data length", "token 2: token_data: length"},
          Case{"a token ends inside the file", [] { return whole().i32("tokenizer: token 3 data length", INT32_MAX); },
               kInvalid, "tokenizer: token 3 data", "token 3: token_data: text"},
          Case{"a token is UTF-8", [] { return whole().raw("tokenizer: token 3 data", "abcdefghijklmnopqrs\x80"); },
               kInvalid, "tokenizer: token 3 data", "token 3: token_data: text: expected UTF-8"},
          Case{"a token has no NUL", [] { return whole().raw("tokenizer: token 1 data", std::string("<\0>", 3)); },
               kInvalid, "tokenizer: token 1 data", "token 1: token_data: text: holds a NUL"},
          Case{"a type is not negative", [] { return whole().i32("tokenizer: token 1 type", -1); }, kInvalid,
               "tokenizer: token 1 type", "token 1: token_type"},
          Case{"a type is one of nine", [] { return whole().i32("tokenizer: token 1 type", 9); }, kInvalid,
               "tokenizer: token 1 type", "token 1: token_type: expected 0 to 8, found 9"},
      });
  expect_faults(
      "hostile.alt",
      std::array{
          VerifyCase{"bos_id is a token", [] { return whole().i32("tokenizer: bos_id", 4); }, kNowhere, "bos_id is 4"},
          VerifyCase{"eos_id is a token or -1", [] { return whole().i32("tokenizer: eos_id", -2); }, kNowhere,
                     "eos_id is -2"},
          VerifyCase{"pad_id is a token", [] { return whole().i32("tokenizer: pad_id", INT32_MAX); }, kNowhere,
                     "pad_id is 2147483647"},
      });
}

TEST(HostileAltV2, TensorCounts) {
  expect_refused("hostile.alt",
                 std::array{
                     Case{"tensor_count is not negative", [] { return whole().i64("tensors: tensor_count", -1); },
                          kInvalid, "tensors: tensor_count", "tensors: tensor_count"},
                     Case{"tensor_count fits the file", [] { return whole().i64("tensors: tensor_count", INT64_MAX); },
                          kInvalid, "tensors: tensor_count", "tensors: tensor_count"},
                     Case{"there are no more tensors", [] { return whole().i64("tensors: tensor_count", 10); },
                          kInvalid, "tensors: shape_count", "shape_count"},
                     Case{"shape_count is not negative", [] { return whole().i64("tensors: shape_count", -1); },
                          kInvalid, "tensors: shape_count", "tensors: shape_count"},
                     Case{"shape_count is exact", [] { return whole().i64("tensors: shape_count", 18); }, kInvalid,
                          "tensors: shape_count", "shape_count: the tensors have 19"},
                     Case{"block_count is not negative", [] { return whole().i32("tensors: block_count", -1); },
                          kInvalid, "tensors: block_count", "tensors: block_count"},
                     Case{"block_count is exact", [] { return whole().i32("tensors: block_count", 2); }, kInvalid,
                          "tensors: block_count", "block_count"},
                     Case{"unique_count is exact", [] { return whole().i32("tensors: unique_count", 3); }, kInvalid,
                          "tensors: unique_count", "unique_count"},
                 });
}

TEST(HostileAltV2, Tensors) {
  expect_refused(
      "hostile.alt",
      std::array{
          Case{"n_dims is not negative", [] { return whole().i32("tensors: q n_dims", -1); }, kInvalid,
               "tensors: q n_dims", "tensor 2: n_dims"},
          Case{"n_dims is at most 64", [] { return whole().i32("tensors: q n_dims", 65); }, kInvalid,
               "tensors: q n_dims", "tensor 2: n_dims: expected at most 64"},
          Case{"n_dims is not enormous", [] { return whole().i32("tensors: q n_dims", INT32_MAX); }, kInvalid,
               "tensors: q n_dims", "tensor 2: n_dims"},
          Case{"a dimension is not negative", [] { return whole().i32("tensors: q dimension 1", -2); }, kInvalid,
               "tensors: q dimension 1", "tensor 2: dimension"},
          Case{"the shape fits 64 bits",
               [] {
                 return with_tensor({INT32_MAX, INT32_MAX, INT32_MAX}, "x");
               },
               kInvalid, "tensors: x data_type", "overflows 64 bits"},
          Case{"the bytes fit 64 bits",
               [] {
                 return with_tensor({INT32_MAX, INT32_MAX, 2}, "x");
               },
               kInvalid, "tensors: x data_type", "overflows 64 bits"},
          Case{"the data lie in the file",
               [] {
                 return with_tensor({INT32_MAX, 2}, "x");
               },
               kInvalid, "tensors: x data", "tensor 0: data"},
          Case{"a name is not negative", [] { return whole().i32("tensors: q name length", -1); }, kInvalid,
               "tensors: q name length", "tensor 2: name: length"},
          Case{"a name ends inside the file", [] { return whole().i32("tensors: q name length", INT32_MAX); }, kInvalid,
               "tensors: q name", "tensor 2: name: text"},
          Case{"a name is UTF-8", [] { return with_tensor({1}, floats(1)).raw("tensors: x name", "\xfe"); }, kInvalid,
               "tensors: x name", "name: text: expected UTF-8"},
          Case{"a name has no NUL",
               [] { return with_tensor({1}, floats(1)).raw("tensors: x name", std::string(1, '\0')); }, kInvalid,
               "tensors: x name", "name: text: holds a NUL"},
          Case{"a name stands once",
               [] { return whole().text("tensors: k name", "model.layers.0.self_attn.q_proj.weight"); }, kInvalid,
               "tensors: k name length", "tensor 3: name: \"model.layers.0.self_attn.q_proj.weight\" appears twice"},
          Case{"data_type is known", [] { return whole().i32("tensors: q data_type", 5); }, kInvalid,
               "tensors: q data_type", "tensor 2: data_type: expected 0 to 4, found 5"},
          Case{"data_type is not negative", [] { return whole().i32("tensors: q data_type", -1); }, kInvalid,
               "tensors: q data_type", "tensor 2: data_type"},
          Case{"min is not above max", [] { return whole().f32("tensors: v min", 1); }, kInvalid, "tensors: v min",
               "tensor 4: min: expected at most the max, which is 0, found 1"},
          Case{"nor in 4 bits", [] { return whole().f32("tensors: o max", -1); }, kInvalid, "tensors: o min",
               "tensor 5: min: expected at most the max"},
          Case{"packing_flag is 0 or 1", [] { return whole().u8("tensors: o packing_flag", 2); }, kInvalid,
               "tensors: o packing_flag", "tensor 5: packing_flag"},
          Case{"packing_flag is not -1", [] { return whole().u8("tensors: o packing_flag", 255); }, kInvalid,
               "tensors: o packing_flag", "tensor 5: packing_flag"},
      });
  expect_faults(
      "hostile.alt",
      std::array{
          VerifyCase{"an element is finite",
                     [] { return whole().raw("tensors: norm data", le(0x7fc00000, 4) + floats(1)); },
                     "tensors: norm data", "tensor model.norm.weight: data: element 0 is not finite", true},
          VerifyCase{"delta is finite",
                     [] { return whole().f32("tensors: v delta", std::numeric_limits<float>::quiet_NaN()); },
                     "tensors: v delta", "delta is nan"},
          VerifyCase{"delta is not negative", [] { return whole().f32("tensors: v delta", -1); }, "tensors: v delta",
                     "delta is -1"},
          VerifyCase{"min is finite",
                     [] { return whole().f32("tensors: v min", -std::numeric_limits<float>::infinity()); },
                     "tensors: v delta", "min and max are -inf"},
          VerifyCase{"a code fits four bits", [] { return whole(false).raw("tensors: gate data", "\x10\x01"); },
                     "tensors: gate data", "element 0: the code 16 does not fit 4 bits"},
          VerifyCase{"a shape is the configuration's",
                     [] { return whole().i32("tensors: up dimension 0", 2).i32("tensors: up dimension 1", 1); },
                     "tensors: up data", "up_proj.weight"},
      });
}

TEST(HostileAltV2, End) {
  expect_refused(
      "hostile.alt",
      std::array{
          Case{"the end marker is there", [] { return whole().cut("end: marker"); }, kInvalid, "end: marker",
               "end marker"},
          Case{"the end marker is whole", [] { return whole().cut("end: marker", 5); }, kInvalid, "end: marker",
               "end marker"},
          Case{"the end marker is right", [] { return whole().i64("end: marker", 0x0FFFFFFE); }, kInvalid,
               "end: marker", "section_marker"},
          Case{"the end marker has 64 bits", [] { return whole().i64("end: marker", 0x10FFFFFFF); }, kInvalid,
               "end: marker", "section_marker"},
          Case{"nothing is behind it", [] { return whole().u8("more", 0); }, kInvalid, "end: marker", "end marker"},
          Case{"not even another one", [] { return whole().i64("more", 0x0FFFFFFF); }, kInvalid, "end: marker",
               "end marker"},
      });
}

TEST(HostileAltV2, FlippedBits) {
  expect_flips_show(
      "hostile.alt", whole(),
      std::array<std::string_view, 4>{"tensors: embed data", "tensors: k data", "tensors: v data", "tensors: o data"});
}

}  // namespace
}  // namespace poise::hostile
