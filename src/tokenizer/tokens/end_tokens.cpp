#include "tokenizer/tokens/end_tokens.hpp"

#include <algorithm>
#include <string>

#include <poise/error.hpp>

#include "tokenizer/tokens/sampling_keys.hpp"

namespace poise {
namespace {

class Collector {
 public:
  explicit Collector(std::size_t tokens) : size_(tokens) {}

  void add(const Value* value) {
    if (value == nullptr) return;
    if (const auto* list = value->get_if<Value::Array>()) {
      for (const Value& item : *list) add_number(item);
    } else {
      add_number(*value);
    }
  }

  std::vector<TokenId> take() { return std::move(ids_); }

 private:
  void add_number(const Value& value) {
    const auto* id = value.get_if<std::uint64_t>();
    if (id == nullptr || *id >= size_ || std::ranges::find(ids_, static_cast<TokenId>(*id)) != ids_.end()) return;
    constexpr std::size_t kMost = 64;
    if (ids_.size() < kMost) ids_.push_back(static_cast<TokenId>(*id));
  }

  std::size_t size_;
  std::vector<TokenId> ids_;
};

}  // namespace

Attributes generation_config(const Model& model) {
  const Value* value = model.attributes.find(kGenerationConfig);
  if (value == nullptr) return {};
  if (const auto* map = value->get_if<Attributes>()) return *map;
  const auto* text = value->get_if<std::string>();
  if (text == nullptr) return {};
  try {
    const Value parsed = parse_json(*text, std::string(kGenerationConfig));
    const auto* map = parsed.get_if<Attributes>();
    return map == nullptr ? Attributes() : *map;
  } catch (const Error&) {
    return {};  // another program's attribute
  }
}

// transformers samples only if it is told to.
Attributes make_generation_config(const Attributes& attributes) {
  Attributes generation;
  for (const SamplingKey& row : kSamplingKeys) {
    const Value* value = attributes.find(std::string(kSamplingPrefix).append(row.gguf));
    if (value == nullptr) continue;
    if (generation.empty()) generation.set("do_sample", true);
    generation.set(std::string(row.config), *value);
  }
  return generation;
}

std::vector<TokenId> end_tokens(const Model& model, TokenId eos, std::size_t tokens) {
  Collector ids(tokens);
  const Value first(std::int64_t{eos});
  ids.add(&first);
  ids.add(model.config_json.find("eos_token_id"));
  const Value* nested = model.config_json.find("text_config");  // of multimodal directories
  if (const auto* text = nested == nullptr ? nullptr : nested->get_if<Attributes>())
    ids.add(text->find("eos_token_id"));
  const Attributes generation = generation_config(model);
  ids.add(generation.find("eos_token_id"));
  ids.add(model.attributes.find("tokenizer.ggml.eot_token_id"));
  ids.add(model.attributes.find("tokenizer.ggml.eom_token_id"));
  return ids.take();
}

}  // namespace poise
