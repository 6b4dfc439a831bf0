#include "tokenizer/gguf/repeated_tokens.hpp"

#include <string_view>
#include <unordered_set>

#include <fmt/format.h>

#include "bytes/short_text.hpp"

namespace poise {

std::vector<std::size_t> name_repeated_tokens(std::vector<std::string>& tokens) {
  std::unordered_set<std::string_view> texts;
  texts.reserve(tokens.size());
  std::vector<std::size_t> repeated;
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    if (!tokens[id].empty() && !texts.insert(tokens[id]).second) repeated.push_back(id);
  }
  for (const std::size_t id : repeated) {
    std::string name = fmt::format("[PAD{}]", id);
    while (texts.contains(name)) name.insert(name.begin(), '[');
    tokens[id] = std::move(name);
    texts.insert(tokens[id]);
  }
  return repeated;
}

std::string describe_repeated_tokens(const std::vector<std::size_t>& ids) {
  std::vector<std::string> names;
  names.reserve(ids.size());
  for (const std::size_t id : ids) names.push_back(std::to_string(id));
  return fmt::format("gguf holds each text of a token once: {} {}, which {} the text of an earlier token, {}",
                     ids.size() == 1 ? "token" : "tokens", listed(names), ids.size() == 1 ? "has" : "have",
                     ids.size() == 1 ? "becomes an unused token" : "become unused tokens");
}

}  // namespace poise
