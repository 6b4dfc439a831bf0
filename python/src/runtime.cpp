// Tokenizers, and sessions that generate token by token.
#include <mutex>

#include <fmt/format.h>

#include <poise/session.hpp>
#include <poise/tokenizer.hpp>

#include "elements.hpp"
#include "long_call.hpp"
#include "runtime/weights.hpp"

namespace poise::python {
namespace {

using Owner = std::shared_ptr<OpenModel>;
using Tokens = std::vector<TokenId>;

py::str shown(const std::string& utf8) {
  return py::reinterpret_steal<py::str>(PyUnicode_DecodeUTF8(utf8.data(), static_cast<Py_ssize_t>(utf8.size()), "replace"));
}

// ---- tokenizers ----

// Of a model, or of the weights that have it.
class PyTokenizer {
 public:
  explicit PyTokenizer(std::shared_ptr<const Tokenizer> tokenizer) : tokenizer_(std::move(tokenizer)) {}
  const Tokenizer& operator*() const { return *tokenizer_; }
  const Tokenizer* operator->() const { return tokenizer_.get(); }
  const std::shared_ptr<const Tokenizer>& shared() const { return tokenizer_; }

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
};

PyTokenizer tokenizer_of(const Owner& owner) {
  const auto model = owner->use();
  if (!model->vocabulary) throw Error(ErrorKind::unsupported, "the model has no vocabulary", model->origin.path.string());
  const py::gil_scoped_release released;
  return PyTokenizer(std::make_shared<const Tokenizer>(*model->vocabulary));
}

struct PyStream {
  explicit PyStream(const PyTokenizer& of) : tokenizer(of.shared()), stream(*tokenizer) {}
  std::shared_ptr<const Tokenizer> tokenizer;
  TextStream stream;
};

void declare_tokenizer(py::module_& module) {
  py::class_<PyTokenizer>(module, "Tokenizer", "Text to token ids and back, as a model's vocabulary says. Safe to use from many threads.")
      .def(py::init(&tokenizer_of), py::arg("model"))
      .def(
          "encode",
          [](const PyTokenizer& tokenizer, const py::object& given) {
            const std::string prompt = utf8(given);
            const py::gil_scoped_release released;
            return tokenizer->encode(prompt);
          },
          py::arg("text"), "The ids of a text, without BOS or EOS.")
      .def(
          "decode",
          [](const PyTokenizer& tokenizer, const Tokens& ids) {
            std::string result;
            {
              const py::gil_scoped_release released;
              result = tokenizer->decode(ids);
            }
            return shown(result);
          },
          py::arg("ids"), "The text of ids; control tokens are invisible.")
      .def("__len__", [](const PyTokenizer& tokenizer) { return tokenizer->vocabulary().size(); });
  py::class_<PyStream>(module, "TextStream", "Decodes token by token; each piece ends where a character ends.")
      .def(py::init<const PyTokenizer&>(), py::arg("tokenizer"))
      .def(
          "add", [](PyStream& stream, TokenId id) { return shown(stream.stream.add(id)); }, py::arg("id"), "The text that is certain after this token.")
      .def(
          "finish", [](PyStream& stream) { return shown(stream.stream.finish()); }, "What was held back; the stream then starts anew.");
}

// ---- sessions ----

using WeightsPtr = std::shared_ptr<const Weights>;

// pybind11 holds no const.
struct PyWeights {
  WeightsPtr weights;
};

// A session that threads use one after the other. Its mutex is taken without the GIL, or a thread that waits for it would keep the one that has it
// from going on.
class PySession {
 public:
  PySession(WeightsPtr weights, const SessionOptions& options) : weights_(std::move(weights)), session_(weights_, options) {}

  // Requires: no GIL.
  template <typename Work>
  auto with(Work&& work) {
    const std::lock_guard lock(mutex_);
    return work(session_);
  }

  const Weights& weights() const { return *weights_; }
  const WeightsPtr& shared_weights() const { return weights_; }

 private:
  std::mutex mutex_;
  WeightsPtr weights_;
  Session session_;
};

// Feeds batch by batch, as the library does, so that Ctrl-C can end a long prompt. Requires: no GIL.
void feed(Session& session, std::span<const TokenId> tokens, const LongCall& call) {
  constexpr std::size_t kBatch = Transformer::kMaxBatch;
  const auto known = [&](TokenId token) { return token >= 0 && static_cast<std::size_t>(token) < session.vocabulary_size(); };
  if (tokens.size() > session.context() - session.position() || !std::ranges::all_of(tokens, known)) return session.feed(tokens);  // which throws
  while (!tokens.empty() && !call.stopped()) {
    std::size_t count = std::min(kBatch, tokens.size());
    if (tokens.size() == count + 1) --count;  // the library's rule: a token alone would be summed in another order
    session.feed(tokens.first(count));
    tokens = tokens.subspan(count);
  }
}

PyWeights load(const Owner& owner) {
  const auto model = owner->use();
  LongCall call;
  return {call.run([&] { return load_weights(*model); })};
}

void feed_all(PySession& session, const Tokens& tokens) {
  if (tokens.size() <= Transformer::kMaxBatch) {  // which nothing ends in between
    const py::gil_scoped_release released;
    return session.with([&](Session& running) { running.feed(tokens); });
  }
  LongCall call;
  call.run([&] { session.with([&](Session& running) { feed(running, tokens, call); }); });
}

Memory logits(PySession& session) {
  const py::gil_scoped_release released;
  return session.with([](const Session& running) {
    const std::span<const float> scores = running.logits();
    Memory copy = make_memory(scores.size_bytes());
    std::memcpy(copy.data, scores.data(), scores.size_bytes());
    return copy;
  });
}

// One text that a session generates, a token at a time: what Session::generate() does, for a caller who asks.
class Generator {
 public:
  Generator(std::shared_ptr<PySession> session, const Tokens& prompt, std::size_t max_tokens, const SamplingOptions& sampling, std::optional<TokenId> stop)
      : session_(std::move(session)), sampler_(sampling), left_(max_tokens), stop_(stop) {
    const Weights& weights = session_->weights();
    if (stop && (*stop < 0 || static_cast<std::size_t>(*stop) >= weights.vocabulary_size())) {
      refuse(fmt::format("stop id {} is out of range: the model has {} tokens", *stop, weights.vocabulary_size()));
    }
    choices_ = weights.vocabulary_size();
    if (weights.has_tokenizer()) {
      choices_ = std::min(choices_, weights.tokenizer().vocabulary().size());
      stream_.emplace(weights.tokenizer());
      for (const TokenId token : prompt) stream_->add(token);  // the space before its first word is not the continuation's
    }
    LongCall call;
    call.run([&] {
      session_->with([&](Session& running) {
        feed(running, prompt, call);
        position_ = running.position();
      });
    });
  }

  // (token, text that is certain now), or None at the end.
  py::object next() {
    if (left_ == 0) return py::none();
    std::optional<TokenId> token;
    {
      const py::gil_scoped_release released;
      token = session_->with([&](Session& running) { return step(running); });
    }
    if (!token) return py::none();
    const py::str piece = stream_ ? shown(stream_->add(*token)) : py::str("");
    return py::make_tuple(*token, piece);
  }

  py::str finish() { return stream_ ? shown(stream_->finish()) : py::str(""); }
  std::string_view reason() const { return reason_; }

 private:
  std::optional<TokenId> step(Session& running) {
    if (running.position() != position_) refuse("the session has gone on or was reset meanwhile; a text is generated without other calls between");
    if (last_) {
      if (running.position() == running.context()) {
        left_ = 0;
        reason_ = "context_full";
        return std::nullopt;
      }
      running.feed(std::span(&*last_, 1));
      position_ = running.position();
    }
    last_ = sampler_.sample(running.logits().first(choices_));
    --left_;
    if (session_->weights().parts().ends_text(*last_, stop_)) {
      left_ = 0;
      reason_ = "end_of_text";
    }
    return last_;
  }

  std::shared_ptr<PySession> session_;
  Sampler sampler_;
  std::optional<TextStream> stream_;
  std::size_t left_;
  std::optional<TokenId> stop_;
  std::size_t choices_ = 0;
  std::size_t position_ = 0;  // where the session was left
  std::optional<TokenId> last_;
  std::string_view reason_ = "max_tokens";
};

void declare_sessions(py::module_& module) {
  py::class_<PyWeights>(module, "Weights")
      .def(py::init(&load), py::arg("model"))
      .def_property_readonly("vocabulary_size", [](const PyWeights& of) { return of.weights->vocabulary_size(); })
      .def_property_readonly("max_context", [](const PyWeights& of) { return of.weights->max_context(); });
  py::class_<PySession, std::shared_ptr<PySession>>(module, "Session")
      .def(py::init([](const PyWeights& of, unsigned threads, std::size_t context, bool exact) {
             const py::gil_scoped_release released;
             return std::make_shared<PySession>(of.weights, SessionOptions{.threads = threads, .context = context, .exact = exact});
           }),
           py::arg("weights"), py::arg("threads"), py::arg("context"), py::arg("exact"))
      .def_property_readonly("weights", [](const PySession& of) { return PyWeights{of.shared_weights()}; })
      .def_property_readonly("vocabulary_size", [](const PySession& of) { return of.weights().vocabulary_size(); })
      .def_property_readonly("context",
                             [](PySession& of) {
                               const py::gil_scoped_release released;
                               return of.with([](const Session& running) { return running.context(); });
                             })
      .def_property_readonly("position",
                             [](PySession& of) {
                               const py::gil_scoped_release released;
                               return of.with([](const Session& running) { return running.position(); });
                             })
      .def_property_readonly("tokenizer",
                             [](const PySession& of) { return PyTokenizer(std::shared_ptr<const Tokenizer>(of.shared_weights(), &of.weights().tokenizer())); })
      .def("prompt",
           [](PySession& of, const py::object& given) {
             const std::string prompt = utf8(given);
             const py::gil_scoped_release released;
             return of.with([&](const Session& running) { return running.prompt(prompt); });
           })
      .def("reset",
           [](PySession& of) {
             const py::gil_scoped_release released;
             of.with([](Session& running) { running.reset(); });
           })
      .def("feed", &feed_all)
      .def("logits", &logits)
      .def("log_probabilities", [](PySession& of, const Tokens& tokens) {
        LongCall call;
        return call.run([&] { return of.with([&](Session& running) { return running.log_probabilities(tokens); }); });
      });
  py::class_<Generator>(module, "Generator")
      .def(py::init([](std::shared_ptr<PySession> session, const Tokens& prompt, std::size_t max_tokens, float temperature, std::int64_t top_k, float top_p,
                       std::uint64_t seed, std::optional<TokenId> stop) {
             return std::make_unique<Generator>(std::move(session), prompt, max_tokens,
                                                SamplingOptions{.temperature = temperature, .top_k = top_k, .top_p = top_p, .seed = seed}, stop);
           }),
           py::arg("session"), py::arg("prompt"), py::arg("max_tokens"), py::arg("temperature"), py::arg("top_k"), py::arg("top_p"), py::arg("seed"),
           py::arg("stop_id"))
      .def("next", &Generator::next)
      .def("finish", &Generator::finish)
      .def_property_readonly("reason", [](const Generator& of) { return text(of.reason()); });
}

}  // namespace

void declare_runtime(py::module_& module) {
  declare_tokenizer(module);
  declare_sessions(module);
}

}  // namespace poise::python
