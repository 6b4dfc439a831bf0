// Gives Python tokenizers, streams of text, and chat templates.
#include <algorithm>

#include <poise/chat.hpp>
#include <poise/format.hpp>

#include "elements.hpp"
#include "family/check.hpp"
#include "long_call.hpp"
#include "runtime.hpp"
#include "tokenizer/gguf/vocabulary.hpp"
#include "tokenizer/pipeline/steps.hpp"

namespace poise::python {

py::str make_shown_text(const std::string& utf8) {
  return py::reinterpret_steal<py::str>(
      PyUnicode_DecodeUTF8(utf8.data(), static_cast<Py_ssize_t>(utf8.size()), "replace"));
}

Tokens parse_token_ids(py::handle given) {
  if (PyUnicode_Check(given.ptr()) || PyBytes_Check(given.ptr()))
    throw py::type_error(
        fmt::format("token ids are integers, found the text {}; .prompt(text) or tokenizer.encode(text) gives its ids",
                    make_short_repr(given)));
  const bool is_array = py::hasattr(given, "tolist") && py::hasattr(given, "shape");  // numpy's, torch's
  if (is_array && py::len(given.attr("shape")) != 1)
    throw py::type_error(fmt::format("token ids have one dimension, found the shape {}; for a batch, pass ids[0]",
                                     encode_utf8(py::repr(py::list(given.attr("shape"))))));
  const auto items = is_array ? py::object(given.attr("tolist")()) : py::reinterpret_borrow<py::object>(given);
  PyObject* const iterator = PyObject_GetIter(items.ptr());
  if (iterator == nullptr) {
    PyErr_Clear();
    throw py::type_error(fmt::format("token ids are integers, found {}; pass a list of them", make_short_repr(given)));
  }
  Tokens tokens;
  for (const py::handle item : py::reinterpret_steal<py::iterator>(iterator))
    tokens.push_back(parse_whole<TokenId>("a token id", item, 0));
  return tokens;
}

namespace {

using Owner = std::shared_ptr<OpenModel>;

PyTokenizer make_tokenizer(std::optional<Vocabulary> vocabulary, std::string_view lacking,
                           const std::filesystem::path& path) {
  if (!vocabulary) throw Error(ErrorKind::unsupported, std::string(lacking), path.string());
  return PyTokenizer(std::make_shared<const Tokenizer>(*std::move(vocabulary)));
}

// Returns the model's vocabulary, without tokens for which the embedding has no rows.
std::optional<Vocabulary> find_usable_vocabulary(const Model& model) {
  std::optional<Vocabulary> vocabulary = make_vocabulary(model);
  const auto rows = vocabulary ? count_embedded_tokens(model) : std::nullopt;
  return rows ? keep_first_tokens(*std::move(vocabulary), *rows) : vocabulary;
}

PyTokenizer make_model_tokenizer(const Owner& owner) {
  const auto model = owner->require_model();
  const Released released;
  return make_tokenizer(find_usable_vocabulary(*model), "the model has no vocabulary", model->origin.path);
}

PyTokenizer read_tokenizer(const py::object& given) {
  const std::filesystem::path path = parse_path(given);
  const Released released;
  std::optional<Vocabulary> vocabulary = read_vocabulary(path);
  if (!vocabulary) vocabulary = find_usable_vocabulary(open(path));
  return make_tokenizer(std::move(vocabulary),
                        "has no vocabulary; pass a tokenizer file such as tokenizer.json, or a directory with one",
                        path);
}

PyTokenizer open_tokenizer(const py::object& given) {
  if (py::isinstance<OpenModel>(given)) return make_model_tokenizer(given.cast<Owner>());
  if (py::hasattr(given, "_core"))
    return open_tokenizer(given.attr("_core"));  // a poise.Model, whose _core is an OpenModel
  return read_tokenizer(given);
}

Tokens encode_text(const PyTokenizer& tokenizer, const std::string& text, bool special) {
  return run_encoding(text.size(),
                      [&] { return special ? tokenizer->encode_with_special(text) : tokenizer->encode(text); });
}

// Returns the ids of a text; for a list or tuple of texts, a list with the ids of each.
py::object encode_texts(const PyTokenizer& tokenizer, const py::object& given, const py::object& with_special) {
  const bool special = parse_truth("special", with_special);
  if (PyUnicode_Check(given.ptr())) return py::cast(encode_text(tokenizer, encode_utf8(given), special));
  if (!py::isinstance<py::list>(given) && !py::isinstance<py::tuple>(given))
    throw py::type_error(fmt::format("text is {}, expected str or a list of them", make_short_repr(given)));
  py::list all;
  for (const py::handle one : given) {
    all.append(encode_text(tokenizer, encode_utf8(one), special));
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
  }
  return all;
}

// Throws bad_argument for bytes, which JSON would convert to text.
void refuse_bytes(const Value& value) {
  if (value.get_if<Value::Bytes>() != nullptr)
    refuse("messages: expected text, found bytes; .decode() converts them to text");
  if (const auto* items = value.get_if<Value::Array>()) std::ranges::for_each(*items, refuse_bytes);
  if (const auto* map = value.get_if<Attributes>()) {
    for (const auto& [key, item] : *map) refuse_bytes(item);
  }
}

// Renders messages with a chat template. Returns the text and its ids.
py::tuple encode_chat(const PyTokenizer& tokenizer, const py::object& messages, const py::object& tools,
                      const py::object& documents, const py::object& jinja, const py::object& add_generation_prompt,
                      const py::kwargs& variables) {
  py::dict all;
  for (const auto& [name, value] : variables) all[name] = value;
  all["messages"] = py::list(messages);
  all["tools"] = tools;
  all["documents"] = documents;
  all["add_generation_prompt"] = parse_truth("add_generation_prompt", add_generation_prompt);
  const Attributes conversation = parse_attributes(all);
  for (const auto& [key, value] : conversation) refuse_bytes(value);
  const std::optional<std::string> source = jinja.is_none() ? std::nullopt : std::optional(encode_utf8(jinja));
  ChatText made;
  {
    const Released released;
    const Conversation talk = parse_conversation(to_json(conversation), "");
    const ChatTemplate chat =
        source ? ChatTemplate::find(*source, *tokenizer) : ChatTemplate(tokenizer->vocabulary(), talk.tools != Value());
    made = chat.render(talk);
  }
  const Tokens ids = run_encoding(made.text.size(), [&] { return tokenizer->encode(made); });
  return py::make_tuple(make_shown_text(made.text), ids);
}

SpecialTokens choose_special(bool special) { return special ? SpecialTokens::shown : SpecialTokens::hidden; }

struct PyStream {
  PyStream(const PyTokenizer& owner, bool special)
      : tokenizer(owner.shared()), stream(*tokenizer, choose_special(special)) {}
  std::shared_ptr<const Tokenizer> tokenizer;
  TextStream stream;
};

}  // namespace

void declare_tokenizer(py::module_& module) {
  py::class_<PyTokenizer>(module, "Tokenizer",
                          "Converts text to token ids and back, by a model's vocabulary. Thread-safe.")
      .def(py::init(&open_tokenizer), py::arg("model"))
      .def_static("open", &read_tokenizer, py::arg("path"), "Does what poise.read_tokenizer() does.")
      .def("encode", &encode_texts, py::arg("text"), py::kw_only(), py::arg("special") = false,
           "Returns the ids of a text, or a list of the ids of each text for a list. special: adds the special tokens "
           "of the tokenizer's template, else BOS in front if the vocabulary has it.")
      .def(
          "encode_chat", &encode_chat, py::arg("messages"), py::kw_only(), py::arg("tools") = py::none(),
          py::arg("documents") = py::none(), py::arg("template") = py::none(), py::arg("add_generation_prompt") = true,
          "Renders messages, [{\"role\", \"content\"}, ...], with the chat template. Returns the text and its ids; the "
          "content of messages never becomes a special token. template: Jinja, or the name of a built-in template "
          "(poise.chat_templates()), in place of the model's own. Other keywords are variables of the "
          "template.\n\nRaises UnsupportedError if there is no template, InvalidFileError for a "
          "malformed one, and BadArgumentError for messages that it rejects.")
      .def(
          "decode",
          [](const PyTokenizer& tokenizer, const py::object& given, const py::object& with_special) {
            const Tokens ids = parse_token_ids(given);
            const bool special = parse_truth("special", with_special);
            std::string result;
            {
              const Released released;
              result = tokenizer->decode(ids, choose_special(special));
            }
            return make_shown_text(result);
          },
          py::arg("ids"), py::kw_only(), py::arg("special") = false,
          "Returns the text of ids. special: shows BOS, EOS and other control tokens, which are invisible otherwise.")
      .def(
          "piece",
          [](const PyTokenizer& tokenizer, const py::object& id) {
            return make_text(tokenizer->piece(parse_whole<TokenId>("id", id)));
          },
          py::arg("id"), "Returns a token as the vocabulary spells it.")
      .def(
          "id",
          [](const PyTokenizer& tokenizer, const py::object& given) {
            const std::optional<std::string> piece =
                PyUnicode_Check(given.ptr()) ? parse_name(given) : encode_utf8(given);
            const Released released;
            return piece ? tokenizer.find_id(*piece) : std::nullopt;
          },
          py::arg("piece"), "Returns the id of the first token with this spelling in the vocabulary, or None.")
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
               throw py::type_error(fmt::format("tokenizer is {}, expected a Tokenizer", make_short_repr(tokenizer)));
             return std::make_unique<PyStream>(tokenizer.cast<const PyTokenizer&>(), parse_truth("special", special));
           }),
           py::arg("tokenizer"), py::kw_only(), py::arg("special") = false)
      .def(
          "add",
          [](PyStream& stream, const py::object& id) {
            return make_shown_text(stream.stream.add(parse_whole<TokenId>("id", id)));
          },
          py::arg("id"), "Adds a token, and returns the text that later tokens cannot change.")
      .def(
          "finish", [](PyStream& stream) { return make_shown_text(stream.stream.finish()); },
          "Returns the text held back so far. The stream then starts over.");
  module.def(
      "chat_templates",
      [] {
        py::dict ends;
        for (const BuiltInTemplateInfo& built_in : list_built_in_templates())
          ends[make_text(built_in.name)] = make_text(built_in.end);
        return ends;
      },
      "Returns the names of the built-in chat templates, the most used first, each with the text that ends an answer. "
      "Pass it as stop_id=tokenizer.id(text) if it is a token, else as stop=text. \"\": the vocabulary's EOS ends an "
      "answer.");
  module.def("read_tokenizer", &read_tokenizer, py::arg("path"),
             "Returns the tokenizer of a directory with tokenizer files, of one such file (tokenizer.json, ...), or of "
             "a model such as a GGUF file.\n\nRaises UnsupportedError if there is no vocabulary, and what open() "
             "raises.");
}

Vocabulary copy_vocabulary(const py::object& given) {
  if (py::isinstance<Vocabulary>(given)) return given.cast<const Vocabulary&>();
  if (!py::isinstance<PyTokenizer>(given) && !py::isinstance<OpenModel>(given))
    throw py::type_error(
        fmt::format("vocabulary is {}, expected a Vocabulary, a Tokenizer or a Model", make_short_repr(given)));
  const PyTokenizer tokenizer = py::isinstance<PyTokenizer>(given) ? given.cast<PyTokenizer>() : open_tokenizer(given);
  return tokenizer->vocabulary();
}

}  // namespace poise::python
