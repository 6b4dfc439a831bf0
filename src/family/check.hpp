// Checks that a model's configuration, vocabulary and tensor shapes agree.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <poise/error.hpp>
#include <poise/finding.hpp>
#include <poise/model.hpp>

#include "family/family.hpp"

namespace poise {

// Returns the faults of a model by the rules of its family, one sentence each. A model may lack configuration, tensors
// or vocabulary, but a Hugging Face directory with a configuration needs tensors. Does not check tensors if the
// configuration has faults or if has_other_tensors().
std::vector<std::string> check_consistency(const Model& model);

// Returns the same faults as findings, with tensors and their places.
std::vector<Finding> find_inconsistencies(const Model& model);

// Returns true for a decoder that was saved without its output matrix (an embedding model): "architectures" has a class
// without one ("MistralModel"), or the tensors' names are those of such a class.
bool lacks_output_matrix(const Model& model);

// Returns the number of rows of the model's embedding; std::nullopt if it has no embedding matrix.
std::optional<std::size_t> count_embedded_tokens(const Model& model);

// Returns a warning if the embedding has fewer rows than the vocabulary has tokens, and one if the output is missing.
std::vector<std::string> list_shortcomings(const Model& model);

// Returns the error with which a session refuses a model: keys that Poise does not implement, weights that the family
// does not have, or an error of Family::plan(). std::nullopt if the model runs, has no configuration, or has a
// model_type that Poise does not know. Requires: check_consistency() finds no fault.
std::optional<Error> find_run_refusal(const Model& model);

// Returns the faults of the hyperparameters, one sentence each: sizes out of range (products of accepted sizes fit 64
// bits) or, if there are none, query heads that are not a multiple of key heads, rope_theta 0, and a rope_theta or
// rms_norm_eps that is negative or not finite.
std::vector<std::string> check_config(const Config& config);

// Returns the faults of the hyperparameters, and one for more than 1000 keys; if there are none, the faults by the
// rules of the family.
std::vector<std::string> check_config(const ConfigView& view, const Family& family);

// Returns the names of the weights that the model's family does not have: a run that ignored them would be wrong. The
// views point to the tensors' names.
std::vector<std::string_view> find_unknown_weights(const Model& model);

}  // namespace poise
