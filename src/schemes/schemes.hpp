// The rows of the table of schemes.
#pragma once

#include "schemes/scheme.hpp"

namespace poise::schemes {

extern const QuantizationScheme gptq;
extern const QuantizationScheme awq;
extern const QuantizationScheme compressed_nvfp4;
extern const QuantizationScheme compressed_integers;
extern const QuantizationScheme compressed_int8;
extern const QuantizationScheme compressed_floats;
extern const QuantizationScheme fp8_inverse;
extern const QuantizationScheme fp8_tensors;
extern const QuantizationScheme fbgemm_fp8;
extern const QuantizationScheme scaled_fp8;
extern const QuantizationScheme modelopt_nvfp4;
extern const QuantizationScheme modelopt_fp8;
extern const QuantizationScheme bitsandbytes_4bit;
extern const QuantizationScheme bitsandbytes_8bit;
extern const QuantizationScheme hqq;
extern const QuantizationScheme mlx;
extern const QuantizationScheme mxfp4;

}  // namespace poise::schemes
