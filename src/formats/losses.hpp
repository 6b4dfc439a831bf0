// Makes sentences for the user about the parts of a model that a format leaves out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <poise/model.hpp>

namespace poise {

// Collects sentences about what a format cannot hold.
class Losses {
 public:
  // Begins each sentence with `format`, such as "alt" or "a Tiny Llama weight file".
  explicit Losses(std::string_view format) : format_(format) {}

  // Adds a sentence such as "alt cannot hold the chat template".
  void note(std::string_view what);
  void note_if(bool lost, std::string_view what) {
    if (lost) note(what);
  }
  // Adds a sentence such as "alt cannot hold 4 attributes (a, b, c, d)"; adds none if there are no names. `owner`
  // follows the noun: " of config.json".
  void note_names(const std::vector<std::string>& names, std::string_view noun, std::string_view owner = {});
  // Adds a sentence as it is, without "<format> cannot hold" in front.
  void add_sentence(std::string sentence) { sentences_.push_back(std::move(sentence)); }

  // Each function adds a sentence if the model has the part in the function's name. Call it for a format that lacks
  // this part. `instead` ends the sentence about the vocabulary: "programs take it from vocab.txt and merges.txt".
  void note_card(const Card& card);  // except model_type
  void note_vocabulary(const Model& model, std::string_view instead);
  void note_other_config_keys(const Model& model);

  std::vector<std::string> release_sentences() { return std::move(sentences_); }

 private:
  std::string_view format_;
  std::vector<std::string> sentences_;
};

// Returns the losses of a format that holds only names, shapes and elements: card, configuration, vocabulary, and
// attributes of the model and its tensors, one sentence each.
std::vector<std::string> list_metadata_losses(const Model& model, std::string_view format);

// Returns the same losses without "<format> cannot hold": "the card".
std::vector<std::string> list_lost_metadata(const Model& model);

// Returns "the attributes of tensors (a, b)" if tensors have any; else an empty text.
std::string describe_tensor_attributes(const Model& model);

// Returns the fields of the card that have a value, except model_type.
std::vector<std::string> list_lost_card_fields(const Card& card);

// Throws unsupported for a tensor that a format cannot hold. The message has the name of the format ("alt"), how the
// tensor is stored, and `why` the format cannot hold it, which may be empty. The error has remedies.
[[noreturn]] void refuse_tensor(std::string_view format, const Tensor& tensor, std::string_view why = {});

// Throws unsupported for a model whose config.json has keys that change the computation, for formats that hold no such
// keys.
void refuse_config_effects(std::string_view format, const Model& model);

}  // namespace poise
