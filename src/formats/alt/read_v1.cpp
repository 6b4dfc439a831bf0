// Reads ALT version 1: i32 magic 0x616C7463, zeros to 32, then the sections of parameters.cpp, tokens.cpp and tensors.cpp,
// and an i32 end marker.
#include <array>

#include <fmt/format.h>

#include "formats/alt/file_reader.hpp"
#include "formats/alt/parameters.hpp"
#include "formats/alt/read.hpp"
#include "formats/alt/sections.hpp"
#include "formats/alt/tensors.hpp"
#include "formats/alt/tokens.hpp"
#include "io/source_range.hpp"

namespace poise::alt {
namespace {

constexpr std::array kOrder = {Section::parameters, Section::tokenizer, Section::tensors};

}  // namespace

Model read_v1(const Input& input, const ReadOptions&) {
  const SourceRange range(*input.source, SourceRange::Records::scattered);
  FileReader reader(range, "alt v1");
  Model model;
  model.origin = {input.path, "alt-v1", input.source->size(), {input.path}};
  const std::int32_t magic = reader.bytes().i32("magic");
  if (magic != kStartAltc) reader.bytes().fail("magic", fmt::format("expected 0x{:x}, found 0x{:x}", kStartAltc, magic), 0);
  reader.skip_padding();
  std::int32_t context_length = 0;
  read_sections(reader, kOrder, sizeof(std::int32_t), [&](Section section, const OpenSection& open) {
    if (section == Section::parameters) {
      ParametersV1 parameters = read_parameters_v1(reader);
      model.card.model_type = std::move(parameters.model_type);
      model.config = parameters.config;
      context_length = parameters.context_length;
    } else if (section == Section::tokenizer) {
      model.vocabulary = read_tokenizer_v1(reader, open);
      return;
    } else {
      read_tensors_v1(reader, input.source, model);
    }
    reader.close_section(open);
  });
  if (model.vocabulary) model.vocabulary->max_length = context_length;
  // Version 1 does not say it; a model without an output matrix uses the embedding.
  if (model.config) model.config->tie_word_embeddings = model.size() > 0 && model.find("lm_head.weight") == nullptr;
  set_vocab_size(model);
  model.warnings = reader.take_warnings();
  return model;
}

}  // namespace poise::alt
