// The sentences about what formats leave out.
#include "formats/losses.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace poise {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Losses, NameWhatAFormatCannotHold) {
  Model model;
  model.card.model_type = "llama";
  model.card.author = "someone";
  model.card.license = "mit";
  model.vocabulary.emplace();
  Losses losses("npy");
  losses.note_card(model.card);
  losses.note_vocabulary(model, "programs need another file");
  losses.note_names({"a", "b"}, "attribute");
  losses.note_names({}, "attribute");
  EXPECT_THAT(losses.release_sentences(), ElementsAre("npy cannot hold the card (author, license)",
                                                      "npy cannot hold the vocabulary: programs need another file",
                                                      "npy cannot hold 2 attributes (a, b)"));
  Losses none("npy");
  Card card;
  card.model_type = "llama";
  none.note_card(card);
  none.note_vocabulary({}, "programs need another file");
  none.note_other_config_keys({});
  EXPECT_THAT(none.release_sentences(), IsEmpty());
}

}  // namespace
}  // namespace poise
