// FileBuilder: lays out small ALT files byte by byte from the specification, in the form that a test asks for. It
// shares no code with the code under test.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace poise {

class FileBuilder {
 public:
  enum class Sizes { whole, no_padding, fields, fields_without_ids };

  // How the file is written; the defaults are canonical.
  std::int64_t start_marker = 0x616C7400;
  Sizes sizes = Sizes::whole;
  bool alt_c_parameters = false;  // head_size, rms_norm_eps, rope_theta, initializer_range
  bool alt_c_tokens = false;      // score, type, id, text
  bool alt_c_types = false;       // unknown 1, control 2, byte 4
  bool seq_len = true;
  bool short_end_marker = false;
  bool general = true;
  bool parameters = true;
  bool tokenizer = true;
  bool tensors = true;
  std::string created_at = "2024-07-05";
  std::int32_t sliding_window = 4096;

  // Returns a small, consistent model of one layer.
  std::vector<std::byte> v2();

  bool size_twice = false;       // version 1: the tokenizer's size appears twice
  bool long_end_marker = false;  // version 1: eight bytes
  std::vector<std::byte> v1();

  struct TokenFields {
    std::string text;
    float score;
    std::int32_t type;        // in canonical numbering
    std::int32_t alt_c_type;  // in that of alt.c
  };
  std::vector<TokenFields> tokens = {
      {"<unk>", 0, 3, 1}, {"<s>", 0, 5, 6}, {"</s>", 0, 6, 7}, {"<0x00>", 0, 1, 4}, {"a", -1.5F, 0, 0}};

 private:
  template <typename T>
  void put(T value) {
    for (const std::byte byte : std::bit_cast<std::array<std::byte, sizeof value>>(value)) bytes_.push_back(byte);
  }
  void i32(std::int64_t value) { put(static_cast<std::int32_t>(value)); }
  void i64(std::int64_t value) { put(value); }
  void f32(float value) { put(value); }
  void raw(std::string_view value);
  void text(std::string_view value);
  void pad();
  // Writes the section; `ids` is what Sizes::fields_without_ids leaves out.
  void section(std::int64_t marker, std::int64_t ids, const std::function<void()>& fields);
  void put_parameters();
  void put_tokens_v2();
  void put_tensors_v2();
  void put_tensors_v1();

  std::vector<std::byte> bytes_;
};

}  // namespace poise
