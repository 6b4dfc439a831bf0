// The functions that the rows of block_type_table.hpp name. block_type.hpp has their contract.
#pragma once

#include <cstddef>

#include "codec/block_type.hpp"

namespace poise {

// codebooks.cpp
void decode_iq4_nl(const std::byte* blocks, std::size_t count, float* out);
void decode_iq4_xs(const std::byte* blocks, std::size_t count, float* out);
void decode_mxfp4(const std::byte* blocks, std::size_t count, float* out);
void decode_nvfp4(const std::byte* blocks, std::size_t count, float* out);

// grid_codes.cpp
void decode_iq1_s(const std::byte* blocks, std::size_t count, float* out);
void decode_iq1_m(const std::byte* blocks, std::size_t count, float* out);
void decode_iq2_xxs(const std::byte* blocks, std::size_t count, float* out);
void decode_iq2_xs(const std::byte* blocks, std::size_t count, float* out);
void decode_iq2_s(const std::byte* blocks, std::size_t count, float* out);
void decode_iq3_xxs(const std::byte* blocks, std::size_t count, float* out);
void decode_iq3_s(const std::byte* blocks, std::size_t count, float* out);

// scaled_codes.cpp
void decode_q4_0(const std::byte* blocks, std::size_t count, float* out);
void decode_q4_1(const std::byte* blocks, std::size_t count, float* out);
void decode_q5_0(const std::byte* blocks, std::size_t count, float* out);
void decode_q5_1(const std::byte* blocks, std::size_t count, float* out);
void decode_q8_0(const std::byte* blocks, std::size_t count, float* out);

// small_codes.cpp
void decode_q1_0(const std::byte* blocks, std::size_t count, float* out);
void decode_q2_0(const std::byte* blocks, std::size_t count, float* out);
void decode_tq1_0(const std::byte* blocks, std::size_t count, float* out);
void decode_tq2_0(const std::byte* blocks, std::size_t count, float* out);

// super_blocks.cpp
void decode_q2_k(const std::byte* blocks, std::size_t count, float* out);
void decode_q3_k(const std::byte* blocks, std::size_t count, float* out);
void decode_q4_k(const std::byte* blocks, std::size_t count, float* out);
void decode_q5_k(const std::byte* blocks, std::size_t count, float* out);
void decode_q6_k(const std::byte* blocks, std::size_t count, float* out);
void decode_q8_k(const std::byte* blocks, std::size_t count, float* out);

// encode_codebooks.cpp
void encode_iq4_nl(const BlockRows& rows, std::byte* out);
void encode_iq4_xs(const BlockRows& rows, std::byte* out);
void encode_mxfp4(const BlockRows& rows, std::byte* out);

// encode_scaled_codes.cpp
void encode_q4_0(const BlockRows& rows, std::byte* out);
void encode_q4_1(const BlockRows& rows, std::byte* out);
void encode_q5_0(const BlockRows& rows, std::byte* out);
void encode_q5_1(const BlockRows& rows, std::byte* out);
void encode_q8_0(const BlockRows& rows, std::byte* out);

// encode_small_codes.cpp
void encode_tq1_0(const BlockRows& rows, std::byte* out);
void encode_tq2_0(const BlockRows& rows, std::byte* out);

// encode_super_blocks.cpp
void encode_q2_k(const BlockRows& rows, std::byte* out);
void encode_q3_k(const BlockRows& rows, std::byte* out);
void encode_q4_k(const BlockRows& rows, std::byte* out);
void encode_q5_k(const BlockRows& rows, std::byte* out);
void encode_q6_k(const BlockRows& rows, std::byte* out);

}  // namespace poise
