#include "tokenizer/files/tokenizer_classes.hpp"

#include <algorithm>
#include <array>

namespace poise {
namespace {

constexpr std::array kTokenizerClasses = std::to_array<TokenizerClass>({
    {.name = "", .normalizer = "", .pre = "", .bos = "<|endoftext|>"},
    {.name = "GPT2Tokenizer", .normalizer = "", .pre = "", .bos = "<|endoftext|>"},
    {.name = "RobertaTokenizer", .normalizer = "", .pre = "", .bos = "<s>"},
    {.name = "BartTokenizer", .normalizer = "", .pre = "", .bos = "<s>"},
    {.name = "Qwen2Tokenizer", .normalizer = "NFC", .pre = "qwen2", .bos = ""},
});

}  // namespace

const TokenizerClass* find_tokenizer_class(std::string_view name) {
  constexpr std::string_view kFast = "Fast";
  if (name.size() > kFast.size() && name.ends_with(kFast)) name.remove_suffix(kFast.size());
  const auto* row = std::ranges::find(kTokenizerClasses, name, &TokenizerClass::name);
  return row == kTokenizerClasses.end() ? nullptr : row;
}

}  // namespace poise
