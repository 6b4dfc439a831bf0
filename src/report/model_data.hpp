// Makes the small data of a report: all of a model except its tensors' numbers and its tokens.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <poise/hash.hpp>
#include <poise/model.hpp>
#include <poise/value.hpp>
#include <poise/verify.hpp>

namespace poise {

// Returns the name of the model's file, such as "mistral-7b.gguf", or of its directory.
std::string make_report_title(const Model& model);

// Returns format, sizes, family, card, configuration, attributes and stored types.
Attributes describe_model(const Model& model);

// Returns the findings of `poise verify`: their counts, and the first ones.
Attributes describe_findings(const VerifyReport& report);

// Returns the template's text, an example of a conversation and the text that the template makes of it; null without a
// template.
Value describe_chat(const Model& model);

// Returns the memory that running the model takes; if Poise does not run it, that of the weights, and the reason.
Attributes describe_memory(const Model& model);

}  // namespace poise
