#include "tokenizer/pipeline/first_tokens.hpp"

#include <string_view>
#include <unordered_set>
#include <utility>

#include "tokenizer/pipeline/special_around.hpp"

namespace poise {
namespace {

// Those that are made of tokens that are left, and make one.
MergeList left_merges(const Vocabulary& whole, std::size_t rows) {
  std::unordered_set<std::string_view> gone;
  for (std::size_t id = rows; id < whole.size(); ++id) gone.insert(whole.text(id));
  for (std::size_t id = 0; id < rows; ++id) gone.erase(whole.text(id));
  MergeList left;
  for (std::size_t rank = 0; rank < whole.merges.size(); ++rank) {
    const auto [first, second] = whole.merges[rank];
    if (!gone.contains(first) && !gone.contains(second) && !gone.contains(whole.merges.joined(rank)))
      left.emplace_back(first, second);
  }
  return left;
}

void leave_out_added_tokens(Attributes& pipeline, std::size_t rows) {
  const Value* value = pipeline.find("added_tokens");
  const auto* tokens = value == nullptr ? nullptr : value->get_if<Value::Array>();
  if (tokens == nullptr) return;
  Value::Array left;
  for (const Value& token : *tokens) {
    const auto* fields = token.get_if<Attributes>();
    const Value* id = fields == nullptr ? nullptr : fields->find("id");
    const auto* number = id == nullptr ? nullptr : id->get_if<std::uint64_t>();
    if (number == nullptr || *number < rows) left.push_back(token);
  }
  pipeline.set("added_tokens", std::move(left));
}

// Ids of tokens that the model was made without, and merges: a merge may make a token by a prefix that it does not
// spell.
void leave_out_tokens_of_model(Attributes& pipeline, std::size_t rows, bool has_merges) {
  const Value* value = pipeline.find("model");
  const auto* model = value == nullptr ? nullptr : value->get_if<Attributes>();
  if (model == nullptr) return;
  Attributes changed = *model;
  if (has_merges) changed.set("skip_unknown_merges", true);
  const Value* added_only = model->find("added_only");
  if (const auto* ids = added_only == nullptr ? nullptr : added_only->get_if<Value::Array>()) {
    Value::Array left = *ids;
    std::erase_if(left, [&](const Value& id) {
      const auto* number = id.get_if<std::uint64_t>();
      return number != nullptr && *number >= rows;
    });
    changed.set("added_only", std::move(left));
  }
  pipeline.set("model", std::move(changed));
}

}  // namespace

Vocabulary first_tokens(Vocabulary vocabulary, std::size_t rows) {
  if (vocabulary.size() <= rows) return vocabulary;
  const auto is_gone = [&](TokenId id) { return id >= 0 && static_cast<std::size_t>(id) >= rows; };
  const SpecialAround around = special_around(vocabulary);
  VocabularySettings settings = vocabulary.settings();
  for (TokenId* id : {&settings.bos_id, &settings.eos_id, &settings.pad_id, &settings.unk_id}) {
    if (is_gone(*id)) *id = -1;
  }
  settings.merges = left_merges(vocabulary, rows);
  leave_out_added_tokens(settings.pipeline, rows);
  leave_out_tokens_of_model(settings.pipeline, rows, !settings.merges.empty());
  Vocabulary left(std::move(settings));
  for (std::size_t id = 0; id < rows; ++id) left.add(vocabulary.text(id), vocabulary.score(id), vocabulary.type(id));
  SpecialAround of_left = around;
  std::erase_if(of_left.before, is_gone);
  std::erase_if(of_left.after, is_gone);
  if (of_left != around) left.pipeline.set("post_processor", as_post_processor(left, of_left));
  return left;
}

}  // namespace poise
