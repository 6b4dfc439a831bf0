// The handles of poise.h. poise_attributes is never defined: a pointer to one is a pointer to the C++ object.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <poise/model.hpp>
#include <poise/session.hpp>
#include <poise/tokenizer.hpp>

#include "capi/face.hpp"
#include "capi/running.hpp"

struct poise_part {
  const poise_tensor* tensor = nullptr;
  const poise::Part* part = nullptr;
  std::optional<poise::Stored> location;
  std::string digest;  // empty: none
};

// A tensor in its model, and its parts, made on first use.
struct poise_tensor {
  const poise_model* model = nullptr;
  std::size_t index = 0;
  mutable std::once_flag once;
  mutable std::vector<poise_part> parts;
};

struct poise_model {
  explicit poise_model(poise::Model model);

  // These throw not_found.
  const poise_tensor& tensor(std::size_t index) const;
  const poise_tensor& tensor(std::string_view name) const;
  const poise::Vocabulary& vocabulary() const;

  poise::Model model;
  poise::Attributes card;
  poise::Attributes config;

 private:
  std::unique_ptr<poise_tensor[]> tensors_;
  std::unordered_map<std::string_view, std::size_t> indices_;  // the keys view the tensors' names in place
};

struct poise_tokenizer {
  poise::Tokenizer tokenizer;
};

struct poise_stream {
  explicit poise_stream(const poise::Tokenizer& tokenizer) : stream(tokenizer) {}
  poise::TextStream stream;
  std::string text;  // the last one handed out
};

struct poise_session {
  poise::Session session;
  poise::capi::Cancel cancel;
};

namespace poise::capi {

inline const poise_attributes* c_attributes(const Attributes& attributes) {
  return reinterpret_cast<const poise_attributes*>(&attributes);
}
inline const Attributes& attributes_at(const poise_attributes* attributes) {
  return *reinterpret_cast<const Attributes*>(&at(attributes, "attributes"));
}

// The tensor of a handle.
inline const Tensor& tensor_at(const poise_tensor* tensor) {
  const poise_tensor& handle = at(tensor, "tensor");
  return handle.model->model.tensors()[handle.index];
}

}  // namespace poise::capi
