// Implements measure_imatrix(), which runs a model over a text for an importance matrix.
#include <poise/imatrix.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "formats/importance_matrix.hpp"
#include "runtime/forward_pass.hpp"
#include "runtime/parallel.hpp"
#include "tokenizer/tokens/merge.hpp"

namespace poise {
namespace {

constexpr std::size_t kLeastChunk = 16;  // llama-imatrix ignores fewer tokens

// Sums up the squares of each matrix's inputs.
class InputSquares final : public InputObserver {
 public:
  struct Sums {
    std::vector<double> squares;  // for each input of the matrix, the sum over tokens
    std::uint64_t tokens = 0;
  };

  // Adds the squares of x. Only one thread at a time may call it, so passes must have two tokens or more.
  void observe(std::span<const Product> products, const float* x, std::size_t tokens) override {
    const std::size_t inputs = products.front().matrix->inputs();
    std::vector<double> squares(inputs);
    run_in_parallel(inputs, std::max<std::size_t>(16, kLeastNumbers / tokens),
                    [&](std::size_t first, std::size_t last) {
                      for (std::size_t t = 0; t < tokens; ++t) {
                        for (std::size_t i = first; i < last; ++i) {
                          const auto number = static_cast<double>(x[t * inputs + i]);
                          squares[i] += number * number;
                        }
                      }
                    });
    for (const Product& product : products) {
      Sums& sums = of_matrix_[product.matrix];
      sums.squares.resize(inputs);
      for (std::size_t i = 0; i < inputs; ++i) sums.squares[i] += squares[i];
      sums.tokens += tokens;
    }
  }

  // Returns the sums of each matrix that has had inputs.
  const std::unordered_map<const Matrix*, Sums>& get_sums() const { return of_matrix_; }

 private:
  std::unordered_map<const Matrix*, Sums> of_matrix_;
};

// Describes a tensor that stacks the matrices of all experts: the ending of its name, and the modules that have
// separate entries in llama.cpp's files.
struct StackRow {
  std::string_view ending;
  std::vector<std::string_view> modules;
};

const std::array<StackRow, 2>& list_stacks() {
  static const std::array<StackRow, 2> rows = {
      {{".gate_up_proj", {"gate_proj", "up_proj"}}, {".down_proj", {"down_proj"}}}};
  return rows;
}

// Finds the entries of a model's matrices in an importance matrix, by llama.cpp's names, and their places in the
// entries.
class Places {
 public:
  explicit Places(const Model& model) : model_type_(model.card.model_type) {
    for (const Tensor& tensor : model.tensors()) {
      const std::size_t matrices = tensor.shape.size() == 3 ? static_cast<std::size_t>(tensor.shape.front()) : 1;
      for (const ImportancePlace& place : find_places({tensor.name, 0})) {
        std::size_t& count = experts_[place.entry];
        count = std::max(count, place.expert + matrices);
      }
    }
  }

  std::vector<ImportancePlace> find_places(const Matrix::Origin& origin) const {
    if (const auto known = find_importance_place(origin.tensor, model_type_))
      return {{known->entry, known->expert + origin.index}};
    std::vector<ImportancePlace> places;
    for (const StackRow& row : list_stacks()) {
      if (!origin.tensor.ends_with(row.ending)) continue;
      const std::string list = origin.tensor.substr(0, origin.tensor.size() - row.ending.size());
      for (const std::string_view module : row.modules) {
        if (const auto known =
                find_importance_place(fmt::format("{}.{}.{}.weight", list, origin.index, module), model_type_))
          places.push_back({known->entry, origin.index});
      }
    }
    if (places.empty()) places.push_back({origin.tensor, origin.index});
    return places;
  }

  // Returns how many matrices the model has at that entry.
  std::size_t count_experts(const std::string& entry) const { return experts_.at(entry); }

 private:
  std::string model_type_;
  std::map<std::string, std::size_t, std::less<>> experts_;
};

Imatrix make_imatrix(const InputSquares& squares, const Places& places, const ImatrixOptions& options) {
  Imatrix result;
  result.chunk_size = options.chunk_size;
  if (!options.dataset.empty()) result.datasets = {options.dataset};
  for (const auto& [matrix, sums] : squares.get_sums()) {
    for (const ImportancePlace& place : places.find_places(matrix->origin())) {
      ImatrixEntry& entry = result.entries[place.entry];
      const std::size_t columns = sums.squares.size();
      const std::size_t experts = places.count_experts(place.entry);
      entry.sums.resize(experts * columns);
      entry.counts.resize(experts);
      std::ranges::copy(sums.squares, entry.sums.begin() + static_cast<std::ptrdiff_t>(place.expert * columns));
      entry.counts[place.expert] = static_cast<double>(sums.tokens);
    }
  }
  for (const auto& [name, entry] : result.entries) {
    for (const double sum : entry.sums) {
      if (!std::isfinite(sum)) refuse_non_finite(fmt::format("a sum of squared inputs of {}", name), sum);
    }
  }
  return result;
}

}  // namespace

Imatrix measure_imatrix(const Model& model, std::string_view text, const ImatrixOptions& options,
                        const Progress& progress, const std::stop_token& stop) {
  if (options.chunk_size < kLeastChunk) {
    throw Error(ErrorKind::bad_argument,
                fmt::format("chunks of {} tokens are too short: expected {} or more", options.chunk_size, kLeastChunk));
  }
  const std::shared_ptr<const Weights> weights = load_weights(model);
  SessionOptions session;
  session.threads = options.threads;
  session.context = options.chunk_size;
  session.exact = options.exact;
  ForwardPass pass(weights, session);
  const EncodingStop stoppable(stop);
  std::vector<TokenId> tokens = weights->tokenizer().encode_with_special(text);
  const std::size_t all = tokens.size() / options.chunk_size;
  const std::size_t left = all - std::min(all, options.skipped);
  const std::size_t chunks = std::min(left, options.chunks.value_or(left));
  if (all == 0) {
    throw Error(ErrorKind::bad_argument, fmt::format("the text has {} tokens, fewer than a chunk of {} tokens",
                                                     tokens.size(), options.chunk_size));
  }
  const std::optional<TokenId> bos = find_first_token(*weights);
  const Places places(model);
  InputSquares squares;
  pass.observe_inputs(squares);
  std::vector<float> scores;
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
    if (progress && !progress({chunk, chunks, "chunks"})) throw_cancelled();
    const auto part = std::span(tokens).subspan((options.skipped + chunk) * options.chunk_size, options.chunk_size);
    if (bos) part.front() = *bos;
    pass.begin_text(part);
    while (const std::size_t count = pass.compute_next_tokens(stop)) {
      for (std::size_t at = 0, rows = 0; options.output && at < count; at += rows) {
        rows = Transformer::count_next_tokens(count - at, Transformer::kScoreRows);
        pass.compute_logits(at, rows, scores, stop);
      }
    }
    const std::size_t done = chunk + 1;
    if (options.save && options.save_every > 0 && done % options.save_every == 0 && done < chunks)
      options.save(make_imatrix(squares, places, options));
  }
  if (progress) progress({chunks, chunks, "chunks"});
  return make_imatrix(squares, places, options);
}

}  // namespace poise
