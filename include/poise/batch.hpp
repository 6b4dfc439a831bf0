// BatchGenerator generates several texts at the same time with one model.
//
//   poise::BatchGenerator batch(poise::load_weights(poise::open("model.alt")));
//   for (const std::string& prompt : prompts) batch.add(batch.prompt(prompt), {.max_tokens = 100});
//   while (batch.size() > 0) {
//     for (const auto& text : batch.step()) std::cout << text.id << ": " << text.text << "\n";
//   }
//
// A step multiplies the tokens of all texts by each weight once. Eight texts take little longer than one if the
// memory's speed is the limit. Texts that begin alike compute their beginning once. Each text equals that of a separate
// session, up to the rounding of float32 sums and of the cache; with SessionOptions::exact it is identical.
//
// Only one thread at a time may use a BatchGenerator, which computes with several threads.
#pragma once

#include <cstddef>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include <poise/session.hpp>
#include <poise/tokenizer.hpp>
#include <poise/weights.hpp>

namespace poise {

class BatchGenerator {
 public:
  struct Finished {
    std::size_t id = 0;  // the id that add() returned
    Generation generation;
    std::string text;  // the continuation alone, cut at options.stop; empty if there is no vocabulary
  };

  // Begins without texts. Each text has options.context positions. Throws bad_argument for null, for invalid options
  // and for options.draft; unsupported for weights without an output matrix.
  explicit BatchGenerator(std::shared_ptr<const Weights> weights, const SessionOptions& options = {});
  ~BatchGenerator();
  BatchGenerator(BatchGenerator&&) noexcept;
  BatchGenerator& operator=(BatchGenerator&&) noexcept;

  // Encodes text as Tokenizer::encode_with_special() does. Throws unsupported when the model has no vocabulary.
  std::vector<TokenId> prompt(std::string_view text) const;

  // Adds a text, which takes part in steps until it ends as Session::generate() would end it. Returns its id: 0, 1, ...
  // Throws bad_argument for no tokens, for a token that the model does not have, for more tokens than the context has
  // positions, and for invalid options; unsupported for options.stop if there is no vocabulary.
  std::size_t add(std::vector<TokenId> tokens, const GenerateOptions& options = {});

  // Returns the number of texts that step() has not returned yet.
  std::size_t size() const;

  // Computes at most 512 tokens: the next one of each text, and parts of prompts. Returns the texts that have ended.
  // Throws unsupported for a number that the cache cannot hold (CacheType::f16; choose another type), cancelled soon
  // after `stop` is requested, and what Sampler throws. After an exception, no text is lost: the next step() computes
  // what is missing, and returns the texts that have ended.
  std::vector<Finished> step(const std::stop_token& stop = {});

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace poise
