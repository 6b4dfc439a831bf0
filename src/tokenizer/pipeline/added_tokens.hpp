// Added tokens: texts that are tokens wherever they are, found before a text is cut, the longest first at the leftmost
// place.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <poise/model.hpp>
#include <poise/tokenizer.hpp>

#include "tokenizer/pipeline/fields.hpp"
#include "tokenizer/pipeline/normalizers.hpp"
#include "tokenizer/tokens/prefix_trie.hpp"

namespace poise {

struct AddedToken {
  TokenId id = -1;
  std::string content;
  std::string text;  // what is looked for, and what ids become again: the content, as the normalizer has it if it is
                     // looked for after that
  bool single_word = false;  // not inside a word
  bool lstrip = false;       // takes the white space before it
  bool rstrip = false;       // and after it
  bool normalized = false;   // looked for in the normalized text
  bool special = false;
};

// Those that "added_tokens" lists; `normalizer` may be null. Throws invalid_file for an id that the vocabulary does not
// have, and unsupported for one of more than 1024 bytes.
std::vector<AddedToken> read_added_tokens(const Fields& pipeline, std::size_t vocabulary_size,
                                          const Normalizer* normalizer = nullptr);

// Finds some of them.
class AddedTokenFinder {
 public:
  // Those that look for normalized text, or the others. Requires: the tokens outlive this.
  AddedTokenFinder(const std::vector<AddedToken>& tokens, bool normalized);

  // Calls visit(run, id) for all of the text, from front to back; -1 for what is between tokens. White space that a
  // token takes is looked through for further tokens, as Hugging Face's library does: their runs overlap. One with
  // `lstrip` needs some of its own, though.
  // `input`: empty, or a byte for each byte of the text; no special token is found where one of them is not 0.
  template <typename Visit>
  void for_each(std::string_view text, Visit&& visit, std::string_view input = {}) const {
    std::size_t done = 0;
    std::size_t space_end = 0;
    for (std::size_t at = 0; find(text, at);) {
      const Found found = found_at(text, input, at, done, space_end);
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
    TokenId id = -1;  // none after all
    std::size_t begin = 0;
    std::size_t end = 0;
    std::size_t next = 0;  // where to go on
  };
  // Moves `at` to the next place where a token may begin; false: there is none.
  bool find(std::string_view text, std::size_t& at) const;
  // `space_end`: where the white space ends that was taken last, so that it is measured once.
  Found found_at(std::string_view text, std::string_view input, std::size_t at, std::size_t done,
                 std::size_t& space_end) const;

  const std::vector<AddedToken>& tokens_;
  PrefixTrie trie_;
  PrefixTrie plain_;  // those that are not special
  bool any_ = false;
};

}  // namespace poise
