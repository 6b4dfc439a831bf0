#include "formats/gguf/key_values.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "formats/gguf/vocabulary.hpp"
#include "numeric/integers.hpp"
#include "syntax/json_writer.hpp"
#include "tokenizer/tokens/sampling_keys.hpp"

namespace poise::gguf {

const Value* Entries::find(std::string_view key) const {
  const auto entry = std::ranges::find(list_, key, &Attributes::Entry::first);
  return entry == list_.end() ? nullptr : &entry->second;
}

std::uint64_t Entries::find_number(std::string_view key) const {
  const auto* number = get_if<std::uint64_t>(key);
  return number == nullptr ? 0 : *number;
}

std::optional<Value> Entries::remove(std::string_view key) {
  const auto entry = std::ranges::find(list_, key, &Attributes::Entry::first);
  if (entry == list_.end()) return std::nullopt;
  Value value = std::move(entry->second);
  list_.erase(entry);
  return value;
}

std::optional<std::string> Entries::remove_text(std::string_view key) {
  if (get_if<std::string>(key) == nullptr) return std::nullopt;
  return std::move(*remove(key)).take<std::string>();
}

std::optional<std::int64_t> Entries::remove_number(std::string_view key) {
  const auto* number = get_if<std::uint64_t>(key);
  if (number == nullptr || *number > INT32_MAX) return std::nullopt;
  return static_cast<std::int64_t>(std::move(*remove(key)).take<std::uint64_t>());
}

namespace {

// Returns true if a float has the number's shortest spelling, and for NaN and infinity.
bool is_exact_f32(double number) {
  return !(std::abs(number) < static_cast<double>(std::numeric_limits<float>::infinity())) ||
         (std::abs(number) <= static_cast<double>(std::numeric_limits<float>::max()) &&
          fmt::format("{}", static_cast<float>(number)) == fmt::format("{}", number));
}

ValueType choose_value_type(const Value& value) {
  if (const auto* number = value.get_if<std::uint64_t>())
    return *number <= UINT32_MAX ? ValueType::u32 : ValueType::u64;
  if (const auto* number = value.get_if<std::int64_t>()) return *number >= INT32_MIN ? ValueType::i32 : ValueType::i64;
  if (const auto* number = value.get_if<double>()) return is_exact_f32(*number) ? ValueType::f32 : ValueType::f64;
  if (value.get_if<bool>() != nullptr) return ValueType::boolean;
  if (value.get_if<Value::Array>() != nullptr) return ValueType::array;
  return ValueType::text;
}

// Returns a type that holds all items; std::nullopt if there is none.
std::optional<ValueType> find_common_type(const Value::Array& items) {
  if (items.empty()) return ValueType::text;  // llama.cpp requires this of its lists of texts
  ValueType common = choose_value_type(items.front());
  bool negative = false;
  bool wide = false;
  for (const Value& item : items) {
    const ValueType type = choose_value_type(item);
    const auto* number = item.get_if<std::uint64_t>();
    negative = negative || item.get_if<std::int64_t>() != nullptr;
    wide = wide || type == ValueType::u64 || type == ValueType::i64 || (number != nullptr && *number > INT32_MAX);
    if (type == common || (is_integer(type) && is_integer(common))) continue;
    const bool are_numbers =
        (type == ValueType::f64 && common == ValueType::f32) || (type == ValueType::f32 && common == ValueType::f64);
    if (!are_numbers) return std::nullopt;
    common = ValueType::f64;
  }
  if (!is_integer(common)) return common;
  // ggml's tools write arrays of i32.
  if (!wide) return ValueType::i32;
  const bool beyond = std::ranges::any_of(items, [](const Value& item) {
    const auto* number = item.get_if<std::uint64_t>();
    return number != nullptr && *number > INT64_MAX;
  });
  if (beyond) return negative ? std::nullopt : std::optional(ValueType::u64);
  return ValueType::i64;
}

std::uint64_t get_unsigned_bits(const Value& value) {
  if (const auto* number = value.get_if<std::uint64_t>()) return *number;
  return static_cast<std::uint64_t>(*value.get_if<std::int64_t>());
}

std::string make_entry_text(const Value& value) {
  if (const auto* text = value.get_if<std::string>()) return *text;
  if (const auto* bytes = value.get_if<Value::Bytes>())
    return {reinterpret_cast<const char*>(bytes->data()), bytes->size()};
  return format_python_json(value);
}

void append_entry_value(ByteWriter& out, ValueType type, const Value& value) {
  switch (type) {
    case ValueType::u8:
    case ValueType::i8: return out.append_u8(static_cast<std::uint8_t>(get_unsigned_bits(value)));
    case ValueType::u16:
    case ValueType::i16: return out.append_u16(static_cast<std::uint16_t>(get_unsigned_bits(value)));
    case ValueType::u32:
    case ValueType::i32: return out.append_u32(static_cast<std::uint32_t>(get_unsigned_bits(value)));
    case ValueType::u64:
    case ValueType::i64: return out.append_u64(get_unsigned_bits(value));
    case ValueType::f32: return out.append_f32(static_cast<float>(*value.get_if<double>()));
    case ValueType::f64: return out.append_u64(std::bit_cast<std::uint64_t>(*value.get_if<double>()));
    case ValueType::boolean: return out.append_u8(*value.get_if<bool>() ? 1 : 0);
    default: return KeyValues::append_text(out, make_entry_text(value));
  }
}

// Lists names of the types in the order of ValueType. The name of an array is its items' type in brackets.
constexpr std::array<std::string_view, 13> kTypeNames = {"u8",   "i8",   "u16", "i16", "u32", "i32", "f32",
                                                         "bool", "text", "",    "u64", "i64", "f64"};

std::string_view get_entry_type_name(ValueType type) { return kTypeNames[static_cast<std::size_t>(type)]; }

// Returns true if the value fits the type; false for arrays.
bool fits_value_type(const Value& value, ValueType type) {
  const auto is_in_range = [&]<typename Number>(Number) {
    if (const auto* number = value.get_if<std::uint64_t>()) return std::in_range<Number>(*number);
    const auto* negative = value.get_if<std::int64_t>();
    return negative != nullptr && std::in_range<Number>(*negative);
  };
  switch (type) {
    case ValueType::f32: return value.get_if<double>() != nullptr && is_exact_f32(*value.get_if<double>());
    case ValueType::f64: return value.get_if<double>() != nullptr;
    case ValueType::boolean: return value.get_if<bool>() != nullptr;
    case ValueType::text: return value.get_if<std::string>() != nullptr;
    case ValueType::array: return false;
    default: return visit_integer(*dtype_from_name(get_entry_type_name(type)), is_in_range);
  }
}

}  // namespace

std::string to_string(const EntryType& type) {
  return type.type == ValueType::array ? fmt::format("[{}]", get_entry_type_name(type.items))
                                       : std::string(get_entry_type_name(type.type));
}

std::optional<EntryType> parse_entry_type(std::string_view name) {
  const bool array = name.starts_with('[') && name.ends_with(']');
  if (array) name = name.substr(1, name.size() - 2);
  const auto* found = std::ranges::find(kTypeNames, name);
  if (found == kTypeNames.end() || name.empty()) return std::nullopt;
  const auto type = static_cast<ValueType>(found - kTypeNames.begin());
  return array ? EntryType{ValueType::array, type} : EntryType{type};
}

void append_file_start(ByteWriter& out, std::uint32_t version, std::uint64_t tensors, std::uint64_t keys) {
  out.append_text(kMagic);
  out.append_u32(version);
  out.append_u64(tensors);
  out.append_u64(keys);
}

void KeyValues::append_text(ByteWriter& out, std::string_view text) {
  out.append_u64(text.size());
  out.append_text(text);
}

void KeyValues::begin_entry(std::string_view key, ValueType type) {
  if (!keys_.emplace(key).second) throw Error(ErrorKind::internal, fmt::format("gguf: the key {} appears twice", key));
  append_text(out_, key);
  out_.append_u32(static_cast<std::uint32_t>(type));
}

void KeyValues::add_text(std::string_view key, std::string_view value) {
  begin_entry(key, ValueType::text);
  append_text(out_, value);
}

void KeyValues::add_u16(std::string_view key, std::uint16_t value) {
  begin_entry(key, ValueType::u16);
  out_.append_u16(value);
}

void KeyValues::add_u32(std::string_view key, std::uint64_t value) {
  if (value > UINT32_MAX)
    throw Error(ErrorKind::unsupported, fmt::format("gguf: {}: {} has more than 32 bits", key, value));
  begin_entry(key, ValueType::u32);
  out_.append_u32(static_cast<std::uint32_t>(value));
}

void KeyValues::add_i32(std::string_view key, std::int32_t value) {
  begin_entry(key, ValueType::i32);
  out_.append_i32(value);
}

void KeyValues::add_f32(std::string_view key, double value) {
  begin_entry(key, ValueType::f32);
  out_.append_f32(static_cast<float>(value));
}

void KeyValues::add_boolean(std::string_view key, bool value) {
  begin_entry(key, ValueType::boolean);
  out_.append_u8(value ? 1 : 0);
}

ByteWriter& KeyValues::begin_array(std::string_view key, ValueType items, std::uint64_t count) {
  begin_entry(key, ValueType::array);
  out_.append_u32(static_cast<std::uint32_t>(items));
  out_.append_u64(count);
  return out_;
}

bool KeyValues::has_entry_type(const Value& value, const EntryType& type) {
  const auto* items = value.get_if<Value::Array>();
  if (type.type != ValueType::array || items == nullptr) return fits_value_type(value, type.type);
  return std::ranges::all_of(*items, [&](const Value& item) { return fits_value_type(item, type.items); });
}

EntryType KeyValues::choose_type(const Value& value) {
  const auto* items = value.get_if<Value::Array>();
  if (items == nullptr) return {choose_value_type(value)};
  const auto common = find_common_type(*items);
  return common && *common != ValueType::array ? EntryType{ValueType::array, *common} : EntryType{ValueType::text};
}

void KeyValues::add_value(std::string_view key, const Value& value, std::optional<EntryType> type) {
  if (!type || !has_entry_type(value, *type)) type = choose_type(value);
  if (type->type == ValueType::array) {
    const auto& items = *value.get_if<Value::Array>();
    ByteWriter& out = begin_array(key, type->items, items.size());
    for (const Value& item : items) append_entry_value(out, type->items, item);
    return;
  }
  begin_entry(key, type->type);
  append_entry_value(out_, type->type, value);
}

namespace {

// Holds the type of keys whose names end in one of `names` or, if the type is a list, are one of `names`. The first
// match counts.
struct RequiredType {
  EntryType type;
  std::span<const std::string_view> names;
};

constexpr std::array kBooleans = std::to_array<std::string_view>(
    {"attention.causal", "expert_weights_norm", "rope.scaling.finetuned", "use_parallel_residual", "swin_norm",
     "ssm.dt_b_c_rms", "kda.safe_gate", "norm_before_residual", "norm_before_fc", "skip_loop_final_norm"});
constexpr std::array kNumbers = std::to_array<std::string_view>(
    {"_epsilon", "hyper_connection.epsilon", "_scale", "attention.scale", "_softcapping", "rope.freq_base",
     "rope.freq_base_swa", "rope_freq_base", "rope.scale_linear", "rope.scaling.factor", "rope.scaling.alpha",
     "rope.scaling.attn_factor", "rope.scaling.yarn_ext_factor", "rope.scaling.yarn_attn_factor",
     "rope.scaling.yarn_beta_fast", "rope.scaling.yarn_beta_slow", "rope.scaling.yarn_log_multiplier",
     "attention.clamp_kqv", "attention.max_alibi_bias"});
constexpr std::array kIntegers = std::to_array<std::string_view>({"_count",
                                                                  "_count_kv",
                                                                  "hyper_connection.count",
                                                                  "_length",
                                                                  "_length_swa",
                                                                  "_length_out",
                                                                  "_length_mla",
                                                                  "_length_mla_swa",
                                                                  "_rank",
                                                                  "_rank_swa",
                                                                  "_token_id",
                                                                  "_size",
                                                                  "attention.sliding_window",
                                                                  "rope.dimension_count_swa",
                                                                  "expert_gating_func",
                                                                  "experts_per_group",
                                                                  "pooling_type",
                                                                  "group_norm_groups",
                                                                  "nextn_predict_layers",
                                                                  "n_deepstack_layers",
                                                                  "shared_kv_layers",
                                                                  "moe_every_n_layers",
                                                                  "rescale_every_n_layers",
                                                                  "interleave_moe_layer_step",
                                                                  "full_attention_interval",
                                                                  "num_loops",
                                                                  "conv_kernel",
                                                                  "time_mix_extra_dim",
                                                                  "time_decay_extra_dim",
                                                                  "kda.head_dim",
                                                                  "indexer.top_k",
                                                                  "shortconv.l_cache"});
constexpr std::array kSections = std::to_array<std::string_view>({"rope.dimension_sections"});
constexpr std::array kWindowPatterns = std::to_array<std::string_view>({"attention.sliding_window_pattern"});
constexpr std::array kClamps = std::to_array<std::string_view>({"swiglu_clamp_exp", "swiglu_clamp_shexp"});
constexpr std::array kHyperparameterTypes = std::to_array<RequiredType>({
    {{ValueType::boolean}, kBooleans},
    {{ValueType::f32}, kNumbers},
    {{ValueType::u32}, kIntegers},
    {{ValueType::array, ValueType::i32}, kSections},
    {{ValueType::array, ValueType::boolean}, kWindowPatterns},
    {{ValueType::array, ValueType::f32}, kClamps},
});

constexpr std::string_view kGeneral = "general.";
constexpr std::string_view kTemplateNames = "tokenizer.chat_templates";
constexpr std::string_view kAdapterAlpha = "adapter.lora.alpha";

constexpr std::array kGeneralTexts = std::to_array<std::string_view>({"tags", "languages", "datasets"});
constexpr std::array kGeneralCounts =
    std::to_array<std::string_view>({"base_model.count", "dataset.count", "file_type", "quantization_version"});
constexpr std::array kGeneralTypes = std::to_array<RequiredType>(
    {{{ValueType::array, ValueType::text}, kGeneralTexts}, {{ValueType::u32}, kGeneralCounts}});

constexpr std::array kTokenTexts = std::to_array<std::string_view>({"tokens", "merges"});
constexpr std::array kTokenScores = std::to_array<std::string_view>({"scores"});
constexpr std::array kTokenTypes = std::to_array<std::string_view>({"token_type", "suppress_tokens"});
constexpr std::array kTokenNumbers = std::to_array<std::string_view>({"_token_id", "token_type_count"});
constexpr std::array kTokenFlags =
    std::to_array<std::string_view>({"add_bos_token", "add_eos_token", "add_sep_token", "add_space_prefix",
                                     "remove_extra_whitespaces", "normalizer.lowercase", "normalizer.strip_accents"});
constexpr std::array kVocabularyTypes = std::to_array<RequiredType>({
    {{ValueType::array, ValueType::text}, kTokenTexts},
    {{ValueType::array, ValueType::f32}, kTokenScores},
    {{ValueType::array, ValueType::i32}, kTokenTypes},
    {{ValueType::u32}, kTokenNumbers},
    {{ValueType::boolean}, kTokenFlags},
});

std::optional<EntryType> find_required_type(std::span<const RequiredType> rows, std::string_view name) {
  const auto matches = [&](const RequiredType& row) {
    const bool is_list = row.type.type == ValueType::array;
    return std::ranges::any_of(row.names,
                               [&](std::string_view found) { return is_list ? name == found : name.ends_with(found); });
  };
  const auto row = std::ranges::find_if(rows, matches);
  return row == rows.end() ? std::nullopt : std::optional(row->type);
}

std::optional<EntryType> find_general_type(std::string_view name) {
  constexpr std::string_view kSampling = kSamplingPrefix.substr(kGeneral.size());
  if (!name.starts_with(kSampling)) return find_required_type(kGeneralTypes, name);
  const auto* key = std::ranges::find(kSamplingKeys, name.substr(kSampling.size()), &SamplingKey::gguf);
  if (key == kSamplingKeys.end() || key->kind == SamplingKey::Kind::text) return std::nullopt;
  return EntryType{key->kind == SamplingKey::Kind::integer ? ValueType::i32 : ValueType::f32};
}

}  // namespace

std::optional<EntryType> find_key_type(std::string_view key, std::string_view architecture) {
  if (key.starts_with(kGeneral)) return find_general_type(key.substr(kGeneral.size()));
  if (key.starts_with(kTokenizer)) return find_required_type(kVocabularyTypes, key.substr(kTokenizer.size()));
  if (key == kTemplateNames) return EntryType{ValueType::array, ValueType::text};
  if (key == kAdapterAlpha) return EntryType{ValueType::f32};
  const std::size_t dot = key.find('.');
  if (architecture.empty() || key.substr(0, dot) != architecture || dot == std::string_view::npos) return std::nullopt;
  return find_required_type(kHyperparameterTypes, key.substr(dot + 1));
}

std::optional<EntryType> find_given_type(std::string_view key, std::string_view architecture, const Value& given) {
  const std::optional<EntryType> type = find_key_type(key, architecture);
  const bool is_of_layers = type && type->type == ValueType::array && !key.starts_with(kTokenizer);
  const bool is_number = given.get_if<std::uint64_t>() != nullptr || given.get_if<std::int64_t>() != nullptr ||
                         given.get_if<double>() != nullptr;
  return is_of_layers && is_number ? std::nullopt : type;
}

}  // namespace poise::gguf
