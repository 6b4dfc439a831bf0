// Tokenizers, and sessions that generate token by token.
#include <algorithm>
#include <functional>
#include <mutex>
#include <string_view>
#include <unordered_map>

#include <fmt/format.h>

#include <poise/chat.hpp>
#include <poise/format.hpp>
#include <poise/session.hpp>
#include <poise/tokenizer.hpp>

#include "elements.hpp"
#include "long_call.hpp"
#include "runtime/stop_texts.hpp"
#include "runtime/weights.hpp"
#include "tokenizer/gguf/vocabulary.hpp"

namespace poise::python {
namespace {

using Owner = std::shared_ptr<OpenModel>;
using Tokens = std::vector<TokenId>;

py::str shown(const std::string& utf8) {
  return py::reinterpret_steal<py::str>(
      PyUnicode_DecodeUTF8(utf8.data(), static_cast<Py_ssize_t>(utf8.size()), "replace"));
}

// ---- tokenizers ----

// From a model, from weights, or from tokenizer files.
class PyTokenizer {
 public:
  explicit PyTokenizer(std::shared_ptr<const Tokenizer> tokenizer)
      : tokenizer_(std::move(tokenizer)), ids_(std::make_shared<Ids>()) {}
  const Tokenizer& operator*() const { return *tokenizer_; }
  const Tokenizer* operator->() const { return tokenizer_.get(); }
  const std::shared_ptr<const Tokenizer>& shared() const { return tokenizer_; }

  // The first token with that spelling. Requires: no GIL.
  std::optional<TokenId> id(std::string_view piece) const {
    std::call_once(ids_->made, [&] {
      const std::size_t size = tokenizer_->vocabulary().size();
      ids_->by_piece.reserve(size);
      for (std::size_t id = 0; id < size; ++id)
        ids_->by_piece.emplace(tokenizer_->piece(static_cast<TokenId>(id)), static_cast<TokenId>(id));
    });
    const auto found = ids_->by_piece.find(piece);
    return found == ids_->by_piece.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  struct Ids {
    std::once_flag made;
    std::unordered_map<std::string_view, TokenId> by_piece;
  };
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::shared_ptr<Ids> ids_;
};

// Token ids: any iterable of integers, also arrays of one dimension. Throws TypeError for other objects.
Tokens tokens_from(py::handle given) {
  if (PyUnicode_Check(given.ptr()) || PyBytes_Check(given.ptr()))
    throw py::type_error(
        fmt::format("token ids are integers, and {} is text; .prompt(text) or tokenizer.encode(text) gives its ids",
                    short_repr(given)));
  const bool is_array = py::hasattr(given, "tolist") && py::hasattr(given, "shape");  // numpy's, torch's
  if (is_array && py::len(given.attr("shape")) != 1)
    throw py::type_error(fmt::format("token ids have one dimension, and the shape is {}; of a batch, ids[0] has one",
                                     utf8(py::repr(py::list(given.attr("shape"))))));
  const auto items = is_array ? py::object(given.attr("tolist")()) : py::reinterpret_borrow<py::object>(given);
  PyObject* const iterator = PyObject_GetIter(items.ptr());
  if (iterator == nullptr) {
    PyErr_Clear();
    throw py::type_error(fmt::format("token ids are integers, and {} has none", short_repr(given)));
  }
  Tokens tokens;
  for (const py::handle item : py::reinterpret_steal<py::iterator>(iterator))
    tokens.push_back(whole<TokenId>("a token id", item, 0));
  return tokens;
}

PyTokenizer tokenizer_of(std::optional<Vocabulary> vocabulary, std::string_view lacking,
                         const std::filesystem::path& path) {
  if (!vocabulary) throw Error(ErrorKind::unsupported, std::string(lacking), path.string());
  return PyTokenizer(std::make_shared<const Tokenizer>(*std::move(vocabulary)));
}

PyTokenizer tokenizer_of_model(const Owner& owner) {
  const auto model = owner->use();
  const Released released;
  return tokenizer_of(vocabulary_of(*model), "the model has no vocabulary", model->origin.path);
}

PyTokenizer read_tokenizer(const py::object& given) {
  const std::filesystem::path path = path_from(given);
  const Released released;
  std::optional<Vocabulary> vocabulary = read_vocabulary(path);
  if (!vocabulary) vocabulary = vocabulary_of(open(path));
  return tokenizer_of(std::move(vocabulary), "there is no vocabulary in it", path);
}

PyTokenizer tokenizer_from(const py::object& given) {
  if (py::isinstance<OpenModel>(given)) return tokenizer_of_model(given.cast<Owner>());
  if (py::hasattr(given, "_core")) return tokenizer_from(given.attr("_core"));  // poise.Model's
  return read_tokenizer(given);
}

Tokens encoded(const PyTokenizer& tokenizer, const std::string& text, bool special) {
  const Released released;
  return special ? tokenizer->encode_with_special(text) : tokenizer->encode(text);
}

// The ids of a text, or for a list of texts a list of their ids.
py::object encode(const PyTokenizer& tokenizer, const py::object& given, const py::object& with_special) {
  const bool special = truth("special", with_special);
  if (PyUnicode_Check(given.ptr())) return py::cast(encoded(tokenizer, utf8(given), special));
  if (!py::isinstance<py::list>(given) && !py::isinstance<py::tuple>(given))
    throw py::type_error(fmt::format("text is {}, expected str or a list of them", short_repr(given)));
  py::list all;
  for (const py::handle one : given) all.append(encoded(tokenizer, utf8(one), special));
  return all;
}

// Renders messages with a chat template: the text and its ids.
py::tuple encode_chat(const PyTokenizer& tokenizer, const py::object& messages, const py::object& tools,
                      const py::object& documents, const py::object& jinja, const py::object& add_generation_prompt,
                      const py::kwargs& variables) {
  py::dict all;
  for (const auto& [name, value] : variables) all[name] = value;
  all["messages"] = py::list(messages);
  all["tools"] = tools;
  all["documents"] = documents;
  all["add_generation_prompt"] = truth("add_generation_prompt", add_generation_prompt);
  const Attributes conversation = attributes_from(all);
  const std::optional<std::string> source = jinja.is_none() ? std::nullopt : std::optional(utf8(jinja));
  ChatText made;
  Tokens ids;
  {
    const Released released;
    const Conversation talk = parse_conversation(to_json(conversation), "messages");
    const Vocabulary& vocabulary = tokenizer->vocabulary();
    const ChatTemplate chat =
        source ? ChatTemplate(*source, vocabulary) : ChatTemplate(vocabulary, talk.tools != Value());
    made = chat.render(talk);
    ids = tokenizer->encode(made);
  }
  return py::make_tuple(shown(made.text), ids);
}

SpecialTokens shown_if(bool special) { return special ? SpecialTokens::shown : SpecialTokens::hidden; }

struct PyStream {
  PyStream(const PyTokenizer& of, bool special) : tokenizer(of.shared()), stream(*tokenizer, shown_if(special)) {}
  std::shared_ptr<const Tokenizer> tokenizer;
  TextStream stream;
};

void declare_tokenizer(py::module_& module) {
  py::class_<PyTokenizer>(module, "Tokenizer", "Text to token ids and back, by a model's vocabulary. Thread-safe.")
      .def(py::init(&tokenizer_from), py::arg("model"))
      .def_static("open", &read_tokenizer, py::arg("path"), "poise.read_tokenizer().")
      .def("encode", &encode, py::arg("text"), py::kw_only(), py::arg("special") = false,
           "The ids of a text; of a list of texts a list of them. special: with the special tokens around it: those of "
           "the tokenizer's template, else BOS in front where there is one.")
      .def("encode_chat", &encode_chat, py::arg("messages"), py::kw_only(), py::arg("tools") = py::none(),
           py::arg("documents") = py::none(), py::arg("template") = py::none(), py::arg("add_generation_prompt") = true,
           "What the chat template makes of messages, [{\"role\", \"content\"}, ...]: the text, and its ids, in which "
           "what messages spell is no special token. template: Jinja, in place of the model's own. Other keywords are "
           "variables of the template.\n\nRaises UnsupportedError where there is no template, InvalidFileError for a "
           "malformed one, and BadArgumentError for messages that it refuses.")
      .def(
          "decode",
          [](const PyTokenizer& tokenizer, const py::object& given, const py::object& with_special) {
            const Tokens ids = tokens_from(given);
            const bool special = truth("special", with_special);
            std::string result;
            {
              const Released released;
              result = tokenizer->decode(ids, shown_if(special));
            }
            return shown(result);
          },
          py::arg("ids"), py::kw_only(), py::arg("special") = false,
          "The text of ids. special: BOS, EOS and other control tokens are shown, else they are invisible.")
      .def(
          "piece",
          [](const PyTokenizer& tokenizer, const py::object& id) {
            return text(tokenizer->piece(whole<TokenId>("id", id)));
          },
          py::arg("id"), "A token as the vocabulary spells it.")
      .def(
          "id",
          [](const PyTokenizer& tokenizer, const py::object& given) {
            const std::optional<std::string> piece = PyUnicode_Check(given.ptr()) ? name_from(given) : utf8(given);
            const Released released;
            return piece ? tokenizer.id(*piece) : std::nullopt;
          },
          py::arg("piece"), "The id of the first token that the vocabulary spells so, or None.")
      .def("__repr__",
           [](const PyTokenizer& tokenizer) {
             return fmt::format("<poise.Tokenizer, {} tokens>", tokenizer->vocabulary().size());
           })
      .def("__len__", [](const PyTokenizer& tokenizer) { return tokenizer->vocabulary().size(); });
  py::class_<PyStream>(
      module, "TextStream",
      "Decodes token by token; each piece ends where a character ends. special: as in Tokenizer.decode().")
      .def(py::init([](const py::object& tokenizer, const py::object& special) {
             if (!py::isinstance<PyTokenizer>(tokenizer))
               throw py::type_error(fmt::format("tokenizer is {}, expected a Tokenizer", short_repr(tokenizer)));
             return std::make_unique<PyStream>(tokenizer.cast<const PyTokenizer&>(), truth("special", special));
           }),
           py::arg("tokenizer"), py::kw_only(), py::arg("special") = false)
      .def(
          "add",
          [](PyStream& stream, const py::object& id) { return shown(stream.stream.add(whole<TokenId>("id", id))); },
          py::arg("id"), "The text that is certain after this token.")
      .def(
          "finish", [](PyStream& stream) { return shown(stream.stream.finish()); },
          "The bytes held back so far; the stream then starts over.");
  module.def("read_tokenizer", &read_tokenizer, py::arg("path"),
             "The tokenizer of tokenizer files alone: of a directory that holds some, or one of them (tokenizer.json, "
             "...); or of a model, such as "
             "a GGUF.\n\nRaises UnsupportedError where there is no vocabulary, and what open() raises.");
}

// ---- sessions ----

using WeightsPtr = std::shared_ptr<const Weights>;

// pybind11 has no const holders.
struct PyWeights {
  WeightsPtr weights;
};

// A session and its text: the tokens fed so far, and the last generated one, which is fed when the text continues. Used
// by one thread at a time.
class Transcript {
 public:
  Transcript(const WeightsPtr& weights, const SessionOptions& options) : session_(weights, options) {}
  // An independent copy.
  Transcript(const Transcript& other)
      : session_(other.session_.fork()), fed_(other.fed_), unfed_(other.unfed_), state_(other.state_) {}

  const Session& session() const { return session_; }
  const Tokens& fed() const { return fed_; }
  // The last generated token, unless something was fed since.
  std::optional<TokenId> unfed() const { return unfed_; }
  // Changes with every change of the text.
  std::uint64_t state() const { return state_; }

  void reset() {
    session_.reset();
    fed_.clear();
    turn_to({});
  }

  void truncate(std::size_t position) {
    session_.truncate(position);
    fed_.resize(position);
    turn_to({});
  }

  // Appends only tokens.
  void feed(std::span<const TokenId> tokens, const std::stop_token& stop) {
    append(tokens, stop);
    turn_to({});
  }

  // Encodes a text that begins or continues here.
  Tokens encode(std::string_view text) const {
    const bool begins = session_.position() == 0 && !unfed_;
    return begins ? session_.prompt(text) : session_.tokenizer().encode(text);
  }

  // True if there is no position left for the last generated token.
  bool is_full() const { return unfed_ && session_.position() == session_.context(); }

  // Appends the last generated token, then `tokens`.
  void go_on(Tokens tokens, const std::stop_token& stop = {}) {
    if (unfed_) tokens.insert(tokens.begin(), *unfed_);
    append(tokens, stop);
    ++state_;
  }

  TokenId choose(Sampler& sampler, std::size_t choices) {
    turn_to(sampler.sample(session_.logits().first(choices)));
    return *unfed_;
  }

  std::vector<double> log_probabilities(std::span<const TokenId> tokens, const std::stop_token& stop) {
    reset();
    std::vector<double> result;
    keeping_account(tokens, [&] { result = session_.log_probabilities(tokens, stop); });
    return result;
  }

 private:
  void turn_to(std::optional<TokenId> unfed) {
    unfed_ = unfed;
    ++state_;
  }

  void append(std::span<const TokenId> tokens, const std::stop_token& stop) {
    keeping_account(tokens, [&] { session_.feed(tokens, stop); });
    if (!tokens.empty()) unfed_.reset();
  }

  // Feeds tokens: all, or the first ones if stopped.
  template <typename Feed>
  void keeping_account(std::span<const TokenId> tokens, const Feed& feed) {
    const std::size_t before = session_.position();
    fed_.insert(fed_.end(), tokens.begin(), tokens.end());
    try {
      feed();
    } catch (...) {
      fed_.resize(session_.position());
      if (session_.position() != before) turn_to({});
      throw;
    }
  }

  Session session_;
  Tokens fed_;
  std::optional<TokenId> unfed_;
  std::uint64_t state_ = 0;
};

// A session that threads use in turn. Take its mutex without the GIL: a waiting thread would block the owner.
class PySession {
 public:
  PySession(WeightsPtr weights, const SessionOptions& options)
      : weights_(std::move(weights)), transcript_(weights_, options) {
    if (weights_->has_tokenizer())
      tokenizer_.emplace(std::shared_ptr<const Tokenizer>(weights_, &weights_->tokenizer()));
  }

  // An independent session. Requires: no GIL.
  std::shared_ptr<PySession> fork() {
    const std::lock_guard lock(mutex_);
    return std::shared_ptr<PySession>(new PySession(*this));
  }

  // Requires: no GIL.
  template <typename Work>
  auto with(Work&& work) {
    const std::lock_guard lock(mutex_);
    return work(transcript_);
  }

  const Weights& weights() const { return *weights_; }
  const WeightsPtr& shared_weights() const { return weights_; }
  // Throws unsupported when the model has no vocabulary.
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

PyWeights load(const Owner& owner) {
  const auto model = owner->use();
  LongCall call;
  return {call.run([&] { return load_weights(*model); })};
}

void feed_all(PySession& session, const py::object& given) {
  const Tokens tokens = tokens_from(given);
  LongCall call;
  call.run([&] { session.with([&](Transcript& transcript) { transcript.feed(tokens, call.stop()); }); });
}

Memory logits(PySession& session) {
  const Released released;
  return session.with([](const Transcript& transcript) {
    const std::span<const float> scores = transcript.session().logits();
    Memory copy = make_memory(scores.size_bytes());
    std::memcpy(copy.data, scores.data(), scores.size_bytes());
    return copy;
  });
}

constexpr std::size_t kLooksBack = 1024;  // tokens; decoding them takes less than a millisecond

// One text that a session generates, token by token: Session::generate() for a caller that asks.
class Generator {
 public:
  // The prompt: `text`, then `prompt`.
  Generator(std::shared_ptr<PySession> session, const std::optional<std::string>& text, Tokens prompt,
            const GenerateOptions& options)
      : session_(std::move(session)),
        sampler_(options.sampling),
        left_(options.max_tokens),
        stop_(options.stop_id),
        ignores_eos_(options.ignore_eos),
        stops_(options.stop) {
    const Weights& weights = session_->weights();
    const std::optional<TokenId>& stop = stop_;
    for (const auto& [token, bias] : options.sampling.logit_bias) {
      if (token < 0 || static_cast<std::size_t>(token) >= weights.vocabulary_size())
        refuse(fmt::format("logit_bias: token {} is out of range: the model has {} tokens", token,
                           weights.vocabulary_size()));
    }
    if (!options.stop.empty()) (void)weights.tokenizer();  // throws without a vocabulary
    if (stop && (*stop < 0 || static_cast<std::size_t>(*stop) >= weights.vocabulary_size())) {
      refuse(fmt::format("stop id {} is out of range: the model has {} tokens", *stop, weights.vocabulary_size()));
    }
    choices_ = weights.vocabulary_size();
    if (weights.has_tokenizer()) choices_ = std::min(choices_, weights.tokenizer().vocabulary().size());
    LongCall call;
    call.run([&] {
      session_->with([&](Transcript& transcript) {
        if (text) {
          const Tokens encoded = transcript.encode(*text);
          prompt.insert(prompt.begin(), encoded.begin(), encoded.end());
        }
        begin(transcript, prompt, call.stop());
      });
    });
  }

  // (token, text that is certain now), or None at the end.
  py::object next() {
    if (left_ == 0) return py::none();
    std::optional<TokenId> token;
    {
      const Released released;
      token = session_->with([&](Transcript& transcript) { return step(transcript); });
    }
    if (!token) return py::none();
    std::string piece = stream_ ? stops_.add(stream_->add(*token)) : std::string();
    if (stops_.found() && reason_ != "end_of_text") end("stop_text");
    return py::make_tuple(*token, shown(piece));
  }

  // The bytes held back for its tokens.
  py::str finish() { return stream_ && gave_ ? shown(stops_.add(stream_->finish()) + stops_.finish()) : py::str(""); }
  std::string_view reason() const { return reason_; }

 private:
  void begin(Transcript& transcript, const Tokens& prompt, const std::stop_token& stop) {
    if (prompt.empty() && transcript.is_full()) {
      end("context_full");
    } else {
      transcript.go_on(prompt, stop);
    }
    state_ = transcript.state();
    sampler_.see(transcript.fed());
    if (!session_->weights().has_tokenizer()) return;
    stream_.emplace(session_->weights().tokenizer());
    const Tokens& fed =
        transcript.fed();  // they determine the space before the first word, and the first bytes of a character
    for (const TokenId token : std::span(fed).last(std::min(fed.size(), kLooksBack))) {
      if (static_cast<std::size_t>(token) < choices_) stream_->add(token);
    }
  }

  std::optional<TokenId> step(Transcript& transcript) {
    if (transcript.state() != state_)
      refuse("the session has gone on or was reset meanwhile; a text is generated without other calls between");
    if (transcript.unfed()) {
      if (transcript.is_full()) {
        end("context_full");
        return std::nullopt;
      }
      transcript.go_on({});
    }
    const TokenId token = transcript.choose(sampler_, choices_);
    state_ = transcript.state();
    gave_ = true;
    --left_;
    if (!ignores_eos_ && session_->weights().parts().ends_text(token, stop_)) end("end_of_text");
    return token;
  }

  void end(std::string_view reason) {
    left_ = 0;
    reason_ = reason;
  }

  std::shared_ptr<PySession> session_;
  Sampler sampler_;
  std::optional<TextStream> stream_;
  std::size_t left_;
  std::optional<TokenId> stop_;
  bool ignores_eos_;
  StopTexts stops_;
  std::size_t choices_ = 0;
  std::uint64_t state_ = 0;  // after the last token
  bool gave_ = false;
  std::string_view reason_ = "max_tokens";
};

float real(std::string_view name, const py::object& given) {
  const double number = is_boolean(given) ? -1 : PyFloat_AsDouble(given.ptr());
  if (is_boolean(given) || PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    throw py::type_error(fmt::format("{} is {}, expected a number", name, short_repr(given)));
  }
  return static_cast<float>(number);
}

// The options of later versions, by name.
void take_options(const py::dict& given, GenerateOptions& options) {
  SamplingOptions& sampling = options.sampling;
  sampling.min_p = real("min_p", given["min_p"]);
  sampling.repetition_penalty = real("repetition_penalty", given["repetition_penalty"]);
  sampling.presence_penalty = real("presence_penalty", given["presence_penalty"]);
  sampling.frequency_penalty = real("frequency_penalty", given["frequency_penalty"]);
  for (const auto& [token, bias] : py::dict(given["logit_bias"])) {
    sampling.logit_bias.emplace_back(whole<TokenId>("logit_bias", token, 0),
                                     real("logit_bias", py::reinterpret_borrow<py::object>(bias)));
  }
  for (const py::handle stop : py::list(given["stop"])) options.stop.push_back(utf8(stop));
  options.ignore_eos = truth("ignore_eos", given["ignore_eos"]);
}

void declare_sessions(py::module_& module) {
  py::class_<PyWeights>(module, "Weights")
      .def(py::init(&load), py::arg("model").none(false))
      .def_property_readonly("vocabulary_size", [](const PyWeights& of) { return of.weights->vocabulary_size(); })
      .def_property_readonly("max_context", [](const PyWeights& of) { return of.weights->max_context(); });
  py::class_<PySession, std::shared_ptr<PySession>>(module, "Session")
      .def(py::init(
               [](const PyWeights& of, const py::object& threads, const py::object& context, const py::object& exact) {
                 const SessionOptions options{.threads = whole<unsigned>("threads", threads),
                                              .context = whole<std::size_t>("context", context),
                                              .exact = truth("exact", exact)};
                 const Released released;
                 return std::make_shared<PySession>(of.weights, options);
               }),
           py::arg("weights"), py::arg("threads"), py::arg("context"), py::arg("exact"))
      .def_property_readonly("weights", [](const PySession& of) { return PyWeights{of.shared_weights()}; })
      .def_property_readonly("vocabulary_size", [](const PySession& of) { return of.weights().vocabulary_size(); })
      .def_property_readonly(
          "context",
          [](PySession& of) {
            const Released released;
            return of.with([](const Transcript& transcript) { return transcript.session().context(); });
          })
      .def_property_readonly(
          "position",
          [](PySession& of) {
            const Released released;
            return of.with([](const Transcript& transcript) { return transcript.session().position(); });
          })
      .def_property_readonly("tokenizer", [](const PySession& of) { return of.tokenizer(); })
      .def("prompt",
           [](PySession& of, const py::object& given) {
             const std::string prompt = utf8(given);
             const Released released;
             return of.with([&](const Transcript& transcript) { return transcript.session().prompt(prompt); });
           })
      .def("reset",
           [](PySession& of) {
             const Released released;
             of.with([](Transcript& transcript) { transcript.reset(); });
           })
      .def("truncate",
           [](PySession& of, const py::object& given) {
             const auto position = whole<std::size_t>("position", given);
             const Released released;
             of.with([&](Transcript& transcript) { transcript.truncate(position); });
           })
      .def("fork",
           [](PySession& of) {
             const Released released;
             return of.fork();
           })
      .def("top_log_probabilities",
           [](PySession& of, const py::object& given) {
             const auto count = whole<std::size_t>("count", given);
             std::vector<TokenLogProbability> best;
             {
               const Released released;
               best = of.with([&](const Transcript& transcript) {
                 return top_log_probabilities(transcript.session().logits(), count);
               });
             }
             py::list all;
             for (const auto& [token, log_probability] : best) all.append(py::make_tuple(token, log_probability));
             return all;
           })
      .def("feed", &feed_all)
      .def("logits", &logits)
      .def("log_probabilities", [](PySession& of, const py::object& given) {
        const Tokens tokens = tokens_from(given);
        LongCall call;
        return call.run([&] {
          return of.with([&](Transcript& transcript) { return transcript.log_probabilities(tokens, call.stop()); });
        });
      });
  py::class_<Generator>(module, "Generator")
      .def(py::init([](std::shared_ptr<PySession> session, const py::object& prompt, const py::object& max_tokens,
                       const py::object& temperature, const py::object& top_k, const py::object& top_p,
                       const py::object& seed, const py::object& stop_id, const py::dict& more) {
             const bool is_text = PyUnicode_Check(prompt.ptr());
             GenerateOptions options;
             options.max_tokens = whole<std::size_t>("max_tokens", max_tokens);
             options.sampling = {.temperature = real("temperature", temperature),
                                 .top_k = whole<std::int64_t>("top_k", top_k),
                                 .top_p = real("top_p", top_p),
                                 .seed = whole<std::uint64_t>("seed", seed)};
             if (!stop_id.is_none()) options.stop_id = whole<TokenId>("stop_id", stop_id);
             take_options(more, options);
             return std::make_unique<Generator>(std::move(session),
                                                is_text ? std::optional(utf8(prompt)) : std::nullopt,
                                                is_text ? Tokens() : tokens_from(prompt), options);
           }),
           py::arg("session").none(false), py::arg("prompt"), py::arg("max_tokens"), py::arg("temperature"),
           py::arg("top_k"), py::arg("top_p"), py::arg("seed"), py::arg("stop_id"), py::arg("more"))
      .def("next", &Generator::next)
      .def("finish", &Generator::finish)
      .def_property_readonly("reason", [](const Generator& of) { return text(of.reason()); });
}

}  // namespace

Vocabulary vocabulary_from(const py::object& given) {
  if (py::isinstance<Vocabulary>(given)) return given.cast<const Vocabulary&>();
  if (!py::isinstance<PyTokenizer>(given) && !py::isinstance<OpenModel>(given))
    throw py::type_error(
        fmt::format("vocabulary is {}, expected a Vocabulary, a Tokenizer or a Model", short_repr(given)));
  const PyTokenizer tokenizer = py::isinstance<PyTokenizer>(given) ? given.cast<PyTokenizer>() : tokenizer_from(given);
  return tokenizer->vocabulary();
}

void declare_runtime(py::module_& module) {
  declare_tokenizer(module);
  declare_sessions(module);
}

}  // namespace poise::python
