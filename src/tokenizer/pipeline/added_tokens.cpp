#include "tokenizer/pipeline/added_tokens.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "tokenizer/tokens/unicode.hpp"

namespace poise {
namespace {

constexpr std::size_t kLongest = PrefixTrie::kLongest;

std::size_t find_last_character(std::string_view text) {
  std::size_t at = text.size() - 1;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  return at;
}

bool ends_with_word(std::string_view text) {
  return !text.empty() && unicode::is_word(unicode::decode(text, find_last_character(text)).code);
}
bool starts_with_word(std::string_view text) {
  return !text.empty() && unicode::is_word(unicode::decode(text, 0).code);
}

// Returns the place where the white space at the end of the text begins, at or after `from`.
std::size_t find_space_at_end(std::string_view text, std::size_t from) {
  std::size_t end = text.size();
  while (end > from) {
    const std::size_t at = find_last_character(text.substr(0, end));
    if (at < from || !unicode::is_white_space(unicode::decode(text, at).code)) break;
    end = at;
  }
  return end;
}

std::size_t measure_space_at_start(std::string_view text) {
  std::size_t length = 0;
  while (length < text.size()) {
    const auto next = unicode::decode(text, length);
    if (!unicode::is_white_space(next.code)) break;
    length += next.bytes;
  }
  return length;
}

}  // namespace

std::vector<AddedToken> read_added_tokens(const Fields& pipeline, std::size_t vocabulary_size,
                                          const Normalizer* normalizer) {
  std::vector<AddedToken> tokens;
  for (const Fields& item : pipeline.read_list("added_tokens", true)) {
    const std::uint64_t id = item.read_unsigned("id", UINT64_MAX);
    if (id >= vocabulary_size) item.fail("id", fmt::format("expected the id of one of the {} tokens", vocabulary_size));
    AddedToken token{.id = static_cast<TokenId>(id),
                     .content = item.require_text("content"),
                     .text = {},
                     .single_word = item.read_boolean("single_word", false),
                     .lstrip = item.read_boolean("lstrip", false),
                     .rstrip = item.read_boolean("rstrip", false),
                     .special = item.read_boolean("special", false)};
    token.normalized = item.read_boolean("normalized", !token.special);
    if (token.content.size() > kLongest)
      throw Error(ErrorKind::unsupported, fmt::format("{}: more than {} bytes", item.where(), kLongest));
    token.text = token.normalized && normalizer != nullptr ? normalizer->apply(unicode::make_well_formed(token.content))
                                                           : token.content;
    if (token.text.size() > kLongest)
      throw Error(ErrorKind::unsupported,
                  fmt::format("{}: more than {} bytes after the normalizer", item.where(), kLongest));
    tokens.push_back(std::move(token));
  }
  return tokens;
}

AddedTokenFinder::AddedTokenFinder(const std::vector<AddedToken>& tokens, bool normalized) : tokens_(tokens) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].normalized != normalized || tokens[i].text.empty()) continue;
    trie_.add(tokens[i].text, static_cast<std::int32_t>(i));
    if (!tokens[i].special) plain_.add(tokens[i].text, static_cast<std::int32_t>(i));
    any_ = true;
  }
}

bool AddedTokenFinder::find_candidate(std::string_view text, std::size_t& at) const {
  if (!any_) return false;
  while (at < text.size() && trie_.step(PrefixTrie::kRoot, text[at]) == PrefixTrie::kNone) ++at;
  return at < text.size();
}

AddedTokenFinder::Found AddedTokenFinder::find_token_at(std::string_view text, std::string_view input, std::size_t at,
                                                        std::size_t done, std::size_t& space_end) const {
  auto match = trie_.find_longest(text.substr(at));
  if (match.value >= 0 && !input.empty() && tokens_[static_cast<std::size_t>(match.value)].special) {
    const std::string_view marks = input.substr(at, match.length);
    if (marks.find_first_not_of('\0') != std::string_view::npos) match = plain_.find_longest(text.substr(at));
  }
  if (match.value < 0) return {.next = at + 1};
  const AddedToken& token = tokens_[static_cast<std::size_t>(match.value)];
  const std::size_t end = at + match.length;
  if (token.single_word && (ends_with_word(text.substr(0, at)) || starts_with_word(text.substr(end))))
    return {.next = end};
  Found found{.id = token.id, .begin = at, .end = end, .next = end};
  if (token.lstrip) found.begin = std::max(done, find_space_at_end(text.substr(0, at), done));
  if (token.rstrip) {
    if (end > space_end) space_end = end + measure_space_at_start(text.substr(end));
    found.end = space_end;
  }
  return found;
}

}  // namespace poise
