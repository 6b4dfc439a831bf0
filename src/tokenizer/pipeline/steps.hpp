// Makes the steps of a pipeline's part from their fields: normalizers, pre-tokenizers, post-processors and decoders.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizer/pipeline/fields.hpp"

namespace poise {

// A row for each type except Sequence. Context is a StepCount, plus whatever the makers need.
template <typename Step, typename Context = StepCount>
struct StepRow {
  std::string_view type;
  std::unique_ptr<const Step> (*make)(const Fields& fields, Context& context);
};

// For kinds that need only their fields.
template <typename Step, typename Kind>
std::unique_ptr<const Step> make_step(const Fields& fields, StepCount&) {
  return std::make_unique<Kind>(fields);
}

// The step of the fields' type, or a Sequence of the steps in `list`, which may be sequences, too. Throws invalid_file,
// and unsupported for unknown types.
template <typename Sequence, typename Step, typename Context>
std::unique_ptr<const Step> made_of(std::span<const StepRow<Step, Context>> rows, std::string_view list,
                                    const Fields& fields, Context& context) {
  context.add(fields);
  if (fields.required_text("type") != "Sequence") return row_of(rows, fields).make(fields, context);
  std::vector<std::unique_ptr<const Step>> all;
  for (const Fields& step : fields.list(list)) all.push_back(made_of<Sequence>(rows, list, step, context));
  return std::make_unique<Sequence>(std::move(all));
}

}  // namespace poise
