#include "runtime/weights.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "family/families.hpp"
#include "family/tied_output.hpp"
#include "model/same_headers.hpp"
#include "pack/digest.hpp"
#include "pack/scan.hpp"
#include "runtime/stop_texts.hpp"
#include "tokenizer/gguf/vocabulary.hpp"
#include "tokenizer/pipeline/steps.hpp"
#include "tokenizer/tokens/token_types.hpp"

namespace poise {

Weights::Weights(std::unique_ptr<const Parts> parts) : parts_(std::move(parts)) {}
Weights::~Weights() = default;

std::size_t Weights::vocabulary_size() const { return parts_->transformer->vocabulary_size(); }
std::size_t Weights::hidden_size() const { return parts_->transformer->hidden_size(); }
std::size_t Weights::layers() const { return parts_->transformer->layers(); }
std::size_t Weights::max_context() const { return parts_->max_context; }
bool Weights::has_tokenizer() const { return parts_->tokenizer.has_value(); }

const Tokenizer& Weights::tokenizer() const {
  if (!has_tokenizer())
    throw Error(ErrorKind::unsupported, "the model has no vocabulary: it can be fed token ids, but no text");
  return *parts_->tokenizer;
}

std::shared_ptr<const Weights> require_weights(std::shared_ptr<const Weights> weights, const char* problem) {
  if (!weights) throw Error(ErrorKind::bad_argument, problem);
  return weights;
}

void require_token(const Weights& weights, std::string_view what, TokenId token) {
  if (token >= 0 && static_cast<std::size_t>(token) < weights.vocabulary_size()) return;
  throw Error(ErrorKind::bad_argument,
              fmt::format("{} {} is out of range: the model has {} tokens", what, token, weights.vocabulary_size()));
}

void require_valid_options(const Weights& weights, const GenerateOptions& options) {
  if (options.stop_id) require_token(weights, "stop id", *options.stop_id);
  for (const auto& [token, bias] : options.sampling.logit_bias) require_token(weights, "logit-bias: token", token);
  if (!options.stop.empty()) (void)weights.tokenizer();
  (void)StopTexts(options.stop);
}

void require_output_matrix(const Weights& weights) {
  if (weights.parts().transformer->has_output()) return;
  throw Error(ErrorKind::unsupported,
              "the model has no output matrix: it makes vectors (poise embed, poise::Embedder), and no text");
}

bool ends_text(const Weights& weights, TokenId token, const GenerateOptions& options) {
  if (options.ignore_eos) return false;
  if (options.stop_id) return token == *options.stop_id;
  return std::ranges::find(weights.parts().ends, token) != weights.parts().ends.end();
}

std::string find_fingerprint(const Weights& weights) {
  const Weights::Parts& parts = weights.parts();
  return *parts.fingerprint.get(
      [&] { return std::make_shared<const std::string>(compute_fingerprint(parts.tensors, parts.config)); });
}

void require_layer(const Weights& weights, std::size_t layer) {
  const std::size_t last = weights.parts().transformer->layers();
  if (layer <= last) return;
  throw Error(ErrorKind::bad_argument,
              fmt::format("layer {} is out of range: the model has {} layers, and the embedding is 0", layer, last));
}

std::size_t find_context(const Weights& weights, const SessionOptions& options) {
  const std::size_t most = weights.max_context();
  if (options.context > most) {
    throw Error(ErrorKind::bad_argument,
                fmt::format("a context of {} tokens is too long: the model's max_position_embeddings is {}",
                            options.context, most));
  }
  return options.context == 0 ? most : options.context;
}

CacheType choose_cache_type(const SessionOptions& options) {
  return options.cache.value_or(options.exact ? CacheType::f32 : CacheType::f16);
}

std::span<const float> drop_padding_scores(const Weights& weights, std::span<const float> logits) {
  if (!weights.has_tokenizer()) return logits;
  return logits.first(std::min(logits.size(), weights.tokenizer().vocabulary().size()));
}

std::shared_ptr<const Weights> load_weights(const Model& model) { return load_weights(model, Ranks()); }

std::shared_ptr<const Weights> load_weights(const Model& model, const Ranks& ranks) {
  if (const auto resolved = resolve_tied_output(model))
    return load_weights(*resolved, ranks);  // only for a model made in memory: open() has already resolved its models
  if (ranks.communicator != nullptr) require_same_headers(model, *ranks.communicator);
  auto parts = std::make_unique<Weights::Parts>();
  parts->transformer = make_transformer(model, ranks);
  parts->tensors.assign(model.tensors().begin(), model.tensors().end());
  parts->config = whole_config(model);
  parts->max_context = static_cast<std::size_t>(model.config->max_position_embeddings);
  TokenId eos = find_family_or_llama(model).end_of_text;
  if (auto vocabulary = make_vocabulary(model); vocabulary && vocabulary->size() > 0) {
    parts->tokenizer.emplace(keep_first_tokens(*std::move(vocabulary), parts->transformer->vocabulary_size()));
    eos = parts->tokenizer->vocabulary().eos_id;
  }
  parts->ends = find_end_tokens(model, eos, parts->transformer->vocabulary_size());
  return std::make_shared<const Weights>(std::move(parts));
}

namespace {

class PartFingerprint final : public Visitor {
 public:
  explicit PartFingerprint(std::string& digits) : digits_(digits) {}
  void update(std::span<const std::byte> bytes) override { hasher_->update(bytes); }
  void end(std::string /*sha256*/) override { digits_ = hasher_->finish(); }

 private:
  std::string& digits_;
  std::unique_ptr<Hasher> hasher_ = make_xxh3();
};

}  // namespace

std::string compute_fingerprint(const std::vector<Tensor>& tensors, const Attributes& config) {
  std::vector<std::pair<const Tensor*, const Part*>> parts;
  std::vector<std::uint64_t> sizes;
  for (const Tensor& tensor : tensors) {
    for (const Part& part : tensor.parts) {
      parts.emplace_back(&tensor, &part);
      sizes.push_back(part.blob->size());
    }
  }
  std::vector<std::string> digits(parts.size());
  Scan scan(sizes, [&](std::size_t i) {
    return Visit{parts[i].second->blob, false, std::make_unique<PartFingerprint>(digits[i])};
  });
  scan.start();
  scan.finish();
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < parts.size(); ++i)
    lines.push_back(fmt::format("{} {}\n", describe_part(*parts[i].first, *parts[i].second), digits[i]));
  std::ranges::sort(lines);
  const auto hasher = make_xxh3();
  const auto add_to_hash = [&](const std::string& line) { hasher->update(std::as_bytes(std::span(line))); };
  std::ranges::for_each(lines, add_to_hash);
  add_to_hash(to_json(config));
  return "xxh3:" + hasher->finish();
}

std::string compute_vocabulary_fingerprint(const Vocabulary& vocabulary) {
  const auto hasher = make_xxh3();
  const auto add = [&](const Value& value) {
    const std::string line = to_json(value) + "\n";
    hasher->update(std::as_bytes(std::span(line)));
  };
  add(Value::Array{static_cast<std::uint64_t>(vocabulary.kind), vocabulary.add_dummy_prefix,
                   vocabulary.remove_extra_whitespaces, vocabulary.normalizer, vocabulary.pipeline});
  for (const TokenId id : {vocabulary.bos_id, vocabulary.eos_id, vocabulary.pad_id, vocabulary.unk_id})
    add(std::int64_t{id});
  for (std::size_t id = 0; id < vocabulary.size(); ++id) {
    add(Value::Array{std::string(vocabulary.text(id)), static_cast<double>(vocabulary.score(id)),
                     static_cast<std::uint64_t>(vocabulary.type(id))});
  }
  for (const auto& [left, right] : vocabulary.merges) add(Value::Array{std::string(left), std::string(right)});
  return "xxh3:" + hasher->finish();
}

}  // namespace poise
