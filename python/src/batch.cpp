// Implements Batch, which generates several texts with one model at the same time.
#include <poise/batch.hpp>

#include "long_call.hpp"
#include "runtime.hpp"

namespace poise::python {
namespace {

// Generates several texts. A mutex, which is locked without the GIL, lets threads take turns.
class Batch {
 public:
  Batch(WeightsPtr weights, const SessionOptions& options) : batch_(std::move(weights), options) {}

  // Adds a text or token ids, and returns the id of the text.
  std::size_t add(const py::object& prompt, const py::dict& given) {
    const GenerateOptions options = parse_generate_options(given);
    Prompt given_prompt = parse_prompt(prompt);
    const auto* const text = std::get_if<std::string>(&given_prompt);
    return run_encoding(text == nullptr ? 0 : text->size(), [&] {
      const std::lock_guard lock(mutex_);
      return batch_.add(text == nullptr ? std::get<Tokens>(std::move(given_prompt)) : batch_.prompt(*text), options);
    });
  }

  // Steps until a text ends. Returns a list of (id, text, tokens, finish_reason), which is empty if there are no more
  // texts.
  py::list generate_next() {
    LongCall call;
    const auto finished = call.run([&] {
      const std::lock_guard lock(mutex_);
      std::vector<BatchGenerator::Finished> result;
      while (result.empty() && batch_.size() > 0) result = batch_.step(call.stop_token());
      return result;
    });
    py::list all;
    for (const auto& ended : finished)
      all.append(py::make_tuple(ended.id, make_shown_text(ended.text), ended.generation.tokens,
                                make_text(finish_reason(ended.generation.reason))));
    return all;
  }

 private:
  std::mutex mutex_;
  BatchGenerator batch_;
};

}  // namespace

void declare_batches(py::module_& module) {
  py::class_<Batch>(module, "Batch")
      .def(py::init([](const PyWeights& weights, const py::dict& options) {
             return std::make_unique<Batch>(weights.weights, parse_session_options(options));
           }),
           py::arg("weights"), py::arg("options"))
      .def("add", &Batch::add, py::arg("prompt"), py::arg("options"))
      .def("next", &Batch::generate_next);
}

}  // namespace poise::python
