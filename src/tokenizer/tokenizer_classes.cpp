#include "tokenizer/tokenizer_classes.hpp"

#include <algorithm>
#include <array>

namespace poise {
namespace {

constexpr std::string_view kQwen2 = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr std::array kRows = std::to_array<TokenizerClass>({
    {.name = "", .normalizer = "", .expression = "", .bos = "<|endoftext|>"},
    {.name = "GPT2Tokenizer", .normalizer = "", .expression = "", .bos = "<|endoftext|>"},
    {.name = "RobertaTokenizer", .normalizer = "", .expression = "", .bos = "<s>"},
    {.name = "BartTokenizer", .normalizer = "", .expression = "", .bos = "<s>"},
    {.name = "Qwen2Tokenizer", .normalizer = "NFC", .expression = kQwen2, .bos = ""},
});

}  // namespace

const TokenizerClass* find_tokenizer_class(std::string_view name) {
  constexpr std::string_view kFast = "Fast";
  if (name.size() > kFast.size() && name.ends_with(kFast)) name.remove_suffix(kFast.size());
  const auto* row = std::ranges::find(kRows, name, &TokenizerClass::name);
  return row == kRows.end() ? nullptr : row;
}

}  // namespace poise
