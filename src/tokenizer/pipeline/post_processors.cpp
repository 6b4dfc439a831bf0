#include "tokenizer/pipeline/post_processors.hpp"

#include <array>
#include <string_view>

#include <fmt/format.h>

#include "tokenizer/pipeline/steps.hpp"

namespace poise {
namespace {

using Made = std::unique_ptr<const PostProcessor>;

struct Context : StepCount {
  explicit Context(std::size_t tokens) : vocabulary_size(tokens) {}
  std::size_t vocabulary_size;
};

TokenId checked_id(const Fields& fields, std::string_view key, const Value& value, const Context& context) {
  const auto* id = value.get_if<std::uint64_t>();
  if (id == nullptr || *id >= context.vocabulary_size)
    fields.fail(key, fmt::format("expected the id of one of the {} tokens", context.vocabulary_size));
  return static_cast<TokenId>(*id);
}

class Sequence final : public PostProcessor {
 public:
  explicit Sequence(std::vector<Made> steps) : steps_(std::move(steps)) {}
  std::vector<TokenId> apply(std::vector<TokenId> tokens) const override {
    for (const Made& step : steps_) tokens = step->apply(std::move(tokens));
    return tokens;
  }

 private:
  std::vector<Made> steps_;
};

// Puts tokens before and after.
class Around final : public PostProcessor {
 public:
  Around(std::vector<TokenId> before, std::vector<TokenId> after)
      : before_(std::move(before)), after_(std::move(after)) {}
  std::vector<TokenId> apply(std::vector<TokenId> tokens) const override {
    tokens.insert(tokens.begin(), before_.begin(), before_.end());
    tokens.insert(tokens.end(), after_.begin(), after_.end());
    return tokens;
  }

 private:
  std::vector<TokenId> before_;
  std::vector<TokenId> after_;
};

// "single" lists the parts of the result: special tokens, and Sequence A for the text's own.
Made template_processing(const Fields& fields, Context& context) {
  std::vector<TokenId> before;
  std::vector<TokenId> after;
  bool text_seen = false;
  const auto specials = fields.map("special_tokens");
  for (const Fields& item : fields.list("single")) {
    if (const auto sequence = item.map("Sequence")) {
      if (text_seen || sequence->required_text("id") != "A") item.fail("Sequence", "expected A, once");
      text_seen = true;
      continue;
    }
    const auto special = item.map("SpecialToken");
    if (!special) item.fail("", "expected SpecialToken or Sequence");
    const auto found = specials ? specials->map(special->required_text("id")) : std::nullopt;
    if (!found) special->fail("id", "is none of special_tokens");
    const Value* ids = found->find("ids");
    const auto* list = ids == nullptr ? nullptr : ids->get_if<Value::Array>();
    if (list == nullptr) found->fail("ids", "expected a list");
    for (const Value& id : *list) (text_seen ? after : before).push_back(checked_id(*found, "ids", id, context));
  }
  if (!text_seen) fields.fail("single", "the text's own tokens are missing");
  return std::make_unique<Around>(std::move(before), std::move(after));
}

// ["[CLS]", 101]
TokenId pair_id(const Fields& fields, std::string_view key, const Context& context) {
  const Value* value = fields.find(key);
  const auto* pair = value == nullptr ? nullptr : value->get_if<Value::Array>();
  if (pair == nullptr || pair->size() != 2) fields.fail(key, "expected a text and an id");
  return checked_id(fields, key, (*pair)[1], context);
}

Made cls_and_sep(const Fields& fields, Context& context) {
  return std::make_unique<Around>(std::vector{pair_id(fields, "cls", context)},
                                  std::vector{pair_id(fields, "sep", context)});
}

Made nothing(const Fields&, Context&) {
  return std::make_unique<Around>(std::vector<TokenId>(), std::vector<TokenId>());
}

using Row = StepRow<PostProcessor, Context>;

constexpr std::array kRows = std::to_array<Row>({
    {"TemplateProcessing", template_processing},
    {"ByteLevel", nothing},  // moves offsets only
    {"BertProcessing", cls_and_sep},
    {"RobertaProcessing", cls_and_sep},
});

}  // namespace

std::unique_ptr<const PostProcessor> make_post_processor(const Fields& fields, std::size_t vocabulary_size) {
  Context context(vocabulary_size);
  return made_of<Sequence>(std::span<const Row>(kRows), "processors", fields, context);
}

}  // namespace poise
