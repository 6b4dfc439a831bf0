// MX numbers of four bits between the order of gpt-oss and ggml's MXFP4. Their bits do not change.
//
// gpt-oss: 16 bytes for 32 neighbours, the even one in the low half of each byte; the exponents of their scales, a byte
// each, are in another tensor. ggml: blocks of 17 bytes, the exponent first; byte i holds neighbour i in its low half
// and 16 + i in its high half.
//
// Sources: convert_moe_packed_tensors() of transformers, transform_nibble_layout() of llama.cpp's
// conversion/gpt_oss.py.
#pragma once

#include <poise/blob.hpp>

namespace poise {

// Requires: 16 bytes of codes for each byte of the scales.
BlobPtr make_mxfp4_blocks(BlobPtr codes, BlobPtr scales);

// The inverse. Requires: whole blocks.
BlobPtr mxfp4_codes(BlobPtr blocks);
BlobPtr mxfp4_scales(BlobPtr blocks);

}  // namespace poise
