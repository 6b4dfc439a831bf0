// Implements the types of scaling in modeling_rope_utils.py of transformers. Poise computes frequencies in float64.
#include "family/rope.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <poise/error.hpp>

namespace poise {
namespace {

// These keys change how a type computes. Poise does not run models that have them.
constexpr std::array<std::string_view, 5> kNotFollowed = {"llama_4_scaling_beta", "alpha", "short_mscale",
                                                          "long_mscale", "attn_factor"};

[[noreturn]] void refuse(std::string reason, ErrorKind kind = ErrorKind::invalid_file) {
  throw Error(kind, std::move(reason), {});
}

// Holds the input of every type of scaling.
struct Rope {
  const ConfigView& view;
  const ConfigKeys scaling;
  std::size_t size;  // numbers of a head that rotate
  double theta;
  std::int64_t usual_positions;  // the family's default for the positions of the original training; 0: none

  double require_number(std::string_view key) const {
    const auto number = scaling.read_number(key);
    if (!number) refuse(fmt::format("rope_scaling: {} is missing", key));
    return static_cast<double>(*number);
  }
  double require_positive(std::string_view key, double number) const {
    if (!(number > 0)) refuse(fmt::format("rope_scaling: {} is {}, expected more than 0", key, number));
    return number;
  }
  double require_factor() const { return require_positive("factor", require_number("factor")); }

  // Returns the i-th frequency. Requires: i < size / 2.
  double compute_frequency(std::size_t i) const {
    return 1.0 / std::pow(theta, static_cast<double>(2 * i) / static_cast<double>(size));
  }

  // Returns the number of positions of the original training, if the file or the family states it. The top-level key
  // takes precedence over the nested one.
  std::optional<double> find_stated_positions() const {
    constexpr std::string_view kKey = "original_max_position_embeddings";
    auto positions = view.keys().read_integer(kKey);
    if (!positions) positions = scaling.read_integer(kKey);
    if (!positions && usual_positions > 0) positions = usual_positions;
    return positions ? std::optional(require_positive(kKey, static_cast<double>(*positions))) : std::nullopt;
  }
  // Returns the number of positions of the original training; by default max_position_embeddings.
  double find_original_positions() const {
    return find_stated_positions().value_or(static_cast<double>(view.config.max_position_embeddings));
  }

  // Returns change(i, compute_frequency(i)) for each i.
  template <typename F>
  std::vector<float> compute_frequencies(F&& change) const {
    std::vector<float> result;
    for (std::size_t i = 0; i < size / 2; ++i) {
      const auto number = static_cast<float>(change(i, compute_frequency(i)));
      if (!std::isfinite(number)) refuse("rope_scaling: the frequencies are not finite numbers");
      result.push_back(number);
    }
    return result;
  }
};

RopePlan plan_usual(const Rope& rope) {
  return {.frequencies = rope.compute_frequencies([](std::size_t, double frequency) { return frequency; })};
}

RopePlan plan_linear(const Rope& rope) {
  const double factor = rope.require_factor();
  return {.frequencies = rope.compute_frequencies([&](std::size_t, double frequency) { return frequency / factor; })};
}

// Plans type "dynamic". Other frequencies apply only beyond max_position_embeddings, which no sequence exceeds.
RopePlan plan_dynamic(const Rope& rope) {
  rope.require_factor();
  return plan_usual(rope);
}

// Plans type "llama3". Divides the frequencies of long waves by the factor, keeps those of short waves, and
// interpolates between them. A wave is long if it fits only a few times into the original positions.
RopePlan plan_llama3(const Rope& rope) {
  const double factor = rope.require_factor();
  const double low = rope.require_positive("low_freq_factor", rope.require_number("low_freq_factor"));
  const double high = rope.require_positive("high_freq_factor", rope.require_number("high_freq_factor"));
  if (high <= low)
    refuse(fmt::format("rope_scaling: high_freq_factor is {}, expected more than low_freq_factor, {}", high, low));
  const double original = rope.find_original_positions();
  return {.frequencies = rope.compute_frequencies([&](std::size_t, double frequency) {
    // The number of turns of the angle over the original positions.
    const double waves = original * frequency / (2 * std::numbers::pi);
    const double kept = std::clamp((waves - low) / (high - low), 0.0, 1.0);
    return (1 - kept) * frequency / factor + kept * frequency;
  })};
}

RopePlan plan_yarn(const Rope& rope) {
  const double factor = rope.require_factor();
  const double original = rope.find_original_positions();
  const double scale = static_cast<double>(rope.scaling.read_number("mscale").value_or(0));
  const double scale_all = static_cast<double>(rope.scaling.read_number("mscale_all_dim").value_or(0));
  const double by_default = scale != 0 && scale_all != 0
                                ? compute_yarn_attention(factor, scale) / compute_yarn_attention(factor, scale_all)
                                : compute_yarn_attention(factor);
  const auto said = rope.scaling.read_number("attention_factor");

  // Frequencies below index `low` stay, those above `high` are divided by the factor, and those between blend.
  const auto compute_index = [&](std::string_view key, double usual_rotations) {
    const double rotations = rope.require_positive(
        key, static_cast<double>(rope.scaling.read_number(key).value_or(static_cast<float>(usual_rotations))));
    return static_cast<double>(rope.size) * std::log(original / (rotations * 2 * std::numbers::pi)) /
           (2 * std::log(rope.theta));
  };
  double low = compute_index("beta_fast", kYarnBetaFast);
  double high = compute_index("beta_slow", kYarnBetaSlow);
  if (rope.scaling.read_boolean("truncate").value_or(true)) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(rope.size) - 1);
  if (low == high) high += 0.001;
  const auto frequencies = rope.compute_frequencies([&](std::size_t i, double frequency) {
    const double divided = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    return frequency / factor * divided + frequency * (1 - divided);
  });
  return {.frequencies = frequencies, .factor = said ? *said : static_cast<float>(by_default)};
}

std::vector<float> divide_frequencies(const Rope& rope, std::string_view key) {
  const std::vector<double> divisors = rope.scaling.read_numbers(key);
  if (divisors.size() != rope.size / 2)
    refuse(fmt::format("rope_scaling: {} has {} numbers, expected {}", key, divisors.size(), rope.size / 2));
  return rope.compute_frequencies(
      [&](std::size_t i, double frequency) { return frequency / rope.require_positive(key, divisors[i]); });
}

RopePlan plan_longrope(const Rope& rope) {
  const double original = rope.find_original_positions();
  const auto positions = static_cast<double>(rope.view.config.max_position_embeddings);
  const auto given = rope.scaling.read_number("factor");
  const double factor = given ? static_cast<double>(*given) : positions / original;
  const auto said = rope.scaling.read_number("attention_factor");
  const double by_default = factor <= 1 ? 1 : std::sqrt(1 + std::log(factor) / std::log(std::max(original, 2.0)));
  return {.frequencies = divide_frequencies(rope, "short_factor"),
          .factor = said ? *said : static_cast<float>(by_default),
          .long_frequencies = divide_frequencies(rope, "long_factor"),
          .long_after = static_cast<std::size_t>(original)};
}

struct Type {
  std::string_view name;
  RopePlan (*plan)(const Rope& rope);
};
constexpr std::array kTypes = std::to_array<Type>({
    {"default", plan_usual},
    {"linear", plan_linear},
    {"dynamic", plan_dynamic},
    {"llama3", plan_llama3},
    {"yarn", plan_yarn},
    {"longrope", plan_longrope},
});

const Type& find_type(std::string_view name) {
  const auto* type = std::ranges::find(kTypes, name, &Type::name);
  if (type != kTypes.end()) return *type;
  std::vector<std::string_view> names;
  for (const Type& row : kTypes) names.push_back(row.name);
  refuse(fmt::format("rope_scaling's type is \"{}\", only {} are supported", name, fmt::join(names, ", ")),
         ErrorKind::unsupported);
}

// Returns how many numbers of a head rotate.
std::size_t compute_rotated_size(const ConfigView& view, const ConfigKeys& scaling, const RopeOptions& options) {
  const float part = scaling.read_number("partial_rotary_factor")
                         .value_or(view.keys().read_number("partial_rotary_factor").value_or(1));
  if (part != 1 && !options.partial)
    refuse(fmt::format("partial_rotary_factor is {}, only 1 is supported", part), ErrorKind::unsupported);
  if (!(part > 0 && part <= 1))
    refuse(fmt::format("partial_rotary_factor is {}, expected more than 0 and at most 1", part));
  const auto size = static_cast<std::size_t>(static_cast<double>(view.config.head_dim) * static_cast<double>(part));
  if (size < 2 || size % 2 != 0) {
    const std::string subject =
        part == 1 ? "head_dim is"
                  : fmt::format("partial_rotary_factor {} of head_dim {} is", part, view.config.head_dim);
    refuse(fmt::format("{} {}: rotary embeddings need an even number", subject, size), ErrorKind::unsupported);
  }
  return size;
}

}  // namespace

const Attributes* find_rope_scaling(const ConfigView& view) {
  const ConfigKeys keys = view.keys();
  const Attributes* found = nullptr;
  for (const std::string_view key : kRopeObjects) {
    if (const Attributes* object = keys.find_object(key)) found = object;
  }
  return found;
}

double compute_yarn_attention(double factor, double scale) {
  return factor <= 1 ? 1 : 0.1 * scale * std::log(factor) + 1;
}

RopePlan make_rope_plan(const ConfigView& view, const Attributes* scaling, const RopeOptions& options) {
  static const Attributes none;
  const ConfigKeys keys(scaling == nullptr ? none : *scaling, {});
  const Rope rope = {view, keys, compute_rotated_size(view, keys, options), static_cast<double>(options.theta),
                     options.original_positions};
  if (scaling != nullptr) {
    for (const auto& [key, value] : *scaling) {
      const bool object = value.get_if<Attributes>() != nullptr;
      if (object)
        refuse(fmt::format("rope_parameters has an object for {}, which is not supported", key),
               ErrorKind::unsupported);
      const bool other = std::ranges::find(kNotFollowed, key) != kNotFollowed.end() && !(value == Value());
      if (other) refuse(fmt::format("rope_parameters has {}, which is not supported", key), ErrorKind::unsupported);
    }
  }
  if (!keys.read_text("rope_type") && !keys.read_text("type") && keys.read_number("factor")) {
    refuse("rope_scaling has a factor but no type", ErrorKind::unsupported);
  }
  std::string type = keys.read_text("rope_type").value_or(keys.read_text("type").value_or("default"));
  if (!options.su.empty() && (type == "su" || type == "yarn")) type = options.su;
  return find_type(type).plan(rope);
}

}  // namespace poise
