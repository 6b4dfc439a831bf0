// Implements Embedder, which computes vectors of texts.
#include <poise/embedder.hpp>

#include "long_call.hpp"
#include "memory.hpp"
#include "runtime.hpp"

namespace poise::python {
namespace {

Pooling parse_pooling(const py::object& given) {
  const std::optional<std::string> name = parse_name(given);
  if (name == "last") return Pooling::last;
  if (name == "mean") return Pooling::mean;
  refuse(fmt::format("pooling is {}, expected \"last\" or \"mean\"", make_short_repr(given)));
}

// Computes vectors of texts. A mutex, which is locked without the GIL, lets threads take turns.
class PyEmbedder {
 public:
  PyEmbedder(const WeightsPtr& weights, const EmbedOptions& options, const SessionOptions& session)
      : weights_(weights), embedder_(weights, options, session) {}

  // Returns the vectors of texts and token ids, one after the other. `progress` counts tokens.
  Memory embed(const py::list& given, const py::object& progress) {
    std::vector<Prompt> texts;
    for (const py::handle one : given) texts.push_back(parse_prompt(one));
    LongCall call(progress);
    return call.run([&] {
      std::vector<Tokens> all;
      const std::stop_token stop = call.stop_token();
      const EncodingStop stoppable(stop);
      for (auto& one : texts) {
        const auto* text = std::get_if<std::string>(&one);
        all.push_back(text == nullptr ? std::get<Tokens>(std::move(one))
                                      : weights_->tokenizer().encode_with_special(*text));
      }
      const std::lock_guard lock(mutex_);
      return copy_to_memory(embedder_.embed(all, call.make_progress(), call.stop_token()));
    });
  }

 private:
  std::mutex mutex_;
  WeightsPtr weights_;
  Embedder embedder_;
};

}  // namespace

void declare_embedder(py::module_& module) {
  py::class_<PyEmbedder>(module, "Embedder")
      .def(py::init([](const PyWeights& weights, const py::object& pooling, const py::object& layer,
                       const py::object& normalize, const py::dict& session) {
             const EmbedOptions options = {.pooling = parse_pooling(pooling),
                                           .layer = parse_layer(layer, *weights.weights),
                                           .normalize = parse_truth("normalize", normalize)};
             return std::make_unique<PyEmbedder>(weights.weights, options, parse_session_options(session));
           }),
           py::arg("weights"), py::arg("pooling"), py::arg("layer"), py::arg("normalize"), py::arg("options"))
      .def("embed", &PyEmbedder::embed, py::arg("texts"), py::arg("progress"));
}

}  // namespace poise::python
