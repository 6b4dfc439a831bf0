// Models: opens them, makes them from arrays, and shows Python everything but their tensors.

#include <poise/format.hpp>
#include <poise/remote.hpp>
#include <poise/sampling_defaults.hpp>
#include <poise/source.hpp>

#include "elements.hpp"
#include "family/config_json.hpp"
#include "formats/metadata.hpp"
#include "model/card.hpp"
#include "numeric/float_formats.hpp"
#include "views/dense.hpp"

namespace poise::python {
namespace {

using Owner = std::shared_ptr<OpenModel>;

ReadOptions make_read_options(std::string_view io) {
  if (io == "map") return {.io = IoMode::map};
  if (io == "read") return {.io = IoMode::read};
  refuse(fmt::format("io is \"{}\", expected \"map\" or \"read\"", io));
}

Owner open_path(const py::object& given, std::string_view io) {
  const std::filesystem::path path = parse_path(given);
  const ReadOptions options = make_read_options(io);
  const Released released;
  return std::make_shared<OpenModel>(open(path, options));
}

Owner open_server_file(const py::object& url) {
  const std::string name = encode_utf8(url);
  const Released released;
  return std::make_shared<OpenModel>(open(open_url(name)));
}

Owner open_bytes(const py::object& data, const std::string& name) {
  const BlobPtr borrowed = borrow_buffer(data);
  const Released released;
  return std::make_shared<OpenModel>(open(Source::from_memory(read_all(*borrowed), name)));
}

Shape parse_shape(const py::handle& sizes) {
  Shape shape;
  for (const py::handle size : py::reinterpret_borrow<py::object>(sizes)) shape.push_back(size.cast<std::uint64_t>());
  return shape;
}

// Returns a tensor of a new model from another model's Tensor, or from (dtype, shape, buffer). In place of the buffer
// there may be a function, which returns the buffer when the bytes are read. The new model's tensors share `loaded`.
Tensor parse_tensor(const std::string& name, const py::handle& given, const std::shared_ptr<LoadedBuffers>& loaded) {
  if (py::isinstance<Elements>(given)) {
    Tensor tensor = *given.cast<const Elements&>().hold_tensor();
    tensor.name = name;
    tensor.file_name.reset();  // the new model has no file
    return tensor;
  }
  const auto [dtype_name, sizes, buffer] = given.cast<std::tuple<std::string, py::object, py::object>>();
  const DType dtype = parse_dtype(dtype_name);
  Shape shape = parse_shape(sizes);
  const auto elements = element_count(shape);
  const auto bytes = elements ? packed_bytes(dtype, *elements) : std::nullopt;
  if (!bytes) refuse(fmt::format("tensor {}: shape {} overflows", name, poise::to_string(shape)));
  BlobPtr blob =
      PyCallable_Check(buffer.ptr()) != 0 ? make_loading_blob(buffer, *bytes, loaded) : borrow_buffer(buffer);
  if (*bytes != blob->size())
    refuse(fmt::format("tensor {}: {} {} has {} bytes, found {}", name, to_string(dtype), to_string(shape), *bytes,
                       blob->size()));
  return make_dense(name, std::move(shape), dtype, std::move(blob));
}

// Calls `change`, which reads a configuration. Throws bad_argument if the configuration is not valid.
void change_model_config(FunctionRef<void()> change) {
  try {
    change();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::invalid_file) throw;
    refuse("config: " + error.message());
  }
}

void replace_vocabulary(Model& model, const py::object& with) {
  if (!model.vocabulary) model.attributes = make_described_vocabulary(model).attributes;
  model.vocabulary = copy_vocabulary(with);
}

// Makes a model from arrays. Copies card, configuration, vocabulary and attributes of the model `like`. `attributes`
// and `vocabulary` replace the copies; `config` and `card` replace single keys and fields.
Owner build_model(const py::list& tensors, const std::optional<py::dict>& attributes, const std::optional<Owner>& like,
                  const std::optional<py::dict>& config, const std::optional<py::dict>& card,
                  const py::object& vocabulary) {
  Model model;
  if (like) {
    const auto from = (*like)->require_model();
    model.card = from->card;
    model.config = from->config;
    model.config_json = from->config_json;
    model.vocabulary = from->vocabulary;
    model.attributes = from->attributes;
    model.origin.attribute_types = from->origin.attribute_types;
  }
  if (attributes) model.attributes = parse_attributes(*attributes);
  if (!vocabulary.is_none()) replace_vocabulary(model, vocabulary);
  if (config) change_model_config([&] { change_config(model, parse_attributes(*config), {}); });
  if (card) {
    Card changed = model.card;
    set_card(*card, changed);
    changed = normalize_card(std::move(changed));
    if (changed.model_type != model.card.model_type)
      change_model_config([&] { set_model_type(model, changed.model_type, {}); });
    model.card = std::move(changed);
  }
  model.reserve(tensors.size());
  const auto loaded = std::make_shared<LoadedBuffers>();
  for (const py::handle item : tensors) {
    const auto [name, given] = item.cast<std::pair<py::object, py::object>>();
    model.add(parse_tensor(encode_utf8(name), given, loaded));
  }
  return std::make_shared<OpenModel>(std::move(model));
}

py::list list_tensor_names(const OpenModel& owner) {
  const auto model = owner.require_model();
  py::list result(model->size());
  std::size_t i = 0;
  for (const Tensor& tensor : model->tensors()) result[i++] = make_text(tensor.name);
  return result;
}

// Returns all tensors at once, for callers that need the whole file: (name, dtype or None, shape, (Memory, offset) or
// None). All tensors of a file share one Memory: the mapped file, or private pages of the file if `writable`. Without
// Memory, the caller must read the tensor separately.
py::list list_mapped(const OpenModel& owner, bool writable) {
  const auto model = owner.require_model();
  std::vector<std::pair<const Source*, py::object>> files;
  const auto find_memory = [&](const SourcePtr& source) -> py::object {
    for (const auto& [known, memory] : files) {
      if (known == source.get()) return memory;
    }
    py::object made = py::none();
    if (!writable && source->mapped()) {
      auto* first = const_cast<std::byte*>(source->bytes().data());  // Memory is marked read-only
      made = py::cast(Memory{first, source->size(), false, source});
    } else if (writable && source->descriptor() >= 0 && source->mapped()) {
      made = py::cast(map_privately(*source, 0, source->size()));
    }
    files.emplace_back(source.get(), made);
    return made;
  };
  py::list result(model->size());
  std::size_t i = 0;
  for (const Tensor& tensor : model->tensors()) {
    py::object place = py::none();
    const HeldElements elements{model, &tensor, Strided::make_whole(tensor.shape)};
    const auto type = elements.dtype();
    if (type && tensor.layout == Layout::dense && info(*type).bits >= 8) {
      const auto raw = tensor.require("data").blob->raw_range();
      if (raw) {
        const py::object memory = find_memory(raw->source);
        if (!memory.is_none()) place = py::make_tuple(memory, raw->offset);
      }
    }
    result[i++] =
        py::make_tuple(make_text(tensor.name), type ? py::object(make_text(to_string(*type))) : py::object(py::none()),
                       to_tuple(tensor.shape), place);
  }
  return result;
}

py::object lend_vocabulary(const OpenModel& owner) {
  const auto model = owner.require_model();
  if (!model->vocabulary) return py::none();
  return py::cast(
      std::shared_ptr<Vocabulary>(std::const_pointer_cast<Model>(model),
                                  const_cast<Vocabulary*>(&*model->vocabulary)));  // pybind11 has no const holders
}

std::string_view name_vocabulary_kind(VocabularyKind kind) {
  switch (kind) {
    case VocabularyKind::sentencepiece_bpe: return "sentencepiece_bpe";
    case VocabularyKind::sentencepiece_unigram: return "sentencepiece_unigram";
    case VocabularyKind::byte_pair: return "byte_pair";
    case VocabularyKind::pipeline: return "pipeline";
  }
  return "other";
}

py::object get_token(const Vocabulary& vocabulary, const py::object& id) {
  const py::int_ number = parse_integer("id", id);
  if (number < py::int_(0) || number >= py::int_(vocabulary.size()))
    throw py::index_error(
        fmt::format("token {} is out of range: there are {}", make_short_repr(id), vocabulary.size()));
  const auto at = number.cast<std::size_t>();
  return py::make_tuple(make_text(vocabulary.text(at)), vocabulary.score(at),
                        make_text(to_string(vocabulary.type(at))));
}

py::object make_optional_id(std::int32_t id) { return id < 0 ? py::object(py::none()) : py::object(py::int_(id)); }

void declare_vocabulary(py::module_& module) {
  py::class_<Vocabulary, std::shared_ptr<Vocabulary>>(module, "Vocabulary",
                                                      "Tokens by id: vocabulary[id] is (text, score, type).")
      .def("__len__", &Vocabulary::size)
      .def("__getitem__", &get_token, py::arg("id"))
      .def("__repr__",
           [](const Vocabulary& v) {
             return fmt::format("<poise.Vocabulary {}, {} tokens>", name_vocabulary_kind(v.kind), v.size());
           })
      .def_property_readonly("kind", [](const Vocabulary& v) { return make_text(name_vocabulary_kind(v.kind)); })
      .def_property_readonly("bos_id", [](const Vocabulary& v) { return make_optional_id(v.bos_id); })
      .def_property_readonly("eos_id", [](const Vocabulary& v) { return make_optional_id(v.eos_id); })
      .def_property_readonly("pad_id", [](const Vocabulary& v) { return make_optional_id(v.pad_id); })
      .def_property_readonly("unk_id", [](const Vocabulary& v) { return make_optional_id(v.unk_id); });
}

// Returns the values that the model's files state, by the keywords of generate().
py::dict list_sampling_defaults(const OpenModel& owner) {
  const SamplingDefaults stated = read_sampling_defaults(*owner.require_model());
  py::dict result;
  const auto add_number = [&](const char* name, const std::optional<float>& number) {
    if (number) result[name] = convert_by_spelling(*number);
  };
  add_number("temperature", stated.temperature);
  if (stated.top_k) result["top_k"] = *stated.top_k;
  add_number("top_p", stated.top_p);
  add_number("min_p", stated.min_p);
  add_number("repetition_penalty", stated.repetition_penalty);
  return result;
}

}  // namespace

void declare_model(py::module_& module) {
  declare_vocabulary(module);
  py::class_<OpenModel, Owner>(module, "Model")
      .def(py::init(&open_path), py::arg("path"), py::arg("io") = "map")
      .def_static("from_url", &open_server_file, py::arg("url"))
      .def_static("from_bytes", &open_bytes, py::arg("data"), py::arg("name") = "")
      .def_static("build", &build_model, py::arg("tensors"), py::arg("attributes") = py::none(),
                  py::arg("like") = py::none(), py::arg("config") = py::none(), py::arg("card") = py::none(),
                  py::arg("vocabulary") = py::none())
      .def("close", &OpenModel::close)
      .def_property_readonly("closed", [](const OpenModel& owner) { return !owner.is_open(); })
      .def("__len__", [](const OpenModel& owner) { return owner.require_model()->size(); })
      .def("__contains__",
           [](const OpenModel& owner, const py::object& given) {
             const auto model = owner.require_model();
             const auto name = parse_name(given);
             return name && (model->find(*name) != nullptr || model->find_in_file(*name).size() == 1);
           })
      .def("names", &list_tensor_names)
      .def("all_mapped", &list_mapped, py::arg("writable"))
      .def_property_readonly("format",
                             [](const OpenModel& owner) { return make_text(owner.require_model()->origin.format); })
      .def_property_readonly(
          "path", [](const OpenModel& owner) { return make_text(owner.require_model()->origin.path.string()); })
      .def_property_readonly("file_size", [](const OpenModel& owner) { return owner.require_model()->origin.size; })
      .def_property_readonly("files",
                             [](const OpenModel& owner) {
                               py::list files;
                               for (const auto& file : owner.require_model()->origin.files)
                                 files.append(make_text(file.string()));
                               return files;
                             })
      .def_property_readonly(
          "card", [](const OpenModel& owner) { return to_python(card_to_attributes(owner.require_model()->card)); })
      .def_property_readonly("config",
                             [](const OpenModel& owner) { return to_python(whole_config(*owner.require_model())); })
      .def_property_readonly("attributes",
                             [](const OpenModel& owner) { return to_python(owner.require_model()->attributes); })
      .def_property_readonly("vocabulary", &lend_vocabulary)
      .def_property_readonly("sampling_defaults", &list_sampling_defaults)
      .def_property_readonly("warnings",
                             [](const OpenModel& owner) { return to_python(owner.require_model()->warnings); });
}

}  // namespace poise::python
