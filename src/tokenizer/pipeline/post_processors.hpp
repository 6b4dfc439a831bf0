// Post-processors: put special tokens around a text's own.
#pragma once

#include <memory>
#include <vector>

#include <poise/tokenizer.hpp>

#include "tokenizer/pipeline/fields.hpp"

namespace poise {

class PostProcessor {
 public:
  virtual ~PostProcessor() = default;
  virtual std::vector<TokenId> apply(std::vector<TokenId> tokens) const = 0;
};

// Selects a row of post_processors.cpp by the field's "type". Throws invalid_file, also for ids outside the vocabulary,
// and unsupported.
std::unique_ptr<const PostProcessor> make_post_processor(const Fields& fields, std::size_t vocabulary_size);

}  // namespace poise
