// MX numbers of four bits from the order in which gpt-oss has them to ggml's MXFP4, and back. The numbers stay the same
// bits.
//
// gpt-oss: 16 bytes for 32 neighbours, the even one in the low half of each byte; the exponents of their scales, a byte
// each, are elsewhere. ggml: blocks of 17 bytes, the exponent first; byte i has neighbour i in its low half and 16 + i
// in its high half.
//
// Sources: convert_moe_packed_tensors() of transformers, transform_nibble_layout() of llama.cpp's
// conversion/gpt_oss.py.
#pragma once

#include <poise/blob.hpp>

namespace poise {

// Requires: 16 bytes of codes for each byte of the scales.
BlobPtr make_mxfp4_blocks(BlobPtr codes, BlobPtr scales);

// The way back. Requires: whole blocks.
BlobPtr mxfp4_codes(BlobPtr blocks);
BlobPtr mxfp4_scales(BlobPtr blocks);

}  // namespace poise
