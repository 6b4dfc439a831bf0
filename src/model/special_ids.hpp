// A vocabulary's words beside its tokens: what one with changed tokens begins with.
#pragma once

#include <poise/model.hpp>

namespace poise {

// No tokens; the ids of BOS, EOS, padding and the unknown token, and the longest sequence, are those of another
// vocabulary.
inline Vocabulary with_special_ids_of(const Vocabulary& other) {
  Vocabulary result;
  result.bos_id = other.bos_id;
  result.eos_id = other.eos_id;
  result.pad_id = other.pad_id;
  result.unk_id = other.unk_id;
  result.max_length = other.max_length;
  return result;
}

}  // namespace poise
