// Breaks every rule of the Tiny Llama weight file once ("File Structure" and "Validation" of its specification).
#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "support/hostile_cases.hpp"

namespace poise::hostile {
namespace {

constexpr auto kInvalid = ErrorKind::invalid_file;

void add_matrix(ByteFile& file, const std::string& name, std::uint64_t rows, std::uint64_t columns) {
  file.u64(name + " rows", rows).u64(name + " columns", columns).raw(name, std::string(4 * rows * columns, '\0'));
}
void add_vector(ByteFile& file, const std::string& name, std::uint64_t size) {
  file.u64(name + " size", size).raw(name, std::string(4 * size, '\0'));
}

// Returns a file with D = 2, F = 3, S = 4, V = 5.
ByteFile whole() {
  ByteFile file;
  file.i32("magic", 0x544C4C4D)
      .i32("version", 1)
      .i32("dimension", 2)
      .i32("layers", 1)
      .i32("heads", 1)
      .i32("hidden", 3)
      .i32("positions", 4);
  file.i32("vocabulary", 5).f32("dropout", 0.1F);
  add_matrix(file, "embedding", 5, 2);
  add_matrix(file, "position", 4, 2);
  for (const char* name : {"query", "key", "value", "output"}) add_matrix(file, name, 2, 2);
  add_matrix(file, "linear1", 2, 3);
  add_vector(file, "linear1 bias", 3);
  add_matrix(file, "linear2", 3, 2);
  add_vector(file, "linear2 bias", 2);
  for (const char* name : {"norm1", "norm1 bias", "norm2", "norm2 bias"}) add_vector(file, name, 2);
  add_matrix(file, "projection", 2, 5);
  return file;
}

const HostileTable kTable("tllm", [] { return whole().bytes(); });

TEST(HostileTinyLlama, TheFileIsSoundBeforeItIsBroken) { expect_sound("hostile.tllm", whole()); }

TEST(HostileTinyLlama, Header) {
  expect_refused(
      "hostile.tllm",
      std::array{
          Case{"the magic number is right", [] { return whole().i32("magic", 0x544C4C4E); }, kInvalid, "magic",
               "header: magic number: expected 0x544c4c4d, found 0x544c4c4e"},
          Case{"the magic number is not swapped", [] { return whole().raw("magic", "TLLM"); }, kInvalid, "magic",
               "its bytes are swapped"},
          Case{"the version is 1", [] { return whole().i32("version", 2); }, kInvalid, "version",
               "header: version: expected 1, found 2"},
          Case{"the header is whole", [] { return whole().cut("dropout", 3); }, kInvalid, kEndOfFile,
               "header: size: the file is cut off"},
          Case{"the dimension is positive", [] { return whole().i32("dimension", 0); }, kInvalid, "dimension",
               "model dimension: expected at least 1, found 0"},
          Case{"the dimension is not negative", [] { return whole().i32("dimension", -2); }, kInvalid, "dimension",
               "model dimension"},
          Case{"there are layers", [] { return whole().i32("layers", 0); }, kInvalid, "layers", "number of layers"},
          Case{"the layers are a sane number", [] { return whole().i32("layers", INT32_MAX); }, kInvalid, "layers",
               "number of layers: expected at most 65536, found 2147483647"},
          Case{"there are heads", [] { return whole().i32("heads", 0); }, kInvalid, "heads", "number of heads"},
          Case{"the heads divide the dimension", [] { return whole().i32("heads", 3); }, kInvalid, "heads",
               "number of heads: 3 do not divide"},
          Case{"there are hidden units", [] { return whole().i32("hidden", -1); }, kInvalid, "hidden",
               "FFN hidden dimension"},
          Case{"there are positions", [] { return whole().i32("positions", 0); }, kInvalid, "positions",
               "max sequence length"},
          Case{"there are tokens", [] { return whole().i32("vocabulary", INT32_MIN); }, kInvalid, "vocabulary",
               "vocabulary size"},
          Case{"dropout is not negative", [] { return whole().f32("dropout", -0.1F); }, kInvalid, "dropout",
               "dropout rate"},
          Case{"dropout is at most 1", [] { return whole().f32("dropout", 1.5F); }, kInvalid, "dropout",
               "dropout rate"},
          Case{"dropout is a number", [] { return whole().f32("dropout", std::numeric_limits<float>::quiet_NaN()); },
               kInvalid, "dropout", "dropout rate"},
          Case{"the size follows from the header", [] { return whole().i32("layers", 2); }, kInvalid, kEndOfFile,
               "the file is cut off"},
          Case{"the size fits 64 bits",
               [] {
                 return whole()
                     .i32("dimension", 32767 * 65536)
                     .i32("heads", 32767)
                     .i32("hidden", INT32_MAX)
                     .i32("layers", 65536);
               },
               kInvalid, "dimension", "more than 2^64 bytes"},
          Case{"no byte is missing", [] { return whole().cut("projection", 39); }, kInvalid, kEndOfFile,
               "the file is cut off"},
          Case{"no byte is behind the last array", [] { return whole().u8("more", 0); }, kInvalid, "more",
               "1 bytes after the last array"},
      });
}

TEST(HostileTinyLlama, Arrays) {
  expect_refused(
      "hostile.tllm",
      std::array{
          Case{"embedding rows", [] { return whole().u64("embedding rows", 6); }, kInvalid, "embedding rows",
               "embedding.weight: dimensions: expected [5, 2], found [6, 2]"},
          Case{"embedding columns", [] { return whole().u64("embedding columns", 1); }, kInvalid, "embedding rows",
               "embedding.weight: dimensions"},
          Case{"embedding transposed", [] { return whole().u64("embedding rows", 2).u64("embedding columns", 5); },
               kInvalid, "embedding rows", "embedding.weight: dimensions"},
          Case{"rows are not enormous", [] { return whole().u64("embedding rows", UINT64_MAX); }, kInvalid,
               "embedding rows", "embedding.weight: dimensions"},
          Case{"position rows", [] { return whole().u64("position rows", 5); }, kInvalid, "position rows",
               "position_embedding.weight: dimensions"},
          Case{"query", [] { return whole().u64("query rows", 0); }, kInvalid, "query rows",
               "layer 0: attention.query.weight: dimensions"},
          Case{"key", [] { return whole().u64("key columns", 3); }, kInvalid, "key rows",
               "layer 0: attention.key.weight: dimensions"},
          Case{"value", [] { return whole().u64("value rows", 3); }, kInvalid, "value rows",
               "layer 0: attention.value.weight: dimensions"},
          Case{"output", [] { return whole().u64("output rows", 1ULL << 63); }, kInvalid, "output rows",
               "layer 0: attention.output.weight: dimensions"},
          Case{"linear1", [] { return whole().u64("linear1 rows", 3).u64("linear1 columns", 2); }, kInvalid,
               "linear1 rows", "layer 0: ffn.linear1.weight: dimensions"},
          Case{"linear1 bias", [] { return whole().u64("linear1 bias size", 2); }, kInvalid, "linear1 bias size",
               "layer 0: ffn.linear1.bias: dimensions"},
          Case{"linear2", [] { return whole().u64("linear2 columns", 0); }, kInvalid, "linear2 rows",
               "layer 0: ffn.linear2.weight: dimensions"},
          Case{"linear2 bias", [] { return whole().u64("linear2 bias size", 3); }, kInvalid, "linear2 bias size",
               "layer 0: ffn.linear2.bias: dimensions"},
          Case{"norm1", [] { return whole().u64("norm1 size", 1); }, kInvalid, "norm1 size",
               "layer 0: norm1.weight: dimensions"},
          Case{"norm1 bias", [] { return whole().u64("norm1 bias size", 1); }, kInvalid, "norm1 bias size",
               "layer 0: norm1.bias: dimensions"},
          Case{"norm2", [] { return whole().u64("norm2 size", 0); }, kInvalid, "norm2 size",
               "layer 0: norm2.weight: dimensions"},
          Case{"norm2 bias", [] { return whole().u64("norm2 bias size", UINT64_MAX); }, kInvalid, "norm2 bias size",
               "layer 0: norm2.bias: dimensions"},
          Case{"projection", [] { return whole().u64("projection columns", 4); }, kInvalid, "projection rows",
               "output_projection.weight: dimensions"},
      });
  expect_faults("hostile.tllm",
                std::array{
                    VerifyCase{"values are finite", [] { return whole().raw("norm2", le(0xff800000, 4) + le(0, 4)); },
                               "norm2", "tensor layers.0.norm2.weight: data: element 0 is not finite", true},
                });
}

TEST(HostileTinyLlama, FlippedBits) {
  expect_flips_show("hostile.tllm", whole(),
                    std::array<std::string_view, 3>{"embedding", "linear1 bias", "projection"});
}

}  // namespace
}  // namespace poise::hostile
