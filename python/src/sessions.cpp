// Gives Python sessions, and the texts that they generate token by token.

#include "elements.hpp"
#include "long_call.hpp"
#include "runtime.hpp"
#include "runtime/stop_texts.hpp"
#include "runtime/weights.hpp"

namespace poise::python {
namespace {

using Owner = std::shared_ptr<OpenModel>;

// Wraps a session, and counts the changes of its text. One thread at a time uses it.
class Transcript {
 public:
  Transcript(const WeightsPtr& weights, const SessionOptions& options) : session_(weights, options) {}
  Transcript(const Transcript& other) : session_(other.session_.fork()), state_(other.state_) {}

  const Session& session() const { return session_; }
  // Returns a number that increases with every change of the text.
  std::uint64_t state() const { return state_; }

  void reset() {
    ++state_;
    session_.reset();
  }

  void truncate(std::size_t position) {
    session_.truncate(position);
    ++state_;
  }

  // Appends tokens. Drops the pending token (Session::pending()).
  void feed(std::span<const TokenId> tokens, const std::stop_token& stop) {
    append(tokens, stop);
    truncate(session_.position());  // no token is pending
  }

  // Encodes a text to append. Puts BOS first if the text begins the session and the vocabulary has BOS.
  Tokens encode(std::string_view text) const {
    const bool begins = session_.position() == 0 && !session_.pending();
    return begins ? session_.prompt(text) : session_.tokenizer().encode(text);
  }

  // Returns true if there is no position left for the pending token.
  bool is_full() const { return session_.pending() && session_.position() == session_.context(); }

  // Appends the pending token, then `tokens`.
  void continue_with(Tokens tokens, const std::stop_token& stop = {}) {
    if (const auto pending = session_.pending()) tokens.insert(tokens.begin(), *pending);
    append(tokens, stop);
    ++state_;
  }

  void load(const std::filesystem::path& path) {
    session_.load(path);
    ++state_;
  }

  TokenId sample(Sampler& sampler) {
    ++state_;
    return session_.sample(sampler);
  }

  std::vector<double> compute_log_probabilities(std::span<const TokenId> tokens, const std::stop_token& stop) {
    ++state_;
    return session_.log_probabilities(tokens, stop);
  }

  std::vector<float> compute_hidden_states(std::span<const TokenId> tokens, std::size_t layer,
                                           const std::stop_token& stop) {
    ++state_;
    return session_.hidden_states(tokens, layer, stop);
  }

 private:
  // Appends tokens. Throws cancelled if `stop` is requested; the tokens that were computed until then stay.
  void append(std::span<const TokenId> tokens, const std::stop_token& stop) {
    const std::size_t before = session_.position();
    try {
      session_.feed(tokens, stop);
    } catch (...) {
      if (session_.position() != before) ++state_;
      throw;
    }
  }

  Session session_;
  std::uint64_t state_ = 0;
};

// Holds a session that threads use in turn. Threads lock its mutex without the GIL: a thread that kept the GIL while it
// waits would block the thread that has the mutex.
class PySession {
 public:
  PySession(WeightsPtr weights, const SessionOptions& options)
      : weights_(std::move(weights)), transcript_(weights_, options) {
    if (weights_->has_tokenizer())
      tokenizer_.emplace(std::shared_ptr<const Tokenizer>(weights_, &weights_->tokenizer()));
  }

  // Returns an independent session. Requires: no GIL.
  std::shared_ptr<PySession> fork() {
    const std::lock_guard lock(mutex_);
    return std::shared_ptr<PySession>(new PySession(*this));
  }

  // Runs the work with the transcript. Requires: no GIL.
  template <typename Work>
  auto use_transcript(Work&& work) {
    const std::lock_guard lock(mutex_);
    return work(transcript_);
  }

  // Runs the work with the transcript, without the GIL.
  template <typename Work>
  auto run(Work&& work) {
    const Released released;
    return use_transcript(work);
  }

  // Does the same as run(), for work that may take long. Passes a stop token as second argument.
  template <typename Work>
  auto run_long(Work&& work) {
    LongCall call;
    return call.run(
        [&] { return use_transcript([&](Transcript& transcript) { return work(transcript, call.stop_token()); }); });
  }

  const Weights& weights() const { return *weights_; }
  const WeightsPtr& shared_weights() const { return weights_; }
  // Returns the tokenizer. Throws unsupported when the model has no vocabulary.
  const PyTokenizer& tokenizer() const {
    if (!tokenizer_) (void)weights_->tokenizer();  // throws
    return *tokenizer_;
  }

 private:
  // Requires: the mutex of `other` is locked.
  PySession(const PySession& other)
      : weights_(other.weights_), tokenizer_(other.tokenizer_), transcript_(other.transcript_) {}

  std::mutex mutex_;
  WeightsPtr weights_;
  std::optional<PyTokenizer> tokenizer_;
  Transcript transcript_;
};

PyWeights load_model_weights(const Owner& owner) {
  const auto model = owner->require_model();
  LongCall call;
  return {call.run([&] { return load_weights(*model); })};
}

void feed_all(PySession& session, const py::object& given) {
  const Tokens tokens = parse_token_ids(given);
  session.run_long([&](Transcript& text, const auto& stop) { text.feed(tokens, stop); });
}

Memory copy_logits(PySession& session) {
  return session.run([](const Transcript& text) { return copy_to_memory(text.session().logits()); });
}

Memory copy_hidden_state(PySession& session) {
  return session.run([](const Transcript& text) { return copy_to_memory(text.session().hidden_state()); });
}

Memory compute_hidden_states(PySession& session, const py::object& given, const py::object& given_layer) {
  const Tokens tokens = parse_token_ids(given);
  const std::size_t layer = parse_layer(given_layer, session.weights());
  return session.run_long([&](Transcript& text, const auto& stop) {
    return copy_to_memory(text.compute_hidden_states(tokens, layer, stop));
  });
}

// Generates a text as Session::generate() does, but one token for each call of generate_next().
class Generator {
 public:
  Generator(std::shared_ptr<PySession> session, const Prompt& prompt, const GenerateOptions& options)
      : session_(std::move(session)), options_(options), sampler_(options.sampling), left_(options.max_tokens) {
    require_valid_options(session_->weights(), options);
    LongCall call;
    call.run([&] {
      const std::stop_token stop = call.stop_token();
      const EncodingStop stoppable(stop);
      session_->use_transcript([&](Transcript& transcript) {
        const auto* const text = std::get_if<std::string>(&prompt);
        begin(transcript, text == nullptr ? std::get<Tokens>(prompt) : transcript.encode(*text), stop);
      });
    });
  }

  // Returns (token, text that later tokens cannot change), or None at the end.
  py::object generate_next() {
    if (left_ == 0) return py::none();
    const std::optional<TokenId> token = session_->run([&](Transcript& transcript) { return step(transcript); });
    if (!token) return py::none();
    const std::string piece = stream_ ? stream_->add(*token) : std::string();
    if (stream_ && stream_->is_stopped()) left_ = 0;
    return py::make_tuple(*token, make_shown_text(piece));
  }

  // Returns the text held back so far.
  py::str finish() { return stream_ && has_generated_ ? make_shown_text(stream_->finish()) : py::str(""); }

 private:
  void begin(Transcript& transcript, const Tokens& prompt, const std::stop_token& stop) {
    if (prompt.empty() && transcript.is_full()) {
      left_ = 0;
    } else {
      transcript.continue_with(prompt, stop);
    }
    state_ = transcript.state();
    const std::span<const TokenId> fed = transcript.session().tokens();
    sampler_.see(fed);
    if (session_->weights().has_tokenizer()) stream_.emplace(session_->weights().tokenizer(), fed, options_.stop);
  }

  std::optional<TokenId> step(Transcript& transcript) {
    if (transcript.state() != state_)
      refuse("the session was used or reset meanwhile: make no other calls on it while it generates");
    if (transcript.session().pending()) {
      if (transcript.is_full()) {
        left_ = 0;
        return std::nullopt;
      }
      transcript.continue_with({});
    }
    const TokenId token = transcript.sample(sampler_);
    state_ = transcript.state();
    has_generated_ = true;
    --left_;
    if (ends_text(session_->weights(), token, options_)) left_ = 0;
    return token;
  }

  std::shared_ptr<PySession> session_;
  GenerateOptions options_;
  Sampler sampler_;
  std::optional<ContinuationStream> stream_;
  std::size_t left_;         // the largest number of tokens still to generate
  std::uint64_t state_ = 0;  // the state of the transcript after the last token
  bool has_generated_ = false;
};

}  // namespace

void declare_sessions(py::module_& module) {
  py::class_<PyWeights>(module, "Weights")
      .def(py::init(&load_model_weights), py::arg("model").none(false))
      .def_property_readonly("vocabulary_size",
                             [](const PyWeights& weights) { return weights.weights->vocabulary_size(); })
      .def_property_readonly(
          "hidden_size", [](const PyWeights& weights) { return weights.weights->hidden_size(); },
          "The length of a hidden state.")
      .def_property_readonly(
          "layers", [](const PyWeights& weights) { return weights.weights->layers(); },
          "The number of blocks of attention and feed-forward network.")
      .def_property_readonly(
          "max_context", [](const PyWeights& weights) { return weights.weights->max_context(); },
          "The largest number of positions of a session.");
  py::class_<PySession, std::shared_ptr<PySession>>(module, "Session")
      .def(py::init([](const PyWeights& weights, const py::dict& given, const PyWeights* draft, bool lookup) {
             SessionOptions options = parse_session_options(given);
             if (lookup) options.draft.emplace();
             if (draft != nullptr) options.draft = {.model = draft->weights};
             const Released released;
             return std::make_shared<PySession>(weights.weights, options);
           }),
           py::arg("weights"), py::arg("options"), py::arg("draft").none(true), py::arg("lookup"))
      .def_property_readonly("weights", [](const PySession& session) { return PyWeights{session.shared_weights()}; })
      .def_property_readonly("vocabulary_size",
                             [](const PySession& session) { return session.weights().vocabulary_size(); })
      .def_property_readonly("context",
                             [](PySession& session) {
                               return session.run([](const Transcript& text) { return text.session().context(); });
                             })
      .def_property_readonly("position",
                             [](PySession& session) {
                               return session.run([](const Transcript& text) { return text.session().position(); });
                             })
      .def_property_readonly("tokenizer", [](const PySession& session) { return session.tokenizer(); })
      .def("prompt",
           [](PySession& session, const py::object& given) {
             const std::string prompt = encode_utf8(given);
             return run_encoding(prompt.size(), [&] {
               return session.use_transcript(
                   [&](const Transcript& transcript) { return transcript.session().prompt(prompt); });
             });
           })
      .def("reset", [](PySession& session) { session.run([](Transcript& text) { text.reset(); }); })
      .def("truncate",
           [](PySession& session, const py::object& given) {
             const auto position = parse_whole<std::size_t>("position", given);
             session.run([&](Transcript& text) { text.truncate(position); });
           })
      .def("fork",
           [](PySession& session) {
             const Released released;
             return session.fork();
           })
      .def("save",
           [](PySession& session, const py::object& given, const py::object& overwrite) {
             const std::filesystem::path path = parse_path(given);
             const bool replaces = parse_truth("overwrite", overwrite);
             session.run_long([&](const Transcript& text, const auto&) { text.session().save(path, replaces); });
           })
      .def("load",
           [](PySession& session, const py::object& given) {
             const std::filesystem::path path = parse_path(given);
             session.run_long([&](Transcript& text, const auto&) { text.load(path); });
           })
      .def("top_log_probabilities",
           [](PySession& session, const py::object& given) {
             const auto count = parse_whole<std::size_t>("count", given);
             const auto best = session.run(
                 [&](const Transcript& text) { return top_log_probabilities(text.session().logits(), count); });
             py::list all;
             for (const auto& [token, log_probability] : best) all.append(py::make_tuple(token, log_probability));
             return all;
           })
      .def("feed", &feed_all)
      .def("logits", &copy_logits)
      .def("hidden_state", &copy_hidden_state)
      .def("hidden_states", &compute_hidden_states)
      .def("log_probabilities", [](PySession& session, const py::object& given) {
        const Tokens tokens = parse_token_ids(given);
        return session.run_long(
            [&](Transcript& text, const auto& stop) { return text.compute_log_probabilities(tokens, stop); });
      });
  py::class_<Generator>(module, "Generator")
      .def(py::init([](std::shared_ptr<PySession> session, const py::object& prompt, const py::dict& given) {
             const GenerateOptions options = parse_generate_options(given);
             return std::make_unique<Generator>(std::move(session), parse_prompt(prompt), options);
           }),
           py::arg("session").none(false), py::arg("prompt"), py::arg("options"))
      .def("next", &Generator::generate_next)
      .def("finish", &Generator::finish);
}

}  // namespace poise::python
