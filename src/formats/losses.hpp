// Losses: what a format leaves out of a model, as sentences.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <poise/model.hpp>

namespace poise {

class Losses {
 public:
  // Begins the sentences with `format`: "alt", "a Tiny Llama weight file".
  explicit Losses(std::string_view format) : format_(format) {}

  // Notes "alt cannot hold the chat template".
  void note(std::string_view what);
  void note_if(bool lost, std::string_view what) {
    if (lost) note(what);
  }
  // Notes "alt cannot hold 4 attributes (a, b, c, d)"; without names, makes no sentence.
  void note_names(const std::vector<std::string>& names, std::string_view noun, std::string_view of = {});
  // Adds a whole sentence.
  void add_sentence(std::string sentence) { sentences_.push_back(std::move(sentence)); }

  // Note losses of formats that lack these parts.
  void note_card(const Card& card);  // except model_type
  void note_vocabulary(const Model& model, std::string_view instead);
  void note_other_config_keys(const Model& model);

  std::vector<std::string> take_sentences() { return std::move(sentences_); }

 private:
  std::string_view format_;
  std::vector<std::string> sentences_;
};

// Reports losses of a format that holds only names, shapes and elements: card, configuration, vocabulary, and
// attributes of the model and its tensors, one sentence each.
std::vector<std::string> list_metadata_losses(const Model& model, std::string_view format);

// Returns the losses that list_metadata_losses() reports, without the beginnings of its sentences: "the card".
std::vector<std::string> list_lost_metadata(const Model& model);

// Returns the fields of the card that have a value, except model_type.
std::vector<std::string> list_card_fields(const Card& card);

// Throws unsupported for a tensor that a format, which begins the sentence ("alt"), cannot hold, with the tensor's
// storage and remedies. `why` may add a reason.
[[noreturn]] void refuse_tensor(std::string_view format, const Tensor& tensor, std::string_view why = {});

// Throws unsupported for a model whose config.json has keys that change the model. For formats without such keys.
void require_no_effects(std::string_view format, const Model& model);

}  // namespace poise
