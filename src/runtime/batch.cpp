#include <poise/batch.hpp>

#include <algorithm>
#include <list>
#include <optional>

#include <poise/error.hpp>

#include "runtime/computation.hpp"
#include "runtime/stop_texts.hpp"

namespace poise {
namespace {

// Shorter common beginnings are recomputed, because copying a cache or waiting for another text costs more.
constexpr std::size_t kLeastShared = 16;

std::size_t count_common_beginning(const std::vector<TokenId>& a, const std::vector<TokenId>& b) {
  return static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

}  // namespace

class BatchGenerator::State : public Computation {
 public:
  State(std::shared_ptr<const Weights> weights, const SessionOptions& options)
      : Computation(std::move(weights), options) {
    require_output_matrix(*weights_);
  }

  std::size_t size() const { return texts_.size() + ended_.size(); }

  std::size_t add(std::vector<TokenId> tokens, const GenerateOptions& options) {
    if (tokens.empty()) throw Error(ErrorKind::bad_argument, "the text has no tokens, expected one or more");
    require_fitting_tokens(tokens);
    require_valid_options(*weights_, options);
    BatchText text(next_id_, Computed{std::move(tokens), begin_sequence(context_)}, *weights_, options);
    if (options.max_tokens == 0) {
      ended_.push_back(std::move(text.result));
    } else {
      texts_.push_back(std::move(text));
    }
    return next_id_++;
  }

  std::vector<Finished> step(const std::stop_token& stop) {
    if (const std::vector<Part> parts = choose_parts(); !parts.empty()) advance(parts, stop);
    return std::exchange(ended_, {});
  }

 private:
  struct Computed {
    std::vector<TokenId> tokens;  // the first sequence.position of them are computed
    Sequence sequence;
  };

  struct BatchText : Computed {
    BatchText(std::size_t id, Computed computed, const Weights& weights, const GenerateOptions& generate)
        : Computed(std::move(computed)), options(generate), sampler(generate.sampling) {
      result.id = id;
      sampler.see(tokens);
      if (weights.has_tokenizer()) stream.emplace(weights.tokenizer(), tokens, generate.stop);
    }

    GenerateOptions options;
    Sampler sampler;
    std::optional<ContinuationStream> stream;
    BatchGenerator::Finished result;
  };

  // Names the next `count` tokens of a text, which a step computes.
  struct Part {
    BatchText* text;
    std::size_t count;
  };

  // Computes the parts. Then chooses the next token of each text whose tokens are all computed.
  void advance(const std::vector<Part>& parts, const std::stop_token& stop) {
    compute_parts(parts, stop);
    std::vector<std::size_t> rows;
    std::vector<BatchText*> next;  // the texts that get a token from these rows
    std::size_t row = 0;
    for (const Part& part : parts) {
      row += part.count;
      if (part.text->sequence.position < part.text->tokens.size()) continue;
      rows.push_back(row - 1);
      next.push_back(part.text);
    }
    std::size_t chosen = 0;
    try {
      std::vector<float> logits(rows.size() * weights_->vocabulary_size());
      if (!rows.empty()) threads_.run({}, [&] { transformer_.compute_logits(rows, memory_, logits.data()); });
      for (; chosen < next.size(); ++chosen) {
        const auto scores =
            std::span(logits).subspan(chosen * weights_->vocabulary_size(), weights_->vocabulary_size());
        if (choose_token(*next[chosen], scores)) end_text(*next[chosen]);
      }
    } catch (...) {
      for (; chosen < next.size(); ++chosen) drop_last_position(*next[chosen]);
      throw;
    }
  }

  // Lets the next step compute the text's last token again, because its scores are lost.
  void drop_last_position(BatchText& text) const {
    Sequence& sequence = text.sequence;
    if (sequence.position < text.tokens.size()) return;
    if (!transformer_.truncate(sequence.position - 1, sequence)) sequence.clear();
  }

  // Chooses the parts of a step. Texts that are generating come first, so that long prompts do not delay them.
  std::vector<Part> choose_parts() {
    std::vector<Part> parts;
    std::size_t room = Transformer::kMaxBatch;
    const auto add_part = [&](BatchText& text) {
      const std::size_t count = std::min(room, text.tokens.size() - text.sequence.position);
      if (count > 0) parts.push_back({&text, count});
      room -= count;
    };
    for (BatchText& text : texts_) {
      if (!text.result.generation.tokens.empty()) {
        restart_if_long(text);
        add_part(text);
      }
    }
    for (BatchText& text : texts_) {
      if (!text.result.generation.tokens.empty()) continue;
      restart_if_long(text);
      if (text.sequence.position > 0 || !copy_beginning_or_wait(text)) add_part(text);
    }
    // Texts that had no room come first in the next step.
    const auto is_waiting = [&](const BatchText& text) {
      return std::ranges::find(parts, &text, &Part::text) == parts.end();
    };
    if (room == 0) texts_.splice(texts_.begin(), texts_, std::ranges::find_if(texts_, is_waiting), texts_.end());
    return parts;
  }

  void restart_if_long(BatchText& text) const {
    if (text.sequence.is_long || !transformer_.is_long(text.tokens.size())) return;
    text.sequence.clear();
    text.sequence.is_long = true;
  }

  // Copies the longest computed beginning that the text shares with another text. Returns true, without copying, if
  // the text should wait because another text will soon have computed a longer one.
  bool copy_beginning_or_wait(BatchText& text) {
    const Computed* best = nullptr;
    std::size_t shared = kLeastShared - 1;
    const auto compare_beginning = [&](const Computed& other) {
      const std::size_t common = std::min(count_common_beginning(text.tokens, other.tokens), text.tokens.size() - 1);
      const std::size_t computed = std::min(common, other.sequence.position);
      if (other.sequence.is_long == text.sequence.is_long && computed > shared) {
        best = &other;
        shared = computed;
      }
      return common;
    };
    std::size_t coming = 0;
    bool is_earlier = true;
    for (const BatchText& other : texts_) {
      if (&other == &text) {
        is_earlier = false;
        continue;
      }
      const std::size_t common = compare_beginning(other);
      const bool is_coming = is_earlier || other.sequence.position > 0;
      if (is_coming && other.sequence.is_long == text.sequence.is_long) coming = std::max(coming, common);
    }
    if (last_) compare_beginning(*last_);
    if (coming > shared && coming >= kLeastShared) return true;
    if (best == nullptr) return false;
    Sequence copy = best->sequence;
    if (transformer_.truncate(shared, copy)) text.sequence = std::move(copy);
    return false;
  }

  void compute_parts(const std::vector<Part>& parts, const std::stop_token& stop) {
    std::vector<SequenceTokens> batch;
    for (const Part& part : parts)
      batch.push_back(
          {&part.text->sequence, std::span(part.text->tokens).subspan(part.text->sequence.position, part.count)});
    threads_.run(stop, [&] { transformer_.forward(batch, memory_); });
  }

  // Chooses the next token. Returns true if the text ends with it.
  bool choose_token(BatchText& text, std::span<const float> logits) const {
    const TokenId token = text.sampler.sample(drop_padding_scores(*weights_, logits));
    Generation& generation = text.result.generation;
    generation.tokens.push_back(token);
    text.tokens.push_back(token);
    if (text.stream) text.result.text += text.stream->add(token);
    if (ends_text(*weights_, token, text.options)) {
      generation.reason = StopReason::end_of_text;
    } else if (text.stream && text.stream->is_stopped()) {
      generation.reason = StopReason::stop_text;
    } else if (generation.tokens.size() < text.options.max_tokens) {
      if (text.sequence.position < context_) return false;
      generation.reason = StopReason::context_full;
    }
    return true;
  }

  void end_text(BatchText& text) {
    if (text.stream) text.result.text += text.stream->finish();
    ended_.push_back(std::move(text.result));
    last_.emplace(Computed{std::move(text.tokens), std::move(text.sequence)});
    std::erase_if(texts_, [&](const BatchText& other) { return &other == &text; });
  }

  std::size_t next_id_ = 0;
  std::list<BatchText> texts_;    // a list, because parts point to its texts
  std::vector<Finished> ended_;   // finished, but not returned yet
  std::optional<Computed> last_;  // the text that ended last: others may share its beginning
};

BatchGenerator::BatchGenerator(std::shared_ptr<const Weights> weights, const SessionOptions& options) {
  if (!weights) throw Error(ErrorKind::bad_argument, "a batch needs weights, found a null pointer");
  if (options.draft) throw Error(ErrorKind::bad_argument, "a batch cannot use a draft; sessions can");
  state_ = std::make_unique<State>(std::move(weights), options);
}
BatchGenerator::~BatchGenerator() = default;
BatchGenerator::BatchGenerator(BatchGenerator&&) noexcept = default;
BatchGenerator& BatchGenerator::operator=(BatchGenerator&&) noexcept = default;

std::vector<TokenId> BatchGenerator::prompt(std::string_view text) const {
  return state_->weights().tokenizer().encode_with_special(text);
}
std::size_t BatchGenerator::add(std::vector<TokenId> tokens, const GenerateOptions& options) {
  return state_->add(std::move(tokens), options);
}
std::size_t BatchGenerator::size() const { return state_->size(); }
std::vector<BatchGenerator::Finished> BatchGenerator::step(const std::stop_token& stop) { return state_->step(stop); }

}  // namespace poise
