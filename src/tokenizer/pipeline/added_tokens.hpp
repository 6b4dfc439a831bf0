// Finds added tokens: texts that are always tokens, wherever other steps would cut. If several match, the leftmost
// counts. Of those that begin at the same place, the longest counts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <poise/model.hpp>
#include <poise/tokenizer.hpp>

#include "tokenizer/pipeline/fields.hpp"
#include "tokenizer/pipeline/steps.hpp"
#include "tokenizer/tokens/token_index.hpp"

namespace poise {

struct AddedToken {
  TokenId id = -1;
  std::string content;
  std::string text;          // the text to find, to which the id decodes: `content`, normalized if `normalized` is true
  bool single_word = false;  // not inside a word
  bool lstrip = false;       // consumes the white space before it
  bool rstrip = false;       // consumes the white space after it
  bool normalized = false;   // found in the normalized text
  bool special = false;
};

// Reads the tokens of "added_tokens"; `normalizer` may be null. Throws invalid_file for an id outside the vocabulary,
// and for a missing or wrong field; unsupported for a text of more than 1024 bytes; and what the normalizer throws.
std::vector<AddedToken> read_added_tokens(const Fields& pipeline, std::size_t vocabulary_size,
                                          const Normalizer* normalizer = nullptr);

class AddedTokenFinder {
 public:
  // Finds only the tokens whose field `normalized` is equal to the argument. Requires: the tokens outlive this.
  AddedTokenFinder(const std::vector<AddedToken>& tokens, bool normalized);

  // Calls visit(run, id) for all runs of the text, from front to back; the id is -1 for text between tokens. As in
  // Hugging Face's library, a token may begin in white space that the token before it consumes, so that their runs
  // overlap. But a token with `lstrip` consumes none of the white space in earlier runs. `input` is empty, or has a
  // byte for each byte of the text. Special tokens are found only where these bytes are 0.
  template <typename Visit>
  void for_each_run(std::string_view text, Visit&& visit, std::string_view input = {}) const {
    std::size_t done = 0;
    std::size_t space_end = 0;
    for (std::size_t at = 0; find_candidate(text, at);) {
      const Found found = find_token_at(text, input, at, done, space_end);
      at = found.next;
      if (found.id < 0) continue;
      if (done < found.begin) visit(text.substr(done, found.begin - done), TokenId{-1});
      if (found.begin < found.end) visit(text.substr(found.begin, found.end - found.begin), found.id);
      done = found.end;
    }
    if (done < text.size()) visit(text.substr(done), TokenId{-1});
  }

 private:
  struct Found {
    TokenId id = -1;  // -1: no token begins at this place
    std::size_t begin = 0;
    std::size_t end = 0;
    std::size_t next = 0;  // where to continue
  };
  // Moves `at` to the next place where a token may begin. Returns false if there is none.
  bool find_candidate(std::string_view text, std::size_t& at) const;
  // Returns the token at `at`, if any. `space_end` is the end of the last consumed white space, so that it is measured
  // only once.
  Found find_token_at(std::string_view text, std::string_view input, std::size_t at, std::size_t done,
                      std::size_t& space_end) const;

  const std::vector<AddedToken>& tokens_;
  PrefixTrie trie_;
  PrefixTrie plain_;  // tokens that are not special
  bool any_ = false;
};

}  // namespace poise
