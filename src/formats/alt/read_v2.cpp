// Reads ALT version 2: i64 start marker 0x616C7400, i64 section_size (32), i32 magic_version (2), i32 magic_alignment
// (32), then the sections of general.cpp, parameters.cpp, tokens.cpp and tensors.cpp.
#include <array>

#include <fmt/format.h>

#include "family/families.hpp"
#include "formats/alt/dialect.hpp"
#include "formats/alt/file_reader.hpp"
#include "formats/alt/general.hpp"
#include "formats/alt/parameters.hpp"
#include "formats/alt/read.hpp"
#include "formats/alt/sections.hpp"
#include "formats/alt/tensors.hpp"
#include "formats/alt/tokens.hpp"
#include "io/source_range.hpp"

namespace poise::alt {
namespace {

constexpr std::array kOrder = {Section::general, Section::parameters, Section::tokenizer, Section::tensors};

void read_start(FileReader& reader) {
  ByteReader& bytes = reader.bytes();
  const auto scope = bytes.scope("start");
  const std::int64_t marker = bytes.i64("section_marker");
  if (marker != kStartV2 && marker != kStartAltc)
    bytes.fail("section_marker", fmt::format("expected 0x{:x}, found 0x{:x}", kStartV2, marker), 0);
  if (marker == kStartAltc)
    reader.warn("section_marker",
                fmt::format("expected 0x{:x}, found 0x{:x}, the magic of version 1", kStartV2, marker), 0);
  const OpenSection section{0, reader.count64("section_size")};
  const std::int32_t version = bytes.i32("magic_version");
  if (version != 2) bytes.fail("magic_version", fmt::format("expected 2, found {}", version), 16);
  const std::int32_t alignment = bytes.i32("magic_alignment");
  if (alignment != static_cast<std::int32_t>(kAlignment))
    bytes.fail("magic_alignment", fmt::format("expected {}, found {}", kAlignment, alignment), 20);
  reader.close_section(section);
}

}  // namespace

Model read_v2(const Input& input, const ReadOptions&) {
  const SourceRange range(*input.source, SourceRange::Records::scattered);
  FileReader reader(range, "alt v2");
  Model model;
  model.origin = {input.path, "alt-v2", input.source->size(), {input.path}};
  read_start(reader);
  read_sections(reader, kOrder, sizeof(std::int64_t), [&](Section section, const OpenSection& open) {
    switch (section) {
      case Section::general: model.card = read_general(reader); break;
      case Section::parameters: model.config = read_parameters_v2(reader); break;
      case Section::tokenizer: model.vocabulary = read_tokenizer_v2(reader, open); return;
      case Section::tensors: read_tensors_v2(reader, input.source, model); break;
    }
    reader.close_section(open);
  });
  set_vocab_size(model);
  model.warnings = reader.take_warnings();
  if (const std::string_view dialect = name(reader.dialect()); !dialect.empty()) {
    const std::string text =
        fmt::format("alt v2: this is the dialect of {}; converting it writes the canonical form", dialect);
    model.warnings.insert(model.warnings.begin(), {Severity::warning, text, input.path.string(), 0});
  }
  return model;
}

void set_vocab_size(Model& model) {
  if (!model.config) return;
  for (const Family* family : families()) {
    const Tensor* embedding = model.find(family->embedding);
    if (embedding == nullptr || embedding->shape.size() != 2) continue;
    model.config->vocab_size = static_cast<std::int64_t>(embedding->shape[0]);
    return;
  }
  if (model.vocabulary) model.config->vocab_size = static_cast<std::int64_t>(model.vocabulary->size());
}

}  // namespace poise::alt
