// Parses the options of sessions and of the texts that they generate.
#include <fmt/ranges.h>

#include "kernels/cache_type.hpp"
#include "runtime.hpp"

namespace poise::python {
namespace {

float parse_real(std::string_view name, const py::object& given) {
  const double number = is_boolean(given) ? -1 : PyFloat_AsDouble(given.ptr());
  if (is_boolean(given) || PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    throw py::type_error(fmt::format("{} is {}, expected a number", name, make_short_repr(given)));
  }
  return static_cast<float>(number);
}

std::optional<CacheType> parse_cache_type(const py::object& given) {
  if (given.is_none()) return std::nullopt;
  const std::optional<std::string> name = parse_name(given);
  if (const auto type = name ? cache_type_from_name(*name) : std::nullopt) return *type;
  std::vector<std::string_view> names;
  for (const CacheTypeRow& row : list_cache_types()) names.push_back(row.name);
  refuse(fmt::format("cache is {}, expected one of {}", make_short_repr(given), fmt::join(names, ", ")));
}

}  // namespace

GenerateOptions parse_generate_options(const py::dict& given) {
  GenerateOptions options;
  options.max_tokens = parse_whole<std::size_t>("max_tokens", given["max_tokens"]);
  options.sampling = {.temperature = parse_real("temperature", given["temperature"]),
                      .top_k = parse_whole<std::int64_t>("top_k", given["top_k"]),
                      .top_p = parse_real("top_p", given["top_p"]),
                      .seed = parse_whole<std::uint64_t>("seed", given["seed"])};
  if (const py::object stop_id = given["stop_id"]; !stop_id.is_none())
    options.stop_id = parse_whole<TokenId>("stop_id", stop_id);
  SamplingOptions& sampling = options.sampling;
  sampling.min_p = parse_real("min_p", given["min_p"]);
  sampling.repetition_penalty = parse_real("repetition_penalty", given["repetition_penalty"]);
  sampling.presence_penalty = parse_real("presence_penalty", given["presence_penalty"]);
  sampling.frequency_penalty = parse_real("frequency_penalty", given["frequency_penalty"]);
  for (const auto& [token, bias] : py::dict(given["logit_bias"])) {
    sampling.logit_bias.emplace_back(parse_whole<TokenId>("logit_bias", token, 0),
                                     parse_real("logit_bias", py::reinterpret_borrow<py::object>(bias)));
  }
  for (const py::handle stop : py::list(given["stop"])) options.stop.push_back(encode_utf8(stop));
  options.ignore_eos = parse_truth("ignore_eos", given["ignore_eos"]);
  return options;
}

SessionOptions parse_session_options(const py::dict& given) {
  return {.threads = parse_whole<unsigned>("threads", given["threads"]),
          .context = parse_whole<std::size_t>("context", given["context"]),
          .exact = parse_truth("exact", given["exact"]),
          .cache = parse_cache_type(given["cache"])};
}

Prompt parse_prompt(py::handle given) {
  if (PyUnicode_Check(given.ptr())) return encode_utf8(given);
  return parse_token_ids(given);
}

std::size_t parse_layer(const py::object& given, const Weights& weights) {
  const auto layer = parse_whole<std::int64_t>("layer", given);
  const auto count = static_cast<std::int64_t>(weights.layers()) + 1;
  if (layer < -count || layer >= count) {
    refuse(fmt::format("layer is {}, expected 0 (the embedding) to {}, or -{} to -1, which count from the last one",
                       layer, count - 1, count));
  }
  return static_cast<std::size_t>(layer < 0 ? layer + count : layer);
}

}  // namespace poise::python
