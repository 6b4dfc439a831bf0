// Defines the extension module poise._poise, which the Python package in ../poise uses.
#include "runtime.hpp"

PYBIND11_MODULE(_poise, module) {
  using namespace poise::python;
  module.doc() = "The C++ library, for the package poise.";
  module.attr("version") = POISE_VERSION;
  declare_errors(module);
  declare_memory(module);
  declare_model(module);
  declare_tensors(module);
  declare_operations(module);
  declare_making(module);
  declare_tokenizer(module);
  declare_sessions(module);
  declare_batches(module);
  declare_embedder(module);
  declare_perplexity(module);
}
