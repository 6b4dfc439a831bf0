#include "model/without_tensors.hpp"

namespace poise {

Model without_tensors(const Model& model) {
  Model result;
  result.origin = model.origin;
  result.card = model.card;
  result.config = model.config;
  result.config_json = model.config_json;
  result.vocabulary = model.vocabulary;
  result.attributes = model.attributes;
  result.warnings = model.warnings;
  return result;
}

}  // namespace poise
