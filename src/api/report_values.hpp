// Converts rows of reports to maps, whose JSON the command and the C interface share.
#pragma once

#include <vector>

#include <poise/delta.hpp>
#include <poise/imatrix.hpp>
#include <poise/make_lora.hpp>
#include <poise/value.hpp>

namespace poise {

// Each function returns the members of a row by their names. A gap has "entry", "experts" (the indices
// of those without tokens) and "count" (of all experts).
Attributes make_attributes(const ExtractedMatrix& matrix);
Attributes make_attributes(const DeltaTensor& tensor);
Attributes make_attributes(const ImatrixGap& gap);

template <typename Row>
Value::Array list_attributes(const std::vector<Row>& rows) {
  Value::Array list;
  for (const Row& row : rows) list.emplace_back(make_attributes(row));
  return list;
}

}  // namespace poise
