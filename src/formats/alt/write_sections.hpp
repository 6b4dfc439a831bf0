// ALT's sections for all three writers: each is defined once, and the writers' spellings are data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <poise/model.hpp>
#include <poise/progress.hpp>

#include "formats/alt/dialect.hpp"
#include "formats/alt/section_writer.hpp"
#include "formats/alt/write_tensors.hpp"

namespace poise::alt {

// A text of the general section.
struct CardField {
  std::string_view name;
  std::string Card::*text;
};
std::span<const CardField> card_fields();

// The parameters section, with zeros for a model without configuration.
struct Parameters {
  const Model& model;
  Config config;
};
struct ParameterField {
  std::string_view name;
  void (*write)(SectionWriter& out, std::string_view name, const Parameters& of);
};

// A token of the tokenizer section.
struct Token {
  const Vocabulary& vocabulary;
  std::size_t id;
  TypeNumbering types;
};
struct TokenField {
  void (*write)(SectionWriter& out, const Token& token);
};

// What differs between the writers' files.
struct WrittenForm {
  int version = 2;
  bool general = true;               // has a general section
  std::string_view empty_text = {};  // replaces empty texts of the general section
  std::span<const ParameterField> parameters = {};
  std::optional<ParameterOrder> order = {};  // the order that readers must find in the section
  bool seq_len = true;                       // the tokenizer section has the length of the longest sequence
  std::span<const TokenField> token = {};
  TypeNumbering types = TypeNumbering::canonical;
  SizeRule sizes = SizeRule::whole;  // or too_small, with the start marker's as fields
};
extern const WrittenForm kVersion2;
extern const WrittenForm kVersion2AltC;
extern const WrittenForm kVersion1;

// The tensors section, and its first fields.
struct Tensors {
  const TensorsSection& section;
  const SectionWriter& counts;
};

class FileWriter {
 public:
  // Makes all sections except the tensors'. Throws unsupported, naming section and field, for what they cannot hold.
  FileWriter(const Model& model, const WrittenForm& form);

  // Of the whole file. alt.c's dialect has no tensors.
  std::uint64_t bytes(const std::optional<Tensors>& tensors) const;
  void write(Sink& sink, const std::optional<Tensors>& tensors, const Progress& progress) const;

 private:
  void write_before_tensors(Sink& sink) const;

  const WrittenForm& form_;
  std::optional<SectionWriter> general_;
  SectionWriter parameters_;
  SectionWriter tokenizer_;
  std::uint64_t id_bytes_ = 0;  // bytes of ids in the tokenizer section
};

}  // namespace poise::alt
