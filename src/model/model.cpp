#include <poise/model.hpp>

#include <cstdlib>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/text_table.hpp"
#include "model/limits.hpp"
#include "model/tiny_llama.hpp"

namespace poise {

std::string_view to_string(TokenType type) {
  switch (type) {
    case TokenType::normal: return "normal";
    case TokenType::byte: return "byte";
    case TokenType::control: return "control";
    case TokenType::unknown: return "unknown";
    case TokenType::unused: return "unused";
    case TokenType::bos: return "bos";
    case TokenType::eos: return "eos";
    case TokenType::pad: return "pad";
    case TokenType::user_defined: return "user_defined";
  }
  return "normal";
}

void Vocabulary::reserve(std::size_t tokens, std::size_t bytes) {
  tokens_.reserve(tokens);
  arena_.reserve(bytes);
}

void Vocabulary::add(std::string_view text, float score, TokenType type) {
  if (tokens_.size() == kMaxTokens) throw Error(ErrorKind::unsupported, fmt::format("the vocabulary has more than {} tokens", kMaxTokens));
  constexpr std::size_t kMaxArena = UINT32_MAX;
  if (text.size() > kMaxArena - arena_.size()) throw Error(ErrorKind::unsupported, "the vocabulary has more than 4 GiB of text");
  tokens_.push_back({static_cast<std::uint32_t>(arena_.size()), static_cast<std::uint32_t>(text.size()), score, type});
  arena_ += text;
}

std::string_view Vocabulary::text(std::size_t id) const {
  const Token& token = tokens_[id];
  return std::string_view(arena_).substr(token.begin, token.length);
}

const Tensor& Model::add(Tensor tensor) {
  const auto require = [&](bool holds, std::string_view what, std::size_t most) {
    if (!holds) throw Error(ErrorKind::unsupported, fmt::format("tensor {}: more than {} {}", tensor.name, most, what), origin.path.string());
  };
  require(tensors_.size() < kMaxTensors, "tensors", kMaxTensors);
  require(tensor.parts.size() <= kMaxParts - parts_, "parts in all", kMaxParts);
  require(tensor.shape.size() <= kMaxRank, "dimensions", kMaxRank);
  reserve(tensors_.size() + 1);
  const Tensor& added = tensors_.emplace_back(std::move(tensor));
  const auto position = static_cast<std::uint32_t>(tensors_.size() - 1);
  if (!by_name_->insert(added.name, position, [this](std::uint32_t at) -> std::string_view { return tensors_[at].name; })) {
    parts_ += added.parts.size();
    return added;
  }
  const std::string name = added.name;
  tensors_.pop_back();
  throw Error(ErrorKind::invalid_file, fmt::format("the tensor name \"{}\" stands twice", name), origin.path.string());
}

void Model::reserve(std::size_t tensors) {
  if (!by_name_) by_name_ = std::make_shared<TextTable>();
  by_name_->reserve(tensors);
}

const Tensor* Model::find(std::string_view name) const {
  if (!by_name_) return nullptr;
  const auto found = by_name_->find(name, [this](std::uint32_t at) -> std::string_view { return tensors_[at].name; });
  return found ? &tensors_[*found] : nullptr;
}

namespace {

// The double whose shortest spelling is the float's: 1e-05, not 9.999999747378752e-06.
double shortest(float value) { return std::strtod(fmt::format("{}", value).c_str(), nullptr); }

}  // namespace

Attributes config_to_attributes(const Config& config, const std::string& model_type) {
  Attributes map;
  map.set("model_type", model_type);
  map.set("hidden_act", config.hidden_act);
  map.set("tie_word_embeddings", config.tie_word_embeddings);
  map.set("hidden_size", config.hidden_size);
  map.set("intermediate_size", config.intermediate_size);
  map.set("max_position_embeddings", config.max_position_embeddings);
  map.set("num_attention_heads", config.num_attention_heads);
  map.set("num_hidden_layers", config.num_hidden_layers);
  map.set("num_key_value_heads", config.num_key_value_heads);
  map.set("head_dim", config.head_dim);
  map.set("vocab_size", config.vocab_size);
  map.set("sliding_window", config.sliding_window > 0 ? Value(config.sliding_window) : Value());
  map.set("rope_theta", shortest(config.rope_theta));
  map.set("rms_norm_eps", shortest(config.rms_norm_eps));
  map.set("initializer_range", shortest(config.initializer_range));
  if (config.dropout != 0.0F || model_type == kTinyLlama) map.set("dropout", shortest(config.dropout));
  return map;
}

Attributes card_to_attributes(const Card& card) {
  return {{"model_type", card.model_type},       {"base_model", card.base_model}, {"author", card.author}, {"created_at", card.created_at},
          {"last_modified", card.last_modified}, {"license", card.license},       {"uuid", card.uuid}};
}

}  // namespace poise
