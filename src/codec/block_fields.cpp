// Fields have the names and types that they have in the structs of ggml-common.h (llama.cpp v0.5.0).
// docs/formats/gguf.md describes how the bits of the fields make codes.
#include "codec/block_fields.hpp"

#include <algorithm>
#include <array>

namespace poise {
namespace {

constexpr DType f16 = DType::f16;
constexpr DType u8 = DType::u8;

struct BlockFields {
  std::string_view type;
  std::array<BlockField, 5> fields;  // unused fields have a count of 0
};

constexpr auto kBlockFields = std::to_array<BlockFields>({
    {"q4_0", {{{"d", f16, 1}, {"qs", u8, 16}}}},
    {"q4_1", {{{"d", f16, 1}, {"m", f16, 1}, {"qs", u8, 16}}}},
    {"q5_0", {{{"d", f16, 1}, {"qh", u8, 4}, {"qs", u8, 16}}}},
    {"q5_1", {{{"d", f16, 1}, {"m", f16, 1}, {"qh", u8, 4}, {"qs", u8, 16}}}},
    {"q8_0", {{{"d", f16, 1}, {"qs", DType::i8, 32}}}},
    {"q8_1", {{{"d", f16, 1}, {"s", f16, 1}, {"qs", DType::i8, 32}}}},
    {"q2_k", {{{"scales", u8, 16}, {"qs", u8, 64}, {"d", f16, 1}, {"dmin", f16, 1}}}},
    {"q3_k", {{{"hmask", u8, 32}, {"qs", u8, 64}, {"scales", u8, 12}, {"d", f16, 1}}}},
    {"q4_k", {{{"d", f16, 1}, {"dmin", f16, 1}, {"scales", u8, 12}, {"qs", u8, 128}}}},
    {"q5_k", {{{"d", f16, 1}, {"dmin", f16, 1}, {"scales", u8, 12}, {"qh", u8, 32}, {"qs", u8, 128}}}},
    {"q6_k", {{{"ql", u8, 128}, {"qh", u8, 64}, {"scales", DType::i8, 16}, {"d", f16, 1}}}},
    {"q8_k", {{{"d", DType::f32, 1}, {"qs", DType::i8, 256}, {"bsums", DType::i16, 16}}}},
    {"iq2_xxs", {{{"d", f16, 1}, {"qs", DType::u16, 32}}}},
    {"iq2_xs", {{{"d", f16, 1}, {"qs", DType::u16, 32}, {"scales", u8, 8}}}},
    {"iq3_xxs", {{{"d", f16, 1}, {"qs", u8, 96}}}},
    {"iq1_s", {{{"d", f16, 1}, {"qs", u8, 32}, {"qh", DType::u16, 8}}}},
    {"iq4_nl", {{{"d", f16, 1}, {"qs", u8, 16}}}},
    {"iq3_s", {{{"d", f16, 1}, {"qs", u8, 64}, {"qh", u8, 8}, {"signs", u8, 32}, {"scales", u8, 4}}}},
    {"iq2_s", {{{"d", f16, 1}, {"qs", u8, 64}, {"qh", u8, 8}, {"scales", u8, 8}}}},
    {"iq4_xs", {{{"d", f16, 1}, {"scales_h", DType::u16, 1}, {"scales_l", u8, 4}, {"qs", u8, 128}}}},
    {"iq1_m", {{{"qs", u8, 32}, {"qh", u8, 16}, {"scales", u8, 8}}}},
    {"tq1_0", {{{"qs", u8, 48}, {"qh", u8, 4}, {"d", f16, 1}}}},
    {"tq2_0", {{{"qs", u8, 64}, {"d", f16, 1}}}},
    {"mxfp4", {{{"e", u8, 1}, {"qs", u8, 16}}}},
    {"nvfp4", {{{"d", u8, 4}, {"qs", u8, 32}}}},
    {"q1_0", {{{"d", f16, 1}, {"qs", u8, 16}}}},
    {"q2_0", {{{"d", f16, 1}, {"qs", u8, 16}}}},
});

}  // namespace

std::span<const BlockField> list_block_fields(const BlockType& type) {
  const auto found = std::ranges::find(kBlockFields, type.name, &BlockFields::type);
  if (found == kBlockFields.end()) return {};
  const auto used = std::ranges::count_if(found->fields, [](const BlockField& field) { return field.count > 0; });
  return std::span(found->fields).first(static_cast<std::size_t>(used));
}

}  // namespace poise
