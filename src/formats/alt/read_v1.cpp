// Reads ALT version 1: i32 magic 0x616C7463, zeros to 32, then the sections of parameters.cpp, tokens.cpp and
// tensors.cpp, and an i32 end marker.
#include <array>

#include <fmt/format.h>

#include "family/families.hpp"
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

void compare_data_type(FileReader& reader, const ParametersV1& parameters, const Model& model) {
  const std::int32_t expected = prevailing_type(model);
  if (parameters.data_type == expected) return;
  const auto scope = reader.bytes().scope(info(Section::parameters).name);
  reader.warn("data_type",
              fmt::format("expected {}, the type of most elements, found {}", expected, parameters.data_type),
              parameters.data_type_at);
}

}  // namespace

Model read_v1(const Input& input, const ReadOptions&) {
  const SourceRange range(*input.source, SourceRange::Records::scattered);
  FileReader reader(range, "alt v1");
  Model model;
  model.origin = {input.path, "alt-v1", input.source->size(), {input.path}};
  const std::int32_t magic = reader.bytes().i32("magic");
  if (magic != kStartAltc)
    reader.bytes().fail("magic", fmt::format("expected 0x{:x}, found 0x{:x}", kStartAltc, magic), 0);
  reader.skip_padding();
  std::optional<ParametersV1> parameters;
  read_sections(reader, kOrder, sizeof(std::int32_t), [&](Section section, const OpenSection& open) {
    if (section == Section::parameters) {
      parameters = read_parameters_v1(reader);
      model.card.model_type = parameters->model_type;
      model.config = parameters->config;
    } else if (section == Section::tokenizer) {
      model.vocabulary = read_tokenizer_v1(reader, open);
      return;
    } else {
      read_tensors_v1(reader, input.source, model);
    }
    reader.close_section(open);
  });
  if (model.vocabulary && parameters) model.vocabulary->max_length = parameters->context_length;
  if (parameters) compare_data_type(reader, *parameters, model);
  // Version 1 has no such field; a model without an output matrix uses the embedding.
  if (model.config)
    model.config->tie_word_embeddings = model.size() > 0 && model.find(family_of(model).output) == nullptr;
  set_vocab_size(model);
  model.warnings = reader.take_warnings();
  return model;
}

}  // namespace poise::alt
