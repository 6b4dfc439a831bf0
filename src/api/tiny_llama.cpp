#include <poise/tiny_llama.hpp>

#include <optional>
#include <random>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <poise/format.hpp>
#include <poise/session.hpp>
#include <poise/values.hpp>

#include "family/check.hpp"
#include "family/families.hpp"
#include "tokenizer/files/files.hpp"

namespace poise {
namespace {

constexpr float kDeviation = 0.02F;

Config make_config(const ModelConfig& config) {
  return make_tiny_llama_config({.model_dim = config.model_dim,
                                 .layers = config.num_layers,
                                 .heads = config.num_heads,
                                 .ffn_hidden_dim = config.ffn_hidden_dim,
                                 .positions = config.max_seq_length,
                                 .vocabulary = config.vocab_size,
                                 .dropout = config.dropout});
}

ModelConfig make_model_config(const Config& config) {
  const auto convert = [](std::int64_t size) { return static_cast<std::int32_t>(size); };
  return {.model_dim = convert(config.hidden_size),
          .num_layers = convert(config.num_hidden_layers),
          .num_heads = convert(config.num_attention_heads),
          .ffn_hidden_dim = convert(config.intermediate_size),
          .max_seq_length = convert(config.max_position_embeddings),
          .vocab_size = convert(config.vocab_size),
          .dropout = config.dropout};
}

void check_config_values(const Config& config) {
  const std::vector<std::string> faults = check_config(config, tiny_llama::kTinyLlamaFamily);
  if (!faults.empty()) throw Error(ErrorKind::bad_argument, fmt::format("Tiny Llama: {}", fmt::join(faults, "; ")));
}

// Returns all numbers that differ: "number of layers: expected 6, found 4; ...".
std::string list_differences(const ModelConfig& expected, const ModelConfig& found) {
  std::vector<std::string> all;
  const auto compare = [&](std::string_view name, auto wanted, auto is) {
    if (wanted != is) all.push_back(fmt::format("{}: expected {}, found {}", name, wanted, is));
  };
  compare("model dimension", expected.model_dim, found.model_dim);
  compare("number of layers", expected.num_layers, found.num_layers);
  compare("number of heads", expected.num_heads, found.num_heads);
  compare("FFN hidden dimension", expected.ffn_hidden_dim, found.ffn_hidden_dim);
  compare("max sequence length", expected.max_seq_length, found.max_seq_length);
  compare("vocabulary size", expected.vocab_size, found.vocab_size);
  compare("dropout rate", expected.dropout, found.dropout);
  return fmt::format("{}", fmt::join(all, "; "));
}

Tensor make_initial_tensor(const ExpectedTensor& tensor, std::mt19937& random) {
  std::vector<float> values(static_cast<std::size_t>(*element_count(tensor.shape)), 0.0F);
  if (tensor.shape.size() == 2) {
    std::normal_distribution<float> normal(0.0F, kDeviation);
    for (float& value : values) value = normal(random);
  } else if (tensor.name.ends_with(".weight")) {
    values.assign(values.size(), 1.0F);
  }
  return make_tensor(tensor.name, tensor.shape, values);
}

Model make_initial_model(const ModelConfig& config) {
  Model model;
  model.card.model_type = kTinyLlama;
  model.config = make_config(config);
  check_config_values(*model.config);
  std::mt19937 random;
  for (const ExpectedTensor& tensor : tiny_llama::kTinyLlamaFamily.tensors.list_all(*model.config))
    model.add(make_initial_tensor(tensor, random));
  return model;
}

// Runs the action, and throws its errors as FileIOException.
template <typename Action>
auto convert_errors(Action&& action) {
  try {
    return action();
  } catch (const FileIOException&) {
    throw;
  } catch (const Error& error) {
    throw FileIOException(error);
  }
}

Model open_weights(const std::filesystem::path& path) {
  Model model = open(path);
  if (model.origin.format != "tllm") {
    throw Error(ErrorKind::invalid_file,
                fmt::format("magic number: this is not a Tiny Llama weight file but {}", model.origin.format),
                path.string(), 0);
  }
  return model;
}

}  // namespace

class TinyLlamaModel::State {
 public:
  explicit State(Model all) : config(make_model_config(*all.config)), model(std::move(all)) {}

  // Replaces the model, but keeps its tokenizer.
  void replace_model(Model other) {
    other.vocabulary = std::move(model.vocabulary);
    model = std::move(other);
    made_session.reset();
  }

  void set_vocabulary(Vocabulary vocabulary) {
    model.vocabulary = std::move(vocabulary);
    made_session.reset();
  }

  // Returns a session without tokens, which is made on first use.
  Session& begin_session() {
    if (!made_session) made_session.emplace(model);
    made_session->reset();
    return *made_session;
  }

  ModelConfig config;
  Model model;
  std::optional<Session> made_session;
};

TinyLlamaModel::TinyLlamaModel(const ModelConfig& config)
    : state_(std::make_unique<State>(make_initial_model(config))) {}
TinyLlamaModel::TinyLlamaModel(std::unique_ptr<State> state) : state_(std::move(state)) {}
TinyLlamaModel::~TinyLlamaModel() = default;
TinyLlamaModel::TinyLlamaModel(TinyLlamaModel&&) noexcept = default;
TinyLlamaModel& TinyLlamaModel::operator=(TinyLlamaModel&&) noexcept = default;

TinyLlamaModel TinyLlamaModel::from_file(const std::filesystem::path& path) {
  return convert_errors([&] { return TinyLlamaModel(std::make_unique<State>(open_weights(path))); });
}

const ModelConfig& TinyLlamaModel::config() const { return state_->config; }
const Model& TinyLlamaModel::model() const { return state_->model; }

void TinyLlamaModel::save_model_weights(const std::filesystem::path& path) const {
  WriteOptions options;
  options.overwrite = true;
  convert_errors([&] { save(state_->model, path, "tllm", options); });
}

void TinyLlamaModel::load_model_weights(const std::filesystem::path& path) {
  convert_errors([&] {
    Model model = open_weights(path);
    const ModelConfig found = make_model_config(*model.config);
    if (found != config()) {
      throw Error(ErrorKind::invalid_file, fmt::format("configuration mismatch: {}", list_differences(config(), found)),
                  path.string(), 8);
    }
    state_->replace_model(std::move(model));
  });
}

void TinyLlamaModel::load_tokenizer(const std::filesystem::path& vocab, const std::filesystem::path& merges) {
  convert_errors([&] {
    Vocabulary vocabulary = read_tiny_llama_vocabulary(vocab, merges);
    if (vocabulary.size() > static_cast<std::size_t>(config().vocab_size)) {
      throw Error(ErrorKind::invalid_file,
                  fmt::format("has {} tokens, expected at most the model's vocab_size of {}", vocabulary.size(),
                              config().vocab_size),
                  vocab.string());
    }
    state_->set_vocabulary(std::move(vocabulary));
  });
}

std::vector<float> TinyLlamaModel::forward(std::span<const TokenId> tokens) {
  if (tokens.empty()) throw Error(ErrorKind::bad_argument, "forward() needs at least one token");
  Session& session = state_->begin_session();
  std::vector<float> logits;
  for (const TokenId token : tokens) {
    session.feed(std::span(&token, 1));
    logits.insert(logits.end(), session.logits().begin(), session.logits().end());
  }
  return logits;
}

std::string TinyLlamaModel::generate(std::string_view prompt, std::size_t max_tokens, const SamplingOptions& sampling) {
  Session& session = state_->begin_session();
  const std::vector<TokenId> tokens = session.prompt(prompt);
  session.feed(tokens);
  return session.tokenizer().decode(session.generate({.max_tokens = max_tokens, .sampling = sampling}).tokens);
}

std::vector<TokenId> TinyLlamaModel::generate(std::span<const TokenId> prompt, std::size_t max_tokens,
                                              const SamplingOptions& sampling) {
  Session& session = state_->begin_session();
  session.feed(prompt);
  return session.generate({.max_tokens = max_tokens, .sampling = sampling}).tokens;
}

Vocabulary read_tiny_llama_vocabulary(const std::filesystem::path& vocab, const std::filesystem::path& merges) {
  return read_byte_pair_vocabulary(*Source::open(vocab, IoMode::read), *Source::open(merges, IoMode::read));
}

}  // namespace poise
