// Writes a model to a path, without the options of a conversion.
#include <algorithm>
#include <iterator>
#include <optional>
#include <string>

#include <poise/format.hpp>

#include "family/tied_output.hpp"
#include "formats/format.hpp"
#include "io/sink.hpp"
#include "ops/transform/transform.hpp"

namespace poise {

SaveReport save(const Model& model, const std::filesystem::path& path, std::string_view format,
                const WriteOptions& options) {
  const Format& writer = find_format_by_name(format);
  const auto output = make_saved_output(writer, path, options.overwrite);
  const std::optional<Model> resolved = resolve_tied_output(model);
  const Model& whole = resolved ? *resolved : model;
  auto converted = convert_convention(writer, whole, false);
  const PreparedFile prepared = prepare_file(converted ? converted->model : whole, writer, options);
  prepared.write(*output, options.progress);
  SaveReport report{std::string(writer.info.name), output->bytes(), prepared.losses};
  if (resolved) {
    for (std::size_t i = model.warnings.size(); i < resolved->warnings.size(); ++i)
      report.losses.push_back(resolved->warnings[i].message);
  }
  if (converted) std::ranges::move(converted->losses, std::back_inserter(report.losses));
  output->commit();
  return report;
}

SaveReport save(const Model& model, const std::filesystem::path& path, const WriteOptions& options) {
  return save(model, path, find_output_format(path).info.name, options);
}

}  // namespace poise
