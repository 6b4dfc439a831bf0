// Converts types of tokens. SentencePiece and GGUF number them: 1 normal, 2 unknown, 3 control, 4 user-defined, 5
// unused, 6 byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <poise/model.hpp>
#include <poise/tokenizer.hpp>

namespace poise {

// Returns true for the types of control tokens: BOS, EOS and padding included.
bool is_control(TokenType type);

// Returns true for the vocabulary's BOS, EOS, padding and unknown token.
bool is_special_id(const Vocabulary& vocabulary, std::size_t id);

// Returns the type that has the number; std::nullopt unless it is 1 to 6.
std::optional<TokenType> find_token_type(std::uint64_t number);

// Returns the number of a type. BOS, EOS and padding are control tokens.
std::int32_t find_token_type_number(TokenType type);

// Returns bos, eos or pad for a control type if `id` is that token of the vocabulary, else control. Returns other types
// unchanged.
TokenType choose_special_token_type(TokenType type, const Vocabulary& vocabulary, std::size_t id);

// Returns a token's type as ALT stores it. Byte tokens and the unknown token keep their types. Another token has the
// type bos, eos or pad if its id is bos_id, eos_id or pad_id (checked in this order), and otherwise keeps its type.
TokenType choose_token_type_by_id(const Vocabulary& vocabulary, std::size_t id);

// Returns the same tokens with the types that `type_of` returns for their ids.
template <typename TypeOf>
Vocabulary change_token_types(const Vocabulary& tokens, TypeOf&& type_of) {
  Vocabulary vocabulary(tokens.settings());
  for (std::size_t id = 0; id < tokens.size(); ++id) vocabulary.add(tokens.text(id), tokens.score(id), type_of(id));
  return vocabulary;
}

// The attribute of this name holds the generation_config.json of a Hugging Face directory.
inline constexpr std::string_view kGenerationConfig = "generation_config";

// Returns the ids below `tokens` that end a text, each once, at most 64: `eos` of the vocabulary (-1: none),
// eos_token_id of config.json and generation_config.json (a number or a list), and GGUF's ends of a turn and a message.
std::vector<TokenId> find_end_tokens(const Model& model, TokenId eos, std::size_t tokens);

// Returns generation_config.json, which the model stores as a map or as text; empty if it has none.
Attributes read_generation_config(const Model& model);

// Returns the keys "general.sampling.*" of a GGUF file in the form of a generation_config.json; empty if it has none.
Attributes make_generation_config(const Attributes& attributes);

// Lists the ways in which tokens appear in decoded text.
enum class TokenDisplay : std::uint8_t { invisible, unknown, byte, text };

// Returns the display of each token. Throws invalid_file for a byte token unless its text is "<0x00>" to "<0xFF>".
std::vector<TokenDisplay> find_token_displays(const Vocabulary& vocabulary);

}  // namespace poise
