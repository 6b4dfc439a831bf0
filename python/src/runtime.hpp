// Declares types and functions that the tokenizers, sessions and batches of the extension share.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include <poise/session.hpp>
#include <poise/tokenizer.hpp>
#include <poise/weights.hpp>

#include "face.hpp"

namespace poise::python {

using Tokens = std::vector<TokenId>;
using WeightsPtr = std::shared_ptr<const Weights>;

// Returns text for people: invalid bytes become U+FFFD.
py::str make_shown_text(const std::string& utf8);

// Shares a tokenizer, and finds ids of pieces. Thread-safe.
class PyTokenizer {
 public:
  explicit PyTokenizer(std::shared_ptr<const Tokenizer> tokenizer)
      : tokenizer_(std::move(tokenizer)), ids_(std::make_shared<Ids>()) {}
  const Tokenizer& operator*() const { return *tokenizer_; }
  const Tokenizer* operator->() const { return tokenizer_.get(); }
  const std::shared_ptr<const Tokenizer>& shared() const { return tokenizer_; }

  // Returns the id of the first token that is spelled `piece`, or std::nullopt. Requires: no GIL.
  std::optional<TokenId> find_id(std::string_view piece) const {
    std::call_once(ids_->made, [&] {
      const std::size_t size = tokenizer_->vocabulary().size();
      ids_->by_piece.reserve(size);
      for (std::size_t id = 0; id < size; ++id)
        ids_->by_piece.emplace(tokenizer_->piece(static_cast<TokenId>(id)), static_cast<TokenId>(id));
    });
    const auto found = ids_->by_piece.find(piece);
    return found == ids_->by_piece.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  struct Ids {
    std::once_flag made;
    std::unordered_map<std::string_view, TokenId> by_piece;
  };
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::shared_ptr<Ids> ids_;
};

// Wraps shared weights for pybind11, which has no holders of const objects.
struct PyWeights {
  WeightsPtr weights;
};

// Converts token ids: any iterable of integers, including arrays of one dimension. Throws TypeError for other objects,
// and bad_argument for integers that cannot be ids.
Tokens parse_token_ids(py::handle given);

// Holds a text to encode, or token ids.
using Prompt = std::variant<std::string, Tokens>;
// Converts a str or token ids. Throws what encode_utf8() and parse_token_ids() throw.
Prompt parse_prompt(py::handle given);

// Each function converts a dict that has every option of the class of that name in poise/_types.py. Throws TypeError
// and bad_argument.
GenerateOptions parse_generate_options(const py::dict& given);
SessionOptions parse_session_options(const py::dict& given);
// Converts the index of a layer of hidden states to an index from 0: -1 is the last layer, -2 the one before it. Throws
// TypeError and bad_argument.
std::size_t parse_layer(const py::object& given, const Weights& weights);

void declare_tokenizer(py::module_& module);
void declare_sessions(py::module_& module);
void declare_batches(py::module_& module);
void declare_embedder(py::module_& module);
void declare_perplexity(py::module_& module);

}  // namespace poise::python
