// check: do a model's parts agree with each other - configuration, vocabulary and tensor shapes?
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <poise/error.hpp>
#include <poise/model.hpp>

#include "family/family.hpp"

namespace poise {

// The disagreements of a model by what its family says, one sentence each, up to a thousand; empty when it can run. A
// model without configuration or tensors has nothing to disagree about, and one whose config.json has it that there are
// others than Poise knows is not asked for them.
std::vector<std::string> check_consistency(const Model& model);

// Why the model's family has no plan of how it computes: what Family::plan() throws. Nothing where it has one, for a
// model of no family, and for one that effects_not_followed() refuses. Requires: check_consistency() finds nothing.
std::optional<Error> plan_refusal(const Model& model);

// What keeps the hyperparameters from describing any model: zero or negative sizes, heads that do not divide, and sizes
// beyond all reason (products of the sizes that pass this fit 64 bits).
std::vector<std::string> check_config(const Config& config);

// The same; and if there is nothing, what keeps them from describing a model of the family.
std::vector<std::string> check_config(const ConfigView& view, const Family& family);

// The weights that the model's family has no place for: passed over they would make the result wrong. Views of the
// tensors' names.
std::vector<std::string_view> unknown_weights(const Model& model);

// Appends a fault, unless there are more already than anyone would read.
void add_fault(std::vector<std::string>& faults, std::string fault);

// Throws invalid_file that lists every fault, one a line; nothing when there is none.
void throw_faults(const std::vector<std::string>& faults, const std::string& path);

}  // namespace poise
