#include "formats/registry.hpp"

#include <algorithm>

#include "formats/gguf/adapter.hpp"
#include "formats/gguf/gguf.hpp"
#include "formats/gguf/header.hpp"
#include "formats/gguf/metadata.hpp"
#include "views/layout_type.hpp"

namespace poise {
namespace {

bool sniff(const Input& input) {
  const auto bytes = first_bytes(input, gguf::kMagic.size());
  return std::ranges::equal(bytes, std::as_bytes(std::span(gguf::kMagic)));
}

}  // namespace

const Format kGguf = {
    .info = {"gguf", "GGUF, the files of llama.cpp", ".gguf"},
    .extensions = {},
    .options = {.align = Alignments{.usual = gguf::kUsualAlignment, .least = gguf::kLeastAlignment},
                .shard_size = true},
    .holds_bf16 = true,
    .holds_layout = [](const LayoutType& type) { return &type == &layouts::blocks; },
    .weights = WeightReader::llama_cpp,
    .stored_as_f32 = gguf::stored_as_f32,
    .sniff = sniff,
    .read = gguf::read,
    .prepare = gguf::prepare,
    .audit = gguf::audit,
    .edit = gguf::edit,
    .keys = gguf::list_keys,
    .transposes = gguf::transposes,
    .adapter = gguf::adapter,
    .read_importance_matrix = gguf::read_imatrix,
};

}  // namespace poise
