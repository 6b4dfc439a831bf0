#include "formats/gguf/architectures.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

namespace poise::gguf {
namespace {

constexpr std::string_view kLayers = "blk.";

// If several rows share a model_type, or a name and has_experts, the first counts.
constexpr std::array kArchitectures = {
    &architectures::llama,  &architectures::mistral,     &architectures::mixtral,   &architectures::mistral3,
    &architectures::qwen2,  &architectures::qwen3,       &architectures::qwen3_moe, &architectures::gemma,
    &architectures::gemma2, &architectures::gemma3_text, &architectures::phi3,      &architectures::gpt2,
    &architectures::olmo2,  &architectures::gpt_oss,     &architectures::smollm3,
};

// Parses an expert's number. Returns std::nullopt for other texts, and for leading zeros.
std::optional<std::uint64_t> parse_expert_number(std::string_view digits) {
  std::uint64_t number = 0;
  const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || stop != digits.data() + digits.size() || (digits.size() > 1 && digits.front() == '0'))
    return std::nullopt;
  return number;
}

// Describes how a name matches a pattern. `expert` is the number in place of the *, if the pattern has one.
struct Match {
  std::optional<std::uint64_t> expert;
};
std::optional<Match> match_name(std::string_view pattern, std::string_view name) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == name ? std::optional(Match{}) : std::nullopt;
  const std::string_view end = pattern.substr(star + 1);
  if (!name.starts_with(pattern.substr(0, star)) || !name.ends_with(end) || name.size() < pattern.size())
    return std::nullopt;
  const auto expert = parse_expert_number(name.substr(star, name.size() - star - end.size()));
  return expert ? std::optional(Match{expert}) : std::nullopt;
}

using From = std::string_view NameRow::*;

std::optional<TensorName> translate_name(const Architecture& architecture, std::string_view name, From from, From to,
                                         std::string_view layers_from, std::string_view layers_to) {
  if (const auto row = std::ranges::find(architecture.whole, name, from); row != architecture.whole.end())
    return TensorName{std::string((*row).*to), row->change};
  if (!name.starts_with(layers_from)) return std::nullopt;
  const std::string_view rest = name.substr(layers_from.size());
  const std::size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
  if (digits == 0 || digits == rest.size() || rest[digits] != '.') return std::nullopt;
  for (const NameRow& row : architecture.layer) {
    if (const auto found = match_name(row.*from, rest.substr(digits + 1)))
      return TensorName{fmt::format("{}{}.{}", layers_to, rest.substr(0, digits), row.*to), row.change, found->expert};
  }
  return std::nullopt;
}

}  // namespace

const Architecture* find_named_architecture(std::string_view name, bool has_experts) {
  const Architecture* first = nullptr;
  for (const Architecture* row : kArchitectures) {
    if (row->name != name) continue;
    if (row->has_experts == has_experts) return row;
    if (first == nullptr) first = row;
  }
  return first;
}

const Architecture* find_family_architecture(std::string_view model_type) {
  const auto row = std::ranges::find(kArchitectures, model_type, &Architecture::model_type);
  return row == kArchitectures.end() ? nullptr : *row;
}

std::vector<std::string_view> list_model_types() {
  std::vector<std::string_view> types;
  for (const Architecture* row : kArchitectures) {
    if (std::ranges::find(types, row->model_type) == types.end()) types.push_back(row->model_type);
  }
  return types;
}

std::optional<TensorName> find_poise_name(const Architecture& architecture, std::string_view gguf) {
  return translate_name(architecture, gguf, &NameRow::gguf, &NameRow::canonical, kLayers, architecture.layers);
}

std::optional<TensorName> find_gguf_name(const Architecture& architecture, std::string_view canonical) {
  auto found =
      translate_name(architecture, canonical, &NameRow::canonical, &NameRow::gguf, architecture.layers, kLayers);
  if (found || architecture.omitted.empty()) return found;
  return translate_name(architecture, std::string(architecture.omitted).append(canonical), &NameRow::canonical,
                        &NameRow::gguf, architecture.layers, kLayers);
}

std::string make_expert_name(std::string_view canonical, std::uint64_t expert) {
  const std::size_t star = canonical.find('*');
  return fmt::format("{}{}{}", canonical.substr(0, star), expert, canonical.substr(star + 1));
}

}  // namespace poise::gguf
