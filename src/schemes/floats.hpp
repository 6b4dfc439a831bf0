// Matrices of small floating-point numbers, for several schemes.
#pragma once

#include <array>
#include <string_view>

#include "schemes/scheme.hpp"

namespace poise::schemes {

// How inputs, outputs, attention and the cache of keys and values are quantized.
inline constexpr std::array kNotOfWeights = std::to_array<std::string_view>(
    {".input_scale",      ".input_scale_ub", ".input_zero_point",  ".input_global_scale",
     ".activation_scale", ".output_scale",   ".output_zero_point", ".output_global_scale",
     ".kv_scale",         ".q_scale",        ".q_zero_point",      ".q_global_scale",
     ".k_scale",          ".k_zero_point",   ".k_global_scale",    ".v_scale",
     ".v_zero_point",     ".v_global_scale", ".prob_scale",        ".prob_output_scale",
     ".prob_zero_point",  ".scale_input"});

// The warning about that many such tensors, of which this is the first.
std::string left_out_warning(std::string_view first, std::size_t count);

// ModelOpt's kinds of quantization (quant_algo) that its schemes read. Throws unsupported (without path) for others.
void require_known_algorithm(const QuantizationConfig& config);

// QuantizationScheme::doubts of matrices that these kinds of quantization store: another quant_algo, and matrices that
// exclude_modules or ignore, patterns of modules, list as not quantized.
std::vector<std::string> doubts_of_algorithm(const QuantizationConfig& config, std::span<const std::string> matrices,
                                             std::span<const std::string_view> algorithms);

// The same for compressed-tensors: matrices that ignore lists, or that no target of config_groups names, which its
// library leaves as they are. Throws what ModuleList::match() throws.
std::vector<std::string> doubts_of_names(const Model& model, const QuantizationConfig& config,
                                         std::span<const std::string> matrices);

// Throws invalid_file (without path) if compressed-tensors' `format` of the model and of its groups are all others.
void require_format(const MatrixParts& matrix, const QuantizationConfig& config, std::string_view format);

// `weight` of f8 [out, in] and the tensor of its scales. Throws invalid_file (without path) for other types and ranks.
struct F8Matrix {
  F8Matrix(const MatrixParts& matrix, std::string_view scales_ending,
           std::initializer_list<DType> types = {DType::f8_e4m3, DType::f8_e5m2, DType::f8_e4m3fnuz,
                                                 DType::f8_e5m2fnuz});

  // With a scale for each block of [rows, columns].
  Tensor scaled(std::uint64_t rows, std::uint64_t columns) const;

  const Tensor& weight;
  const Part& data;
  const Tensor& scales;
};

// `weight` of f8 [out, in] with scales: one number, or one for each row.
Tensor scaled_f8(const MatrixParts& matrix, std::string_view scales_ending);

// Numbers of f4_e2m1, two a byte, with a scale of f8_e4m3 for each group of 16 along rows, times a factor for the whole
// matrix. Throws invalid_file (without path) for shapes that do not fit.
Tensor nvfp4(const MatrixParts& matrix, std::string_view weight, std::string_view factor, bool divides);

}  // namespace poise::schemes
