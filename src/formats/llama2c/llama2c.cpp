// Reads the header of a file of llama2.c, and lists its arrays. llama2c.hpp has the layout. Source: export.py of
// github.com/karpathy/llama2.c (legacy_export(), version1_export(), version2_export()).
#include "formats/registry.hpp"

#include <fmt/format.h>

#include "bytes/checked.hpp"
#include "bytes/little_endian.hpp"
#include "family/check.hpp"
#include "family/families.hpp"
#include "formats/llama2c/llama2c.hpp"
#include "model/limits.hpp"

namespace poise::llama2c {
namespace {

std::int64_t read_size(ByteReader& reader, std::string_view field, std::int64_t most = kMaxModelSize) {
  const std::uint64_t at = reader.position();
  const std::int64_t size = reader.read_i32(field);
  if (size < 1 || size > most) reader.fail(field, fmt::format("{}, expected 1 to {}", size, most), at);
  return size;
}

// Reads the seven numbers of the header. `is_signed` is true for version 0, in which a negative vocab_size means that
// there is an output matrix.
Config read_config(ByteReader& reader, bool is_signed) {
  const std::uint64_t at = reader.position();
  Config config;
  config.hidden_size = read_size(reader, "dim");
  config.intermediate_size = read_size(reader, "hidden_dim");
  config.num_hidden_layers = read_size(reader, "n_layers", kMaxLayers);
  config.num_attention_heads = read_size(reader, "n_heads", kMaxLayers);
  config.num_key_value_heads = read_size(reader, "n_kv_heads", kMaxLayers);
  const std::uint64_t vocabulary_at = reader.position();
  const std::int64_t vocabulary = reader.read_i32("vocab_size");
  if (vocabulary == 0 || vocabulary < -kMaxModelSize || (vocabulary < 0 && !is_signed))
    reader.fail("vocab_size", fmt::format("{}, expected 1 to {}", vocabulary, kMaxModelSize), vocabulary_at);
  config.vocab_size = vocabulary < 0 ? -vocabulary : vocabulary;
  config.tie_word_embeddings = vocabulary > 0;
  config.max_position_embeddings = read_size(reader, "seq_len");
  if (config.hidden_size % config.num_attention_heads != 0)
    reader.fail("n_heads", fmt::format("{} heads do not divide {}", config.num_attention_heads, config.hidden_size),
                at);
  config.head_dim = config.hidden_size / config.num_attention_heads;
  config.hidden_act = "silu";
  config.rope_theta = 10000.0F;
  config.rms_norm_eps = 1e-5F;
  if (config.head_dim % 2 != 0)
    reader.fail("n_heads",
                fmt::format("heads have {} dimensions, an odd number, expected an even one", config.head_dim), at);
  if (const auto faults = check_config(config); !faults.empty()) reader.fail("configuration", faults.front(), at);
  return config;
}

}  // namespace

Header read_header(ByteReader& reader) {
  const auto scope = reader.open_scope("header");
  Header header;
  const std::uint64_t begin = reader.position();
  if (reader.read_u32("magic number or dim") != kMagic) {
    reader.seek(begin);
    header.config = read_config(reader, true);
    header.data_begin = kHeaderBytes0;
    return header;
  }
  const std::uint64_t version_at = reader.position();
  header.version = reader.read_i32("version");
  if (header.version != 1 && header.version != 2)
    throw Error(ErrorKind::unsupported,
                fmt::format("llama2c: header: version: {} is not known; known are 0, 1 and 2", header.version),
                reader.path(), version_at);
  header.config = read_config(reader, false);
  const std::uint64_t shared_at = reader.position();
  const std::uint8_t shared = reader.read_u8("shared_classifier");
  if (shared > 1) reader.fail("shared_classifier", fmt::format("{}, expected 0 or 1", shared), shared_at);
  header.config.tie_word_embeddings = shared == 1;
  if (header.version == 2) {
    const std::uint64_t size_at = reader.position();
    header.group_size = static_cast<std::uint64_t>(read_size(reader, "group_size"));
    for (const std::int64_t row : {header.config.hidden_size, header.config.intermediate_size}) {
      if (static_cast<std::uint64_t>(row) % header.group_size != 0)
        throw Error(ErrorKind::unsupported,
                    fmt::format("llama2c: header: group_size: rows of {} elements are not whole groups of {}", row,
                                header.group_size),
                    reader.path(), size_at);
    }
  }
  while (reader.position() < kHeaderBytes) {
    const std::uint64_t at = reader.position();
    if (reader.read_u8("padding") != 0) reader.fail("padding", "expected zero bytes", at);
  }
  header.data_begin = kHeaderBytes;
  return header;
}

std::vector<FileArray> list_arrays(const Header& header) {
  const Config& config = header.config;
  const auto dim = static_cast<std::uint64_t>(config.hidden_size);
  const auto hidden = static_cast<std::uint64_t>(config.intermediate_size);
  const auto key_rows = static_cast<std::uint64_t>(config.num_key_value_heads * config.head_dim);
  const auto vocabulary = static_cast<std::uint64_t>(config.vocab_size);
  const FileArray embedding{"model.embed_tokens.weight", "token_embedding_table", false, true, false, vocabulary, dim};
  const FileArray output{"lm_head.weight", "wcls", false, true, false, vocabulary, dim};
  const FileArray norm{"model.norm.weight", "rms_final_weight", false, false, false, 1, dim};
  const FileArray attention_norm{"input_layernorm.weight", "rms_att_weight", true, false, false, 1, dim};
  const FileArray mlp_norm{"post_attention_layernorm.weight", "rms_ffn_weight", true, false, false, 1, dim};
  const FileArray q{"self_attn.q_proj.weight", "wq", true, true, true, dim, dim};
  const FileArray k{"self_attn.k_proj.weight", "wk", true, true, true, key_rows, dim};
  const FileArray v{"self_attn.v_proj.weight", "wv", true, true, false, key_rows, dim};
  const FileArray o{"self_attn.o_proj.weight", "wo", true, true, false, dim, dim};
  const FileArray gate{"mlp.gate_proj.weight", "w1", true, true, false, hidden, dim};
  const FileArray down{"mlp.down_proj.weight", "w2", true, true, false, dim, hidden};
  const FileArray up{"mlp.up_proj.weight", "w3", true, true, false, hidden, dim};
  std::vector<FileArray> arrays;
  if (header.version == 0) {
    const auto positions = static_cast<std::uint64_t>(config.max_position_embeddings);
    const FileArray rotary{"", "", false, false, false, positions, static_cast<std::uint64_t>(config.head_dim / 2)};
    arrays = {embedding, attention_norm, q, k, v, o, mlp_norm, gate, down, up, norm, rotary, rotary};
  } else {
    arrays = {attention_norm, mlp_norm, norm, embedding, q, k, v, o, gate, down, up};
  }
  if (!config.tie_word_embeddings) arrays.push_back(output);
  return arrays;
}

std::optional<std::uint64_t> compute_file_size(const Header& header) {
  std::uint64_t size = header.data_begin;
  for (const FileArray& array : list_arrays(header)) {
    const auto elements = checked_mul(array.rows, array.columns);
    const bool has_codes = header.version == 2 && array.is_matrix;
    auto bytes = elements ? checked_mul(*elements, has_codes ? 1 : 4) : std::nullopt;
    if (bytes && has_codes) bytes = checked_add(*bytes, *elements / header.group_size * 4);
    if (bytes && array.is_of_layers)
      bytes = checked_mul(*bytes, static_cast<std::uint64_t>(header.config.num_hidden_layers));
    const auto sum = bytes ? checked_add(size, *bytes) : std::nullopt;
    if (!sum) return std::nullopt;
    size = *sum;
  }
  return size;
}

std::optional<std::uint64_t> find_version_0_size(const Source& source) {
  if (source.size() < kHeaderBytes0) return std::nullopt;
  try {
    ByteReader reader(source, "llama2c");
    const Header header = read_header(reader);
    return header.version == 0 ? compute_file_size(header) : std::nullopt;
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::io) throw;
    return std::nullopt;
  }
}

}  // namespace poise::llama2c

namespace poise {

namespace {

bool sniff(const Input& input) {
  const auto bytes = read_first_bytes(input, sizeof llama2c::kMagic);
  if (bytes.size() < sizeof llama2c::kMagic) return false;
  return load_le<std::uint32_t>(bytes.data()) == llama2c::kMagic ||
         llama2c::find_version_0_size(*input.source) == input.source->size();
}

// Recognizes a file of version 0 that is cut off, or has more bytes.
bool matches_damaged(const Input& input) { return llama2c::find_version_0_size(*input.source).has_value(); }

}  // namespace

const Format kLlama2c = {
    .info = {"llama2c", "weights of llama2.c", ".bin"},
    .holds_bf16 = false,
    .sniff = sniff,
    .matches_damaged = matches_damaged,
    .read = llama2c::read,
};

}  // namespace poise
