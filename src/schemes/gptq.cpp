// GPTQ, as AutoGPTQ and GPTQModel write it. Of a matrix of `in` columns and `out` rows:
//
//   qweight   i32 [in * bits / 32, out]; a column of words is the stream of a row's codes
//   scales    f16, bf16 or f32 [groups, out]
//   qzeros    i32 [groups, out * bits / 32], the zero points of a group as a stream; version 1 stores each less 1
//   g_idx     i32 [in], the group of each column; where it is not there, neighbours share a group
//
// value = (code - zero) * scale. 32 codes of 3 bits take three words, and are stored here in four bits each.
#include <array>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "schemes/make_tensors.hpp"
#include "schemes/schemes.hpp"

namespace poise::schemes {
namespace {

constexpr std::array<std::string_view, 3> kParts = {".scales", ".qzeros", ".g_idx"};

void require_known(const QuantizationConfig& config) {
  const auto refuse = [](const std::string& what) {
    throw Error(ErrorKind::unsupported, fmt::format("quantization_config: {}", what));
  };
  const std::string form = config.text("checkpoint_format").value_or("gptq");
  if (form != "gptq" && form != "gptq_v2")
    refuse(fmt::format("checkpoint_format is {}, only gptq and gptq_v2 are supported", form));
  if (const std::string word = config.text("pack_dtype").value_or("int32"); word != "int32")
    refuse(fmt::format("pack_dtype is {}, only int32 is supported", word));
  if (config.has("dynamic")) refuse("dynamic gives matrices settings of their own, which is not supported");
  const std::int64_t bits = config.number("bits");
  if (bits != 2 && bits != 3 && bits != 4 && bits != 8)
    refuse(fmt::format("bits is {}, only 2, 3, 4 and 8 are supported", bits));
  if (const std::int64_t size = config.number("group_size"); size < 1 && size != -1)
    throw Error(ErrorKind::invalid_file, fmt::format("quantization_config: group_size is {}", size));
}

Tensor fold(const MatrixParts& matrix, const QuantizationConfig& config) {
  const auto bits = static_cast<unsigned>(config.number("bits"));
  const Tensor& weight = matrix.require(".qweight");
  const Part& words = matrix.data(weight, {DType::i32, DType::u32});
  matrix.require_rank(weight, 2);
  if (weight.shape[0] > UINT32_MAX || weight.shape[0] * 32 % bits != 0)
    matrix.fail(fmt::format("the {} words of a column of {} are no whole codes of {} bits", weight.shape[0],
                            weight.name, bits));
  const std::uint64_t in = weight.shape[0] * 32 / bits;
  const std::uint64_t out = weight.shape[1];
  const std::int64_t wanted = config.number("group_size");
  const std::uint64_t group_size = wanted == -1 ? in : static_cast<std::uint64_t>(wanted);
  if (in == 0 || in % group_size != 0)
    matrix.fail(fmt::format("groups of {} do not divide its {} columns", group_size, in));
  const std::uint64_t groups = in / group_size;
  const Tensor& scales = matrix.require(".scales");
  const Part& factors = matrix.data(scales, {DType::f16, DType::bf16, DType::f32});
  matrix.require_shape(scales, {groups, out});
  const Tensor& zeros = matrix.require(".qzeros");
  const Part& zero_words = matrix.data(zeros, {DType::i32, DType::u32});
  if (out * bits % 32 != 0)
    matrix.fail(fmt::format("zero points of {} bits for {} rows are no whole words", bits, out));
  matrix.require_shape(zeros, {groups, out * bits / 32});
  const bool less_one = config.text("checkpoint_format").value_or("gptq") == "gptq";
  const unsigned stored = stored_bits(bits);
  return group_tensor(
      matrix,
      {.shape = {out, in},
       .bits = stored,
       .group_size = group_size,
       .codes = make_codes_blob(
           {.words = words.blob, .rows = in, .columns = out, .bits = bits, .along = PackedCodes::Along::columns},
           MatrixOrder::transposed, stored),
       .scales = as_part("scales", factors.dtype, transposed_data(scales)),
       .zeros = as_part(
           "zeros", DType::f16,
           make_code_numbers_blob(
               {.words = zero_words.blob, .rows = groups, .columns = out, .bits = bits, .add = less_one ? 1U : 0U},
               MatrixOrder::transposed)),
       .index = group_index(matrix, ".g_idx", in, group_size)});
}

}  // namespace

const QuantizationScheme gptq = {
    .title = "GPTQ",
    .method = "gptq",
    .require_known = require_known,
    .marker = ".qweight",
    .parts = kParts,
    .fold = fold,
};

}  // namespace poise::schemes
