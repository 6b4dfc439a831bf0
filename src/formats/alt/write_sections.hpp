// Makes the sections of ALT files, checks that the values fit their fields, and writes whole files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <poise/model.hpp>
#include <poise/progress.hpp>

#include "bytes/byte_writer.hpp"
#include "formats/alt/layout.hpp"
#include "formats/format.hpp"
#include "io/sink.hpp"

namespace poise::alt {

struct BlockCounts;  // formats/alt/sections.hpp

class SectionWriter {
 public:
  // `section`, such as "parameters", is in every error.
  explicit SectionWriter(std::string section) : section_(std::move(section)) {}

  // write_i32() and write_count() throw unsupported, naming section and field, for a value that does not fit int32.
  void write_i32(std::string_view field, std::int64_t value);
  void write_count(std::string_view field, std::uint64_t value);
  void write_i64(std::uint64_t value) { fields_.append_u64(value); }
  void write_f32(float value) { fields_.append_f32(value); }
  void write_flag(bool value) { fields_.append_u8(value ? 1 : 0); }
  // Writes the length as int32, and the bytes. Throws unsupported for invalid UTF-8, a NUL, and a length that does not
  // fit int32.
  void write_text(std::string_view field, std::string_view value);
  // These two functions are the steps of write_text(), for records with other fields between the length and the bytes.
  // The first one makes the checks of write_text().
  void write_text_length(std::string_view field, std::string_view value);
  void write_text_bytes(std::string_view value) { fields_.append_text(value); }

  const ByteWriter& fields() const { return fields_; }

 private:
  [[noreturn]] void refuse(std::string_view field, std::string_view problem) const;

  std::string section_;
  ByteWriter fields_;
};

// Writes the tensors section of either version: counts, then the fields and data of each tensor in turn.
class TensorsSection {
 public:
  // Makes the fields before a tensor's data. Throws unsupported for a tensor that the format cannot hold. The length of
  // the fields must not depend on `affine`: the constructor measures it with Affine{}, because finding a scale may take
  // a pass over the data.
  using Header = std::function<SectionWriter(const Tensor& tensor, const Affine& affine)>;

  // `tensors` are in the order of the file. `blocks` is null for version 1, which has no block_count and unique_count.
  // Throws the errors of `header`. Requires: the tensors outlive this.
  TensorsSection(std::vector<const Tensor*> tensors, Header header, const BlockCounts* blocks);

  // Returns the size of the whole section in bytes: marker, size, fields, data and padding.
  std::uint64_t count_bytes() const;

  void write(Sink& sink, const Progress& progress) const;

 private:
  std::vector<const Tensor*> tensors_;
  Header header_;
  SectionWriter counts_{"tensors"};  // the fields before the first tensor
  std::uint64_t bytes_ = 0;          // the bytes of all tensors: fields and data
  std::uint64_t data_bytes_ = 0;     // the bytes of the data alone
};

// Holds the vocabulary that the tokenizer section stores, and how it differs from the model's.
struct WrittenVocabulary {
  Vocabulary vocabulary;
  bool ranked = false;                  // its scores follow from the merges of a tokenizer.json
  std::vector<std::string> lost_steps;  // as in SentencePieceForm
  bool prepend_first = false;
  std::vector<std::size_t> renamed;  // the ids of the tokens that get a text of their own
};

// Returns the vocabulary with scores for merges, with ids that only config.json has, and with each text once. Requires:
// the model has a vocabulary. Throws what find_special_around() throws.
WrittenVocabulary make_written_vocabulary(const Model& model);

// Three writers share the code of the sections: for version 2, for version 2 in alt.c's dialect, and for version 1.
// Tables hold their differences.

// Holds a model and the configuration that is written: the model's, or else make_empty_config().
struct ParameterFields {
  const Model& model;
  Config config;
};
struct ParameterField {
  std::string_view name;
  void (*write)(SectionWriter& out, std::string_view name, const ParameterFields& fields);
};

// Holds the vocabulary and id of a token that is written, and the numbering for its type.
struct TokenFields {
  const Vocabulary& vocabulary;
  std::size_t id;
  TypeNumbering types;
};
struct TokenField {
  void (*write)(SectionWriter& out, const TokenFields& token);
};

// Describes the files of one of the three writers.
struct WrittenForm {
  int version = 2;
  bool general = true;               // has a general section
  std::string_view empty_text = {};  // replaces empty texts of the general section
  std::span<const ParameterField> parameters = {};
  std::optional<ParameterOrder> order = {};  // the order of `parameters` that readers must find; none: not checked
  bool seq_len = true;                       // the tokenizer section has seq_len, the longest sequence in tokens
  std::span<const TokenField> token = {};
  TypeNumbering types = TypeNumbering::canonical;
  SizeRule sizes = SizeRule::whole;  // if too_small, all sizes except the tokenizer section's are SizeRule::fields
};
extern const WrittenForm kVersion2;
extern const WrittenForm kVersion2AltC;
extern const WrittenForm kVersion1;

class FileWriter {
 public:
  // Makes all sections except the tensors'. Throws unsupported for values that they cannot hold.
  FileWriter(const Model& model, const WrittenForm& form);

  // Returns the size of the whole file.
  std::uint64_t count_bytes(const TensorsSection& tensors) const;
  // Writes the file. `tensors` is null for alt.c's dialect, which has none.
  void write(Sink& sink, const TensorsSection* tensors, const Progress& progress) const;

 private:
  void write_before_tensors(Sink& sink) const;

  const WrittenForm& form_;
  std::optional<SectionWriter> general_;
  SectionWriter parameters_;
  SectionWriter tokenizer_;
  std::uint64_t id_bytes_ = 0;  // the bytes of the token ids, which SizeRule::too_small does not count
};

// Files in alt.c's dialect are like those that alt.c's Python converter writes and its C reader loads. They have no
// tensors.

// Returns true if the options ask for alt.c's dialect, and false if they ask for none. Throws bad_argument for another
// dialect.
bool is_for_alt_c(const WriteOptions& options);

// Writes alt.c's dialect. Throws unsupported for values that the sections cannot hold, and for a model that the C
// reader rejects: without configuration or hidden_act, with no tokens or more than 32000, or with empty or repeated
// tokens.
void write_alt_c(const Model& model, Sink& sink);

}  // namespace poise::alt
