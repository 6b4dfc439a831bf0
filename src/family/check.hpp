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

// Returns the faults of a model by the rules of its family, one sentence each, up to a thousand; empty when it can run.
// Empty, too, for a model without configuration or tensors. Does not look for the family's tensors when config.json
// names a variant with others.
std::vector<std::string> check_consistency(const Model& model);

// Returns the same faults as findings, with tensors and their places.
std::vector<Finding> find_inconsistencies(const Model& model);

// Returns true for a decoder that was saved without its output matrix, as models that make vectors are: a class of its
// "architectures" has none ("MistralModel"), or its tensors have the names of such a class.
bool lacks_output(const Model& model);

// Returns how many tokens the model's embedding has; std::nullopt without one.
std::optional<std::size_t> count_embedded_tokens(const Model& model);

// Returns a warning for each thing that a model may lack: rows for all tokens of the vocabulary, and the output matrix.
std::vector<std::string> list_shortcomings(const Model& model);

// Returns the error with which a session refuses a model of a known family: keys that Poise does not implement, weights
// that the family does not have, no plan. std::nullopt when it runs, and for a model without configuration or family.
// Requires: check_consistency() finds no fault.
std::optional<Error> find_run_refusal(const Model& model);

// Returns why the hyperparameters describe no model: zero or negative sizes, heads that do not divide, and absurd sizes
// (products of accepted sizes fit 64 bits).
std::vector<std::string> check_config(const Config& config);

// Returns the same, and if that is empty, the faults by the rules of the family.
std::vector<std::string> check_config(const ConfigView& view, const Family& family);

// Returns the weights that the model's family does not have: ignoring them would make the result wrong. The result
// refers to the tensors' names.
std::vector<std::string_view> find_unknown_weights(const Model& model);

// Appends a fault, unless the list is already longer than anyone would read.
void add_fault(std::vector<std::string>& faults, std::string fault);
void add_fault(std::vector<Finding>& faults, Finding fault);

// Returns the message that lists every fault, one a line. Requires: there is one. A fault with a place begins with its
// tensor, as those of find_inconsistencies() do.
std::string format_faults(const std::vector<std::string>& faults);
std::string format_faults(const std::vector<Finding>& faults);

// Throws invalid_file with that message if there are faults.
void throw_faults(const std::vector<std::string>& faults, const std::string& path);

}  // namespace poise
