// Measures how well a model predicts texts (perplexity), and how far its predictions are from another model's.
#include <poise/perplexity.hpp>

#include "long_call.hpp"
#include "runtime.hpp"

namespace poise::python {
namespace {

// Measures perplexity. A mutex, which is locked without the GIL, lets threads take turns.
class PyPerplexity {
 public:
  PyPerplexity(WeightsPtr model, WeightsPtr base, const SessionOptions& options)
      : perplexity_(std::move(model), std::move(base), options) {}

  // Adds a text or token ids. If `window` is more than 0, computes them in windows of that many tokens. `progress`
  // counts tokens.
  void add(const py::object& given, const py::object& window, const py::object& stride, const py::object& progress) {
    const PerplexityWindows windows = {.size = parse_whole<std::size_t>("window", window),
                                       .stride = parse_whole<std::size_t>("stride", stride)};
    if (windows.size == 0 && windows.stride > 0) refuse("stride needs window");
    const Prompt prompt = parse_prompt(given);
    LongCall call(progress);
    call.run([&] {
      const std::lock_guard lock(mutex_);
      const auto add_to = [&](const auto& text) {
        if (windows.size > 0) return perplexity_.add_windows(text, windows, call.make_progress(), call.stop_token());
        perplexity_.add(text, call.make_progress(), call.stop_token());
      };
      std::visit(add_to, prompt);
    });
  }

  // Returns names and values as in the answer of `poise run --perplexity --against --json`.
  py::dict make_result() {
    PerplexityResult result;
    {
      const Released released;
      const std::lock_guard lock(mutex_);
      result = perplexity_.result();
    }
    py::dict all;
    all["texts"] = result.texts;
    all["tokens"] = result.tokens;
    if (result.windows > 0) all["windows"] = result.windows;
    set_estimate(all, "perplexity", result.perplexity);
    if (!result.against) return all;
    set_estimate(all, "base_perplexity", result.against->base_perplexity);
    set_estimate(all, "ratio", result.against->ratio);
    set_estimate(all, "kl_mean", result.against->kl_mean);
    all["kl_max"] = result.against->kl_max;
    set_estimate(all, "same_top", result.against->same_top);
    return all;
  }

 private:
  static void set_estimate(py::dict& all, const std::string& name, const Estimate& estimate) {
    all[py::str(name)] = estimate.value;
    all[py::str(name + "_error")] = estimate.standard_error;
  }

  std::mutex mutex_;
  Perplexity perplexity_;
};

}  // namespace

void declare_perplexity(py::module_& module) {
  py::class_<PyPerplexity>(module, "Perplexity")
      .def(py::init([](const PyWeights& model, const PyWeights* base, const py::dict& given) {
             const SessionOptions options = parse_session_options(given);
             const WeightsPtr base_weights = base == nullptr ? nullptr : base->weights;
             const Released released;
             return std::make_unique<PyPerplexity>(model.weights, base_weights, options);
           }),
           py::arg("model").none(false), py::arg("base"), py::arg("options"))
      .def("add", &PyPerplexity::add, py::arg("text"), py::arg("window"), py::arg("stride"), py::arg("progress"))
      .def("result", &PyPerplexity::make_result);
}

}  // namespace poise::python
