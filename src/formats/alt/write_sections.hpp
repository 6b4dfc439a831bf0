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
  // Writes length and bytes. Throws unsupported for invalid UTF-8, a NUL, and a length that does not fit int32.
  void write_text(std::string_view field, std::string_view value);
  // write_text() calls these two functions; records that store length and bytes apart call each of them.
  void write_text_length(std::string_view field, std::string_view value);
  void write_text_bytes(std::string_view value) { fields_.append_text(value); }

  const ByteWriter& fields() const { return fields_; }

 private:
  [[noreturn]] void refuse(std::string_view field, std::string_view problem) const;

  std::string section_;
  ByteWriter fields_;
};

// Writes the tensors section of both versions: counts, then metadata and data, tensor by tensor.
class TensorsSection {
 public:
  // Makes the fields before a tensor's data. Their length must not depend on the scale, since finding the scale may
  // take a pass over the data. Throws unsupported for a tensor that the format cannot hold.
  using Header = std::function<SectionWriter(const Tensor& tensor, const Affine& affine)>;

  // `tensors` are in the order of the file. `blocks` is null for version 1, which has no such counts. Throws what
  // `header` throws. Requires: the tensors outlive this.
  TensorsSection(std::vector<const Tensor*> tensors, Header header, const BlockCounts* blocks);

  // Returns the size of the whole section.
  std::uint64_t count_bytes() const;

  void write(Sink& sink, const Progress& progress) const;

 private:
  std::vector<const Tensor*> tensors_;
  Header header_;
  SectionWriter counts_{"tensors"};  // the fields before the first tensor
  std::uint64_t bytes_ = 0;          // the bytes of all tensors: metadata and data
  std::uint64_t data_bytes_ = 0;     // the bytes of the data alone
};

// Three writers share the code of the sections: for version 2, for version 2 in alt.c's dialect, and for version 1.
// Tables hold their differences.

// Holds the values of the parameters section: zeros for a model without configuration.
struct ParameterFields {
  const Model& model;
  Config config;
};
struct ParameterField {
  std::string_view name;
  void (*write)(SectionWriter& out, std::string_view name, const ParameterFields& fields);
};

// Holds a token of the tokenizer section.
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
  std::optional<ParameterOrder> order = {};  // the order that readers must find in the section
  bool seq_len = true;                       // the tokenizer section has the length of the longest sequence
  std::span<const TokenField> token = {};
  TypeNumbering types = TypeNumbering::canonical;
  SizeRule sizes = SizeRule::whole;  // if it is too_small, the start has SizeRule::fields
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
  std::uint64_t id_bytes_ = 0;  // the bytes of the token ids in the tokenizer section, which alt.c does not count
};

// Files in alt.c's dialect are like those of its Python converter, which its C reader loads. They have only metadata,
// no tensors.

// Returns true if the options ask for alt.c's dialect. Throws bad_argument for an unknown dialect, listing the known
// ones.
bool is_for_alt_c(const WriteOptions& options);

// Writes alt.c's dialect. Throws unsupported for values that the sections cannot hold, and for a model that the C
// reader rejects: without configuration or hidden_act, with no tokens or more than 32000, or with empty or repeated
// tokens.
void write_alt_c(const Model& model, Sink& sink);

// Returns the names of the card's empty fields. alt.c's dialect has "unknown" there, because the C reader rejects empty
// texts.
std::vector<std::string> list_empty_card_fields(const Card& card);

}  // namespace poise::alt
