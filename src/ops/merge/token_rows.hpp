// Arranges the rows of merged models by the tokens of the result (tokenizer_source of mergekit).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <poise/merge.hpp>
#include <poise/model.hpp>
#include <poise/tokenizer.hpp>

namespace poise {

// Holds the vocabulary of a merge's result, and where its tokens are in the models.
class TokenRows {
 public:
  // Maps paths in the recipe to models.
  using Models = std::map<std::filesystem::path, std::shared_ptr<const Model>>;

  // Reads only headers. `reference` gives the result its names and configuration. Throws bad_argument if
  // tokenizer_source names none of the models, and for a model without a tokenizer or without rows for tokens;
  // unsupported for tokenizers of different kinds. Requires: the models outlive this.
  TokenRows(const MergeRecipe& recipe, const Models& models, const Model& reference);

  // Returns the axis with a row for each token, if the tensor of the reference has one.
  std::optional<std::size_t> find_axis(const std::string& tensor) const;

  // Returns the number of rows for tokens that a model has.
  std::uint64_t count_rows(const Model& model) const { return tokens_.at(&model).rows; }

  // Refers to a model's tensor with rows for tokens.
  struct Input {
    const Model* model;
    const Tensor* tensor;
  };
  // Returns the tensor of `own` with the rows of the result's tokens. If the model lacks a row, the base's row replaces
  // it; if the base lacks it, too, the mean of the first `in_slice` inputs' rows; if these lack it, the mean of the
  // other inputs' rows. Tensors whose rows stay keep their layout, others are float32. Throws unsupported, with the
  // tensor's name, if no input has a token's row, or if rows without numbers would move. Requires: `own` is one of the
  // inputs. The first `in_slice` inputs are those of the slice and of the base. Each model is there once. Shapes have
  // count_rows() rows, and are equal in the other axes.
  Tensor arrange(const Model& own, std::size_t axis, const std::vector<Input>& inputs, std::size_t in_slice) const;

  // Sets the vocabulary of the result, its size, and the special ids of configurations.
  void change_header(Model& made) const;

 private:
  struct Tokens {
    std::vector<TokenId> ids;  // the id of each token of the result; -1: the model lacks it
    std::uint64_t rows;
  };

  const Model* reference_;
  const Model* base_ = nullptr;    // null: the recipe has none
  const Model* source_ = nullptr;  // has the tokenizer
  bool has_other_tokens_ = false;  // the vocabulary differs from that of the source
  Vocabulary vocabulary_;
  std::unordered_map<const Model*, Tokens> tokens_;
  std::unordered_map<std::string, std::size_t> axes_;  // by the names of the reference's tensors
  std::vector<std::string> notes_;
};

}  // namespace poise
