// Reads both versions of ALT. Version 2 begins with i64 start marker 0x616C7400, i64 section_size (32), i32
// magic_version (2), i32 magic_alignment (32); parameters.cpp, tokens.cpp and tensors.cpp have its sections.
#include <array>

#include <fmt/format.h>

#include "family/families.hpp"
#include "formats/alt/alt.hpp"
#include "formats/alt/file_reader.hpp"
#include "formats/alt/layout.hpp"
#include "formats/alt/sections.hpp"
#include "io/source_range.hpp"

namespace poise::alt {
namespace {

constexpr std::array kSectionsV2 = {Section::general, Section::parameters, Section::tokenizer, Section::tensors};

void read_start(FileReader& reader) {
  ByteReader& bytes = reader.bytes();
  const auto scope = bytes.open_scope("start");
  const std::int64_t marker = bytes.read_i64("section_marker");
  if (marker != kStartV2 && marker != kStartAltc)
    bytes.fail("section_marker", fmt::format("expected 0x{:x}, found 0x{:x}", kStartV2, marker), 0);
  if (marker == kStartAltc)
    reader.warn("section_marker",
                fmt::format("expected 0x{:x}, found 0x{:x}, the magic of version 1", kStartV2, marker), 0);
  const OpenSection section{0, reader.read_count64("section_size")};
  const std::int32_t version = bytes.read_i32("magic_version");
  if (version != 2) bytes.fail("magic_version", fmt::format("expected 2, found {}", version), 16);
  const std::int32_t alignment = bytes.read_i32("magic_alignment");
  if (alignment != static_cast<std::int32_t>(kAlignment))
    bytes.fail("magic_alignment", fmt::format("expected {}, found {}", kAlignment, alignment), 20);
  reader.close_section(section);
}

}  // namespace

Model read_v2(const Input& input, const ReadOptions&) {
  const SourcePtr source = make_unmapped_source(input.source);
  FileReader reader(*source, "alt v2");
  Model model;
  model.origin = {input.path, "alt-v2", input.source->size(), {input.path}};
  read_start(reader);
  read_sections(reader, kSectionsV2, sizeof(std::int64_t), [&](Section section, const OpenSection& open) {
    switch (section) {
      case Section::general: model.card = read_general(reader); break;
      case Section::parameters: model.config = read_parameters_v2(reader); break;
      case Section::tokenizer: model.vocabulary = read_tokenizer_v2(reader, open); return;
      case Section::tensors: read_tensors_v2(reader, input.source, model); break;
    }
    reader.close_section(open);
  });
  set_vocab_size(model);
  model.warnings = reader.release_warnings();
  if (const std::string_view dialect = find_program_name(reader.dialect()); !dialect.empty()) {
    const std::string text =
        fmt::format("alt v2: this is the dialect of {}; converting it writes the canonical form", dialect);
    model.warnings.insert(model.warnings.begin(), {Severity::warning, text, input.path.string(), 0});
  }
  return model;
}

void set_vocab_size(Model& model) {
  if (!model.config) return;
  for (const Family* family : list_families()) {
    const Tensor* embedding = model.find(family->embedding);
    if (embedding == nullptr || embedding->shape.size() != 2) continue;
    model.config->vocab_size = static_cast<std::int64_t>(embedding->shape[0]);
    return;
  }
  if (model.vocabulary) model.config->vocab_size = static_cast<std::int64_t>(model.vocabulary->size());
}

// Version 1 begins with i32 magic 0x616C7463 and zeros up to byte 32, has sections like those of version 2, and ends
// with an i32 end marker.

namespace {

constexpr std::array kSectionsV1 = {Section::parameters, Section::tokenizer, Section::tensors};

void warn_of_wrong_data_type(FileReader& reader, const ParametersV1& parameters, const Model& model) {
  const std::int32_t expected = find_prevailing_type(model);
  if (parameters.data_type == expected) return;
  const auto scope = reader.bytes().open_scope(get_section_info(Section::parameters).name);
  reader.warn("data_type",
              fmt::format("expected {}, the type of most elements, found {}", expected, parameters.data_type),
              parameters.data_type_at);
}

}  // namespace

Model read_v1(const Input& input, const ReadOptions&) {
  const SourcePtr source = make_unmapped_source(input.source);
  FileReader reader(*source, "alt v1");
  Model model;
  model.origin = {input.path, "alt-v1", input.source->size(), {input.path}};
  const std::int32_t magic = reader.bytes().read_i32("magic");
  if (magic != kStartAltc)
    reader.bytes().fail("magic", fmt::format("expected 0x{:x}, found 0x{:x}", kStartAltc, magic), 0);
  reader.skip_padding();
  std::optional<ParametersV1> parameters;
  read_sections(reader, kSectionsV1, sizeof(std::int32_t), [&](Section section, const OpenSection& open) {
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
  if (parameters) warn_of_wrong_data_type(reader, *parameters, model);
  // Version 1 does not store tie_word_embeddings; a model without an output matrix uses the embedding.
  if (model.config)
    model.config->tie_word_embeddings = model.size() > 0 && model.find(find_family_or_llama(model).output) == nullptr;
  set_vocab_size(model);
  model.warnings = reader.release_warnings();
  return model;
}

}  // namespace poise::alt
