// Reads and checks the parameters section, and reads the general section.
//
//   version 2   text hidden_act, u8 tie_word_embeddings (0 or 1), i32 hidden_size, intermediate_size,
//               max_position_embeddings, num_attention_heads, num_hidden_layers, num_key_value_heads, sliding_window,
//               f32 rope_theta, rms_norm_eps, initializer_range, i32 head_size
//   version 1   text model_type, i32 hidden_size, num_hidden_layers, intermediate_size, num_attention_heads,
//               num_key_value_heads, sliding_window, f32 rope_theta, rms_norm_eps, i32 head_size, data_type,
//               context_length
//
// alt.c orders the last four fields of version 2 differently: i32 head_size, f32 rms_norm_eps, rope_theta,
// initializer_range. Both orders have the same length. The values decide, because the bits of a usual float are never a
// usual head size, nor the reverse.
#include <bit>
#include <cmath>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/little_endian.hpp"
#include "family/check.hpp"
#include "family/config_json.hpp"
#include "family/families.hpp"
#include "formats/alt/sections.hpp"
#include "formats/losses.hpp"
#include "model/card.hpp"

namespace poise::alt {
namespace {

constexpr std::int32_t kLargestHead = 65536;

// Holds the last four fields of version 2, which come in one of two orders.
struct Tail {
  std::uint32_t word[4];

  float get_float(int i) const { return std::bit_cast<float>(word[i]); }
  std::int32_t get_integer(int i) const { return std::bit_cast<std::int32_t>(word[i]); }
};

void set_tail(Config& config, const Tail& tail, ParameterOrder order) {
  const bool canonical = order == ParameterOrder::canonical;
  config.head_dim = tail.get_integer(canonical ? 3 : 0);
  config.rope_theta = tail.get_float(canonical ? 0 : 2);
  config.rms_norm_eps = tail.get_float(1);
  config.initializer_range = tail.get_float(canonical ? 2 : 3);
}

bool has_usual_tail(const Config& config) {
  return config.head_dim >= 1 && config.head_dim <= kLargestHead && std::isnormal(config.rope_theta) &&
         config.rope_theta > 0;
}

// Returns the canonical order, unless only the other one makes sense.
ParameterOrder find_parameter_order(const Tail& tail) {
  Config canonical;
  Config alt_c;
  set_tail(canonical, tail, ParameterOrder::canonical);
  set_tail(alt_c, tail, ParameterOrder::alt_c);
  return !has_usual_tail(canonical) && has_usual_tail(alt_c) ? ParameterOrder::alt_c : ParameterOrder::canonical;
}

// Returns the order that a reader finds. Requires: the last four fields have been written.
ParameterOrder find_written_order(const SectionWriter& section) {
  const std::span<const std::byte> fields = section.fields().bytes();
  Tail tail;
  for (std::size_t i = 0; i < 4; ++i) tail.word[i] = load_le<std::uint32_t>(fields.data() + fields.size() - 16 + 4 * i);
  return find_parameter_order(tail);
}

std::int64_t read_sliding_window(FileReader& reader) {
  const std::uint64_t at = reader.bytes().position();
  const std::int32_t window = reader.bytes().read_i32("sliding_window");
  if (window >= 0) return window;
  reader.warn("sliding_window", fmt::format("expected 0 for none, found {}", window), at);
  return 0;
}

}  // namespace

Config make_empty_config() {
  Config none;
  none.hidden_act.clear();
  none.rope_theta = none.rms_norm_eps = none.initializer_range = 0;
  return none;
}

void require_holdable_config(const Model& model, int version) {
  const std::string& type = model.card.model_type;
  const bool is_known = type.empty() || find_family(type) != nullptr || list_other_config_keys(model).empty();
  if (!model.config_json.empty() && !(model.config && is_known)) {
    throw Error(
        ErrorKind::unsupported,
        fmt::format("alt holds the hyperparameters of models like Mistral and Llama; this one's model_type is \"{}\"",
                    type));
  }
  refuse_config_effects("alt", model);
  const Family& family = find_family_or_llama(model);
  // Readers of version 2 see by the names of the tensors that a model has no output matrix, as lacks_output_matrix()
  // does. Readers of version 1 assume tied embeddings.
  const bool is_in_names = version == 2 && family.nested.empty() && model.find(family.embedding) == nullptr;
  if (model.size() > 0 && lacks_output_matrix(model) && !is_in_names) {
    throw Error(ErrorKind::unsupported, fmt::format("{} cannot hold a model without tensor {}: {}",
                                                    version == 1 ? "alt1" : "alt", family.output,
                                                    version == 1 ? "its readers would use the embedding instead"
                                                                 : "its readers would miss the tensor"));
  }
}

void require_order(const SectionWriter& section, const Config& config, ParameterOrder order) {
  if (find_written_order(section) == order) return;
  throw Error(ErrorKind::unsupported,
              fmt::format("alt: parameters: rope_theta: with {} and a head_size of {}, readers would assume the field "
                          "order of {} and read wrong numbers",
                          config.rope_theta, config.head_dim,
                          order == ParameterOrder::canonical ? "alt.c's dialect" : "the canonical form"));
}

std::optional<Config> read_parameters_v2(FileReader& reader) {
  ByteReader& bytes = reader.bytes();
  Config config;
  config.hidden_act = reader.read_text("hidden_act");
  config.tie_word_embeddings = reader.read_flag("tie_word_embeddings");
  config.hidden_size = bytes.read_i32("hidden_size");
  config.intermediate_size = bytes.read_i32("intermediate_size");
  config.max_position_embeddings = bytes.read_i32("max_position_embeddings");
  config.num_attention_heads = bytes.read_i32("num_attention_heads");
  config.num_hidden_layers = bytes.read_i32("num_hidden_layers");
  config.num_key_value_heads = bytes.read_i32("num_key_value_heads");
  config.sliding_window = read_sliding_window(reader);
  const std::uint64_t at = bytes.position();
  const Tail tail{{bytes.read_u32("rope_theta"), bytes.read_u32("rms_norm_eps"), bytes.read_u32("initializer_range"),
                   bytes.read_u32("head_size")}};
  const ParameterOrder order = find_parameter_order(tail);
  set_tail(config, tail, order);
  if (order == ParameterOrder::alt_c) {
    reader.warn("rope_theta",
                "expected rope_theta, rms_norm_eps, initializer_range, head_size; found head_size, rms_norm_eps, "
                "rope_theta, initializer_range",
                at);
    reader.dialect().parameters = order;
  }
  if (config == make_empty_config()) return std::nullopt;
  return config;
}

ParametersV1 read_parameters_v1(FileReader& reader) {
  ByteReader& bytes = reader.bytes();
  ParametersV1 parameters;
  parameters.model_type = reader.read_text("model_type");
  Config config = make_empty_config();
  config.hidden_size = bytes.read_i32("hidden_size");
  config.num_hidden_layers = bytes.read_i32("num_hidden_layers");
  config.intermediate_size = bytes.read_i32("intermediate_size");
  config.num_attention_heads = bytes.read_i32("num_attention_heads");
  config.num_key_value_heads = bytes.read_i32("num_key_value_heads");
  config.sliding_window = read_sliding_window(reader);
  config.rope_theta = bytes.read_f32("rope_theta");
  config.rms_norm_eps = bytes.read_f32("rms_norm_eps");
  config.head_dim = bytes.read_i32("head_size");
  // Each tensor has its own data_type. This one only informs people.
  parameters.data_type_at = bytes.position();
  parameters.data_type = bytes.read_i32("data_type");
  if (parameters.data_type < 0 || parameters.data_type > 2) {
    bytes.fail("data_type", fmt::format("expected 0 to 2, found {}", parameters.data_type), parameters.data_type_at);
  }
  parameters.context_length = reader.read_count32("context_length");
  if (config == make_empty_config()) return parameters;
  config.max_position_embeddings = parameters.context_length;
  config.hidden_act = Config{}.hidden_act;
  config.initializer_range = Config{}.initializer_range;
  parameters.config = config;
  return parameters;
}

std::int32_t find_prevailing_type(const Model& model) {
  std::uint64_t halves = 0;
  std::uint64_t floats = 0;
  for (const Tensor& tensor : model.tensors()) {
    const DType dtype = tensor.require("data").dtype;
    if (dtype == DType::f16) halves += tensor.elements();
    if (dtype == DType::f32) floats += tensor.elements();
  }
  return find_spelling(kCodes, halves > floats ? DType::f16 : DType::f32).value();
}

namespace {

// Reads a date. Shortens a timestamp to its day, YYYY-MM-DD, with a warning; returns other texts as they are.
std::string read_date(FileReader& reader, std::string_view field) {
  const std::uint64_t at = reader.bytes().position();
  std::string text = reader.read_text(field);
  const auto day = extract_day(text);
  if (!day || *day == text) return text;
  reader.warn(field, "expected YYYY-MM-DD, found a timestamp", at);
  return *day;
}

}  // namespace

Card read_general(FileReader& reader) {
  Card card;
  card.model_type = reader.read_text("model_type");
  card.base_model = reader.read_text("base_model");
  card.author = reader.read_text("author");
  card.created_at = read_date(reader, "created_at");
  card.last_modified = read_date(reader, "last_modified");
  card.license = reader.read_text("license");
  card.uuid = reader.read_text("uuid");
  return card;
}

}  // namespace poise::alt
