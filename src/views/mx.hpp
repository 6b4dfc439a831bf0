// Converts MX numbers of four bits between the order of gpt-oss and that of ggml's MXFP4. Their bits do not change.
//
// gpt-oss: 16 bytes for 32 neighbours, the even one in the low half of each byte; the exponents of their scales, a byte
// each, are in another tensor. ggml: blocks of 17 bytes, the exponent first; byte i holds neighbour i in its low half
// and 16 + i in its high half.
//
// Sources: convert_moe_packed_tensors() of transformers, transform_nibble_layout() of llama.cpp's
// conversion/gpt_oss.py.
#pragma once

#include <string>

#include <poise/blob.hpp>
#include <poise/tensor.hpp>

namespace poise {

inline constexpr std::uint64_t kMxfp4Block = 32;  // numbers that share a scale

// Returns true if the layout is zt.mx/1 with four bits, and blocks of 32 run along the last axis.
bool is_mxfp4(const Tensor& tensor);

// Makes an MXFP4 tensor (see is_mxfp4()) from codes and scales in the order of gpt-oss. Requires: the last axis is a
// multiple of 32.
Tensor make_mxfp4(std::string name, Shape shape, BlobPtr codes, BlobPtr scales);

// These functions convert a tensor to ggml's blocks and back, with the same numbers. Requires: is_mxfp4(tensor);
// is_mxfp4_blocks(blocks).
Tensor convert_mxfp4_to_blocks(const Tensor& tensor);
Tensor convert_blocks_to_mxfp4(const Tensor& blocks);
// Returns true for blocks of the type mxfp4 along rows.
bool is_mxfp4_blocks(const Tensor& tensor);

// Makes ggml's blocks from codes and scales. Requires: `codes` has 16 bytes for each byte of the scales.
BlobPtr make_mxfp4_blocks(BlobPtr codes, BlobPtr scales);

// These functions return the codes and the scales of blocks, in the order of gpt-oss. Requires: whole blocks.
BlobPtr extract_mxfp4_codes(BlobPtr blocks);
BlobPtr extract_mxfp4_scales(BlobPtr blocks);

}  // namespace poise
