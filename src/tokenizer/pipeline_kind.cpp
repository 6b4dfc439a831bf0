// Implements pipelines as in tokenizer.json. The constructor makes the steps from the vocabulary's data, and texts and
// ids then pass through them:
//
//   text -> added tokens cut out -> normalizer -> added tokens for normalized text cut out -> pre-tokenizer -> model
//     -> post-processor (TokenScheme::add_special())
//   ids -> texts of tokens -> decoder
#include <mutex>
#include <unordered_map>

#include "bytes/utf8.hpp"
#include "tokenizer/kinds.hpp"
#include "tokenizer/pipeline/added_tokens.hpp"
#include "tokenizer/pipeline/models.hpp"
#include "tokenizer/pipeline/steps.hpp"
#include "tokenizer/tokens/merge.hpp"
#include "tokenizer/tokens/token_index.hpp"
#include "tokenizer/tokens/unicode.hpp"

namespace poise {
namespace {

// Encodes one text at a time. Later texts reuse the worker's buffers and its cache of words.
class Worker final : public PieceSink {
 public:
  Worker(const PieceModel& model, const PreTokenizer& pre_tokenizer) : encoder_(model.make_encoder()) {
    if (pre_tokenizer) cutter_ = pre_tokenizer(*this);
  }

  void begin_text(std::size_t bytes) {
    tokens_.clear();
    if (cutter_) cutter_->start_time_limit(bytes);
  }
  void add(TokenId token) { tokens_.push_back(token); }
  void add(Piece piece) { cutter_ ? cutter_->accept(piece) : accept(piece); }
  std::vector<TokenId> copy_tokens() { return std::vector<TokenId>(tokens_); }

  void accept(Piece piece) override {
    EncodingStop::check();
    encoder_->encode(piece.text, tokens_);
  }

 private:
  std::unique_ptr<PieceEncoder> encoder_;
  std::unique_ptr<Cutter> cutter_;  // null: pieces are not cut
  std::vector<TokenId> tokens_;
};

// Keeps idle workers, which any thread may borrow.
class Workers {
 public:
  std::unique_ptr<Worker> borrow() {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) return nullptr;
    auto worker = std::move(idle_.back());
    idle_.pop_back();
    return worker;
  }
  void return_worker(std::unique_ptr<Worker> worker) {
    constexpr std::size_t kMost = 8;
    const std::lock_guard lock(mutex_);
    if (idle_.size() < kMost) idle_.push_back(std::move(worker));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Worker>> idle_;
};

template <typename Make>
auto make_part(const Fields& pipeline, std::string_view key, Make&& make) -> decltype(make(pipeline)) {
  const auto fields = pipeline.find_map(key);
  if (!fields) return nullptr;
  return make(*fields);
}

class Pipeline final : public TokenScheme {
 public:
  explicit Pipeline(const Vocabulary& vocabulary) : Pipeline(vocabulary, Fields(vocabulary.pipeline, "tokenizer")) {}

  std::vector<TokenId> encode(std::string_view text) const override {
    if (is_utf8(text)) return encode_well_formed(text);
    return encode_well_formed(unicode::make_well_formed(text));
  }

  std::vector<TokenId> encode_chat(std::string_view text, std::string_view input) const override {
    if (is_utf8(text)) return encode_well_formed(text, input);
    // Positions in the text with replaced bytes differ from those in `input`. So the whole text counts as input, and no
    // special token is found in it.
    const std::string mended = unicode::make_well_formed(text);
    return encode_well_formed(mended, std::string(mended.size(), '\1'));
  }

  std::string_view piece(TokenId token) const override {
    const auto added = by_id_.find(token);
    return added == by_id_.end() ? vocabulary_.text(static_cast<std::size_t>(token))
                                 : std::string_view(added->second->content);
  }

  std::unique_ptr<TextDecoder> make_decoder(SpecialTokens special) const override {
    return std::make_unique<RunningDecoder>(*this, special);
  }

 private:
  Pipeline(const Vocabulary& vocabulary, const Fields& fields)
      : TokenScheme(vocabulary),
        ids_(index_model_tokens(vocabulary)),
        normalizer_(make_part(fields, "normalizer", make_normalizer)),
        added_(read_added_tokens(fields, vocabulary.size(), normalizer_.get())),
        raw_(added_, false),
        normalized_(added_, true),
        spelled_(make_chat_tokens(added_)),
        spelled_raw_(spelled_, false),
        spelled_normalized_(spelled_, true),
        pre_tokenizer_(make_part(fields, "pre_tokenizer", make_pre_tokenizer)),
        model_(make_part(fields, "model",
                         [&](const Fields& model) {
                           return make_piece_model(model, {vocabulary_, ids_});
                         })),
        decoder_(make_part(fields, "decoder", make_pipeline_decoder)) {
    if (!model_) fields.fail("model", "is missing");
    if (!decoder_) decoder_ = make_space_decoder();
    for (const AddedToken& token : added_) by_id_.emplace(token.id, &token);
  }

  // Returns the added tokens for the text of a conversation. Special tokens are then found only before normalization,
  // because a normalizer does not track which bytes are input.
  static std::vector<AddedToken> make_chat_tokens(std::vector<AddedToken> tokens) {
    for (AddedToken& token : tokens) {
      if (!token.special || !token.normalized) continue;
      token.normalized = false;
      token.text = token.content;
    }
    return tokens;
  }

  // `input` is as in AddedTokenFinder::for_each_run().
  std::vector<TokenId> encode_well_formed(std::string_view text, std::string_view input = {}) const {
    const AddedTokenFinder& raw = input.empty() ? raw_ : spelled_raw_;
    const AddedTokenFinder& normalized = input.empty() ? normalized_ : spelled_normalized_;
    auto worker = workers_.borrow();
    if (!worker) worker = std::make_unique<Worker>(*model_, pre_tokenizer_);
    worker->begin_text(text.size());
    const auto add = [&](std::string_view run, TokenId id) {
      if (id >= 0) return worker->add(id);
      const bool at_start = run.data() == text.data();
      if (!normalizer_)
        return encode_normalized({run, at_start ? unicode::decode(run, 0).bytes : 0}, normalized, *worker);
      const FrontedText fronted = normalizer_->apply_with_front(run);
      encode_normalized({fronted.text, at_start ? fronted.front : 0}, normalized, *worker);
    };
    raw.for_each_run(text, add, input);
    std::vector<TokenId> tokens = worker->copy_tokens();
    workers_.return_worker(std::move(worker));
    return tokens;
  }

  void encode_normalized(const Piece& whole, const AddedTokenFinder& finder, Worker& worker) const {
    finder.for_each_run(whole.text, [&](std::string_view run, TokenId id) {
      if (id >= 0) return worker.add(id);
      worker.add(whole.part(static_cast<std::size_t>(run.data() - whole.text.data()), run.size()));
    });
  }

  class RunningDecoder final : public TextDecoder, private DecodeSink {
   public:
    RunningDecoder(const Pipeline& pipeline, SpecialTokens special)
        : of_(pipeline), special_(special), first_(pipeline.decoder_(*this)) {}

    void add(TokenId token, std::string& text) override {
      const auto added = of_.by_id_.find(token);
      const bool is_added = added != of_.by_id_.end();
      if (special_ == SpecialTokens::hidden && is_added && added->second->special) return;
      out_ = &text;
      first_->accept(
          is_added ? std::string_view(added->second->text) : of_.vocabulary_.text(static_cast<std::size_t>(token)),
          true, true);
    }
    void finish(std::string& text) override {
      out_ = &text;
      first_->finish();
    }

   private:
    void accept(std::string_view text, bool, bool) override { *out_ += text; }
    void finish() override {}

    const Pipeline& of_;
    SpecialTokens special_;
    std::unique_ptr<DecodeSink> first_;
    std::string* out_ = nullptr;
  };

  TokenIndex ids_;
  std::unique_ptr<const Normalizer> normalizer_;  // null: none
  std::vector<AddedToken> added_;
  std::unordered_map<TokenId, const AddedToken*> by_id_;
  AddedTokenFinder raw_;
  AddedTokenFinder normalized_;
  std::vector<AddedToken> spelled_;
  AddedTokenFinder spelled_raw_;
  AddedTokenFinder spelled_normalized_;
  PreTokenizer pre_tokenizer_;
  std::unique_ptr<const PieceModel> model_;
  Decoder decoder_;
  mutable Workers workers_;
};

}  // namespace

std::unique_ptr<const TokenScheme> make_pipeline(const Vocabulary& vocabulary) {
  return std::make_unique<Pipeline>(vocabulary);
}

}  // namespace poise
