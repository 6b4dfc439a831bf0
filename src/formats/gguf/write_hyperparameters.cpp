#include "formats/gguf/hyperparameters.hpp"

#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "family/rope.hpp"
#include "formats/gguf/header.hpp"
#include "numeric/float_formats.hpp"
#include "syntax/element_value.hpp"
#include "syntax/fields.hpp"

namespace poise::gguf {
namespace {

// Makes entries and factors from a configuration.
class HyperparameterWriter {
 public:
  HyperparameterWriter(const Model& model, const Architecture& architecture)
      : architecture_(architecture),
        typed_(model.config ? config_to_attributes(*model.config, model.card.model_type) : Attributes()),
        config_(whole_config(model)) {
    const auto* object = config_.get_if<Attributes>(find_config_value("rope_parameters") != nullptr ? "rope_parameters"
                                                                                                    : "rope_scaling");
    if (object == nullptr) return;
    // Newer files have an object for each kind of layers.
    const auto* full = get_member<Attributes>(object, kFull);
    const auto* sliding = get_member<Attributes>(object, kSliding);
    rope_object_ = full != nullptr ? *full : *object;
    if (sliding != nullptr) read_sliding_rope(*sliding);
    // The key next to the object takes precedence over the one inside.
    if (const Value* positions = find_config_value(kOriginalPositions))
      rope_object_.set(std::string(kOriginalPositions), *positions);
    rope_ = &rope_object_;
  }

  Hyperparameters write() {
    for (const KeyRow& row : list_key_rows(architecture_)) write_key(row);
    for (const std::string_view required : kRequired) {
      if (find_entry(required) == nullptr)
        add_difference(fmt::format("llama.cpp will not load the file: the configuration lacks {}", required));
    }
    result_.heads = {get_integer(find_entry("attention.head_count")),
                     get_integer(find_entry("attention.head_count_kv"))};
    if (result_.heads.keys == 0) result_.heads.keys = result_.heads.queries;
    if (const Value* causal = find_config_value("is_causal"); causal != nullptr && *causal == Value(false))
      add_entry(kCausal, false);
    write_head_sizes();
    write_windows();
    add_rotated_layer_difference();
    if (architecture_.rotates) write_rope_scaling();
    for (const KeyRow& row : architecture_.keys) write_default(row);
    add_fixed_key_differences();
    return std::move(result_);
  }

 private:
  void add_entry(std::string_view gguf, Value value) {
    result_.entries.emplace_back(fmt::format("{}.{}", architecture_.name, gguf), std::move(value));
  }
  // Takes over the rotation of the layers with a window. llama.cpp has a key for their rope_theta alone.
  void read_sliding_rope(const Attributes& sliding) {
    const std::string* type = find_rope_type(sliding);
    if (type != nullptr && *type != "default")
      add_difference(fmt::format(
          "llama.cpp ignores the type of {} in rope_parameters ({}): it will not scale positions of these layers",
          kSliding, *type));
    if (const Value* theta = get_unless_null(sliding.find("rope_theta"))) config_.set("rope_local_base_freq", *theta);
  }

  // Adds a number as float32, which llama.cpp requires.
  void add_number(std::string_view gguf, double value) {
    add_entry(gguf, convert_by_spelling(static_cast<float>(value)));
  }
  // Keeps the first reason for which llama.cpp could not run the file.
  void set_refusal(std::string reason) {
    if (result_.refusal.empty()) result_.refusal = std::move(reason);
  }
  void add_difference(std::string sentence) { result_.differences.push_back(std::move(sentence)); }

  const Value* find_entry(std::string_view gguf) const {
    const auto found =
        std::ranges::find(result_.entries, fmt::format("{}.{}", architecture_.name, gguf), &Attributes::Entry::first);
    return found == result_.entries.end() ? nullptr : &found->second;
  }

  static const std::string* find_rope_type(const Attributes& rope) {
    return rope.get_if<std::string>(rope.find("rope_type") != nullptr ? "rope_type" : "type");
  }

  static const Value* get_unless_null(const Value* value) {
    return value == nullptr || *value == Value() ? nullptr : value;
  }
  // Finds a value of the configuration; null counts as missing.
  const Value* find_config_value(std::string_view key) const { return get_unless_null(config_.find(key)); }

  const Value* find_row_value(const KeyRow& row) const {
    // Null in `typed_` means that the key has no effect in this model.
    if (const Value* typed = typed_.find(row.config)) return get_unless_null(typed);
    if (const Value* value = find_config_value(row.config)) return value;
    return row.typed.empty() ? nullptr : get_unless_null(typed_.find(row.typed));
  }

  void write_key(const KeyRow& row) {
    if (find_entry(row.gguf) != nullptr) return;  // another key of the configuration gave it
    const Value* value = find_row_value(row);
    if (row.config == "vocab_size" && value != nullptr && *value == Value(0))
      return;  // 0 means that the size is unknown
    if (row.never_none && config_.find(row.config) != nullptr && convert_to_double(value).value_or(0) == 0) {
      return add_difference(fmt::format("llama.cpp assumes that {} is {}; here it is {}", row.config, *row.never_none,
                                        to_json(*config_.find(row.config))));
    }
    write_value(row, value);
    if (row.config == "head_dim" && value != nullptr) write_value({"attention.value_length", row.config}, value);
  }

  void write_default(const KeyRow& row) {
    if (!row.written_by_default || find_entry(row.gguf) != nullptr) return;
    const double number = *row.written_by_default;
    const Value value = row.kind == KeyRow::Kind::integer ? Value(static_cast<std::uint64_t>(number)) : Value(number);
    write_value(row, &value);
  }

  void write_value(const KeyRow& row, const Value* value) {
    if (value == nullptr) return;
    if (row.kind == KeyRow::Kind::integer) {
      if (value->get_if<std::uint64_t>() != nullptr) add_entry(row.gguf, *value);
    } else if (const auto found = convert_to_double(value)) {
      add_number(row.gguf, *found);
    }
  }

  std::uint64_t find_head_length() const {
    if (const Value* length = find_entry("attention.key_length")) return get_integer(length);
    return result_.heads.queries == 0 ? 0 : get_integer(find_entry("embedding_length")) / result_.heads.queries;
  }

  void write_head_sizes() {
    const std::uint64_t head = find_head_length();
    if (head == 0) return;
    if (architecture_.rotates) {
      const Value* partial = find_config_value("partial_rotary_factor");
      if (partial == nullptr && rope_ != nullptr) partial = rope_->find("partial_rotary_factor");
      const double rotating = static_cast<double>(head) * convert_to_double(partial).value_or(1.0);
      if (rotating >= 0 && rotating <= static_cast<double>(head)) rotating_ = static_cast<std::uint64_t>(rotating);
      add_entry(kRotating, rotating_);
      if (rotating_ != head && !architecture_.rotates_parts)
        set_refusal(fmt::format("it rotates whole heads in {} models, and partial_rotary_factor is {}",
                                architecture_.model_type, convert_to_double(partial).value_or(1.0)));
    }
    const std::uint64_t hidden = get_integer(find_entry("embedding_length"));
    if (architecture_.has_usual_heads && head * result_.heads.queries != hidden)
      set_refusal(
          fmt::format("it computes head_dim of {} models as hidden_size / num_attention_heads, and head_dim is {}",
                      architecture_.model_type, head));
    if (architecture_.wide_scale_layers == 0) return;
    const double scalar = convert_to_double(find_config_value("query_pre_attn_scalar")).value_or(kUsualScalar);
    const bool wide = get_integer(find_entry("block_count")) == architecture_.wide_scale_layers;
    const std::uint64_t llama_cpp_scale =
        wide ? get_integer(find_entry("embedding_length")) / std::max<std::uint64_t>(1, result_.heads.queries) : head;
    if (scalar != static_cast<double>(llama_cpp_scale)) {
      add_difference(
          fmt::format("llama.cpp scales attention by {} to the power of -1/2 and ignores query_pre_attn_scalar, {}",
                      llama_cpp_scale, scalar));
    }
  }

  // Returns a flag for each layer, which is true if the layer has a window; std::nullopt if that is unknown.
  std::optional<std::vector<bool>> find_windows() const {
    const std::uint64_t layers = get_integer(find_entry("block_count"));
    std::vector<bool> slides;
    if (const Value* types = find_config_value("layer_types")) {
      const auto* list = types->get_if<Value::Array>();
      if (list == nullptr || list->size() != layers) return std::nullopt;
      for (const Value& type : *list) slides.push_back(type == Value(kSliding));
      return slides;
    }
    const Value* key = find_config_value("sliding_window_pattern");
    const std::uint64_t period = get_integer(key != nullptr ? key : find_config_value("_sliding_window_pattern"));
    if (period == 0 || layers > kMaxPatternLayers) return std::nullopt;
    for (std::uint64_t i = 0; i < layers; ++i) slides.push_back(i % period + 1 < period);
    return slides;
  }

  void write_windows() {
    const std::uint64_t usual = architecture_.window_period;
    const std::uint64_t window = get_integer(find_entry(kSlidingWindow));
    if (usual == 0 && window > 0 && window < get_integer(find_entry("context_length"))) {
      add_difference(fmt::format("llama.cpp ignores sliding_window ({}) for {} models", window, architecture_.name));
    }
    if (usual == 0) return;
    const auto slides = find_windows();
    if (window == 0 || (slides && std::ranges::find(*slides, true) == slides->end())) return remove_window();
    if (!slides) return;
    bool same = true;
    for (std::size_t i = 0; i < slides->size(); ++i) same = same && (*slides)[i] == (i % usual + 1 < usual);
    if (same) return;
    Value::Array pattern;
    for (const bool slides_here : *slides) pattern.emplace_back(slides_here);
    add_entry(kPattern, std::move(pattern));
  }

  // Removes the key of the window. If llama.cpp has a default window, or needs one, writes one of all positions, which
  // has no effect.
  void remove_window() {
    const std::string key = fmt::format("{}.{}", architecture_.name, kSlidingWindow);
    std::erase_if(result_.entries, [&](const Attributes::Entry& entry) { return entry.first == key; });
    const std::uint64_t positions = get_integer(find_entry("context_length"));
    if ((architecture_.usual_window > 0 || architecture_.needs_window) && positions > 0)
      add_entry(kSlidingWindow, positions);
  }

  void add_rotated_layer_difference() {
    const std::uint64_t period = architecture_.unrotated_period;
    if (period == 0) return;
    bool same = true;
    if (const auto* layers = config_.get_if<Value::Array>("no_rope_layers")) {
      for (std::size_t i = 0; i < layers->size(); ++i) {
        const bool is_rotated = (*layers)[i] != Value(0) && (*layers)[i] != Value(false);
        same = same && is_rotated == ((i + 1) % period != 0);
      }
    } else if (const Value* interval = find_config_value("no_rope_layer_interval")) {
      same = *interval == Value(period);
    }
    if (!same)
      add_difference(fmt::format(
          "llama.cpp leaves positions out of each {}th layer of {} models; the configuration names other layers",
          period, architecture_.name));
  }

  // Adds a difference if yarn's betas are not llama.cpp's defaults, because llama.cpp reads the keys only for other
  // architectures.
  void add_beta_difference() {
    const double fast = convert_to_double(rope_->find("beta_fast")).value_or(kYarnBetaFast);
    const double slow = convert_to_double(rope_->find("beta_slow")).value_or(kYarnBetaSlow);
    if (std::abs(fast - kYarnBetaFast) <= kClose && std::abs(slow - kYarnBetaSlow) <= kClose) return;
    add_difference(fmt::format("llama.cpp computes yarn with beta_fast {} and beta_slow {}; rope_scaling has {} and {}",
                               kYarnBetaFast, kYarnBetaSlow, fast, slow));
  }

  void write_rope_scaling() {
    if (rope_ != nullptr && get_unless_null(rope_->find("llama_4_scaling_beta")) != nullptr) {
      add_difference(fmt::format(
          "llama.cpp ignores llama_4_scaling_beta: it does not scale the queries of {} models by their positions",
          architecture_.name));
    }
    write_scaling_of_type();
    if (const Value* plain = rope_ == nullptr ? nullptr : rope_->find(kPlainFactor);
        plain != nullptr && find_entry(kAttentionFactor) == nullptr) {
      write_value({kAttentionFactor, {}, KeyRow::Kind::number}, plain);
    }
  }

  void write_scaling_of_type() {
    if (rope_ == nullptr) return;
    const std::string* type = find_rope_type(*rope_);
    if (type == nullptr || *type == "default") return;
    if (*type == "yarn" && rope_->find("truncate") != nullptr && *rope_->find("truncate") == Value(false)) {
      add_difference(
          "llama.cpp ignores rope_scaling's truncate (false): it rounds the bounds between which yarn blends "
          "frequencies");
    }
    if (*type == "yarn") add_beta_difference();
    if (*type == "linear" || *type == "yarn") {
      add_entry("rope.scaling.type", *type);
      for (const KeyRow& row : kScalingKeys) {
        if (find_entry(row.gguf) == nullptr) write_value(row, get_unless_null(rope_->find(row.config)));
      }
      if (*type == "yarn") write_yarn_attention();
    } else if (*type == "llama3" && architecture_.holds_frequency_factors) {
      result_.factors.every =
          compute_llama3_factors(*rope_, convert_to_double(find_entry("rope.freq_base")).value_or(0), rotating_);
      if (result_.factors.every.empty())
        add_difference("llama.cpp will not scale positions: rope_scaling lacks the factors of its type llama3");
    } else if ((*type == "longrope" || *type == "su") && architecture_.holds_long_factors) {
      write_longrope();
    } else {
      add_difference(fmt::format("llama.cpp ignores rope_scaling ({}): it will not scale positions", *type));
    }
  }

  // Writes yarn's attention factor. llama.cpp ignores attention_factor and mscale, and multiplies its own factor by the
  // written one.
  void write_yarn_attention() {
    const auto find_scaling_number = [&](std::string_view key) {
      return convert_to_double(get_unless_null(rope_->find(key)));
    };
    const double factor = find_scaling_number("factor").value_or(1);
    const double usual = compute_yarn_attention(factor);
    double attention = usual;
    const double scale = find_scaling_number("mscale").value_or(0);
    const double scale_all = find_scaling_number("mscale_all_dim").value_or(0);
    if (scale != 0 && scale_all != 0)
      attention = compute_yarn_attention(factor, scale) / compute_yarn_attention(factor, scale_all);
    attention = find_scaling_number("attention_factor").value_or(attention);
    if (std::abs(attention - usual) > kClose) add_number(kAttentionFactor, attention / usual);
  }

  void write_longrope() {
    result_.factors.long_contexts = parse_float_list(rope_->find("long_factor"));
    result_.factors.short_contexts = parse_float_list(rope_->find("short_factor"));
    const auto is_whole = [&](const std::vector<float>& factors) {
      return factors.size() * 2 == rotating_ && !factors.empty();
    };
    if (!is_whole(result_.factors.long_contexts) || !is_whole(result_.factors.short_contexts)) {
      result_.factors = {};
      return add_difference(
          fmt::format("llama.cpp will not scale positions: longrope needs two lists of {} factors", rotating_ / 2));
    }
    add_entry("rope.scaling.type", "longrope");
    if (find_entry(kOriginalLength) == nullptr)
      write_value({kOriginalLength, {}}, get_unless_null(rope_->find(kOriginalPositions)));
    for (const KeyRow& row : architecture_.keys) {
      if (row.gguf == kOriginalLength) write_default(row);
    }
    const auto original = get_integer(find_entry(kOriginalLength));
    const auto said = convert_to_double(rope_->find("attention_factor"));
    if (!said && original == 0) return;
    const auto positions = static_cast<double>(original);
    // A factor takes precedence over the ratio of positions.
    const auto factor = convert_to_double(rope_->find("factor"));
    const double extended =
        factor ? *factor * positions : static_cast<double>(get_integer(find_entry("context_length")));
    add_number(kAttentionFactor, said ? *said : compute_longrope_attention(extended, positions));
  }

  void add_fixed_key_differences() {
    for (const FixedKey& fixed : architecture_.fixed) {
      const Value* value = find_config_value(fixed.config);
      if (value == nullptr && fixed.is_explicit)
        add_difference(fmt::format("llama.cpp assumes that {} is {}, which is not the default of the configuration",
                                   fixed.config, to_json(make_fixed_value(fixed))));
      if (value == nullptr || *value == make_fixed_value(fixed) ||
          (*value == Value("swish") && make_fixed_value(fixed) == Value("silu")))
        continue;
      if (fixed.is_required)
        set_refusal(fmt::format("it needs {} to be {} in {} models, and it is {}", fixed.config,
                                to_json(make_fixed_value(fixed)), architecture_.model_type, to_json(*value)));
      add_difference(fmt::format("llama.cpp assumes that {} is {}; here it is {}", fixed.config,
                                 to_json(make_fixed_value(fixed)), to_json(*value)));
    }
  }

  const Architecture& architecture_;
  Attributes typed_;
  Attributes config_;
  Attributes rope_object_;            // the object in config.json that changes rotary embeddings
  const Attributes* rope_ = nullptr;  // that object; null: there is none
  std::uint64_t rotating_ = 0;        // rotated elements of a head
  Hyperparameters result_;
};

}  // namespace

Hyperparameters make_hyperparameters(const Model& model, const Architecture& architecture) {
  return HyperparameterWriter(model, architecture).write();
}

}  // namespace poise::gguf
