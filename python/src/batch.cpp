// Several texts that one model generates at the same time.
#include <poise/batch.hpp>

#include <mutex>

#include "long_call.hpp"
#include "runtime.hpp"

namespace poise::python {
namespace {

// Threads use it in turn, without the GIL.
class Batch {
 public:
  Batch(WeightsPtr weights, const SessionOptions& options) : batch_(std::move(weights), options) {}

  // A text or token ids.
  std::size_t add(const py::object& prompt, const py::dict& given) {
    const GenerateOptions options = generate_options_from(given);
    const bool is_text = PyUnicode_Check(prompt.ptr());
    const std::string text = is_text ? utf8(prompt) : std::string();
    Tokens tokens = is_text ? Tokens() : tokens_from(prompt);
    return run_encoding(text.size(), [&] {
      const std::lock_guard lock(mutex_);
      if (is_text) tokens = batch_.prompt(text);
      return batch_.add(std::move(tokens), options);
    });
  }

  // Steps until a text ends: a list of (id, text, tokens, finish_reason); empty where there are no more texts.
  py::list next() {
    LongCall call;
    const auto finished = call.run([&] {
      const std::lock_guard lock(mutex_);
      std::vector<BatchGenerator::Finished> result;
      while (result.empty() && batch_.size() > 0) result = batch_.step(call.stop());
      return result;
    });
    py::list all;
    for (const auto& ended : finished)
      all.append(py::make_tuple(ended.id, shown(ended.text), ended.generation.tokens,
                                text(finish_reason(ended.generation.reason))));
    return all;
  }

 private:
  std::mutex mutex_;
  BatchGenerator batch_;
};

}  // namespace

void declare_batches(py::module_& module) {
  py::class_<Batch>(module, "Batch")
      .def(py::init([](const PyWeights& of, const py::object& threads, const py::object& context,
                       const py::object& exact, const py::object& cache) {
             return std::make_unique<Batch>(of.weights, session_options_from(threads, context, exact, cache));
           }),
           py::arg("weights"), py::arg("threads"), py::arg("context"), py::arg("exact"), py::arg("cache"))
      .def("add", &Batch::add, py::arg("prompt"), py::arg("options"))
      .def("next", &Batch::next);
}

}  // namespace poise::python
