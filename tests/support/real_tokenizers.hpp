// Real tokenizers of the shared data, with the tokens of other programs for 40 texts (its README.md names them).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <poise/format.hpp>
#include <poise/tokenizer.hpp>

#include "support/directories.hpp"
#include "tokenizer/gguf/vocabulary.hpp"

namespace poise::support {

struct ExpectedTokens {
  std::string text;
  std::vector<TokenId> ids;
  std::vector<TokenId> ids_special;
  std::string decoded;
};

struct RealTokenizer {
  Vocabulary vocabulary;
  std::vector<ExpectedTokens> expected;  // without those that two programs dispute
};

// Returns a tokenizer. `name`: "gpt2", a directory, or "gguf/phi-3". std::nullopt if its data are missing.
inline std::optional<RealTokenizer> real_tokenizer(const std::string& name) {
  namespace fs = std::filesystem;
  const fs::path folder = shared_directory() / "data" / "tokenizers";
  const bool gguf = name.starts_with("gguf/");
  const fs::path file = gguf ? folder / fmt::format("gguf/ggml-vocab-{}.gguf", name.substr(5)) : folder / name;
  const fs::path expected =
      gguf ? folder / fmt::format("gguf/ggml-vocab-{}.expected.json", name.substr(5)) : file / "expected.json";
  if (!fs::exists(file)) return std::nullopt;
  RealTokenizer real{gguf ? make_vocabulary(open(file)).value() : read_vocabulary(file).value(), {}};
  const Value list = parse_json(support::contents(expected), "expected.json");
  for (const Value& item : *list.get_if<Value::Array>()) {
    const Attributes& fields = *item.get_if<Attributes>();
    if (fields.find("disputed") != nullptr) continue;
    const auto ids = [&](std::string_view key) {
      std::vector<TokenId> result;
      for (const Value& id : *fields.get_if<Value::Array>(key))
        result.push_back(static_cast<TokenId>(*id.get_if<std::uint64_t>()));
      return result;
    };
    real.expected.push_back(
        {*fields.get_if<std::string>("text"), ids("ids"), ids("ids_special"), *fields.get_if<std::string>("decoded")});
  }
  return real;
}

}  // namespace poise::support
