// Converts adapters between the forms of PEFT and llama.cpp.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <system_error>

#include <fmt/format.h>

#include <poise/error.hpp>
#include <poise/make_lora.hpp>

#include "bytes/short_text.hpp"
#include "family/check.hpp"
#include "family/config_json.hpp"
#include "family/families.hpp"
#include "family/tensor_table.hpp"
#include "formats/format.hpp"
#include "io/hub_cache.hpp"
#include "io/sink.hpp"
#include "io/source_range.hpp"
#include "model/fault_lists.hpp"
#include "ops/destination.hpp"
#include "ops/lora.hpp"
#include "syntax/json.hpp"

namespace poise {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kConfigFile = "config.json";
constexpr std::uint64_t kMostConfig = 16 << 20;  // bytes
constexpr std::size_t kMostNameBytes = 200;      // of the base's name in a message

// Returns a model with the configuration of a file, and without tensors.
Model read_base_config(const fs::path& path) {
  const SourcePtr source = Source::open(path);
  if (source->size() > kMostConfig)
    throw Error(ErrorKind::invalid_file,
                fmt::format("expected at most {1} bytes, found {0}", source->size(), kMostConfig), path.string());
  Value parsed = parse_json(read_text(*source, source->size()), path.string());
  if (parsed.get_if<Attributes>() == nullptr)
    throw Error(ErrorKind::invalid_file, "JSON: expected an object", path.string());
  Model model;
  model.origin.path = path;
  model.origin.files = {path};
  parse_config(model, std::move(parsed).take<Attributes>(), path.string());
  return model;
}

// Returns true for a directory with a configuration and without weights.
bool is_config_alone(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored) || !fs::is_regular_file(path / kConfigFile, ignored)) return false;
  return std::ranges::none_of(fs::directory_iterator(path), [](const fs::directory_entry& entry) {
    const std::string ending = entry.path().extension().string();
    return ending == ".safetensors" || ending == ".bin";
  });
}

Model open_base(const fs::path& path, const ReadOptions& options) {
  if (path.filename() == kConfigFile) return read_base_config(path);
  if (is_config_alone(path)) return read_base_config(path / kConfigFile);
  return open(path, options);
}

fs::path find_base(const fs::path& given, const std::string& named, const fs::path& adapter) {
  if (!given.empty()) return given;
  std::error_code ignored;
  if (!named.empty() && fs::exists(named, ignored)) return named;
  try {
    if (!named.empty()) {
      if (fs::path found = find_model_path(named); fs::exists(found, ignored)) return found;
    }
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::not_found) throw;
  }
  throw Error(ErrorKind::bad_argument,
              fmt::format("the base model{} is missing, and names and the order of rows depend on it: name the model, "
                          "or its config.json",
                          named.empty() ? "" : fmt::format(" \"{}\"", shorten(named, kMostNameBytes))),
              adapter.string());
}

// Opens the base of an adapter, or its configuration alone. Throws bad_argument if the file is itself an adapter.
Model require_base(const fs::path& path, const ReadOptions& options) {
  Model base = open_base(path, options);
  if (parse_adapter(base, nullptr))
    throw Error(ErrorKind::bad_argument, "this is an adapter: expected the model that it was trained for",
                path.string());
  return base;
}

// Returns why a matrix does not fit the configuration of a base without tensors; std::nullopt if the matrix may fit.
std::optional<std::string> find_misfit(const AdaptedMatrix& matrix, const ConfigView& view, const Family& family) {
  const std::string name = find_table_name(family, matrix.name);
  const auto layer = family.tensors.split_layer_name(name);
  const bool has_layers_name = !family.tensors.layers.empty() && name.starts_with(family.tensors.layers);
  if (has_layers_name && (!layer || layer->number >= view.config.num_hidden_layers))
    return fmt::format("{}: the base has only {} layers", matrix.file_name, view.config.num_hidden_layers);
  const auto shape = family.tensors.find_shape(name, view);
  if (!shape || *shape == matrix.shape() || (name == family.embedding && view.config.vocab_size == 0))
    return std::nullopt;
  return fmt::format("{}: B A is {}, the base's configuration needs {}", matrix.file_name, to_string(matrix.shape()),
                     to_string(*shape));
}

// Checks as require_fit() does, but compares shapes with the configuration of a base without tensors.
void require_fit_to_config(const Adapter& adapter, const Model& base, const std::string& path) {
  const Family& family = find_family_or_llama(base);
  if (!base.config) return;
  const ConfigView view = make_config_view(base);
  if (!check_config(view, family).empty()) return;
  std::vector<std::string> faults;
  for (const AdaptedMatrix& matrix : adapter.matrices) {
    if (auto misfit = find_misfit(matrix, view, family)) add_fault(faults, *std::move(misfit));
  }
  throw_faults(faults, path);
}

// Throws an error that lists the matrices that do not fit the base.
void require_fit(const Adapter& adapter, const Model& base, const std::string& path) {
  if (base.size() == 0) return require_fit_to_config(adapter, base, path);
  const Family& family = find_family_or_llama(base);
  std::vector<std::string> faults;
  for (const AdaptedMatrix& matrix : adapter.matrices) {
    const Tensor* own = find_weight(base, family, matrix.name);
    if (own == nullptr && matrix.name == family.output) continue;
    if (own == nullptr) {
      add_fault(faults, fmt::format("{}: the base has no such matrix", matrix.file_name));
    } else if (const Shape product = matrix.shape(); !(own->shape == product)) {
      add_fault(faults, fmt::format("{}: B A is {}, the base's matrix is {}", matrix.file_name, to_string(product),
                                    to_string(own->shape)));
    }
  }
  throw_faults(faults, path);
}

}  // namespace

ConvertLoraReport convert_lora(const fs::path& adapter, Destination destination, const ConvertLoraOptions& options) {
  const Format& target =
      options.format.empty() ? find_output_format(destination.path()) : find_format_by_name(options.format);
  require_adapter_format(target);
  const Model file = open_adapter(adapter);
  const AdapterForm* const form = find_adapter_form(file);
  const AdapterForm& wanted = choose_adapter_form(target);
  if (form == &wanted)
    throw Error(ErrorKind::bad_argument,
                fmt::format("the adapter has the form of {} already, and {} keeps this form: use a plain conversion",
                            form->name, target.info.name),
                adapter.string());
  const std::string named = form == nullptr ? "" : parse_adapter(file, nullptr)->base_model;
  const Model base = form == nullptr ? Model() : require_base(find_base(options.base, named, adapter), options.read);
  const Adapter found = require_adapter(file, base);
  std::vector<std::string> faults = found.faults;
  for (const AdaptedMatrix& matrix : found.matrices) {
    if (!std::isfinite(matrix.change.scale))
      add_fault(faults, fmt::format("{}: the scale is too large for float32", matrix.file_name));
  }
  throw_faults(faults, file.origin.path.string());
  std::vector<fs::path> inputs = file.origin.files;
  std::ranges::copy(base.origin.files, std::back_inserter(inputs));
  destination.require_possible(target, options.write.overwrite, inputs, options.dry_run);
  const auto make = [&] {
    try {
      return wanted.make(found, base);
    } catch (const Error& error) {
      if (!error.path().empty()) throw;
      throw Error(error.kind(), error.message(), file.origin.path.string());
    }
  };
  const Model made = make();
  require_fit(found, base, file.origin.path.string());
  const PreparedFile prepared = prepare_file(made, target, options.write);
  ConvertLoraReport report;
  report.format = target.info.name;
  report.matrices = found.matrices.size();
  report.warnings = found.deviations;
  report.losses = prepared.losses;
  if (options.dry_run) {
    report.bytes_out = prepared.plan().bytes.value_or(0);
    return report;
  }
  SavedOutput& saved = destination.open(target, options.write.overwrite, std::move(inputs));
  prepared.write(saved, options.write.progress);
  report.bytes_out = saved.bytes();
  saved.commit();
  report.output = destination.path();
  return report;
}

ConvertLoraReport convert_lora(const fs::path& adapter, const fs::path& output, const ConvertLoraOptions& options) {
  return convert_lora(adapter, Destination(output), options);
}

}  // namespace poise
