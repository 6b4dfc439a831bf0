#include "formats/alt/write_alt_c.hpp"

#include <unordered_set>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "formats/alt/parameters.hpp"
#include "formats/alt/write_sections.hpp"

namespace poise::alt {
namespace {

constexpr std::string_view kName = "alt.c";
constexpr std::size_t kMaxTokens = 32000;  // of its C reader

[[noreturn]] void refuse(std::string_view problem) {
  throw Error(ErrorKind::unsupported, fmt::format("dialect {}: {}", kName, problem));
}

void require_loadable(const Model& model) {
  if (!model.config) refuse("its reader needs a configuration, and the model has none");
  if (model.config->hidden_act.empty()) refuse("its reader refuses an empty hidden_act");
  if (!model.vocabulary) refuse("its reader needs a vocabulary, and the model has none");
  const Vocabulary& vocabulary = *model.vocabulary;
  if (vocabulary.size() == 0 || vocabulary.size() > kMaxTokens)
    refuse(fmt::format("its reader takes 1 to {} tokens, the vocabulary has {}", kMaxTokens, vocabulary.size()));
  std::unordered_set<std::string_view> texts;
  for (std::size_t id = 0; id < vocabulary.size(); ++id) {
    if (vocabulary.text(id).empty()) refuse(fmt::format("its reader refuses empty texts, and token {} is empty", id));
    if (!texts.insert(vocabulary.text(id)).second)
      refuse(fmt::format("its reader refuses texts that come twice, and token {} does", id));
  }
}

}  // namespace

bool is_for_alt_c(const WriteOptions& options) {
  if (!options.dialect) return false;
  if (*options.dialect == kName) return true;
  throw Error(ErrorKind::bad_argument, fmt::format("alt has no dialect \"{}\"; there is: {}", *options.dialect, kName));
}

void write_alt_c(const Model& model, Sink& sink) {
  require_held_config(model);
  require_loadable(model);
  FileWriter(model, kVersion2AltC).write(sink, std::nullopt, {});
}

std::vector<std::string> unknown_to_alt_c(const Card& card) {
  std::vector<std::string> names;
  for (const CardField& field : card_fields()) {
    if ((card.*field.text).empty()) names.emplace_back(field.name);
  }
  return names;
}

}  // namespace poise::alt
