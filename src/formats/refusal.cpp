#include "formats/refusal.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <poise/error.hpp>

#include "family/config_effects.hpp"
#include "views/dense.hpp"

namespace poise {

void refuse_tensor(std::string_view format, const Tensor& tensor, std::string_view why) {
  const std::string reason = why.empty() ? "" : fmt::format(": {}", why);
  Error error(ErrorKind::unsupported,
              fmt::format("{} cannot hold tensor {} ({}){}", format, tensor.name, storage_name(tensor), reason));
  if (has_float_elements(tensor)) error = std::move(error).with({.kind = Remedy::Kind::dtype, .value = "f32"});
  throw std::move(error).with({.kind = Remedy::Kind::skip, .tensor = tensor.name});
}

void require_no_effects(std::string_view format, const Model& model) {
  if (const auto effects = effects_beside_config(model); !effects.empty()) {
    throw Error(ErrorKind::unsupported,
                fmt::format("{} cannot hold keys of config.json without which this is another model: {}", format,
                            fmt::join(effects, "; ")));
  }
}

}  // namespace poise
