// The handles of poise.h. Those that are borrowed (poise_attributes, poise_blob) are never defined: a pointer to one is a pointer to
// the C++ object under another name.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <poise/model.hpp>
#include <poise/session.hpp>
#include <poise/tokenizer.hpp>

#include "capi/face.hpp"

// A tensor's parts as C sees them, made when they are first asked for.
struct poise_parts {
  std::once_flag once;
  std::vector<std::string> encodings;
  std::vector<poise_part> parts;
};

struct poise_model {
  explicit poise_model(poise::Model model);

  // These throw not_found.
  const poise::Tensor& tensor(std::size_t index) const;
  std::size_t index_of(std::string_view name) const;
  const poise::Vocabulary& vocabulary() const;

  poise::Model model;
  poise::Attributes card;
  poise::Attributes config;
  std::unique_ptr<poise_parts[]> parts;  // one for each tensor

 private:
  std::unordered_map<std::string_view, std::size_t> indices_;  // the keys view the tensors' names in place
};

struct poise_tokenizer {
  poise::Tokenizer tokenizer;
};

struct poise_stream {
  explicit poise_stream(const poise::Tokenizer& tokenizer) : stream(tokenizer) {}
  poise::TextStream stream;
  std::string text;  // that was handed out last
};

struct poise_session {
  poise::Session session;
};

namespace poise::capi {

inline const poise_attributes* c_attributes(const Attributes& attributes) { return reinterpret_cast<const poise_attributes*>(&attributes); }
inline const Attributes& attributes_at(const poise_attributes* attributes) { return *reinterpret_cast<const Attributes*>(&at(attributes, "attributes")); }

inline const poise_blob* c_blob(const Blob& blob) { return reinterpret_cast<const poise_blob*>(&blob); }
inline const Blob& blob_at(const poise_blob* blob) { return *reinterpret_cast<const Blob*>(&at(blob, "blob")); }

}  // namespace poise::capi
