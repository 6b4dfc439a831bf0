// A revision is a change of a whole model, before a conversion treats its tensors one by one.
//
// revision.cpp has the list, in order. A new revision is one file in this folder, its line among the declarations
// below, and its row in the list.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <poise/convert.hpp>

#include "bytes/function_ref.hpp"
#include "formats/format.hpp"
#include "ops/lora.hpp"

namespace poise {

// Holds a model on its way through the revisions.
struct Revision {
  Model model;
  const Format* target = nullptr;     // the format of the output
  std::vector<std::string> sources;   // the name of each tensor in the input
  std::vector<std::string> left_out;  // names of tensors in the input
  std::vector<std::string> changes;   // descriptions, one sentence each

  // Calls change(tensor) for each tensor in order, and leaves out those for which it returns false. A tensor that gets
  // another name no longer has its name in the file (file_name).
  void change_tensors(FunctionRef<bool(Tensor&)> change);
};

// Applies a revision, if its options are set. Throws bad_argument for options that do not fit the model.
using Revise = void (*)(Revision& revision, const ConvertOptions& options);

// Throws bad_argument with the message "OPTION: PROBLEM".
[[noreturn]] void refuse_option(std::string_view option, std::string_view problem);

// Each function applies the fields of ConvertOptions that are next to it.
void rename_tensors(Revision& revision, const ConvertOptions& options);  // strip_prefix, rename, add_prefix
void cut_layers(Revision& revision, const ConvertOptions& options);      // layers
void cut_vocabulary(Revision& revision, const ConvertOptions& options);  // vocab_size, drop_rows
void set_keys(Revision& revision, const ConvertOptions& options);        // set

// Holds a model after all revisions. Its tensors are views of the input's tensors.
struct RevisedModel : MergedModel {
  std::vector<std::string> left_out;  // names in the input
  std::vector<std::string> changes;   // one sentence each
  // Maps names in the input to new names. Null: no option changes the model.
  std::shared_ptr<const std::unordered_map<std::string, std::string>> names = nullptr;

  // Returns the name that a tensor of the input has now; empty if it is left out.
  std::string_view find_name(const std::string& input_name) const;
};

// Applies all revisions, and throws what they throw. Adds a warning if the family can no longer compute the model.
// Reads no tensor's bytes.
RevisedModel revise_model(MergedModel merged, const Format& target, const ConvertOptions& options);

}  // namespace poise
