// Declares the decoders and encoders of block_type_table.hpp. block_type.hpp describes what they do.
#pragma once

#include <cstddef>

#include "codec/block_type.hpp"

namespace poise {

using DecodeBlocks = void(const std::byte* blocks, std::size_t count, float* out);
using EncodeBlocks = void(const BlockRows& rows, std::byte* out);

// codebooks.cpp defines these.
DecodeBlocks decode_iq4_nl, decode_iq4_xs, decode_mxfp4, decode_nvfp4;

// grid_codes.cpp defines these.
DecodeBlocks decode_iq1_s, decode_iq1_m, decode_iq2_xxs, decode_iq2_xs, decode_iq2_s, decode_iq3_xxs, decode_iq3_s;

// scaled_codes.cpp defines these.
DecodeBlocks decode_q4_0, decode_q4_1, decode_q5_0, decode_q5_1, decode_q8_0;

// small_codes.cpp defines these.
DecodeBlocks decode_q1_0, decode_q2_0, decode_tq1_0, decode_tq2_0;

// super_blocks.cpp defines these.
DecodeBlocks decode_q2_k, decode_q3_k, decode_q4_k, decode_q5_k, decode_q6_k, decode_q8_k;

// encode_codebooks.cpp defines these.
EncodeBlocks encode_iq4_nl, encode_iq4_xs, encode_mxfp4, encode_nvfp4;

// encode_grids.cpp defines these.
EncodeBlocks encode_iq2_xxs, encode_iq2_xs, encode_iq2_s, encode_iq3_xxs, encode_iq3_s;

// encode_ternary_grids.cpp defines these.
EncodeBlocks encode_iq1_s, encode_iq1_m;

// encode_scaled_codes.cpp defines these.
EncodeBlocks encode_q4_0, encode_q4_1, encode_q5_0, encode_q5_1, encode_q8_0;

// encode_small_codes.cpp defines these.
EncodeBlocks encode_tq1_0, encode_tq2_0;

// encode_super_blocks.cpp defines these.
EncodeBlocks encode_q2_k, encode_q3_k, encode_q4_k, encode_q5_k, encode_q6_k;

}  // namespace poise
