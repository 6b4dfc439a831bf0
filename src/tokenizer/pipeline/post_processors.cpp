#include <array>
#include <string_view>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "tokenizer/pipeline/special_around.hpp"
#include "tokenizer/pipeline/steps.hpp"

namespace poise::post_processors {
namespace {

struct Context {
  std::size_t vocabulary_size;
  std::size_t steps = 0;
};

TokenId read_id(const Fields& fields, std::string_view key, const Value& value, const Context& context) {
  const auto* id = value.get_if<std::uint64_t>();
  if (id == nullptr || *id >= context.vocabulary_size)
    fields.fail(key, fmt::format("expected the id of one of the {} tokens", context.vocabulary_size));
  return static_cast<TokenId>(*id);
}

// Adds tokens outside those that earlier steps have added.
void add_around(SpecialAround& around, const std::vector<TokenId>& before, const std::vector<TokenId>& after) {
  around.before.insert(around.before.begin(), before.begin(), before.end());
  around.after.insert(around.after.end(), after.begin(), after.end());
}

// Reads a template. The field "single" lists the parts of the result: special tokens, and Sequence A for the text's own
// tokens.
void add_template(const Fields& fields, const Context& context, SpecialAround& around) {
  std::vector<TokenId> before;
  std::vector<TokenId> after;
  bool text_seen = false;
  const auto specials = fields.find_map("special_tokens");
  for (const Fields& item : fields.read_list("single")) {
    if (const auto sequence = item.find_map("Sequence")) {
      if (text_seen || sequence->require_text("id") != "A")
        item.fail("Sequence", "expected one item with the id A, for the text's own tokens");
      text_seen = true;
      continue;
    }
    const auto special = item.find_map("SpecialToken");
    if (!special) item.fail("", "expected SpecialToken or Sequence");
    const auto found = specials ? specials->find_map(special->require_text("id")) : std::nullopt;
    if (!found) special->fail("id", "is not one of special_tokens");
    const auto* list = found->get_if<Value::Array>("ids");
    if (list == nullptr) found->fail("ids", "expected a list");
    for (const Value& id : *list) (text_seen ? after : before).push_back(read_id(*found, "ids", id, context));
  }
  if (!text_seen) fields.fail("single", "the text's own tokens are missing");
  add_around(around, before, after);
}

// Reads an id from ["[CLS]", 101].
TokenId read_pair_id(const Fields& fields, std::string_view key, const Context& context) {
  const auto* pair = fields.get_if<Value::Array>(key);
  if (pair == nullptr || pair->size() != 2) fields.fail(key, "expected a text and an id");
  return read_id(fields, key, (*pair)[1], context);
}

void add_cls_and_sep(const Fields& fields, const Context& context, SpecialAround& around) {
  add_around(around, {read_pair_id(fields, "cls", context)}, {read_pair_id(fields, "sep", context)});
}

void add_nothing(const Fields&, const Context&, SpecialAround&) {}

struct Row {
  std::string_view type;
  void (*add)(const Fields& fields, const Context& context, SpecialAround& around);
};

constexpr std::array kRows = std::to_array<Row>({
    {"TemplateProcessing", add_template},
    {"ByteLevel", add_nothing},  // this step only changes offsets in the text
    {"BertProcessing", add_cls_and_sep},
    {"RobertaProcessing", add_cls_and_sep},
});

void add_step(const Fields& fields, Context& context, SpecialAround& around) {
  count_step(fields, context.steps);
  if (fields.require_text("type") != "Sequence") return find_row(kRows, fields).add(fields, context, around);
  for (const Fields& step : fields.read_list("processors")) add_step(step, context, around);
}

}  // namespace
}  // namespace poise::post_processors

namespace poise {

SpecialAround read_post_processor(const Fields& fields, std::size_t vocabulary_size) {
  post_processors::Context context{vocabulary_size};
  SpecialAround around;
  post_processors::add_step(fields, context, around);
  return around;
}

namespace {

// Returns the merges that neither use nor make a token that is left out.
MergeList list_remaining_merges(const Vocabulary& whole, std::size_t rows) {
  std::unordered_set<std::string_view> gone;
  for (std::size_t id = rows; id < whole.size(); ++id) gone.insert(whole.text(id));
  for (std::size_t id = 0; id < rows; ++id) gone.erase(whole.text(id));
  const auto* model = whole.pipeline.get_if<Attributes>("model");
  const auto* prefix = get_member<std::string>(model, "continuing_subword_prefix");
  MergeList left;
  for (std::size_t rank = 0; rank < whole.merges.size(); ++rank) {
    const auto [first, second] = whole.merges[rank];
    std::string joined(whole.merges.joined(rank));
    if (prefix != nullptr && second.size() >= prefix->size()) joined.erase(first.size(), prefix->size());
    if (!gone.contains(first) && !gone.contains(second) && !gone.contains(joined)) left.emplace_back(first, second);
  }
  return left;
}

void leave_out_added_tokens(Attributes& pipeline, std::size_t rows) {
  const auto* tokens = pipeline.get_if<Value::Array>("added_tokens");
  if (tokens == nullptr) return;
  Value::Array left;
  for (const Value& token : *tokens) {
    const auto* number = get_member<std::uint64_t>(token, "id");
    if (number == nullptr || *number < rows) left.push_back(token);
  }
  pipeline.set("added_tokens", std::move(left));
}

// Removes ids of `rows` and above from "added_only", and their scores.
void leave_out_model_tokens(Attributes& pipeline, std::size_t rows) {
  const auto* model = pipeline.get_if<Attributes>("model");
  if (model == nullptr) return;
  Attributes changed = *model;
  if (const auto* ids = model->get_if<Value::Array>("added_only")) {
    Value::Array left = *ids;
    std::erase_if(left, [&](const Value& id) {
      const auto* number = id.get_if<std::uint64_t>();
      return number != nullptr && *number >= rows;
    });
    changed.set("added_only", std::move(left));
  }
  if (const auto* scores = model->get_if<Value::Array>("scores"); scores != nullptr && scores->size() > rows)
    changed.set("scores", Value::Array(scores->begin(), scores->begin() + static_cast<std::ptrdiff_t>(rows)));
  if (const auto* unknown = model->get_if<std::uint64_t>("unk_id"); unknown != nullptr && *unknown >= rows)
    changed.set("unk_id", Value());
  pipeline.set("model", std::move(changed));
}

}  // namespace

Vocabulary keep_first_tokens(Vocabulary vocabulary, std::size_t rows) {
  if (vocabulary.size() <= rows) return vocabulary;
  const auto is_gone = [&](TokenId id) { return id >= 0 && static_cast<std::size_t>(id) >= rows; };
  const SpecialAround around = find_special_around(vocabulary);
  VocabularySettings settings = vocabulary.settings();
  for (TokenId* id : {&settings.bos_id, &settings.eos_id, &settings.pad_id, &settings.unk_id}) {
    if (is_gone(*id)) *id = -1;
  }
  settings.merges = list_remaining_merges(vocabulary, rows);
  leave_out_added_tokens(settings.pipeline, rows);
  leave_out_model_tokens(settings.pipeline, rows);
  Vocabulary left(std::move(settings));
  for (std::size_t id = 0; id < rows; ++id) left.add(vocabulary.text(id), vocabulary.score(id), vocabulary.type(id));
  SpecialAround of_left = around;
  std::erase_if(of_left.before, is_gone);
  std::erase_if(of_left.after, is_gone);
  if (of_left != around) left.pipeline.set("post_processor", make_post_processor(left, of_left));
  return left;
}

}  // namespace poise
