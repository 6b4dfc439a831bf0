// Normalizers: what tokenizer.json does to a text before it is cut.
#pragma once

#include <memory>
#include <string>

#include "tokenizer/pipeline/fields.hpp"

namespace poise {

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  // Requires: well-formed UTF-8. Throws unsupported when the text grows beyond all reason.
  virtual std::string apply(std::string text) const = 0;
};

// A row of normalizers.cpp by the field's "type". Throws invalid_file and unsupported.
std::unique_ptr<const Normalizer> make_normalizer(const Fields& fields);

}  // namespace poise
